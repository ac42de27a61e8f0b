"""Type aliases shared by the package."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    import scipy.sparse as sp

# float64 vector or matrix: scores, weights, sums.
FloatArray: TypeAlias = npt.NDArray[np.float64]

# int64 vector: row numbers, counts.
IndexArray: TypeAlias = npt.NDArray[np.int64]

# Booleans.
MaskArray: TypeAlias = npt.NDArray[np.bool_]

# NumPy array of any dtype: labels and dense points.
AnyArray: TypeAlias = npt.NDArray[Any]

# Rows of a block: a dense float32 or float64 array of shape (n, d), or CSR.
Points: TypeAlias = "npt.NDArray[np.floating[Any]] | sp.csr_array"


Sampling = Literal["systematic", "multinomial"]

# How far rows are apart; by "cosine" they are divided by their lengths when they are read.
Metric = Literal["euclidean", "cosine"]

# How to treat chunks that a store does not have.
MissingChunks = Literal["raise", "fill"]
