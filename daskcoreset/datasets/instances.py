"""Instances from the literature that are built by rule, not drawn from a mixture."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from daskcoreset.core.errors import InvalidInputError
from daskcoreset.core.random import RandomState, resolve_seed
from daskcoreset.core.typing import AnyArray, FloatArray, IndexArray
from daskcoreset.datasets.lazy import (
    Chunks,
    Part,
    block_stream,
    check_count,
    check_dtype,
    check_real,
    lazy_arrays,
    lazy_rows,
    rows_per_block,
)

if TYPE_CHECKING:
    import dask.array as da
    import numpy.typing as npt


def make_benchmark(
    k: int = 10,
    alpha: int = 5,
    *,
    beta: float = 1.0,
    chunks: Chunks = "auto",
    dtype: npt.DTypeLike = "float32",
) -> da.Array:
    r"""Benchmark instance for k-means coresets, which has `alpha` different optima.

    Row i is written with `alpha` digits in base k. Every digit becomes k columns: its unit
    vector less :math:`1/k`, times :math:`\beta^{-j}` for digit j, the lowest one first. For
    :math:`\beta = 1` grouping the rows by any one digit costs the same,
    :math:`n (\alpha - 1)(k - 1)/k`, while the groups of two digits cut across each other.
    All rows are equally far from the mean, so no draw by distance can gain anything.

    Parameters
    ----------
    k : int, default=10
        Clusters, and size of a block of columns; at least 2.
    alpha : int, default=5
        Digits.
    beta : float, default=1.0
        Factor, at least 1, by which a block of columns is smaller than the one before.
    chunks : int or "auto", default="auto"
        Rows per block; "auto" makes blocks of about 16 MiB.
    dtype : dtype, default="float32"
        float32 or float64.

    Returns
    -------
    X : dask.array.Array of shape (k ** alpha, k * alpha)
        The rows, in order of their number. Nothing about them is random.

    Raises
    ------
    InvalidInputError
        If an argument lies outside its range, or there would be too many blocks.
    InvalidTypeError
        If an argument is of the wrong type.

    References
    ----------
    Schwiegelshohn and Sheikh-Omar, "An Empirical Evaluation of k-Means Coresets", ESA 2022.

    Examples
    --------
    >>> make_benchmark(2, 2, dtype="float64").compute()
    array([[ 0.5, -0.5,  0.5, -0.5],
           [-0.5,  0.5,  0.5, -0.5],
           [ 0.5, -0.5, -0.5,  0.5],
           [-0.5,  0.5, -0.5,  0.5]])
    """
    k = check_count("k", k, minimum=2)
    alpha = check_count("alpha", alpha, minimum=1)
    beta = check_real("beta", beta, minimum=1)
    recipe = _Benchmark(k=k, alpha=alpha, beta=beta, dtype=check_dtype(dtype))
    if alpha * math.log2(k) > 1000:  # a power that takes long alone
        raise InvalidInputError(f"alpha is {alpha}, which gives {k}^{alpha} rows; pass less.")
    n, d = k**alpha, k * alpha
    rows = rows_per_block(chunks, n=n, d=d, dtype=recipe.dtype)
    return lazy_rows(recipe.points, kind="benchmark", rows=rows, shape=(n, d), dtype=recipe.dtype)


@dataclass(frozen=True)
class _Benchmark:
    k: int
    alpha: int
    beta: float
    dtype: np.dtype[Any]

    def points(self, _block: int, start: int, stop: int) -> AnyArray:
        numbers = np.arange(start, stop)
        powers = self.k ** np.arange(self.alpha)
        digits = numbers[:, None] // powers % self.k
        units = digits[:, :, None] == np.arange(self.k)
        scale = self.beta ** -np.arange(self.alpha, dtype=np.float64)
        points: FloatArray = (units - 1 / self.k) * scale[:, None]
        return points.reshape(stop - start, self.k * self.alpha).astype(self.dtype)


def make_svm_pathological(
    n: int = 1000,
    *,
    separation: float = 20.0,
    spread: float = 1.0,
    gap: float = 0.1,
    chunks: Chunks = "auto",
    dtype: npt.DTypeLike = "float32",
    random_state: RandomState = None,
) -> tuple[da.Array, da.Array]:
    """Two far clusters of opposite labels, and two rows close to each other between them.

    The two rows alone decide where a classifier must turn, and a uniform sample hardly
    ever holds them.

    Parameters
    ----------
    n : int, default=1000
        Rows, at least 4. Labels alternate; the last two rows are the close ones.
    separation : float, default=20.0
        Distance between the centres of the clusters, on the first axis.
    spread : float, default=1.0
        Standard deviation of the clusters in each coordinate.
    gap : float, default=0.1
        Distance between the two close rows, which lie on the first axis about the origin,
        each on the side of its own cluster.
    chunks, dtype, random_state
        As for `daskcoreset.datasets.make_mixture`.

    Returns
    -------
    X : dask.array.Array of shape (n, 2)
        Points of the plane.
    y : dask.array.Array of shape (n,), int8
        Labels +1 and -1.

    Raises
    ------
    InvalidInputError
        If an argument lies outside its range.
    InvalidTypeError
        If an argument is of the wrong type.

    Notes
    -----
    The source describes the set in one sentence; distances and places are choices made here.

    References
    ----------
    Tukan, Baykal, Feldman, Rus, "On Coresets for Support Vector Machines", arXiv:2002.06469,
    section 6.

    Examples
    --------
    >>> X, y = make_svm_pathological(dtype="float64", random_state=0)
    >>> X[-2:].compute().tolist(), y[-2:].compute().tolist()
    ([[0.05, 0.0], [-0.05, 0.0]], [1, -1])
    """
    n = check_count("n", n, minimum=4)
    recipe = _Pathological(
        seed=resolve_seed(random_state),
        n=n,
        separation=check_real("separation", separation, minimum=0),
        spread=check_real("spread", spread, minimum=0),
        gap=check_real("gap", gap, minimum=0),
        dtype=check_dtype(dtype),
    )
    return lazy_arrays(recipe, "svm-pathological", chunks, shape=(n, 2), label_dtype=np.int8)


@dataclass(frozen=True)
class _Pathological:
    seed: int
    n: int
    separation: float
    spread: float
    gap: float
    dtype: np.dtype[Any]

    def labels(self, _block: int, start: int, stop: int) -> AnyArray:
        # The last two rows are +1 and -1 whether n is even or odd.
        return _signs(self.n - np.arange(start, stop))

    def points(self, block: int, start: int, stop: int) -> AnyArray:
        labels = self.labels(block, start, stop)
        rng = block_stream(self.seed, Part.POINTS, block)
        points = self.spread * rng.standard_normal((stop - start, 2))
        points[:, 0] += labels * (self.separation / 2)
        close = np.arange(start, stop) >= self.n - 2
        points[close, 0] = labels[close] * (self.gap / 2)
        points[close, 1] = 0
        return points.astype(self.dtype)


def make_svm_lower_bound(
    d: int = 10, *, chunks: Chunks = "auto", dtype: npt.DTypeLike = "float32"
) -> tuple[da.Array, da.Array]:
    r"""Every choice of d/2 columns out of d, scaled to length one: no small coreset exists.

    The row of a choice S with label y has :math:`y \sqrt{2/d}` in the columns of S and zero
    in the others. The classifier with :math:`\sqrt{d/2}` in the columns outside S has
    hinge loss 1 on that row and 0 on all the others, so each of the n rows has, with the
    objective :math:`|w|^2/2 + \lambda \sum_i [1 - y_i \langle x_i, w \rangle]_+`, a
    sensitivity of at least :math:`(n\lambda + d^2) / (n(\lambda + d^2))`. Their sum is of
    the order of n for any :math:`\lambda` that does not vanish, and n is exponential in d.

    Parameters
    ----------
    d : int, default=10
        Columns: even, from 2 to 64. There are ``comb(d, d // 2)`` rows: 252 for 10,
        184,756 for 20, 155,117,520 for 30.
    chunks : int or "auto", default="auto"
        Rows per block; "auto" makes blocks of about 16 MiB.
    dtype : dtype, default="float32"
        float32 or float64.

    Returns
    -------
    X : dask.array.Array of shape (comb(d, d // 2), d)
        One row for each choice, in lexicographic order. The entry of one for the bias,
        which the source appends, is left to the solver.
    y : dask.array.Array of shape (comb(d, d // 2),), int8
        Labels +1 and -1 in turn. The bound holds for any labels.

    Raises
    ------
    InvalidInputError
        If `d` is odd or outside its range, or `chunks` or `dtype` is not valid.
    InvalidTypeError
        If an argument is of the wrong type.

    References
    ----------
    Tukan, Baykal, Feldman, Rus, "On Coresets for Support Vector Machines", arXiv:2002.06469,
    Lemma 1.

    Examples
    --------
    >>> X, y = make_svm_lower_bound(2, dtype="float64")
    >>> X.compute().tolist(), y.compute().tolist()
    ([[1.0, 0.0], [0.0, -1.0]], [1, -1])
    """
    d = check_count("d", d, minimum=2)
    if d % 2 or d > 64:
        raise InvalidInputError(f"d must be even and at most 64, got {d}; pass for example d=10.")
    recipe = _LowerBound(d=d, dtype=check_dtype(dtype))
    shape = (math.comb(d, d // 2), d)
    return lazy_arrays(recipe, "svm-lower-bound", chunks, shape=shape, label_dtype=np.int8)


@dataclass(frozen=True)
class _LowerBound:
    d: int
    dtype: np.dtype[Any]

    def labels(self, _block: int, start: int, stop: int) -> AnyArray:
        return _signs(np.arange(start, stop))

    def points(self, block: int, start: int, stop: int) -> AnyArray:
        rank = np.arange(start, stop)
        missing = np.full(stop - start, self.d // 2)
        points = np.zeros((stop - start, self.d), dtype=self.dtype)
        value = self.labels(block, start, stop) * math.sqrt(2 / self.d)
        for column in range(self.d):
            # How many of the remaining choices hold this column; they come first in order.
            after = self.d - column - 1
            holding = np.array(
                [0] + [math.comb(after, size - 1) for size in range(1, self.d // 2 + 1)]
            )[missing]
            taken = rank < holding
            points[taken, column] = value[taken]
            rank = np.where(taken, rank, rank - holding)
            missing = missing - taken
        return points


def _signs(numbers: IndexArray) -> AnyArray:
    """Labels +1 of even and -1 of odd numbers."""
    return np.where(numbers % 2 == 0, 1, -1).astype(np.int8)
