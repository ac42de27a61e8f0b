"""Figures that asv follows from commit to commit."""
