# ruff: noqa: S101 - a suite of tests asserts
"""Tests for your own `daskcoreset.Sensitivity`.

The test of a method subclasses `SensitivityContract`::

    class TestLightweight(SensitivityContract):
        def construction(self) -> Lightweight:
            return Lightweight()

It needs pytest and hypothesis (``pip install "daskcoreset[test]"``). Register the marker
``statistical`` with pytest.
"""

from __future__ import annotations

import json
import pickle
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import replace
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
from hypothesis import HealthCheck, assume, given, settings, strategies as st

from daskcoreset._build import build
from daskcoreset.constructions.draws import Draw
from daskcoreset.core.block import Block
from daskcoreset.core.coreset import Coreset, thaw
from daskcoreset.core.random import Stage, stream
from daskcoreset.core.typing import AnyArray, FloatArray, Sampling
from daskcoreset.inputs.blocks import RowBlocks, row_blocks
from daskcoreset.sensitivities import Sensitivity
from daskcoreset.sensitivities.base import summary_of

__all__ = ["SensitivityContract"]

MODES: list[tuple[Sampling, Literal[1, 2]]] = [
    ("systematic", 2),
    ("multinomial", 2),
    ("systematic", 1),
]
"""The ways to draw: sampling and passes."""


def cut_rows(X: Any, sizes: Sequence[int], sample_weight: Any = None, y: Any = None) -> RowBlocks:
    """Cut rows in memory into blocks of the given sizes, zero among them.

    Examples
    --------
    >>> cut_rows(np.zeros((5, 2)), [3, 0, 2]).sizes
    (3, 0, 2)
    """
    blocks = row_blocks(X, y, sample_weight)
    return replace(blocks, indices=range(len(sizes)), sizes=tuple(sizes))


def assert_mean(estimates: FloatArray, expected: FloatArray, rate: float = 1e-6) -> None:
    """Assert that independent estimates have the expected means.

    Parameters
    ----------
    estimates : ndarray of shape (n_estimates, n_quantities)
    expected : ndarray of shape (n_quantities,)
    rate : float, default=1e-6
        False-alarm rate of all quantities together. Each has a t-test at this rate over their
        number (Bonferroni), by the normal approximation of means.

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


_SHAPES = ("normal", "sorted", "outlier", "constant", "duplicates", "grid", "single", "empty")
_WEIGHTS = ("ones", "integers", "heavy tail", "one row")


@st.composite
def row_sets(
    draw: st.DrawFn, *, max_blocks: int = 4, weights: Sequence[str] = _WEIGHTS
) -> list[Block]:
    """Return a Hypothesis strategy of neighboring blocks that differ as much as possible.

    Parameters
    ----------
    max_blocks : int, default=4
    weights : sequence of str
        Kinds of weights to choose from: "ones", "integers" (zero among them), "heavy tail",
        "one row" (all others zero).

    Returns
    -------
    SearchStrategy of list of Block
        Blocks with labels 0 and 1 and read-only arrays, in float32 or float64. Some are empty or
        constant, or have single rows, outliers of 1e6 times the spread, or offsets of 1e6. Their
        weights are positive in total.
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


# Subclasses run the same property on instances of their own.
_property = settings(
    deadline=None,
    suppress_health_check=[HealthCheck.differing_executors, HealthCheck.too_slow],
)


def _for_all_blocks(test: Callable[..., None]) -> Callable[..., None]:
    """Run a test on sets of neighbouring blocks that hypothesis makes up."""
    decorated: Callable[..., None] = given(blocks=row_sets())(_property(test))
    return decorated


class SensitivityContract(ABC):
    """Test suite of a `daskcoreset.Sensitivity`. Subclass it and define `construction`.

    A statistical test fails by chance with probability 1e-6 at most. Seeds are fixed, so a failure
    is reproducible. :doc:`/reference/extending` shows an example.
    """

    # The instances are hard on purpose, and some constructions say so.
    pytestmark = [  # noqa: RUF012 - pytest wants a list
        pytest.mark.filterwarnings("ignore:the coreset has no row of"),
        pytest.mark.filterwarnings("ignore:a solution fitted on the coreset"),
        pytest.mark.filterwarnings("ignore:how far a solution fitted"),
    ]

    @abstractmethod
    def construction(self) -> Sensitivity[Any]:
        """Return the method under test."""

    def data(self) -> tuple[FloatArray, FloatArray, AnyArray]:
        """Return X, sample_weight and y for whole builds: a few hundred rows.

        The default has 303 sorted rows in two clusters with one outlier. A third are duplicates.
        Some weights are zero, and labels are 0 and 1.
        """
        rng = np.random.default_rng(5)
        near, far = rng.normal(size=(160, 3)), rng.normal(20.0, 1.0, size=(40, 3))
        X = np.concatenate([near, near[:60], far, far, [[0.0, 300.0, 0.0]] * 3])
        X = X[np.argsort(X[:, 0], kind="stable")]
        weights = rng.integers(0, 4, len(X)) * rng.lognormal(size=len(X))
        return X, weights, (X[:, 1] > 0).astype(np.int64)

    randomised = False
    """Whether `block_summary` or `finalize` draws random numbers."""

    size = 40
    """Rows of the coresets of `data`."""

    n_seeds = 60
    """Coresets over which an estimator is averaged."""

    # The tests below are final: subclasses do not override them.

    def summaries(self, blocks: Sequence[Block], reverse: bool = False) -> tuple[list[Any], Any]:
        """Fold `blocks` in the `n_folds` of the method, and return local and merged summaries."""
        construction, merged = self.construction(), None
        locals_: list[Any] = []
        for fold in range(construction.n_folds):
            locals_ = [
                summary_of(
                    construction.block_summary(
                        block, merged, stream(0, Stage.SUMMARIES, index, fold)
                    )
                )
                for index, block in enumerate(blocks)
            ]
            merged = (
                _nested(construction, locals_) if reverse else reduce(construction.merge, locals_)
            )
            merged = construction.finalize(merged, stream(0, Stage.SETTLING, 0, fold))
        return locals_, merged

    def _skip_if_randomised(self) -> None:
        if self.randomised:
            pytest.skip("summaries are random: other blocks, other numbers")

    def scores(self, block: Block, summary: Any) -> FloatArray:
        """Return the scores of `block`, after a check of their form."""
        scores = self.construction().scores(block, summary)
        assert scores.dtype == np.float64, f"scores are {scores.dtype}, not float64"
        shape = (len(block),)
        assert scores.shape == shape, f"scores have the shape {scores.shape}, not {shape}"
        return scores

    # Scores

    @_for_all_blocks
    def test_scores__finite_nonnegative_positive_in_total(self, blocks: list[Block]) -> None:
        """Scores are finite and non-negative. Rows without weight have a score of zero."""
        _, summary = self.summaries(blocks)
        total = 0.0
        for block in blocks:
            scores = self.scores(block, summary)
            assert np.isfinite(scores).all(), f"scores are not finite: {scores}"
            assert (scores >= 0).all(), f"scores are negative: {scores}"
            positive = scores > 0
            # A row with weight but without a score could never be drawn: biased.
            assert (positive == (block.weights > 0)).all(), "scores and weights differ in zeros"
            total += scores.sum()
        assert total > 0, "all scores are zero"

    @_for_all_blocks
    def test_total_scores__are_sums_of_scores(self, blocks: list[Block]) -> None:
        """Total scores are the sums of scores."""
        construction = self.construction()
        if not construction.total_scores_exact:
            pytest.skip("total scores are estimates")
        locals_, summary = self.summaries(blocks)
        sums = [self.scores(block, summary).sum() for block in blocks]
        masses = [construction.total_scores(local, summary) for local in locals_]
        _assert_close(np.array(masses), np.array(sums))

    @_for_all_blocks
    def test_scores__sparse_equals_dense(self, blocks: list[Block]) -> None:
        """Dense and sparse rows have equal scores."""
        _, dense = self.summaries(blocks)
        _, sparse = self.summaries([sparse_block(block) for block in blocks])
        expected = [self.scores(block, dense) for block in blocks]
        scores = [self.scores(sparse_block(block), sparse) for block in blocks]
        _assert_close(np.concatenate(scores), np.concatenate(expected))

    @given(blocks=row_sets(weights=["integers"]))
    @_property
    def test_scores__integer_weight_counts_as_repeated_rows(self, blocks: list[Block]) -> None:
        """A weight of 3 scores the same as three rows. A weight of 0 scores nothing."""
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
        scores = np.concatenate([self.scores(block, by_weight) for block in blocks])
        copies = np.concatenate([self.scores(block, by_copies) for block in repeated])
        weights = joined_blocks(blocks).weights.astype(int)
        source = np.repeat(np.arange(len(weights)), weights)
        sums = np.zeros(len(weights))
        np.add.at(sums, source, copies)
        _assert_close(scores, sums)

    # Summaries

    @_for_all_blocks
    def test_merge__gives_the_summary_of_one_block(self, blocks: list[Block]) -> None:
        """Blocks and the order in which they are merged change rounding alone."""
        self._skip_if_randomised()
        _, whole = self.summaries([joined_blocks(blocks)])
        for reverse in (False, True):
            _, merged = self.summaries(blocks, reverse)
            self._assert_same_scores(blocks, whole, merged)

    @_for_all_blocks
    def test_summarise__leaves_its_arguments_alone(self, blocks: list[Block]) -> None:
        """Summaries are values: repeatable, picklable, and unchanged by a merge."""
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
        whole = joined_blocks(blocks)
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
        for sampling, passes in MODES:
            estimates = np.empty((self.n_seeds, len(queries)))
            with dask.config.set(scheduler="synchronous"):
                for seed in range(self.n_seeds):
                    coreset = self._built(blocks, sampling, passes, seed)
                    assert (coreset.points == X[coreset.indices]).all()
                    estimates[seed] = queries[:, coreset.indices] @ coreset.weights
            assert_mean(estimates, exact, rate=1e-6 / len(MODES))

    # Builds

    def test_build__same_bits_on_several_threads(self) -> None:
        """Several threads give the bits of the synchronous scheduler, in every mode."""
        X, weights, y = (
            da.from_array(part, chunks=(97, *part.shape[1:]), asarray=True) for part in self.data()
        )
        blocks, found = row_blocks(X, y, weights), []
        for scheduler in ("synchronous", "threads"):
            with dask.config.set(scheduler=scheduler, num_workers=2):
                found.append([self._built(blocks, *mode) for mode in MODES])
        for expected, coreset in zip(*found, strict=True):
            assert coreset.equals(expected), "other bits on several threads"

    def _built(
        self, blocks: RowBlocks, sampling: Sampling, passes: Literal[1, 2], seed: int = 11
    ) -> Coreset:
        return build(
            blocks,
            size=self.size,
            method=self.construction(),
            random_state=seed,
            draw=Draw(sampling, passes, split_every=2),  # two at a time: the deepest tree
        )

    # The construction as a value

    def test_construction__frozen_picklable_with_deterministic_token(self) -> None:
        """The method can be sent to other processes, and equal graphs have equal names."""
        construction = self.construction()
        copy = pickle.loads(pickle.dumps(construction))  # noqa: S301 - bytes of our own
        assert copy == construction
        assert hash(copy) == hash(construction)
        tokens = {tokenize(value, ensure_deterministic=True) for value in (construction, copy)}
        assert len(tokens) == 1, "the token changes in a round trip through pickle"
        settings_of_class = getattr(type(construction), "__dataclass_params__", None)
        assert getattr(settings_of_class, "frozen", False), "not a frozen dataclass"

    def test_objective__is_a_cost_of_weighted_rows(self) -> None:
        """Losses of rows are finite and non-negative, and add up."""
        X, weights, y = self.data()
        block = Block(X, weights, y)
        objective = self.construction().objective
        if objective.n_parts is None:
            objective = objective.with_parts(2)
        assert objective.n_parts is not None, "with_parts does not say of how many parts"
        objective = objective.fitted(block)
        assert objective.find_invalid_row(block) is None, "no cost can be given to rows of `data`"
        for make in (objective.solve, objective.seed):
            solution = make(block, np.random.default_rng(0))
            losses = objective.losses(block, solution)
            assert losses.shape == (len(X),), f"losses have shape {losses.shape}"
            assert (np.isfinite(losses) & (losses >= 0)).all(), "losses are negative or not finite"
            expected = objective.constant(solution) + float(weights @ losses)
            np.testing.assert_allclose(objective.cost(block, solution), expected)
            assert expected > 0, "a cost of zero tells nothing"
            copy = pickle.loads(pickle.dumps((objective, solution)))  # noqa: S301 - our own
            assert copy[0].cost(block, copy[1]) == objective.cost(block, solution)

    def test_objective__is_in_the_provenance(self) -> None:
        """The provenance names the objective, in JSON."""
        record = self.construction().objective.record()
        assert isinstance(record.get("name"), str), "the cost has no name"
        X, weights, y = self.data()
        stored = self._built(row_blocks(X, y, weights), *MODES[0]).provenance["objective"]
        assert thaw(stored) == json.loads(json.dumps(record, allow_nan=False))

    def test_parameters__say_all_in_json(self) -> None:
        """The provenance has the name and all parameters of the method."""
        construction = self.construction()
        parameters = json.loads(json.dumps(construction.parameters(), allow_nan=False))
        assert type(construction)(**parameters) == construction
        X, weights, y = self.data()
        _, summary = self.summaries([Block(X, weights, y)])
        json.dumps(construction.provenance(summary), allow_nan=False)

    def test_citation__names_a_known_source(self) -> None:
        """The name is an identifier, and the citation is a text.

        A method of the package itself cites a key of its references.bib, and a place in the source.
        """
        construction = self.construction()
        assert construction.name.isidentifier(), f"{construction.name!r} is not an identifier"
        key, _, section = construction.citation.partition(", ")
        assert key.strip(), "the citation is empty"
        if type(construction).__module__.startswith("daskcoreset."):
            references = files("daskcoreset").joinpath("references.bib").read_text(encoding="utf-8")
            assert f"{{{key}," in references, f"{key} is not in references.bib"
            assert section, f"the citation {key!r} says no place in the source"


def _assert_close(actual: FloatArray, expected: FloatArray) -> None:
    # Means at an offset of 1e6 are rounded to ten digits, and a far smaller distance to them
    # is not known better than that.
    np.testing.assert_allclose(actual, expected, rtol=1e-7, atol=1e-8 * expected.sum())


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
