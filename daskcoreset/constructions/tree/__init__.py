"""Merge and reduce: coresets of unions of coresets, at once, row by row, or in a store."""
