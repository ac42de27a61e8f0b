"""Zarr groups that are written whole or not at all, and object stores."""
