"""Coverage coresets: core points such that every row is near one."""

from daskcoreset.constructions.coverage.cover import Coverage, cover
from daskcoreset.constructions.coverage.result import Cover

__all__ = ["Cover", "Coverage", "cover"]
