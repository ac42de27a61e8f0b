"""The constructions keep the contract, the contract sees who does not, and formulas are right."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pytest
import scipy.sparse as sp

from daskcoreset.core.blocks import Block
from daskcoreset.core.errors import InvalidInputError, InvalidTypeError
from daskcoreset.core.moments import Moments, merge_moments, moments_of
from daskcoreset.core.typing import FloatArray
from daskcoreset.objectives import QuantizationError
from daskcoreset.sensitivities import (
    CONSTRUCTIONS,
    SVM,
    Lightweight,
    MixtureCoreset,
    Sensitivity,
    StrongKMeans,
    Uniform,
    construction_for,
    resolve_method,
    takes_parts,
)
from daskcoreset.testing import SensitivityContract


class TestLightweight(SensitivityContract):
    def construction(self) -> Lightweight:
        return Lightweight()


class TestUniform(SensitivityContract):
    def construction(self) -> Uniform:
        return Uniform()


def test_uniform__no_scores_without_weight() -> None:
    assert Uniform().scores(Block(np.ones((3, 1)), np.zeros(3)), 0.0).tolist() == [[0.0] * 3]


# --- a construction of two folds, with a parameter and without a bound -------------------


@dataclass(frozen=True)
class TwoFolds(Sensitivity[Moments]):
    """What a mixture of another share would be, with distances taken in a fold of their own.

    The first fold finds the mean and the second the distances to it, as if they could not
    be had at once.
    """

    share: float = 0.25

    name: ClassVar[str] = "two_folds"
    citation: ClassVar[str] = "bachem2018scalable, for tests"

    @property
    def objective(self) -> QuantizationError:
        return QuantizationError()

    @property
    def n_folds(self) -> int:
        return 2

    def block_summary(
        self, block: Block, previous: Moments | None, rng: np.random.Generator
    ) -> Moments:
        del rng
        found = moments_of(block.points, block.weights)
        if previous is None:
            return Moments(found.count, found.weight, found.mean, np.zeros_like(found.m2))
        about = found.m2 + found.weight * (found.mean - previous.mean) ** 2
        return Moments(found.count, found.weight, previous.mean, about)

    def merge(self, first: Moments, second: Moments) -> Moments:
        merged = merge_moments(first, second)
        # In the second fold the means are equal, so that only what was found adds up.
        return Moments(merged.count, merged.weight, merged.mean, first.m2 + second.m2)

    def scores(self, block: Block, summary: Moments) -> FloatArray:
        scores = Lightweight().scores(block, summary)
        scores[0] += self.share * block.weights / summary.weight
        return scores

    def total_scores(self, local: Moments, summary: Moments) -> FloatArray:
        masses = Lightweight().total_scores(local, summary)
        masses[0] += self.share * local.weight / summary.weight
        return masses


class TestTwoFolds(SensitivityContract):
    n_seeds = 200
    # Its graph is of the same making as the others', and workers take seconds to start.
    test_build__same_bits_on_a_cluster: ClassVar[None] = None  # type: ignore[assignment]
    test_build__same_bits_on_local_schedulers: ClassVar[None] = None  # type: ignore[assignment]

    def construction(self) -> TwoFolds:
        return TwoFolds(share=0.5)


def test_contract__modes_are_those_that_a_build_accepts() -> None:
    assert list(TestTwoFolds().modes) == [("systematic", 2), ("multinomial", 2)]
    assert list(TestUniform().modes) == [
        ("systematic", 2),
        ("multinomial", 2),
        ("systematic", 1),
        ("multinomial", 1),
    ]


# --- what the contract must see ----------------------------------------------------------


class ForgetsWeights(Lightweight):
    def scores(self, block: Block, summary: Moments) -> FloatArray:
        return super().scores(Block(block.points, np.ones(len(block))), summary)


class ForgetsWeightsInMasses(Lightweight):
    def total_scores(self, local: Moments, summary: Moments) -> FloatArray:
        return super().total_scores(
            Moments(local.count, local.count, local.mean, local.m2), summary
        )


class SquaresWeights(Lightweight):
    # As the co-author's package does: |w x - mu|^2 w.
    def scores(self, block: Block, summary: Moments) -> FloatArray:
        points = np.asarray(block.points) * block.weights[:, np.newaxis]
        return super().scores(Block(points, block.weights), summary)


class IgnoresTheMeanOfBlocks(Lightweight):
    def total_scores(self, local: Moments, summary: Moments) -> FloatArray:
        masses = super().total_scores(local, summary)
        if masses[1]:
            masses[1] = local.quantization_error / summary.quantization_error / 2
        return masses


class MergesWithoutWeights(Lightweight):
    def merge(self, first: Moments, second: Moments) -> Moments:
        merged = merge_moments(first, second)
        return Moments(merged.count, merged.weight, (first.mean + second.mean) / 2, merged.m2)


class ForgetsTheGapOfMeans(Lightweight):
    def merge(self, first: Moments, second: Moments) -> Moments:
        merged = merge_moments(first, second)
        return Moments(merged.count, merged.weight, merged.mean, first.m2 + second.m2)


class MergesInPlace(Lightweight):
    def merge(self, first: Moments, second: Moments) -> Moments:
        merged = merge_moments(first, second)
        first.mean[:] = merged.mean
        return merged


class ClaimsTooMuch(Lightweight):
    proposal_bound: ClassVar[float | None] = 1.9


class SquaresSums(Lightweight):
    # |x|^2 - 2 x mu + |mu|^2, in the precision of the points.
    def scores(self, block: Block, summary: Moments) -> FloatArray:
        scores = super().scores(block, summary)
        x, mu = np.asarray(block.points), summary.mean.astype(block.points.dtype)
        distances = (x * x).sum(axis=1) - 2 * (x @ mu) + mu @ mu
        if summary.quantization_error > 0:
            scores[1] = block.weights * distances / (2 * summary.quantization_error)
        return scores


class LosesFarRows(Lightweight):
    def scores(self, block: Block, summary: Moments) -> FloatArray:
        scores = super().scores(block, summary)
        scores[:, scores[1] > 0.2] = 0.0
        return scores


class Negative(Lightweight):
    def scores(self, block: Block, summary: Moments) -> FloatArray:
        return super().scores(block, summary) - 0.01


class OneRow(Lightweight):
    def scores(self, block: Block, summary: Moments) -> FloatArray:
        return np.asarray(super().scores(block, summary).sum(axis=0))


class DiesOnEmptyBlocks(Lightweight):
    def block_summary(
        self, block: Block, previous: Moments | None, rng: np.random.Generator
    ) -> Moments:
        assert len(block), "no rows"
        return super().block_summary(block, previous, rng)


class DrawsByDistanceAlone(Lightweight):
    # Scores and masses agree: only the estimates can tell that the weights are wrong.
    def scores(self, block: Block, summary: Moments) -> FloatArray:
        scores = super().scores(block, summary)
        scores[0] *= np.where(np.asarray(block.points)[:, 0] > 0, 2.0, 0.5)
        return scores


class CannotBeCited(Uniform):
    citation: ClassVar[str] = "nobody1900, section 1"


@dataclass(frozen=True)
class HoldsAFunction(Uniform):
    function: Any = lambda: None  # which pickle refuses


@dataclass(frozen=True)
class HoldsAnArray(Uniform):
    values: Any = (np.float32(1.0),)


def rows(points: Any, weights: Any = None, dtype: Any = np.float64) -> Block:
    points = np.asarray(points, dtype=dtype)
    u = np.ones(len(points)) if weights is None else np.asarray(weights, dtype=np.float64)
    return Block(points, u, np.zeros(len(points), dtype=np.int64))


RNG = np.random.default_rng(0)

UNEVEN = [
    rows([[0.0], [1.0], [2.0]], [1, 3, 2]),
    rows([[5.0], [9.0]], [2, 0]),
    rows([[30.0]], [1]),
]
# A row at the mean of a block that is far away: half of the block's proposal is elsewhere.
TIGHT = [rows([[99.0], [100.0], [101.0]]), rows([[0.0], [1.0]])]
OFFSET = [rows(np.random.default_rng(0).normal(size=(20, 2)) + 1e6, dtype=np.float32)]


@pytest.mark.parametrize(
    ("broken", "test", "blocks"),
    [
        (ForgetsWeights(), "test_total_scores__are_sums_of_scores", UNEVEN),
        (ForgetsWeights(), "test_scores__integer_weight_counts_as_repeated_rows", UNEVEN),
        (ForgetsWeights(), "test_scores__finite_nonnegative_positive_in_total", UNEVEN),
        (ForgetsWeightsInMasses(), "test_total_scores__are_sums_of_scores", UNEVEN),
        (SquaresWeights(), "test_scores__integer_weight_counts_as_repeated_rows", UNEVEN),
        (IgnoresTheMeanOfBlocks(), "test_total_scores__are_sums_of_scores", UNEVEN),
        (MergesWithoutWeights(), "test_merge__associative", UNEVEN),
        (MergesWithoutWeights(), "test_summary__independent_of_chunking", UNEVEN),
        (MergesWithoutWeights(), "test_merge__empty_block_is_neutral", UNEVEN),
        (ForgetsTheGapOfMeans(), "test_summary__independent_of_chunking", UNEVEN),
        (MergesInPlace(), "test_summarise__leaves_its_arguments_alone", UNEVEN),
        (ClaimsTooMuch(), "test_proposal_bound__holds_for_every_row", TIGHT),
        (SquaresSums(), "test_scores__finite_nonnegative_positive_in_total", OFFSET),
        (SquaresSums(), "test_total_scores__are_sums_of_scores", OFFSET),
        (LosesFarRows(), "test_scores__finite_nonnegative_positive_in_total", UNEVEN),
        (Negative(), "test_scores__finite_nonnegative_positive_in_total", UNEVEN),
        (OneRow(), "test_scores__finite_nonnegative_positive_in_total", UNEVEN),
        (DiesOnEmptyBlocks(), "test_merge__empty_block_is_neutral", UNEVEN),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Sensitivity) else None,
)
def test_contract__sees_what_is_broken(
    broken: Sensitivity[Any], test: str, blocks: list[Block]
) -> None:
    class Contract(SensitivityContract):
        def construction(self) -> Sensitivity[Any]:
            return broken

    # One example is enough, so the property is called as a plain function.
    check = getattr(SensitivityContract, test).hypothesis.inner_test
    with pytest.raises(AssertionError):
        check(Contract(), blocks=blocks)
    check(TestLightweight(), blocks=blocks)


@pytest.mark.parametrize(
    ("broken", "test"),
    [
        (DrawsByDistanceAlone(), "test_draws__unbiased_for_every_query"),
        (CannotBeCited(), "test_citation__names_a_known_source"),
        (HoldsAFunction(), "test_construction__frozen_picklable_with_deterministic_token"),
        (HoldsAnArray(), "test_parameters__say_all_in_json"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Sensitivity) else None,
)
def test_contract__sees_what_is_broken_as_a_whole(broken: Sensitivity[Any], test: str) -> None:
    class Contract(SensitivityContract):
        def construction(self) -> Sensitivity[Any]:
            return broken

    with pytest.raises(Exception):  # noqa: B017, PT011 - whatever says so
        getattr(Contract(), test)()


# --- formulas ----------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_lightweight__scores_are_those_of_algorithm_1(dtype: Any, form: Any) -> None:
    rng = np.random.default_rng(0)
    X, u = rng.normal(size=(40, 3)).astype(dtype), rng.lognormal(size=40)
    mu = np.average(X.astype(np.float64), axis=0, weights=u)
    distances = ((X - mu) ** 2).sum(axis=1)
    block = Block(form(X), u)
    scores = Lightweight().scores(block, Lightweight().block_summary(block, None, RNG))

    np.testing.assert_allclose(scores[0], u / (2 * u.sum()), rtol=1e-13)
    np.testing.assert_allclose(scores[1], u * distances / (2 * u @ distances), rtol=1e-12)


def test_lightweight__by_hand() -> None:
    # Mean 1, phi = 1 + 1 + 4 * 0 = 2 with weights 1, 1, 4.
    block = rows([[0.0], [2.0], [1.0]], [1, 1, 4])
    summary = Lightweight().block_summary(block, None, RNG)

    expected = [[1 / 12, 1 / 12, 4 / 12], [1 / 4, 1 / 4, 0]]
    np.testing.assert_allclose(Lightweight().scores(block, summary), expected, rtol=1e-15)
    assert Lightweight().provenance(summary) == {"quantization_error": 2.0}


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_lightweight__equal_rows_are_scored_uniformly(form: Any) -> None:
    block = Block(form(np.full((4, 2), 1e6 + 0.1)), np.array([1.0, 2.0, 0.0, 0.1]))
    construction = Lightweight()
    summary = construction.merge(
        construction.block_summary(block, None, RNG), moments_of(*parts(block))
    )

    scores = construction.scores(block, summary)
    np.testing.assert_allclose(scores[0], block.weights / 6.2, rtol=1e-14)
    assert not scores[1].any()
    assert construction.total_scores(summary, summary).tolist() == [1.0, 0.0]


def parts(block: Block) -> tuple[Any, FloatArray]:
    return block.points, block.weights


def test_lightweight__tiny_spread_does_not_overflow() -> None:
    # phi is 2e-310, whose inverse no float64 holds.
    block = rows([[0.0], [1e-155], [2e-155]])
    scores = Lightweight().scores(block, Lightweight().block_summary(block, None, RNG))

    np.testing.assert_allclose(scores[1], [0.25, 0.0, 0.25], rtol=1e-9)


def test_lightweight__rows_without_weight_may_hold_anything() -> None:
    block = rows([[1e200], [0.0], [2.0]], [0, 1, 1])
    with np.errstate(over="ignore"):
        scores = Lightweight().scores(block, Lightweight().block_summary(block, None, RNG))

    assert scores.tolist() == [[0.0, 0.25, 0.25], [0.0, 0.25, 0.25]]


@pytest.mark.parametrize("construction", [Lightweight(), Uniform()])
def test_scores__block_without_weight(construction: Sensitivity[Any]) -> None:
    # By its own summary: what a block does that has nothing to propose.
    block = rows([[0.0], [1.0]], [0, 0])
    scores = construction.scores(block, construction.block_summary(block, None, RNG))

    assert scores.shape[1] == 2
    assert not scores.any()


def test_uniform__by_hand() -> None:
    block = rows([[0.0], [2.0]], [1, 3])
    summary = Uniform().merge(Uniform().block_summary(block, None, RNG), 4.0)

    assert Uniform().scores(block, summary).tolist() == [[1 / 8, 3 / 8]]
    assert Uniform().total_scores(4.0, summary).tolist() == [0.5]
    assert Uniform().provenance(summary) == {}


# --- names -------------------------------------------------------------------------------


def test_constructions__are_known_by_their_names() -> None:
    assert {"lightweight", "uniform"} <= set(CONSTRUCTIONS)
    for name, kind in CONSTRUCTIONS.items():
        assert kind.name == name
        # Those that cannot do without an argument say so; see below.
        parameters = inspect.signature(kind).parameters.values()
        if all(parameter.default is not parameter.empty for parameter in parameters):
            assert resolve_method(name) == kind()


def test_resolve_method__name_of_a_construction_with_parameters_says_which() -> None:
    with pytest.raises(InvalidInputError, match=r"'kmeans' needs n_clusters; .*StrongKMeans\("):
        resolve_method("kmeans")


def test_resolve_method__construction_is_taken_as_it_is() -> None:
    construction = TwoFolds(share=3.0)

    assert resolve_method(construction) is construction
    assert construction.parameters() == {"share": 3.0}


def test_resolve_method__unknown_name_lists_the_known_ones() -> None:
    with pytest.raises(
        InvalidInputError, match=r"'kmedians' is unknown; .*'lightweight', .*'uniform'"
    ):
        resolve_method("kmedians")


@pytest.mark.parametrize("method", [None, 3, Lightweight])
def test_resolve_method__neither_name_nor_construction(method: Any) -> None:
    with pytest.raises(InvalidTypeError, match=r"method must be .*'lightweight'"):
        resolve_method(method)


class TestStrongKMeans(SensitivityContract):
    def construction(self) -> StrongKMeans:
        return StrongKMeans(3)


@pytest.mark.nightly  # the code of StrongKMeans, whose contract runs always
class TestWelterweight(SensitivityContract):
    def construction(self) -> StrongKMeans:
        return StrongKMeans(8, n_centers=2)


def test_resolve_method__n_clusters_goes_to_the_construction_that_takes_it() -> None:
    assert resolve_method("kmeans", n_clusters=7) == StrongKMeans(7)
    with pytest.raises(InvalidInputError, match="'uniform' takes no n_clusters"):
        resolve_method("uniform", n_clusters=7)


def test_resolve_method__a_number_of_clusters_is_one_of_components() -> None:
    assert resolve_method("mixture", 3) == MixtureCoreset(3)
    assert resolve_method("kmeans", 3) == StrongKMeans(3)
    with pytest.raises(InvalidInputError, match="'uniform' takes no n_clusters"):
        resolve_method("uniform", 3)
    with pytest.raises(InvalidInputError, match="'mixture' needs n_components"):
        resolve_method("mixture")


def test_construction_for__a_number_of_parts_that_it_leaves_open_or_has() -> None:
    assert construction_for("uniform", 3) == Uniform()
    assert construction_for(Uniform(), 3) == Uniform()
    assert construction_for(StrongKMeans(3), 3) == StrongKMeans(3)
    for method in ("logistic", StrongKMeans(4), SVM()):
        with pytest.raises(InvalidInputError, match="n_clusters"):
            construction_for(method, 3)
    assert [takes_parts(StrongKMeans(4), k) for k in (3, 4, 5)] == [False, True, False]
    assert not takes_parts(SVM(), 2)
