"""Dask graphs, clients and progress."""
