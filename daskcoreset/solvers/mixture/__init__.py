"""Gaussian mixtures in memory."""
