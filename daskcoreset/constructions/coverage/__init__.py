"""Coverage coresets: core points such that every row is near one."""

from daskcoreset.constructions.coverage.cover import Cover, Coverage, cover

__all__ = ["Cover", "Coverage", "cover"]
