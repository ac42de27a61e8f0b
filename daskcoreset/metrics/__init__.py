"""Costs over all data, audits, sizes, and pictures of them."""
