r"""Kernels, and separators: what gives every row its side and its distance.

Only the core set is needed to tell the margin of a row, with a kernel, too:
:math:`f(x) = \sum_i a_i y_i k(x_i, x)`, so that a block is never compared with another.
"""

from __future__ import annotations
from daskcoreset.core.tiles import dense_rows

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from scipy.spatial.distance import cdist

from daskcoreset.core.validation import check_count, check_number
from daskcoreset.core.errors import InvalidInputError, InvalidTypeError
from daskcoreset.core.margin_products import inner_products, squared_lengths

if TYPE_CHECKING:
    from daskcoreset.core.typing import FloatArray, Points

__all__ = ["KERNELS", "Kernel", "KernelLike", "Separator"]

KERNELS = ("linear", "rbf", "poly", "sigmoid")

KernelLike: TypeAlias = str | Callable[[Any, Any], Any]
"""What a ``kernel`` argument may be."""

_TILE_NUMBERS = 2**17
"""Kernel values, or numbers of sparse rows spread out, at a time: 1 MiB."""


@dataclass(frozen=True)
class Kernel:
    r"""A kernel and its parameters, named as in `sklearn.svm.SVC`.

    Attributes
    ----------
    name : {"linear", "rbf", "poly", "sigmoid"} or callable, default="linear"
        ``name(A, B)`` gives the matrix of values for the rows of two matrices. The bits of
        the result are as repeatable as those of the callable.
    gamma : float, default=1.0
    degree : int, default=3
    coef0 : float, default=0.0

    Examples
    --------
    >>> Kernel("poly", degree=2)(np.eye(2), np.ones((1, 2))).tolist()
    [[1.0], [1.0]]
    >>> Kernel("rbf").diagonal(np.eye(2))
    array([1., 1.])
    """

    name: KernelLike = "linear"
    gamma: float = 1.0
    degree: int = 3
    coef0: float = 0.0

    def __post_init__(self) -> None:
        if not callable(self.name) and self.name not in KERNELS:
            raise InvalidInputError(
                f"kernel is {self.name!r}; pass one of {', '.join(KERNELS)}, or a callable."
            )
        check_number("gamma", self.gamma)
        check_number("coef0", self.coef0)
        check_count("degree", self.degree, 0)
        if not np.isfinite(self.gamma) or self.gamma <= 0 or not np.isfinite(self.coef0):
            raise InvalidInputError(
                f"gamma is {self.gamma} and coef0 is {self.coef0}; pass a positive gamma and a "
                f"finite coef0."
            )

    @property
    def is_linear(self) -> bool:
        """Whether the separator is a vector."""
        return self.name == "linear"

    def __call__(self, points: Points, others: Points) -> FloatArray:
        """Values for every pair, float64 of shape (n, m)."""
        if callable(self.name):
            found = np.asarray(self.name(points, others), dtype=np.float64)
            wanted = (points.shape[0], others.shape[0])
            if found.shape != wanted:
                raise InvalidTypeError(
                    f"kernel returned shape {found.shape} for {wanted[0]} and {wanted[1]} rows; "
                    f"return a matrix with a value for every pair."
                )
            return found
        rows = dense_rows(others).astype(np.float64)
        if self.name == "rbf":
            # Formed from differences: a common offset costs no digits.
            squares = cdist(dense_rows(points).astype(np.float64), rows, "sqeuclidean")
            near: FloatArray = np.exp(-self.gamma * squares)
            return near
        return self._of_products(inner_products(points, rows))

    def diagonal(self, points: Points) -> FloatArray:
        """Value of every row with itself, float64 of shape (n,)."""
        if self.name == "rbf":
            return np.ones(points.shape[0])
        if not callable(self.name):
            return self._of_products(squared_lengths(points))
        rows = [points[i : i + 1] for i in range(points.shape[0])]
        return np.array([float(self(row, row)[0, 0]) for row in rows])

    def _of_products(self, products: FloatArray) -> FloatArray:
        if self.name == "linear":
            return products
        inner = self.gamma * products + self.coef0
        found: FloatArray = inner**self.degree if self.name == "poly" else np.tanh(inner)
        return found


@dataclass(frozen=True, eq=False)
class Separator:
    r"""A function of rows whose sign is the class; its zero set is a hyperplane.

    Attributes
    ----------
    kernel : Kernel
    w : ndarray of shape (d,), float64, or None
        Unit normal; None with a kernel.
    rows : ndarray of shape (s, d) or csr_array, or None
        Core points with a coefficient; None without a kernel.
    coefficients : ndarray of shape (s,), float64, or None
        :math:`a_i y_i`, scaled so that the normal has length one.
    intercept : float, default=0.0

    Examples
    --------
    >>> Separator(Kernel(), np.array([1.0, 0.0]), intercept=-2.0)(np.eye(2))
    array([-1., -2.])
    """

    kernel: Kernel
    w: FloatArray | None = None
    rows: Points | None = None
    coefficients: FloatArray | None = None
    intercept: float = 0.0

    def __call__(self, points: Points) -> FloatArray:
        """Signed distance of every row from the boundary, float64 of shape (n,)."""
        return self.projections(points) + self.intercept

    def projections(self, points: Points) -> FloatArray:
        """Inner product of every row with the unit normal, float64 of shape (n,)."""
        if self.w is not None:
            return inner_products(points, self.w[None])[:, 0]
        assert self.rows is not None  # noqa: S101 - one of the two is there
        assert self.coefficients is not None  # noqa: S101 - with the rows
        n = points.shape[0]
        tile = max(1, _TILE_NUMBERS // max(self.rows.shape[0], points.shape[1]))
        out = np.empty(n)
        for start in range(0, n, tile):
            values = np.ascontiguousarray(self.kernel(points[start : start + tile], self.rows))
            out[start : start + tile] = inner_products(values, self.coefficients[None])[:, 0]
        return out
