"""Products whose bits do not depend on the number of threads, and linear algebra on one thread."""

from __future__ import annotations

import functools
import importlib
import threading
from collections.abc import Iterator
from contextlib import ContextDecorator
from typing import TYPE_CHECKING, Any

import numpy as np
from threadpoolctl import ThreadpoolController  # type: ignore[import-untyped] # no annotations

from daskcoreset.core.typing import AnyArray, FloatArray, Points

if TYPE_CHECKING:
    import scipy.sparse as sp

# Numbers held at a time, 1 MiB in float64: n x k matrices are never formed.
_TILE_NUMBERS = 2**17

# Multiplications of a product of matrices, not of vectors, up to which OpenBLAS takes one thread
# unasked: to ask takes a tenth of a millisecond.
_MAX_ALONE = 2**18


def tiles(n_rows: int, width: int) -> Iterator[slice]:
    """Slices of rows, each of about a MiB in float64 when rows have `width` numbers.

    Examples
    --------
    >>> list(tiles(5, 2**16))
    [slice(0, 2, None), slice(2, 4, None), slice(4, 5, None)]
    """
    step = max(1, _TILE_NUMBERS // max(1, width))
    for start in range(0, n_rows, step):
        yield slice(start, min(start + step, n_rows))


def dense(points: Any) -> FloatArray:
    """Rows as a dense float64 array, which shares memory where it can."""
    rows = points if isinstance(points, np.ndarray) else points.toarray()
    return rows.astype(np.float64, copy=False)


def rows_at(points: Any, positions: Any) -> Any:
    """Return the rows at positions. Whole numbers take half the time that indexing an array does.

    Examples
    --------
    >>> rows_at(np.eye(3), np.array([2, 0]))
    array([[0., 0., 1.],
           [1., 0., 0.]])
    """
    is_whole = isinstance(positions, np.ndarray) and positions.dtype.kind in "iu"
    if is_whole and isinstance(points, np.ndarray):
        return points.take(positions, axis=0)
    return points[positions]


def product(left: FloatArray, right: FloatArray) -> FloatArray:
    """Matrix product whose bits do not depend on the number of threads.

    Around a loop of products `one_thread` saves what it takes to set the thread for each of them.

    Examples
    --------
    >>> product(np.eye(2), np.array([[1.0, 2.0], [3.0, 4.0]]))
    array([[1., 2.],
           [3., 4.]])
    """
    if min(len(left), right.shape[1]) > 1 and len(left) * right.size <= _MAX_ALONE:
        out: FloatArray = left @ right
    else:
        with one_thread():
            out = left @ right
    return out


def dense_rows(points: Any) -> AnyArray:
    """Return rows as an array in C order, whether they are sparse or not."""
    return np.ascontiguousarray(points if isinstance(points, np.ndarray) else points.toarray())


def read_only(rows: AnyArray, dtype: Any = None) -> AnyArray:
    """Return rows as loops take them: in C order, and as a view that cannot be written.

    For numba each kind of array is a type, and a loop is compiled for each.
    """
    view = np.ascontiguousarray(rows, dtype).view()
    view.flags.writeable = False
    return view


def row_tiles(points: Any) -> Iterator[tuple[slice, FloatArray]]:
    """Go through rows as loops take them, in float64, about a MiB at a time.

    A tile is valid until the next one, which may take its place. Workers of Dask return freed
    memory to the system, so that room for every tile would take as long as the work in it.
    """
    room = np.empty((0, 0))
    for rows in tiles(*points.shape):
        tile = points[rows] if isinstance(points, np.ndarray) else points[rows].toarray()
        if tile.dtype != np.float64:
            room = room if len(room) else np.empty(tile.shape)  # the first tile is the longest
            room[: len(tile)] = tile
            tile = room[: len(tile)]
        yield rows, read_only(tile)


def csr_rows(points: Points) -> sp.csr_array:
    """Return rows as a CSR array, whether they are sparse or not."""
    import scipy.sparse as sp  # slow to import

    return sp.csr_array(points)


_lock = threading.Lock()

_inside = 0

_before: list[int] = []


@functools.cache
def _libraries() -> list[Any]:
    # To look the libraries up takes milliseconds, to set their threads microseconds. SciPy
    # brings a library of its own, which must be there when they are looked up.
    importlib.import_module("scipy.linalg")
    return list(ThreadpoolController().select(user_api="blas").lib_controllers)


def _release(library: Any) -> None:
    # threadpoolctl 3.8 lets the thread alone that was the first set OpenBLAS, until it releases
    # it: calls of all others do nothing, without a word.
    if hasattr(library, "clear_controlling_thread"):
        library.clear_controlling_thread(force=True)


def _set_threads(numbers: list[int]) -> None:
    for library, number in zip(_libraries(), numbers, strict=True):
        _release(library)
        library.set_num_threads(number)


class _OneThread(ContextDecorator):
    """The first body that is entered sets one thread, the last one that is left undoes it."""

    def __enter__(self) -> None:
        global _inside, _before  # noqa: PLW0603 - a setting of the process
        with _lock:
            if not _inside:
                _before = [library.num_threads for library in _libraries()]
                _set_threads([1] * len(_before))
            _inside += 1

    def __exit__(self, *_: object) -> None:
        global _inside  # noqa: PLW0603 - as above
        with _lock:
            _inside -= 1
            if not _inside:
                _set_threads(_before)
                for library in _libraries():
                    _release(library)


def one_thread() -> _OneThread:
    """Let BLAS and LAPACK use one thread in the body, or in a function that this decorates.

    The number of threads decides how a product or a factorisation is cut, and so its last bits.
    The setting is one of the process, and can be made in any thread: the first of several bodies
    that overlap makes it, and the last one undoes it. BLAS of other threads has one thread for
    so long, too. If one of them changes the setting by threadpoolctl meanwhile, that does
    nothing, so that bodies should be short.

    Notes
    -----
    On two busy cores a product of 262 x 22 by 22 x 500 took 250 times as long with two threads
    of BLAS as with one.

    Examples
    --------
    >>> with one_thread():
    ...     pass
    """
    return _ONE_THREAD


_ONE_THREAD = _OneThread()


def inner_products(points: Points, vectors: FloatArray) -> FloatArray:
    """Inner product of every row with every vector.

    Parameters
    ----------
    points : ndarray of shape (n, d) or csr_array, float32 or float64
    vectors : ndarray of shape (q, d), float64

    Returns
    -------
    ndarray of shape (n, q), float64
        Summed in float64.

    Examples
    --------
    >>> inner_products(np.eye(2, dtype=np.float32), np.array([[3.0, 4.0]]))
    array([[3.],
           [4.]])
    """
    from daskcoreset.core import loops_numba as loops

    n, q = points.shape[0], len(vectors)
    if not isinstance(points, np.ndarray):
        sparse: Any = points
        return np.ascontiguousarray(sparse @ np.ascontiguousarray(vectors.T), dtype=np.float64)
    out, vectors = np.empty((n, q)), read_only(vectors, np.float64)
    for rows, tile in row_tiles(points):
        loops.inner_products(tile, vectors, out[rows])
    return out


def squared_distances(points: AnyArray, center: FloatArray) -> FloatArray:
    """Squared Euclidean distance of every row to one center.

    Parameters
    ----------
    points : ndarray of shape (n, d), float32 or float64
    center : ndarray of shape (d,), float64

    Returns
    -------
    ndarray of shape (n,), float64
        Differences are formed before they are squared: no cancellation under an offset.

    Examples
    --------
    >>> squared_distances(np.array([[3.0, 4.0], [0.0, 0.0]]), np.zeros(2))
    array([25.,  0.])
    """
    from daskcoreset.core import loops_numba as loops

    out, center = np.empty(points.shape[0]), np.ascontiguousarray(center, np.float64)
    if center.shape != points.shape[1:]:  # the loop does not look
        raise ValueError(f"center has the shape {center.shape}, and rows {points.shape[1:]}")
    loops.squared_distances(read_only(points), center, out)
    return out


def unit_rows(points: Points) -> tuple[Points, FloatArray]:
    """Divide every row by its length, formed in float64.

    Parameters
    ----------
    points : ndarray of shape (n, d), C order, or csr_array; float32 or float64

    Returns
    -------
    points : ndarray or csr_array
        A copy, of the same dtype. Rows whose length is one, to rounding, are as they were, so that
        to do it twice changes nothing; so are rows of zeros, and rows with NaN or infinity.
    lengths : ndarray of shape (n,), float64
        Lengths of the rows as given. NaN where a value is NaN or infinite.

    Examples
    --------
    >>> unit_rows(np.array([[3.0, 4.0], [0.0, 0.0], [1e200, 0.0]]))[0]
    array([[0.6, 0.8],
           [0. , 0. ],
           [1. , 0. ]])
    """
    from daskcoreset.core import loops_numba as loops

    sparse: Any = None if isinstance(points, np.ndarray) else points
    values = points.reshape(-1) if sparse is None else sparse.data
    n, d = points.shape
    bounds = np.arange(n + 1) * d if sparse is None else sparse.indptr.astype(np.int64)
    out, lengths = np.empty_like(values), np.empty(n)
    slack = 16.0 * float(np.finfo(values.dtype).eps)
    for rows in tiles(n, d):
        ends = bounds[rows.start : rows.stop + 1]
        numbers = slice(ends[0], ends[-1])
        part = values[numbers].astype(np.float64)
        loops.unit_rows(part, ends - ends[0], slack, lengths[rows])
        out[numbers] = part
    if sparse is None:
        return out.reshape(n, d), lengths
    import scipy.sparse as sp

    return sp.csr_array((out, sparse.indices, sparse.indptr), shape=(n, d)), lengths


def row_sums(points: sp.csr_array, values: FloatArray) -> FloatArray:
    """Add up, for every row, numbers that belong to its stored entries."""
    rows = np.repeat(np.arange(points.shape[0]), np.diff(points.indptr))
    return np.bincount(rows, weights=values, minlength=points.shape[0]).astype(np.float64)


# Share of the variance of a column that is added to it: directions of less variance cannot be told
# from rounding where rows lie far from the origin.
_RIDGE = 1e-6


def inverse_root(matrix: FloatArray) -> FloatArray:
    r"""Return R with :math:`R R^T = (S + \text{ridge})^{-1}`, the ridge relative to every column.

    R is an upper triangle.

    Parameters
    ----------
    matrix : ndarray of shape (d, d), float64
        S, symmetric with no negative eigenvalue but by rounding.

    Examples
    --------
    >>> inverse_root(np.diag([4.0, 0.0])).round(6)
    array([[0.5, 0. ],
           [0. , 0. ]])
    """
    from scipy.linalg import solve_triangular  # slow to import

    shape, inverse = _of_one_scale(matrix)
    lower = np.linalg.cholesky(shape + _RIDGE * np.eye(len(shape)))
    root: FloatArray = solve_triangular(lower, np.diag(inverse), lower=True, check_finite=False).T
    return root


def scatter_root(matrix: FloatArray) -> FloatArray:
    r"""Return R with :math:`R^T R = S`, as accurate in columns of small spread as in others.

    Parameters
    ----------
    matrix : ndarray of shape (d, d), float64
        S, symmetric with no negative eigenvalue but by rounding.

    Examples
    --------
    >>> root = scatter_root(np.diag([1e40, 1e-40]))
    >>> np.linalg.svd(root)[1]
    array([1.e+20, 1.e-20])
    """
    values, vectors = np.linalg.eigh(_of_one_scale(matrix)[0])
    scale = np.sqrt(np.diagonal(matrix))
    root: FloatArray = np.sqrt(values.clip(0.0))[:, np.newaxis] * vectors.T * scale
    return root


def ridge_coefficients(
    matrix: FloatArray, alpha: float, *, rcond: float | None = None
) -> FloatArray:
    r"""Return the coefficients of the least penalised cost.

    Columns may be of any units, and depend on one another.

    Parameters
    ----------
    matrix : ndarray of shape (d + 1, d + 1), float64
        Scatter of the columns and the target, which is the last.
    alpha : float
        Weight of the squared length of the coefficients.
    rcond : float or None, default=None
        Share of the largest eigenvalue of the scaled columns below which one is rounding. None is
        that of `numpy.linalg.lstsq`.

    Returns
    -------
    ndarray of shape (d,), float64

    Examples
    --------
    >>> spread = np.array([1e18, 1.0])
    >>> ridge_coefficients(np.block([[np.diag(spread**2), spread[:, None]], [spread, 2.0]]), 0.0)
    array([1.e-18, 1.e+00])
    """
    d = len(matrix) - 1
    scaled, inverse = _of_one_scale(matrix[:d, :d] + alpha * np.eye(d))
    solution: Any = np.linalg.lstsq(scaled, inverse * matrix[:d, d], rcond=rcond)
    coef: FloatArray = inverse * solution[0]
    return coef


def flat_directions(matrix: FloatArray) -> FloatArray:
    """Return an orthonormal basis of the directions along which columns that vary say the same.

    Parameters
    ----------
    matrix : ndarray of shape (d, d), float64
        A scatter matrix.

    Returns
    -------
    ndarray of shape (d, r), float64

    Examples
    --------
    >>> abs(flat_directions(np.array([[1.0, 1.0], [1.0, 1.0]]))).round(3)
    array([[0.707],
           [0.707]])
    """
    scaled, inverse = _of_one_scale(matrix)
    varies = inverse > 0.0
    values, vectors = np.linalg.eigh(scaled[np.ix_(varies, varies)])
    rounding = len(values) * np.finfo(np.float64).eps * values.max(initial=0.0)
    flat = vectors[:, values <= rounding] * inverse[varies, np.newaxis]
    basis = np.zeros((len(matrix), flat.shape[1]))
    basis[varies] = np.linalg.qr(flat)[0]
    return basis


def _of_one_scale(matrix: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Multiply rows and columns so that the diagonal is one. Return the factors as well.

    Factors of a zero on the diagonal are zero.
    """
    scale = np.sqrt(np.diagonal(matrix))
    inverse = np.divide(1.0, scale, out=np.zeros_like(scale), where=scale > 0.0)
    return matrix * inverse[:, np.newaxis] * inverse, inverse
