# ruff: noqa: S101 - a suite of tests asserts
"""The contract of a sensitivity as a suite of tests, and the tools it is made of.

The test of a new construction subclasses `SensitivityContract`::

    class TestLightweight(SensitivityContract):
        def construction(self) -> Lightweight:
            return Lightweight()

Nothing else of the package imports this module. It needs pytest and hypothesis
(``pip install "daskcoreset[test]"``), and the markers ``statistical`` and ``distributed``
registered with pytest.
"""

from __future__ import annotations

import json
import pickle
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from importlib.resources import files
from typing import Any, Literal

import dask
import dask.array as da
import numpy as np
import pytest
import scipy.sparse as sp
import scipy.stats
from dask.base import tokenize
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from daskcoreset.blocks import Block
from daskcoreset.build import build
from daskcoreset.coreset import Coreset
from daskcoreset.inputs import BlockSpec, RowBlocks, row_blocks
from daskcoreset.passes import Lazy, fold_now
from daskcoreset.randomness import Stage, stream
from daskcoreset.root import Root, Selection
from daskcoreset.rounds import (
    Census,
    Combine,
    Harvest,
    Plan,
    Sampling,
    Summarise,
    TakePlanned,
    Weigh,
)
from daskcoreset.sensitivities import Sensitivity
from daskcoreset.sources import ArraySource
from daskcoreset.typing import AnyArray, FloatArray

__all__ = [
    "CountingArray",
    "CountingScheduler",
    "SensitivityContract",
    "assert_mean",
    "assert_multinomial",
    "cut_rows",
    "draw",
    "row_sets",
]

Mode = tuple[Sampling, Literal[1, 2]]


# --- tools -------------------------------------------------------------------------------


class CountingScheduler:
    """A Dask scheduler that counts how often it is called, and then runs synchronously.

    Examples
    --------
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
    given_parts = {"X": X, "y": y, "sample_weight": sample_weight}
    sources = {name: ArraySource(part) for name, part in given_parts.items() if part is not None}
    stops = np.cumsum(sizes).tolist()
    specs = tuple(
        BlockSpec(
            number,
            **{name: source.loader(stop - size, stop) for name, source in sources.items()},
        )
        for number, (size, stop) in enumerate(zip(sizes, stops, strict=True))
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
    """Do what a build does with blocks in memory, without Dask: for thousands of seeds.

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
    root = Root(construction, size, sampling, seed)
    combine = Combine(construction)

    def read(some: RowBlocks, leaf: Any, given: Any = None) -> Census:
        # Two at a time: the deepest tree.
        census: Census = fold_now(some, leaf, combine, given=given, split_every=2)
        return census

    def reread(numbers: list[int], leaf: TakePlanned, plan: Plan) -> Census:
        return read(blocks.select(numbers), leaf, plan)

    if passes == 1:
        n_rows, n_blocks = blocks.n_rows, blocks.n_blocks
        harvest = Harvest(construction, sampling, seed, root.candidates, n_rows, n_blocks)
        return root.finish_harvest(read(blocks, harvest), reread)
    census = root.settle(read(blocks, Summarise(construction, seed)))
    for fold in range(1, construction.folds):
        census = read(blocks, Summarise(construction, seed, fold), census.summary)
        census = root.settle(census, fold)
    if sampling == "multinomial" and not construction.masses_are_exact:
        sums = read(blocks, Weigh(construction), census.summary)
        census = replace(census, masses=sums.masses)
    plan = root.plan(census)
    second = read(blocks, TakePlanned(construction, sampling, seed), plan)
    return root.finish_planned(census, plan, second)


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


# --- data --------------------------------------------------------------------------------

_SHAPES = ("normal", "sorted", "outlier", "constant", "duplicates", "grid", "single", "empty")
_WEIGHTS = ("ones", "integers", "heavy tail", "one row")


@st.composite
def row_sets(
    draw: st.DrawFn, *, max_blocks: int = 4, weights: Sequence[str] = _WEIGHTS
) -> list[Block]:
    """Hypothesis strategy of neighbouring blocks that are as unlike each other as can be.

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


def _joined(blocks: Sequence[Block]) -> Block:
    return Block(
        np.concatenate([np.asarray(block.points) for block in blocks]),
        np.concatenate([block.weights for block in blocks]),
        np.concatenate([np.asarray(block.labels) for block in blocks]),
    )


def _sparse(block: Block) -> Block:
    return replace(block, points=sp.csr_array(block.points))


# --- the contract ------------------------------------------------------------------------

# Subclasses run the same property on instances of their own.
_property = settings(
    deadline=None,
    suppress_health_check=[HealthCheck.differing_executors, HealthCheck.too_slow],
)


class SensitivityContract(ABC):
    """What every sensitivity promises; subclass it and say which construction is meant.

    A statistical test fails by chance with probability 1e-6 at most, over the seeds; the
    seeds are fixed, so that a failure stays one.
    """

    @abstractmethod
    def construction(self) -> Sensitivity[Any]:
        """Return the construction under test."""

    def data(self) -> tuple[FloatArray, FloatArray, AnyArray]:
        """Return X, sample_weight and y for whole builds: some hundred rows.

        By default 303 sorted rows in two clusters with one outlier, a third of them
        duplicates, with weights of which some are zero, and labels 0 and 1.
        """
        rng = np.random.default_rng(5)
        near, far = rng.normal(size=(160, 3)), rng.normal(20.0, 1.0, size=(40, 3))
        X = np.concatenate([near, near[:60], far, far, [[0.0, 300.0, 0.0]] * 3])
        X = X[np.argsort(X[:, 0], kind="stable")]
        weights = rng.integers(0, 4, len(X)) * rng.lognormal(size=len(X))
        return X, weights, (X[:, 1] > 0).astype(np.int64)

    size = 40
    """Rows of the coresets of `data`."""

    n_seeds = 400
    """Coresets over which an estimator is averaged."""

    # What follows is final: a contract that is overridden is none.

    def summaries(self, blocks: Sequence[Block], reverse: bool = False) -> tuple[list[Any], Any]:
        """Fold `blocks` as often as the construction asks for; return locals and merged."""
        construction, merged = self.construction(), None
        locals_: list[Any] = []
        for fold in range(construction.folds):
            locals_ = [
                construction.summarise(block, merged, stream(0, Stage.SUMMARIES, number, fold))
                for number, block in enumerate(blocks)
            ]
            merged = (
                _nested(construction, locals_) if reverse else reduce(construction.merge, locals_)
            )
            merged = construction.settle(merged, stream(0, Stage.SETTLING, 0, fold))
        return locals_, merged

    def _skip_if_randomised(self) -> None:
        if self.construction().randomised:
            pytest.skip("summaries are random: other blocks, other numbers")

    def scores(self, block: Block, summary: Any) -> FloatArray:
        """Return the scores of `block` by component, after looking at their form."""
        scores = self.construction().scores(block, summary)
        assert scores.dtype == np.float64, f"scores are {scores.dtype}, not float64"
        assert scores.ndim == 2, f"scores have shape {scores.shape}, not (n_components, n)"
        assert scores.shape[1] == len(block), f"{scores.shape[1]} scores for {len(block)} rows"
        return scores

    @property
    def modes(self) -> Iterator[Mode]:
        """Ways to draw that the construction supports."""
        construction = self.construction()
        yield "systematic", 2
        yield "multinomial", 2
        if construction.folds == 1:
            yield "systematic", 1
            if construction.proposal_bound is not None:
                yield "multinomial", 1

    def lazy_builds(self) -> list[Lazy[Coreset]]:
        """Define a build in every mode, over uneven Dask blocks."""
        X, weights, y = self.data()
        n_rows = len(X)
        sizes = (n_rows // 2, 0, 1, n_rows - n_rows // 2 - 1)
        parts = [
            da.from_array(part, chunks=(sizes, *part.shape[1:]), asarray=True)
            for part in (X, y, weights)
        ]
        return [
            build(
                parts[0],
                parts[1],
                sample_weight=parts[2],
                size=self.size,
                method=self.construction(),
                sampling=sampling,
                passes=passes,
                random_state=11,
                split_every=2,
                compute=False,
            )
            for sampling, passes in self.modes
        ]

    # Scores

    @given(blocks=row_sets())
    @_property
    def test_scores__finite_nonnegative_positive_in_total(self, blocks: list[Block]) -> None:
        """Scores are numbers by which rows can be drawn; rows without weight are not."""
        _, summary = self.summaries(blocks)
        total = 0.0
        for block in blocks:
            scores = self.scores(block, summary)
            assert np.isfinite(scores).all(), f"scores are not finite: {scores}"
            assert (scores >= 0).all(), f"scores are negative: {scores}"
            positive = scores.sum(axis=0) > 0
            # A row with weight but without a score could never be drawn: biased.
            assert (positive == (block.weights > 0)).all(), "scores and weights differ in zeros"
            total += scores.sum()
        assert total > 0, "all scores are zero"

    @given(blocks=row_sets())
    @_property
    def test_masses__are_sums_of_scores(self, blocks: list[Block]) -> None:
        """What the root believes of a block is what the block finds."""
        construction = self.construction()
        if not construction.masses_are_exact:
            pytest.skip("masses are estimates")
        locals_, summary = self.summaries(blocks)
        sums = [self.scores(block, summary).sum(axis=1) for block in blocks]
        masses = [construction.masses(local, summary) for local in locals_]
        _assert_close(np.stack(masses, axis=1), np.stack(sums, axis=1))

    @given(blocks=row_sets())
    @_property
    def test_scores__sparse_equals_dense(self, blocks: list[Block]) -> None:
        """Storage changes nothing."""
        _, dense = self.summaries(blocks)
        _, sparse = self.summaries([_sparse(block) for block in blocks])
        expected = [self.scores(block, dense) for block in blocks]
        found = [self.scores(_sparse(block), sparse) for block in blocks]
        _assert_close(np.concatenate(found, axis=1), np.concatenate(expected, axis=1))

    @given(blocks=row_sets(weights=["integers"]))
    @_property
    def test_scores__integer_weight_counts_as_repeated_rows(self, blocks: list[Block]) -> None:
        """A row of weight 3 scores what three rows score together, and weight 0 is absence."""
        self._skip_if_randomised()
        repeated = [
            Block(
                np.repeat(np.asarray(block.points), block.weights.astype(int), axis=0),
                np.ones(int(block.weights.sum())),
                np.repeat(np.asarray(block.labels), block.weights.astype(int)),
            )
            for block in blocks
        ]
        _, by_weight = self.summaries(blocks)
        _, by_copies = self.summaries(repeated)
        found = np.concatenate([self.scores(block, by_weight) for block in blocks], axis=1)
        copies = np.concatenate([self.scores(block, by_copies) for block in repeated], axis=1)
        weights = _joined(blocks).weights.astype(int)
        source = np.repeat(np.arange(len(weights)), weights)
        sums = [np.bincount(source, component, minlength=len(weights)) for component in copies]
        _assert_close(found, np.array(sums))

    @given(blocks=row_sets())
    @_property
    def test_proposal_bound__holds_for_every_row(self, blocks: list[Block]) -> None:
        """No row's q exceeds the bound times its block's share times its local score."""
        construction = self.construction()
        bound = construction.proposal_bound
        if bound is None or construction.folds > 1:
            pytest.skip("no draws from one read by rejection")
        locals_, summary = self.summaries(blocks)
        masses = [construction.masses(local, summary).sum() for local in locals_]
        for block, local, mass in zip(blocks, locals_, masses, strict=True):
            proposal = self.scores(block, local).sum(axis=0)
            target = self.scores(block, summary).sum(axis=0)
            if mass > 0:
                allowed = bound * mass * proposal / proposal.sum()
                excess = target - allowed * (1 + 1e-7)
                assert (excess <= 1e-10 * sum(masses)).all(), (
                    f"q exceeds {bound} Q_i p by {excess.max()} at row {excess.argmax()}"
                )

    # Summaries

    @given(blocks=row_sets())
    @_property
    def test_merge__associative(self, blocks: list[Block]) -> None:
        """The shape of the tree changes nothing but rounding."""
        self._skip_if_randomised()
        _, left = self.summaries(blocks)
        _, right = self.summaries(blocks, reverse=True)
        self._assert_same_scores(blocks, left, right)

    @given(blocks=row_sets())
    @_property
    def test_summary__independent_of_chunking(self, blocks: list[Block]) -> None:
        """Blocks merged say what one block of all rows says."""
        self._skip_if_randomised()
        _, merged = self.summaries(blocks)
        _, whole = self.summaries([_joined(blocks)])
        self._assert_same_scores(blocks, merged, whole)

    @given(blocks=row_sets())
    @_property
    def test_merge__empty_block_is_neutral(self, blocks: list[Block]) -> None:
        """An empty block is ordinary, adds nothing and owns nothing."""
        self._skip_if_randomised()
        construction = self.construction()
        empty = blocks[0].take(np.empty(0, dtype=np.int64))
        _, summary = self.summaries(blocks)
        locals_, padded = self.summaries([empty, *blocks, empty])
        self._assert_same_scores(blocks, summary, padded)
        assert not construction.masses(locals_[0], padded).any(), "an empty block has a mass"
        assert self.scores(empty, summary).size == 0

    @given(blocks=row_sets())
    @_property
    def test_summarise__leaves_its_arguments_alone(self, blocks: list[Block]) -> None:
        """Summaries are values: repeatable, picklable, and not changed by a merge."""
        construction = self.construction()
        locals_, summary = self.summaries(blocks)
        before = pickle.dumps(locals_)
        reduce(construction.merge, locals_)
        assert pickle.dumps(locals_) == before, "merging changed what was merged"
        assert pickle.dumps(self.summaries(blocks)[0]) == before, "other summaries at a repeat"
        copy = pickle.loads(pickle.dumps(summary))  # noqa: S301 - bytes of our own
        for block in blocks:
            assert (construction.scores(block, copy) == construction.scores(block, summary)).all()

    def _assert_same_scores(self, blocks: Sequence[Block], first: Any, second: Any) -> None:
        whole = _joined(blocks)
        _assert_close(self.scores(whole, second), self.scores(whole, first))

    # Draws

    @pytest.mark.statistical
    def test_draws__unbiased_for_every_query(self) -> None:
        """Costs of near and far centers and the total weight are right on average.

        False-alarm rate: 1e-6 for all modes together.
        """
        X, weights, y = self.data()
        n_rows = len(X)
        sizes = [n_rows // 3, 0, 1, n_rows // 3, 2, n_rows - 2 * (n_rows // 3) - 3]
        blocks = cut_rows(X, sizes, weights, y)
        queries = _queries(X)
        exact = queries @ weights
        modes = list(self.modes)
        for sampling, passes in modes:
            estimates = np.empty((self.n_seeds, len(queries)))
            for seed in range(self.n_seeds):
                selection = draw(
                    blocks,
                    self.construction(),
                    self.size,
                    sampling=sampling,
                    passes=passes,
                    seed=seed,
                )
                assert (selection.rows.points == X[selection.indices]).all()
                estimates[seed] = queries[:, selection.indices] @ selection.weights
            assert_mean(estimates, exact, rate=1e-6 / len(modes))

    # Builds

    def test_build__computes_nothing_before_it_is_asked(self) -> None:
        """Zero computes while graphs are defined; then one, and one for blocks read again."""
        scheduler = CountingScheduler()
        with dask.config.set(scheduler=scheduler):
            lazy = self.lazy_builds()
            assert scheduler.calls == 0, f"{scheduler.calls} computes while defining graphs"
            coreset = lazy[0].compute()
        assert scheduler.calls == 1
        assert len(coreset) > 0

    def test_build__same_bits_on_local_schedulers(self) -> None:
        """Synchronous, threads and processes agree to the last bit, in every mode."""
        expected = _computed(self.lazy_builds(), scheduler="synchronous")
        for scheduler in ("threads", "processes"):
            found = _computed(self.lazy_builds(), scheduler=scheduler, num_workers=2)
            for one, other in zip(expected, found, strict=True):
                assert one.equals(other), f"other bits on {scheduler}"

    @pytest.mark.distributed
    def test_build__same_bits_on_a_cluster(self) -> None:
        """A cluster of two processes agrees with the synchronous scheduler."""
        distributed = pytest.importorskip("distributed")
        expected = _computed(self.lazy_builds(), scheduler="synchronous")
        options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": None}
        with distributed.LocalCluster(**options) as cluster, distributed.Client(cluster):
            found = list(dask.compute(*self.lazy_builds()))
        for one, other in zip(expected, found, strict=True):
            assert one.equals(other), "other bits on a cluster"

    # The construction as a value

    def test_construction__frozen_picklable_with_deterministic_token(self) -> None:
        """Tasks carry it to other processes, and equal graphs have equal names."""
        construction = self.construction()
        copy = pickle.loads(pickle.dumps(construction))  # noqa: S301 - bytes of our own
        assert copy == construction
        assert hash(copy) == hash(construction)
        tokens = {tokenize(one, ensure_deterministic=True) for one in (construction, copy)}
        assert len(tokens) == 1, "the token changes in a round trip through pickle"
        settings_of_class = getattr(type(construction), "__dataclass_params__", None)
        assert getattr(settings_of_class, "frozen", False), "not a frozen dataclass"

    def test_parameters__say_all_in_json(self) -> None:
        """The provenance can name the construction, and name it completely."""
        construction = self.construction()
        parameters = json.loads(json.dumps(construction.parameters(), allow_nan=False))
        assert type(construction)(**parameters) == construction
        X, weights, y = self.data()
        _, summary = self.summaries([Block(X, weights, y)])
        json.dumps(construction.describe(summary), allow_nan=False)

    def test_citation__names_a_known_source(self) -> None:
        """The key of the citation is in references.bib."""
        construction = self.construction()
        assert construction.name.isidentifier()
        key, _, place = construction.citation.partition(", ")
        references = files("daskcoreset").joinpath("references.bib").read_text(encoding="utf-8")
        assert f"{{{key}," in references, f"{key} is not in references.bib"
        assert place, f"the citation {key!r} says no place in the source"


def _assert_close(found: FloatArray, expected: FloatArray) -> None:
    # Means at an offset of 1e6 are rounded to ten digits, and a far smaller distance to them
    # is not known better than that.
    np.testing.assert_allclose(found, expected, rtol=1e-7, atol=1e-8 * expected.sum())


def _nested(construction: Sensitivity[Any], summaries: Sequence[Any]) -> Any:
    """Merge from right to left."""
    return reduce(lambda later, earlier: construction.merge(earlier, later), summaries[::-1])


def _queries(X: FloatArray) -> FloatArray:
    """Cost of every row, for several queries: a matrix of shape (n_queries, n)."""
    rng = np.random.default_rng(0)
    scale = X.std(axis=0).max()
    solutions = [
        X.mean(axis=0, keepdims=True),
        rng.normal(X.mean(axis=0), X.std(axis=0), (3, X.shape[1])),
        X[rng.integers(0, len(X), 8)],
        X.mean(axis=0, keepdims=True) + 10 * scale,
        X.max(axis=0, keepdims=True),
    ]
    costs = [((X[:, np.newaxis] - centers) ** 2).sum(axis=2).min(axis=1) for centers in solutions]
    return np.stack([np.ones(len(X)), *costs])


def _computed(builds: Sequence[Lazy[Coreset]], **options: Any) -> list[Coreset]:
    # As a setting too: blocks that are read again are computed inside.
    with dask.config.set(**options):
        return list(dask.compute(*builds))
