"""Shared processes, counting sources and schedulers, blocks cut by hand, statistical assertions."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

import dask
import numpy as np
import scipy.sparse as sp
import scipy.stats
from dask.multiprocessing import get_context, initialize_worker_process
from hypothesis import assume, strategies as st

from daskcoreset.constructions.sampling.final_draw import FinalDraw, Selection
from daskcoreset.constructions.sampling.job import SamplingJob
from daskcoreset.core.blocks import Block
from daskcoreset.core.linalg import one_thread
from daskcoreset.core.typing import AnyArray, FloatArray, Sampling
from daskcoreset.inputs.blocks import BlockSpec, RowBlocks, row_blocks
from daskcoreset.inputs.sources import array_source
from daskcoreset.sensitivities import Sensitivity

_N_WORKERS = 2


@cache
def shared_pool() -> ProcessPoolExecutor:
    """Two processes for Dask's scheduler "processes"; they end with the program.

    Returns
    -------
    ProcessPoolExecutor
        To be given as ``dask.config.set(scheduler="processes", pool=shared_pool())``: without it
        every compute starts processes of its own.
    """
    return ProcessPoolExecutor(
        _N_WORKERS, mp_context=get_context(), initializer=initialize_worker_process
    )


@cache
def shared_cluster() -> Any:
    """Two worker processes of one thread each; they end with the program.

    Connect with ``with Client(shared_cluster()):``. No client stays connected: it would become
    the default scheduler of every other test.

    Returns
    -------
    distributed.LocalCluster
        At any port, for the usual ones may be taken.

    Raises
    ------
    ImportError
        If distributed is not installed.
    """
    import distributed

    return distributed.LocalCluster(
        n_workers=_N_WORKERS, threads_per_worker=1, processes=True, dashboard_address=":0"
    )


class CountingScheduler:
    """A Dask scheduler that counts how often it is called, and then runs synchronously.

    Examples
    --------
    >>> import dask.array as da
    >>> scheduler = CountingScheduler()
    >>> with dask.config.set(scheduler=scheduler):
    ...     lazy = da.ones(4, chunks=2).sum()
    >>> scheduler.calls
    0
    """

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, graph: Any, keys: Any, **options: Any) -> Any:
        """Run a graph, as Dask asks schedulers to."""
        self.calls += 1
        return dask.get(graph, keys, **options)


@dataclass(eq=False)
class CountingArray:
    """Rows with shape, dtype and slicing that count how often each of them is read.

    Examples
    --------
    >>> rows = CountingArray(np.zeros((3, 2)))
    >>> rows[1:].shape, rows.reads
    ((2, 2), array([0, 1, 1]))
    """

    array: AnyArray
    reads: Any = field(init=False)

    def __post_init__(self) -> None:
        self.reads = np.zeros(len(self.array), dtype=np.int64)

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the array."""
        return self.array.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        """Data type of the array."""
        return self.array.dtype

    def __getitem__(self, index: Any) -> AnyArray:
        self.reads[index] += 1
        rows: AnyArray = self.array[index]
        return rows


def cut_rows(X: Any, sizes: Sequence[int], sample_weight: Any = None, y: Any = None) -> RowBlocks:
    """Cut rows in memory into blocks of the given sizes, zero among them.

    Examples
    --------
    >>> cut_rows(np.zeros((5, 2)), [3, 0, 2]).sizes
    (3, 0, 2)
    """
    parts = {"X": X, "y": y, "sample_weight": sample_weight}
    sources = {name: array_source(part) for name, part in parts.items() if part is not None}
    stops = np.cumsum(sizes).tolist()
    specs = tuple(
        BlockSpec(
            block_index,
            {name: source.loader(stop - size, stop) for name, source in sources.items()},
        )
        for block_index, (size, stop) in enumerate(zip(sizes, stops, strict=True))
    )
    return replace(row_blocks(X, y, sample_weight), specs=specs, sizes=tuple(sizes))


def draw(
    blocks: RowBlocks,
    construction: Sensitivity[Any],
    size: int,
    *,
    sampling: Sampling = "systematic",
    passes: int = 1,
    seed: int = 0,
) -> Selection:
    """Draw as a build does, from blocks in memory and without Dask, for thousands of seeds.

    Parameters
    ----------
    blocks : RowBlocks
    construction : Sensitivity
    size : int
    sampling : {"systematic", "multinomial"}, default="systematic"
    passes : {1, 2}, default=1
    seed : int, default=0

    Returns
    -------
    Selection

    Examples
    --------
    >>> from daskcoreset.sensitivities import Uniform
    >>> selection = draw(cut_rows(np.zeros((9, 1)), [4, 5]), Uniform(), 3)
    >>> selection.weights
    array([3., 3., 3.])
    """
    job = SamplingJob(
        blocks, FinalDraw(construction, size, sampling, seed), passes, split_every=2
    )  # two at a time: the deepest tree
    with one_thread():  # set once for all steps, as a build does
        return job.select_now()


def assert_mean(estimates: FloatArray, expected: FloatArray, rate: float = 1e-6) -> None:
    """Assert that independent estimates have the expected means.

    Parameters
    ----------
    estimates : ndarray of shape (n_estimates, n_quantities)
    expected : ndarray of shape (n_quantities,)
    rate : float, default=1e-6
        False-alarm rate of all quantities together: a t-test of each at this rate over
        their number (Bonferroni), by the normal approximation of means.

    Examples
    --------
    >>> assert_mean(np.random.default_rng(0).normal(size=(100, 2)), np.zeros(2))
    >>> assert_mean(np.random.default_rng(0).normal(size=(100, 2)), np.ones(2))
    Traceback (most recent call last):
    ...
    AssertionError: means differ from [1. 1.] by [-10.986  -9.465] standard errors, more than 5.4
    """
    count, quantities = estimates.shape
    # Rounding counts where an estimate hardly varies, such as a total weight.
    rounding = 1e-9 * np.abs(expected) + np.finfo(np.float64).tiny
    errors = np.maximum(estimates.std(axis=0, ddof=1) / np.sqrt(count), rounding)
    z = (estimates.mean(axis=0) - expected) / errors
    limit = scipy.stats.t.isf(rate / (2 * quantities), count - 1)
    if np.abs(z).max() > limit:
        with np.printoptions(precision=3):
            raise AssertionError(
                f"means differ from {expected} by {z} standard errors, more than {limit:.2g}"
            )


def assert_multinomial(counts: Any, probability: FloatArray, rate: float = 1e-6) -> None:
    """Assert that counts are those of independent draws with the given probabilities.

    Two tests: a chi-square test of all counts together, which sees a wrong distribution, and
    one of the sum of the chi-square statistics of single samples, which sees draws that are
    too even (strata, rounded quotas) or too uneven (copies).

    Parameters
    ----------
    counts : array-like of shape (n_samples, n_cells), int
        Every row counts the same number of draws.
    probability : ndarray of shape (n_cells,)
        Of a cell in one draw; where it is zero, counts must be zero.
    rate : float, default=1e-6
        False-alarm rate of both tests together.

    Examples
    --------
    >>> half = np.array([0.5, 0.5])
    >>> assert_multinomial(np.random.default_rng(0).multinomial(10, half, 100), half)
    >>> assert_multinomial(np.full((100, 2), 5), half)
    Traceback (most recent call last):
    ...
    AssertionError: draws are too even: dispersion -7.45 standard errors from multinomial
    """
    counts = np.asarray(counts)
    possible = probability > 0
    if counts[:, ~possible].any():
        raise AssertionError("cells of probability zero were drawn")
    counts, p = counts[:, possible], probability[possible] / probability.sum()
    draws = counts.sum(axis=1)[0]
    pooled = counts.sum(axis=0)
    expected = pooled.sum() * p
    if expected.min() < 20:
        raise ValueError(f"only {expected.min():.1f} draws expected in a cell; draw more samples")
    chance = scipy.stats.chi2.sf(((pooled - expected) ** 2 / expected).sum(), len(p) - 1)
    if chance < rate / 2:
        ratio = pooled / expected
        raise AssertionError(f"draws have other probabilities, by factors of {ratio}")
    # Mean and variance of Pearson's statistic for a finite number of draws.
    statistics = ((counts - draws * p) ** 2 / (draws * p)).sum(axis=1)
    cells = len(p)
    variance = 2 * (cells - 1) + ((1 / p).sum() - cells**2 - 2 * cells + 2) / draws
    z = (statistics.mean() - (cells - 1)) / np.sqrt(variance / len(counts))
    if abs(z) > scipy.stats.norm.isf(rate / 4):
        raise AssertionError(
            f"draws are too {'uneven' if z > 0 else 'even'}: dispersion {z:.2f} standard errors "
            f"from multinomial"
        )


_SHAPES = ("normal", "sorted", "outlier", "constant", "duplicates", "grid", "single", "empty")
_WEIGHTS = ("ones", "integers", "heavy tail", "one row")


@st.composite
def row_sets(
    draw: st.DrawFn, *, max_blocks: int = 4, weights: Sequence[str] = _WEIGHTS
) -> list[Block]:
    """Hypothesis strategy of neighbouring blocks that differ as much as possible.

    Parameters
    ----------
    max_blocks : int, default=4
    weights : sequence of str
        Kinds of weights to choose from: "ones", "integers" (zero among them), "heavy tail",
        "one row" (all others zero).

    Returns
    -------
    SearchStrategy of list of Block
        Blocks with labels 0 and 1 and read-only arrays, in float32 or float64; among them
        empty and constant blocks, single rows, outliers of 1e6 times the spread, and
        offsets of 1e6. Their weights are positive in total.
    """
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    dtype = draw(st.sampled_from([np.float64, np.float32]))
    n_features = draw(st.integers(1, 4))
    offset = draw(st.sampled_from([0.0, 1.0, -1e6]))
    # Spreads that float32 can hold beside the offset.
    spread = draw(st.sampled_from([1.0, 1e3] if offset else [1e-6, 1.0, 1e3]))
    blocks = []
    for _ in range(draw(st.integers(1, max_blocks))):
        points = _points(rng, draw(st.sampled_from(_SHAPES)), n_features)
        points = (points + draw(st.sampled_from([0.0, 30.0]))) * spread + offset
        u = _weights(rng, draw(st.sampled_from(list(weights))), len(points))
        labels = rng.integers(0, 2, len(points))
        blocks.append(Block(_frozen(points.astype(dtype)), _frozen(u), _frozen(labels)))
    assume(sum(block.weights.sum() for block in blocks) > 0)
    return blocks


def _points(rng: np.random.Generator, shape: str, n_features: int) -> FloatArray:
    sizes = {"single": 1, "empty": 0}
    n_rows = sizes.get(shape, int(rng.integers(2, 30)))
    points = rng.normal(size=(n_rows, n_features))
    if shape == "sorted":
        points.sort(axis=0)
    elif shape == "outlier":
        points[rng.integers(n_rows)] *= 1e6
    elif shape == "constant":
        points[:] = points[0]
    elif shape == "duplicates":
        points = points[rng.integers(0, 2, n_rows)]
    elif shape == "grid":
        points = np.round(points)
    return points


def _weights(rng: np.random.Generator, kind: str, n_rows: int) -> FloatArray:
    if kind == "ones":
        return np.ones(n_rows)
    if kind == "integers":
        return rng.integers(0, 4, n_rows).astype(np.float64)
    if kind == "heavy tail":
        return np.asarray(rng.lognormal(0.0, 3.0, n_rows))
    u = np.zeros(n_rows)
    u[: min(1, n_rows)] = 2.5
    return u


def _frozen(array: Any) -> Any:
    # As blocks of a memory map opened for reading are.
    array.flags.writeable = False
    return array


def joined_blocks(blocks: Sequence[Block]) -> Block:
    """Return the rows of all blocks as one block."""
    return Block(
        np.concatenate([np.asarray(block.points) for block in blocks]),
        np.concatenate([block.weights for block in blocks]),
        np.concatenate([np.asarray(block.labels) for block in blocks]),
    )


def sparse_block(block: Block) -> Block:
    """Return the same rows in CSR form."""
    return replace(block, points=sp.csr_array(block.points))
