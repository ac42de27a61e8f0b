"""Anything array-like, as aligned blocks of rows."""
