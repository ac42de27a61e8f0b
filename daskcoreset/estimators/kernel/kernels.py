"""Isotropic kernels, and the span of the core points in feature space."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import scipy.linalg

from daskcoreset.core.deadline import check_time
from daskcoreset.core.errors import InvalidInputError, InvalidTypeError, warn_user
from daskcoreset.core.linalg import dense, one_thread, product
from daskcoreset.core.typing import AnyArray, FloatArray, IndexArray, Points
from daskcoreset.core.validation import is_choice, is_number

# Kernel as a function of squared distances, element by element.
Profile = Callable[[FloatArray], FloatArray]

# Numbers in a tile of kernel values: 1 MiB, so that the sweeps over it stay in the cache.
_TILE_NUMBERS = 2**17

# The same in float32, 2 MiB, where there are fewer sweeps and longer products.
_SINGLE_NUMBERS = 2**19

# Columns whose ranges differ by more are warned about.
_UNEVEN = 100.0

# Kernel value at the root mean square distance below which the kernel matrix is diagonal.
_VANISHED = 1e-12

# Kernel value above which two rows are hardly told apart, and core points that are looked at.
_ALIKE, _LOOKED_AT = 0.99, 256

# Unit of rounding in float32, and the relative error of values from which float64 is taken.
UNIT, _SINGLE = 2.0**-24, 1e-3

# Squared norm of rows from which float32 is too narrow.
_FAR = 1e30

# Rows of a kernel matrix between two looks at the deadline.
_GRAM_ROWS = 256

_PROBE = np.array([0.0, 0.25, 1.0, 4.0, 100.0])


@dataclass(frozen=True)
class Isotropic:
    r"""A kernel of the squared distance.

    Parameters
    ----------
    name : {"rbf", "laplacian", "callable"}
    gamma : float, default=1.0
        Of "rbf", :math:`e^{-\gamma s}`, and "laplacian", :math:`e^{-\gamma \sqrt s}`, where s is
        the squared Euclidean distance. (`sklearn.metrics.pairwise.laplacian_kernel` takes the
        Manhattan distance instead, which cells of Euclidean distances do not bound.)
    profile : callable, optional
        Of "callable".

    Examples
    --------
    >>> Isotropic("laplacian", 2.0)(np.array([0.0, 1.0])).round(3)
    array([1.   , 0.135])
    """

    name: str
    gamma: float = 1.0
    profile: Profile | None = None

    def __call__(self, squares: FloatArray) -> FloatArray:
        """Return the kernel of squared distances, in an array of their shape."""
        return self.overwrite(np.array(squares, dtype=np.float64))

    def overwrite(self, squares: FloatArray) -> FloatArray:
        """Return the kernel of squared distances, in their place where that is possible."""
        if self.profile is not None:
            return np.asarray(self.profile(squares), dtype=np.float64)
        if self.name == "laplacian":
            np.sqrt(squares, out=squares)
        np.multiply(squares, -self.gamma, out=squares)
        return np.exp(squares, out=squares)


def resolve_gamma(gamma: Any, n_features: int, variance: float) -> float:
    """Return gamma as a number, as in `sklearn.svm.SVC`.

    Parameters
    ----------
    gamma : {"scale", "auto"} or float
        "scale" is ``1 / (d * variance)``, "auto" ``1 / d``.
    n_features : int
    variance : float
        Of all numbers of X.

    Returns
    -------
    float

    Raises
    ------
    InvalidInputError
        If it is neither of the names, nor positive and finite.

    Examples
    --------
    >>> resolve_gamma("scale", 4, 0.5), resolve_gamma("auto", 4, 0.5), resolve_gamma(2, 4, 0.5)
    (0.5, 0.25, 2.0)
    """
    if isinstance(gamma, str) and gamma == "scale":
        return 1.0 / (n_features * variance) if variance > 0 else 1.0
    if isinstance(gamma, str) and gamma == "auto":
        return 1.0 / n_features
    if not is_number(gamma) or not (np.isfinite(float(gamma)) and gamma > 0):
        raise InvalidInputError(
            f'gamma must be "scale", "auto" or a positive number, got {gamma!r}; pass one of these.'
        )
    return float(gamma)


def resolve_kernel(kernel: Any, gamma: float) -> Isotropic:
    """Return the kernel of a name or function.

    Parameters
    ----------
    kernel : {"rbf", "laplacian"} or callable
        A callable takes an array of squared distances and returns k of each; picklable where
        workers are other processes.
    gamma : float
        Of the kernels with a name.

    Returns
    -------
    Isotropic

    Raises
    ------
    InvalidInputError
        If the kernel is not isotropic: another name of scikit-learn's, a callable of two sets of
        rows, or one that is not 1 at 0 and at most 1 elsewhere.
    InvalidTypeError
        If it is neither a name nor callable.

    Examples
    --------
    >>> def cauchy(squares):
    ...     return 1 / (1 + squares)
    >>> resolve_kernel(cauchy, 1.0)(np.array([0.0, 1.0]))
    array([1. , 0.5])
    """
    remedy = (
        'pass "rbf", "laplacian" or a function k(s) of squared distances with k(0) = 1, for '
        "core points stand for rows near them only where the kernel depends on the distance alone."
    )
    if isinstance(kernel, str):
        if not is_choice(kernel, ("rbf", "laplacian")):
            raise InvalidInputError(f"kernel={kernel!r} is not known to be isotropic; {remedy}")
        return Isotropic(kernel, gamma)
    if not callable(kernel):
        raise InvalidTypeError(
            f"kernel must be a name or callable, got {type(kernel).__name__}; {remedy}"
        )
    try:
        values = np.asarray(kernel(_PROBE.copy()), dtype=np.float64)
    except Exception as error:
        raise InvalidInputError(
            f"kernel fails on an array of squared distances ({error}); {remedy}"
        ) from error
    problem = None
    if values.shape != _PROBE.shape:
        problem = f"returns shape {values.shape} for squared distances of shape {_PROBE.shape}"
    elif not abs(values[0] - 1.0) <= 1e-9:
        problem = f"is {values[0]:.6g} at distance zero"
    elif not (np.abs(values) <= 1.0 + 1e-9).all():
        problem = "is above 1, or not finite, at some distance"
    if problem:
        raise InvalidInputError(f"kernel {problem}; {remedy}")
    return Isotropic("callable", profile=kernel)


def warn_unscaled(
    low: FloatArray, high: FloatArray, total_variance: float, kernel: Isotropic
) -> None:
    """Warn where few columns dominate the distance, or the kernel vanishes between most rows."""
    ranges = (high - low)[high > low]
    advice = (
        "scale the features to [0, 1] as the authors do, for example with "
        "sklearn.preprocessing.MinMaxScaler."
    )
    if len(ranges) and ranges.max() > _UNEVEN * ranges.min():
        warn_user(
            f"features are not scaled: the range of one column is {ranges.max():.3g}, of another "
            f"{ranges.min():.3g}, and only the wide ones count in a distance; {advice}"
        )
        return
    usual = float(kernel(np.array([2.0 * total_variance]))[0])
    if usual < _VANISHED:
        warn_user(
            f"features are not scaled to the kernel, which is {usual:.1e} at the root mean square "
            f"distance of two rows: no row sees another one. Lower gamma, or {advice}"
        )


def warn_alike(machine: KernelMap, *, may_learn: bool) -> None:
    """Warn where the kernel hardly tells most of its points apart; some machines learn a better."""
    from scipy.spatial.distance import pdist

    step = -(-len(machine) // _LOOKED_AT)
    some = replace(machine, points=machine.points[::step])
    values = some.gram()[np.triu_indices(len(some), 1)]
    values = values[pdist(some.points, "sqeuclidean") > 0.0]
    if len(values) and (usual := float(np.median(values))) > _ALIKE:
        remedy = (
            "raise gamma, or let metric and gamma be learned" if may_learn else "or raise gamma"
        )
        warn_user(
            f"the kernel is {usual:.6f} between half of the points of the machine, so that it "
            f"hardly tells rows apart: few far rows, columns far from zero or small units make "
            f"gamma too small. Drop or clip far rows, scale the features, for example with "
            f"sklearn.preprocessing.RobustScaler, {remedy}."
        )


class Nearest(NamedTuple):
    """The nearest core point of every row.

    Attributes
    ----------
    cells : ndarray of shape (t,), int64
        The first of several.
    farthest : float
        Largest squared distance of a row from its core point.
    """

    cells: IndexArray
    farthest: float


@dataclass(frozen=True, eq=False)
class KernelMap:
    """Core points and the kernel between them and any rows.

    Attributes
    ----------
    kernel : Isotropic
    points : ndarray of shape (r, d), float64
        Core points.
    scales : ndarray of shape (d,), float64, or None
        Factors of the columns in distances; None for ones.
    """

    kernel: Isotropic
    points: FloatArray
    scales: FloatArray | None = None

    def __len__(self) -> int:
        return len(self.points)

    def gram(self) -> FloatArray:
        """Kernel between the core points, of shape (r, r).

        Distances are formed from differences: equal points have kernel one to the bit.

        Raises
        ------
        InvalidInputError
            If there is no memory for it, as where every row is a core point.

        Examples
        --------
        >>> KernelMap(Isotropic("rbf"), np.array([[0.0], [1.0]])).gram().round(3)
        array([[1.   , 0.368],
               [0.368, 1.   ]])
        """
        from scipy.spatial.distance import cdist

        points = self.points if self.scales is None else self.points * self.scales
        try:
            distances = np.empty((len(points), len(points)))
            for start in range(0, len(points), _GRAM_ROWS):
                check_time("a kernel between core points was being formed", "pass fewer rows")
                part = slice(start, start + _GRAM_ROWS)
                cdist(points[part], points, "sqeuclidean", out=distances[part])
        except MemoryError as error:
            count = len(points)
            raise InvalidInputError(
                f"the kernel between {count:,} core points takes {8 * count**2 / 2**30:,.1f} GiB, "
                f"for which there is no memory; pass a larger diameter, a smaller max_points, or "
                f"fewer rows."
            ) from error
        return self.kernel.overwrite(distances)

    def tiles(
        self, rows: Points, *, nearest: bool = False
    ) -> Iterator[tuple[slice, FloatArray, Nearest | None]]:
        """Kernel between rows and core points, a few rows at a time.

        Parameters
        ----------
        rows : ndarray of shape (n, d) or csr_array
        nearest : bool, default=False
            Whether the nearest core point of every row is returned too; the first of several.

        Yields
        ------
        part : slice
            Of the rows.
        values : ndarray of shape (t, r), float64
            Free to be overwritten.
        nearest : Nearest or None
        """
        for part, squares, _ in self._squares(rows, np.float64):
            nearest_points = None
            if nearest:
                cells = squares.argmin(axis=1)
                gaps = squares[np.arange(len(cells)), cells]
                nearest_points = Nearest(cells, float(gaps.max(initial=0.0)))
            yield part, self.kernel.overwrite(squares), nearest_points

    def single_tiles(self, rows: Points) -> Iterator[tuple[slice, AnyArray, FloatArray]]:
        """Kernel "rbf" as in `tiles` in float32, in half the time.

        Yields
        ------
        part : slice
        values : ndarray of shape (t, r), float32
            Overwritten by those of the next tile.
        squares : ndarray of shape (t,), float64
            Squared norms of the rows, scaled, from the mean of the core points.
        """
        for part, squares, norms in self._squares(rows, np.float32):
            yield part, self.kernel.overwrite(squares), norms.astype(np.float64)

    @property
    def roundings(self) -> float:
        """Unit roundings of float32 in a squared distance, of the size of its terms.

        Of d terms the root of d counts, as rounding errors are independent of one another
        (Higham and Mary, 2019, A new approach to probabilistic rounding error analysis).
        """
        return UNIT * (8.0 + 2.0 * float(np.sqrt(self.points.shape[1] + 2.0)))

    def held(self, rows: Points) -> AnyArray:
        """Kernel between rows and core points, of shape (n, r), in float32.

        It is computed in float64 first where core points are so far apart, for the width of the
        kernel, that float32 would lose digits.
        """
        values = np.empty((rows.shape[0], len(self)), dtype=np.float32)
        widest = 4.0 * float(np.square(self.centers).sum(axis=1).max(initial=0.0))
        if self.kernel.name == "rbf" and self.roundings * self.kernel.gamma * widest < _SINGLE:
            with np.errstate(over="ignore", invalid="ignore", under="ignore"):
                for part, single, norms in self.single_tiles(rows):
                    values[part] = single
                    if not norms.max() < _FAR:
                        self._fill(values[part], rows[part])
        else:
            self._fill(values, rows)
        return values

    def _fill(self, values: AnyArray, rows: Points) -> None:
        for part, double, _ in self.tiles(rows):
            values[part] = double

    @property
    def centers(self) -> FloatArray:
        """Core points from their mean, scaled."""
        # About their mean, an offset that rows and core points share costs no digits.
        centers = self.points - self.points.mean(axis=0)
        return np.asarray(centers if self.scales is None else centers * self.scales)

    def _squares(self, rows: Points, dtype: Any) -> Iterator[tuple[slice, FloatArray, FloatArray]]:
        """Squared distances between rows and core points, and of rows from the mean of those."""
        size, n_features = self.points.shape
        shift, centers = self.points.mean(axis=0), self.centers
        # One product gives |x|^2 - 2 <x, c> + |c|^2.
        right = np.empty((n_features + 2, size), dtype=dtype)
        right[:n_features] = -2.0 * centers.T
        right[n_features] = np.einsum("ij,ij->i", centers, centers)
        right[n_features + 1] = 1.0
        numbers = _SINGLE_NUMBERS if dtype == np.float32 else _TILE_NUMBERS
        step = max(16, numbers // max(size, n_features))
        buffer = np.empty((min(step, rows.shape[0]), n_features + 2), dtype=dtype)
        buffer[:, n_features] = 1.0
        room = np.empty((len(buffer) if dtype == np.float32 else 0, size), dtype=dtype)
        for start in range(0, rows.shape[0], step):
            part = slice(start, min(start + step, rows.shape[0]))
            tile = buffer[: part.stop - start]
            inner, norms = tile[:, :n_features], tile[:, n_features + 1]
            np.subtract(dense(rows[part]), shift, out=inner, casting="same_kind")
            if self.scales is not None:
                np.multiply(inner, self.scales, out=inner, casting="same_kind")
            np.einsum("ij,ij->i", inner, inner, out=norms)
            if dtype == np.float32:
                squares = room[: len(tile)]
                with one_thread():
                    np.matmul(tile, right, out=squares)
            else:
                squares = product(tile, right)
                np.maximum(squares, 0.0, out=squares)  # rounding
            yield part, squares, norms


# Directions of K with a smaller share of its largest eigenvalue are left out: they are below the
# rounding errors of kernel values, and nearly equal core points make many.
_CUT = 1e-11

# Reciprocal of the condition of K, estimated, from which its Cholesky factor is accurate.
_WELL = 1e-6


def _triangular(gram: FloatArray) -> FloatArray | None:
    """Coefficients of an orthonormal basis by the Cholesky factor; None where they lose digits.

    It takes a fraction of the time of eigenvectors.
    """
    lapack = scipy.linalg.lapack
    factor, failed = lapack.dpotrf(gram, lower=0, clean=1)
    if failed:
        return None
    well, _ = lapack.dpocon(factor, float(np.abs(gram).sum(axis=0).max()))
    if not well > _WELL:
        return None
    inverse, _ = lapack.dtrtri(factor)
    return np.ascontiguousarray(inverse)


@dataclass(frozen=True, eq=False)
class Span:
    """Orthonormal coordinates in the span of the core points.

    Attributes
    ----------
    gram : ndarray of shape (r, r), float64
    into : ndarray of shape (r, q), float64
        Coefficients of an orthonormal basis: ``beta = into @ gamma``.
    """

    gram: FloatArray
    into: FloatArray

    @classmethod
    def of(cls, core: KernelMap) -> Span:
        """Find a basis.

        Raises
        ------
        InvalidInputError
            If K has a negative eigenvalue: the kernel is not positive semi-definite.
        """
        gram = core.gram()
        with one_thread():
            into = _triangular(gram)
            if into is not None:
                return cls(gram, into)
            values, vectors = np.linalg.eigh(gram)
        if values[0] < -1e-8 * values[-1]:
            raise InvalidInputError(
                f"kernel is not positive semi-definite: its matrix of the core points has the "
                f"eigenvalue {values[0]:.3g}; pass another one."
            )
        kept = values > _CUT * values[-1]
        return cls(gram, vectors[:, kept] / np.sqrt(values[kept]))

    def coordinates(self, beta: FloatArray) -> FloatArray:
        """Return gamma of coefficients, up to the directions that were left out."""
        return np.asarray(self.into.T @ (self.gram @ beta))

    def gradient(self, beta: FloatArray, of_losses: FloatArray) -> FloatArray:
        """Gradient of the objective at coefficients, from sums over rows of ``a k(c, x)``."""
        with one_thread():
            return np.asarray(self.coordinates(beta) + self.into.T @ of_losses)
