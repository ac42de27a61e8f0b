"""Kernel machines on core points."""
