"""Kernels, separators, and the evidence that no separator exists."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

import numpy as np

from daskcoreset.core.deadline import check_time
from daskcoreset.core.errors import InvalidInputError, InvalidTypeError
from daskcoreset.core.linalg import dense_rows, inner_products, squared_lengths
from daskcoreset.core.typing import AnyArray, FloatArray, IndexArray, Points
from daskcoreset.core.validation import check_count, check_number, is_choice

KERNELS = ("linear", "rbf", "poly", "sigmoid")

# What a ``kernel`` argument may be.
KernelLike: TypeAlias = str | Callable[[Any, Any], Any]

# Kernel values, or numbers of sparse rows spread out, at a time: 1 MiB.
_TILE_NUMBERS = 2**17


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
        if not callable(self.name) and not is_choice(self.name, KERNELS):
            raise InvalidInputError(
                f"kernel is {self.name!r}; pass one of {', '.join(KERNELS)}, or a callable."
            )
        check_number("gamma", self.gamma)
        check_number("coef0", self.coef0)
        check_count("degree", self.degree, 0)
        for name in ("gamma", "coef0"):
            object.__setattr__(self, name, float(getattr(self, name)))
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
        from scipy.spatial.distance import cdist

        if callable(self.name):
            try:
                values = np.asarray(self.name(points, others), dtype=np.float64)
            except TypeError as error:
                raise InvalidTypeError(
                    f"kernel failed ({error}); it gets two arrays of rows and returns a matrix."
                ) from error
            n, m = points.shape[0], others.shape[0]
            if values.shape != (n, m):
                raise InvalidTypeError(
                    f"kernel returned shape {values.shape} for {n} and {m} rows; "
                    f"return a matrix with a value for every pair."
                )
            return values
        rows = dense_rows(others).astype(np.float64)
        if self.name == "rbf":
            # Formed from differences: a common offset costs no digits.
            squares = cdist(dense_rows(points).astype(np.float64), rows, "sqeuclidean")
            return np.asarray(np.exp(-self.gamma * squares))
        return self._of_products(inner_products(points, rows))

    def diagonal(self, points: Points) -> FloatArray:
        """Value of every row with itself, float64 of shape (n,)."""
        if self.name == "rbf":
            return np.ones(points.shape[0])
        if not callable(self.name):
            return self._of_products(squared_lengths(points))
        values = np.empty(points.shape[0])
        for i in range(len(values)):
            check_time("a kernel was being called for every row", "pass a quicker kernel")
            row = points[i : i + 1]
            values[i] = self(row, row)[0, 0]
        return values

    def _of_products(self, products: FloatArray) -> FloatArray:
        if self.name == "linear":
            return products
        inner = self.gamma * products + self.coef0
        return np.asarray(inner**self.degree if self.name == "poly" else np.tanh(inner))


@dataclass(frozen=True, eq=False)
class Separator:
    r"""A function of rows whose sign is the class and whose zero set is a hyperplane.

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


# Rows named in a message; all of them are attributes of the error.
_MAX_NAMED = 6


class InseparableError(InvalidInputError):
    """No separator agrees with all labels; the error has the evidence.

    Attributes
    ----------
    indices : ndarray of int64
        Rows of the evidence: a convex combination of those of one class equals one of the
        other (without a bias: of rows times labels is zero). One of their labels is wrong, or
        the classes overlap.
    coefficients : ndarray of float64
        Of that combination.
    """

    def __init__(self, message: str, indices: IndexArray, coefficients: FloatArray) -> None:
        super().__init__(message)
        self.indices = indices
        self.coefficients = coefficients

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (str(self), self.indices, self.coefficients)


class NotSeparableError(InseparableError):
    r"""No hyperplane of the kind asked for separates the classes.

    The evidence can be checked by hand. Through the origin,
    :math:`\sum_i a_i y_i x_i` is zero up to `norm`, with :math:`a_i > 0` and sum one: for any w
    the mean of :math:`y_i \langle w, x_i\rangle` so weighted is then zero, so that not all are
    positive. With an intercept :math:`\sum_i a_i x_i` over one class equals that over the
    other, each with sum one: the hulls of the classes meet.

    Parameters
    ----------
    indices : ndarray of shape (s,), int64
        Row numbers.
    labels : ndarray of shape (s,)
    coefficients : ndarray of shape (s,), float64
        Positive.
    norm : float
        Length of the combination.
    intercept : bool
        Which of the two kinds.
    duplicates : tuple of int or None, default=None
        Numbers of two equal rows with opposite labels, where these are the reason.
    """

    def __init__(
        self,
        indices: IndexArray,
        labels: AnyArray,
        coefficients: FloatArray,
        norm: float,
        *,
        intercept: bool,
        duplicates: tuple[int, int] | None = None,
    ) -> None:
        self.labels = labels
        self.norm = norm
        self.intercept = intercept
        self.duplicates = duplicates
        self.indices, self.coefficients = indices, coefficients  # the message names them
        super().__init__(self._message(), indices, coefficients)

    def __reduce__(self) -> tuple[object, ...]:
        # An exception is otherwise made again from its message.
        options: dict[str, Any] = {"intercept": self.intercept, "duplicates": self.duplicates}
        evidence = (self.indices, self.labels, self.coefficients, self.norm)
        return partial(type(self), **options), evidence

    def with_duplicates(self, duplicates: tuple[int, int]) -> NotSeparableError:
        """Return the error with two equal rows of opposite labels as its reason."""
        evidence = (self.indices, self.labels, self.coefficients, self.norm)
        return NotSeparableError(*evidence, intercept=self.intercept, duplicates=duplicates)

    def _message(self) -> str:
        remedy = (
            "drop wrong rows, use a kernel, or use OutlierMaxMarginClassifier or a soft margin."
        )
        if self.duplicates is not None:
            first, second = self.duplicates
            return (
                f"X has equal rows with opposite labels, {first} and {second}, which nothing "
                f"separates; {remedy}"
            )
        if len(self.indices) == 1:
            return (
                f"X is zero at row {self.indices[0]}, which lies on every hyperplane through the "
                f"origin; use an intercept, or drop the row."
            )
        named = ", ".join(str(row) for row in self.indices[:_MAX_NAMED])
        more = len(self.indices) - _MAX_NAMED
        named += f" and {more} more" if more > 0 else ""
        kind, reason = "", "the hulls of the two classes meet"
        if not self.intercept:
            kind = " through the origin"
            reason = "a convex combination of rows times labels is zero"
            remedy = f"use an intercept, {remedy}"
        return (
            f"X and y are not separable by a hyperplane{kind}: {reason}, with coefficients on the "
            f"rows {named} and length {self.norm:.2g}; {remedy}"
        )


def opposite_duplicates(
    points: AnyArray, signs: FloatArray, indices: IndexArray
) -> tuple[int, int] | None:
    """Find two equal rows with opposite signs.

    Parameters
    ----------
    points : ndarray of shape (m, d)
    signs : ndarray of shape (m,), float64
    indices : ndarray of shape (m,), int64

    Returns
    -------
    tuple of int or None
        Their row numbers, the smaller one first.

    Examples
    --------
    >>> rows = np.array([[1.0], [2.0], [1.0]])
    >>> opposite_duplicates(rows, np.array([1.0, 1.0, -1.0]), np.array([4, 7, 2]))
    (2, 4)
    """
    order = np.lexsort([indices, *points.T[::-1]])
    same = (points[order[1:]] == points[order[:-1]]).all(axis=1)
    runs = np.cumsum(np.concatenate([[True], ~same]))
    for run in np.unique(runs[1:][same]):
        members = order[runs == run]
        plus, minus = members[signs[members] > 0], members[signs[members] < 0]
        if len(plus) and len(minus):
            pair = sorted((int(indices[plus].min()), int(indices[minus].min())))
            return pair[0], pair[1]
    return None
