"""Estimators of the largest margin."""
