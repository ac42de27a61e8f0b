"""Data to try things on: lazy generators, hard instances, and loaders of real sets.

The generators return Dask arrays of any size and compute nothing until asked. Every block
has a stream of its own, addressed by the seed and the number of the block, so the bits do
not depend on the scheduler or on the number of workers; they do depend on ``chunks``,
because a block is the unit that is drawn. Points and labels are separate arrays with one
task for each block, so reading the labels does not draw the points.
"""

from __future__ import annotations

from daskcoreset.datasets.hard import (
    make_geometric,
    make_giants,
    make_hidden,
    make_near_mean,
)
from daskcoreset.datasets.instances import (
    make_benchmark,
    make_svm_lower_bound,
    make_svm_pathological,
)
from daskcoreset.datasets.loaders import BUNDLED, Dataset, available, load, load_bundled
from daskcoreset.datasets.mixtures import make_heavy_tailed, make_imbalanced, make_mixture

__all__ = [
    "BUNDLED",
    "Dataset",
    "available",
    "load",
    "load_bundled",
    "make_benchmark",
    "make_geometric",
    "make_giants",
    "make_heavy_tailed",
    "make_hidden",
    "make_imbalanced",
    "make_mixture",
    "make_near_mean",
    "make_svm_lower_bound",
    "make_svm_pathological",
]
