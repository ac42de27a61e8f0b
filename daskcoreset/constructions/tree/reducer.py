r"""The protocol of a reducer: few weighted rows that stand for many.

`SensitivityReducer` lifts any sensitivity of the library to weighted rows in memory: its
folds, its scores, then the draw. Reducing weighted rows again is what merge-and-reduce rests
on: with :math:`\mathrm E` over the second draw, the weighted cost of what is left is that of
its input for every query, and so, over all draws, that of the data.

**One node's error.** A union of two :math:`\varepsilon`-coresets is an
:math:`\varepsilon`-coreset of both their data, and an :math:`\varepsilon`-coreset of an
:math:`\varepsilon'`-coreset is one with :math:`(1 + \varepsilon)(1 + \varepsilon') - 1`. With
:math:`\varepsilon' = \varepsilon / (2 \log n)` at every node, the errors of :math:`\log n`
levels add up to no more than :math:`\varepsilon` (Tukan et al. 2020, Algorithm 2).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from daskcoreset.constructions.sampling.block_steps import draw_candidates
from daskcoreset.constructions.sampling.final_draw import (
    MIN_CANDIDATES,
    OVERSAMPLING,
    draw_systematically,
)
from daskcoreset.core.blocks import Block, InvalidRow
from daskcoreset.core.errors import (
    InvalidInputError,
    InvalidTypeError,
    ignore_overflow,
    no_scores_error,
    overflow_error,
)
from daskcoreset.core.points import WeightedPoints
from daskcoreset.core.sampling import (
    draw_with_replacement,
    inclusion_probabilities,
    merge_duplicates,
)
from daskcoreset.core.typing import FloatArray, IndexArray, Sampling
from daskcoreset.core.validation import check_choice, is_int, shown
from daskcoreset.objectives import Objective
from daskcoreset.sensitivities import CONSTRUCTIONS, Sensitivity, construction_for

if TYPE_CHECKING:
    from numpy.random import Generator

# Rows put in order at least, where there are more: five milliseconds. What candidates add to the
# error of a node hardly counts below the root, where many nodes share it; at the root, where it was
# seen (20 % and more), as many are put in order as in a build from all rows.
MIN_ORDERED = 4096

# Candidates of a thinned leaf, as a multiple of the rows of a node. What so many add to the
# variance stands beside `EARLY_LEAVES` of `daskcoreset.constructions.tree.stream`.
_THINNED = 2


class Reducer(ABC):
    """Reduces weighted rows to few; passed as the method to any form of the tree.

    Subclasses are frozen dataclasses whose fields are their parameters; they must be
    picklable. `reduce` may be given any weighted rows, those of a union of its own results
    among them.

    Examples
    --------
    The heaviest rows, which is a reducer, though no good one:

    >>> class Heaviest(Reducer):
    ...     def reduce(self, points, size, rng):
    ...         return points.take(np.sort(np.argsort(-points.weights)[:size]))
    >>> import daskcoreset
    >>> rows = np.arange(20.0).reshape(10, 2)
    >>> daskcoreset.build(
    ...     rows,
    ...     size=2,
    ...     method=Heaviest(),
    ...     sample_weight=np.arange(10),
    ...     draw=daskcoreset.MergeReduce(),
    ... ).indices
    array([8, 9])
    """

    @property
    def name(self) -> str:
        """Name for messages and the provenance; by default that of the class."""
        return type(self).__name__

    @property
    def citation(self) -> str:
        """Source of the method, where it has one."""
        return ""

    @property
    def needs_labels(self) -> bool:
        """Whether rows must have labels."""
        return False

    @property
    def objective(self) -> Objective[Any] | None:
        """The cost that audits judge by; None, the default, where there is no such cost."""
        return None

    def parameters(self) -> dict[str, Any]:
        """Return the parameters by name; plain JSON values."""
        return {}

    def find_invalid_row(self, block: Block) -> InvalidRow | None:
        """Return the first row, as they come in, that is unfit for the method, or None."""
        del block
        return None

    def too_much(self, n_rows: int, n_features: int) -> str | None:
        """Return why nodes of this size would take too much memory or time, or None."""
        del n_rows, n_features
        return None

    @abstractmethod
    def reduce(self, points: WeightedPoints, size: int, rng: Generator) -> WeightedPoints:
        """Return at most about `size` weighted rows that stand for `points`.

        Parameters
        ----------
        points : WeightedPoints
            Any weighted rows; weights may be zero, and a row number may occur twice.
        size : int
            Rows wanted, at least 1. At most so many come back as they are.
        rng : numpy.random.Generator
            The node's own stream; the only source of random numbers.

        Returns
        -------
        WeightedPoints
            With the row numbers and labels of the rows that are left.
        """

    def thin(self, points: WeightedPoints, size: int, rng: Generator) -> WeightedPoints:
        """Return rows of one of many leaves, of which `reduce` makes `size` together with others.

        May keep some times as many, and cost less than `reduce`; by default the same.
        """
        return self.reduce(points, size, rng)

    def finish(self, points: WeightedPoints, size: int, rng: Generator) -> WeightedPoints:
        """Make the coreset from the rows at the root.

        Done once, where `reduce` is done for every node, so that it may take more time; by
        default the same.
        """
        return self.reduce(points, size, rng)

    def describe(self, points: WeightedPoints, rng: Generator) -> dict[str, Any]:
        """Facts about weighted rows that belong into the provenance; plain JSON values.

        Asked of what stands for all the data, and only of that: the place to refuse them.
        """
        del points, rng
        return {}


@dataclass(frozen=True)
class SensitivityReducer(Reducer):
    r"""Any sensitivity as a reducer of weighted rows in memory.

    The construction folds over the rows, `construction.n_folds` times, and scores them. Then
    rows are drawn with :math:`\pi \propto s`, systematically along the construction's own
    order, with the weight :math:`u / \pi`, and the construction calibrates the weights; or
    independently, with the weight :math:`u / (m q)`, where rows drawn twice are merged.

    Of many more rows than are wanted, four times as many candidates are taken first, in the
    order in which the rows stand, with :math:`\pi_1 = \min(1, c s / \sum s)`; the draw among
    them has :math:`\pi_2 \propto s / \pi_1` and the weight :math:`u / (\pi_1 \pi_2)`. Only
    candidates have to be put in order, so that a leaf costs little more than its scores.

    Parameters
    ----------
    construction : Sensitivity
    sampling : {"systematic", "multinomial"}, default="systematic"

    Examples
    --------
    >>> from daskcoreset.sensitivities import Uniform
    >>> rows = WeightedPoints(np.eye(4), np.ones(4), np.arange(4))
    >>> few = SensitivityReducer(Uniform()).reduce(rows, 2, np.random.default_rng(0))
    >>> len(few), few.total_weight
    (2, 4.0)
    """

    construction: Sensitivity[Any]
    sampling: Sampling = "systematic"

    def __post_init__(self) -> None:
        check_choice("sampling", self.sampling, "systematic", "multinomial")

    @property
    def name(self) -> str:
        """Name of the construction."""
        return self.construction.name

    @property
    def citation(self) -> str:
        """Source of the construction."""
        return self.construction.citation

    @property
    def needs_labels(self) -> bool:
        """Whether the construction needs labels."""
        return self.construction.needs_labels

    @property
    def objective(self) -> Objective[Any]:
        """The cost that the construction is made for."""
        return self.construction.objective

    def parameters(self) -> dict[str, Any]:
        """Parameters of the construction."""
        return self.construction.parameters()

    def find_invalid_row(self, block: Block) -> InvalidRow | None:
        """Return that of the construction."""
        return self.construction.find_invalid_row(block)

    def too_much(self, n_rows: int, n_features: int) -> str | None:
        """Return that of the construction."""
        return self.construction.too_much(n_rows, n_features)

    def reduce(self, points: WeightedPoints, size: int, rng: Generator) -> WeightedPoints:
        """Draw `size` rows in proportion to their scores."""
        return self._reduced(points, size, rng, MIN_ORDERED)

    def thin(self, points: WeightedPoints, size: int, rng: Generator) -> WeightedPoints:
        """Draw candidates for `size` rows, in the order in which the rows stand."""
        return self._reduced(points, _THINNED * size, rng, None)

    def finish(self, points: WeightedPoints, size: int, rng: Generator) -> WeightedPoints:
        """Draw the rows of the coreset, in spatial order where there are up to 20,000."""
        return self._reduced(points, size, rng, MIN_CANDIDATES)

    def _reduced(
        self, points: WeightedPoints, size: int, rng: Generator, min_candidates: int | None
    ) -> WeightedPoints:
        """Reduce to `size` rows; with None these are candidates, which are not put in order."""
        # Rows without weight cost nothing and are never drawn, so they go first.
        if len(points) > size:
            points = _with_weight(points)
        if len(points) <= size:
            return points
        rows = as_block(points)
        with ignore_overflow():
            summary = self._summary(rows, rng)
            scores = self._scores(rows, summary)
            if self.sampling == "systematic" and min_candidates is not None:
                count = max(OVERSAMPLING * size, min_candidates)
                chosen, weights = self._drawn(rows, summary, scores, size, count, rng)
                return points.take(chosen).reweighted(weights)
            if self.sampling == "systematic":
                inclusion = inclusion_probabilities(scores, size)
                chosen = draw_candidates(self.construction, summary, rows, scores, inclusion, rng)
                weights = rows.weights[chosen] / inclusion[chosen]
            else:
                chosen, weights = self._drawn_independently(rows, scores, size, rng)
            # Totals that are exact in a reduction, as those of classes, are so of candidates too.
            kept, design = points.take(chosen), self.construction.design
            weights = design.calibrate(as_block(kept), weights, summary).weights
            return kept.reweighted(weights)

    def describe(self, points: WeightedPoints, rng: Generator) -> dict[str, Any]:
        """Facts that the construction states of the rows, after its own check of them."""
        points = _with_weight(points)
        if not len(points):
            return {}
        with ignore_overflow():
            summary = self._summary(as_block(points), rng)
        self.construction.validate_summary(summary, finalized=True)
        return self.construction.provenance(summary)

    def _summary(self, rows: Block, rng: Generator) -> Any:
        """Return the finalized summary of rows in memory."""
        summary: Any = None
        for _ in range(self.construction.n_folds):
            summary = self.construction.block_summary(rows, summary, rng)
            summary = self.construction.finalize(summary, rng)
        return summary

    def _scores(self, rows: Block, summary: Any) -> FloatArray:
        scores: FloatArray = self.construction.row_scores(rows, summary)
        total = scores.sum()
        if not np.isfinite(total):
            raise overflow_error()
        if not total > 0.0:
            raise no_scores_error(self.name)
        return scores

    def _drawn(  # noqa: PLR0917 - all of them are always given
        self, rows: Block, summary: Any, scores: FloatArray, size: int, count: int, rng: Generator
    ) -> tuple[IndexArray, FloatArray]:
        positions, first = np.arange(len(rows)), np.ones(len(rows))
        if len(rows) > count:  # of which only candidates are put in order
            inclusion = inclusion_probabilities(scores, count)
            positions = draw_candidates(self.construction, summary, rows, scores, inclusion, rng)
            rows, first = rows.take(positions), inclusion[positions]
        draw = draw_systematically(self.construction, summary, rows, first, size, rng)
        return positions[draw.chosen], draw.weights

    def _drawn_independently(
        self, rows: Block, scores: FloatArray, size: int, rng: Generator
    ) -> tuple[IndexArray, FloatArray]:
        draws = draw_with_replacement(scores, size, rng)
        q = scores[draws] / scores.sum()
        # By position, not by row number: the same row may stand twice in a union.
        first, weights = merge_duplicates(draws, rows.weights[draws] / (size * q))
        return draws[first], weights


def _with_weight(points: WeightedPoints) -> WeightedPoints:
    """Return the rows that have a weight: as a rule all of them, without a copy."""
    return points if points.weights.min(initial=1.0) > 0.0 else points.take(points.weights > 0.0)


def as_block(points: WeightedPoints) -> Block:
    """Return weighted rows as a block, its rows numbered by their positions."""
    return Block(points.points, points.weights, points.labels, np.arange(len(points)))


def resolve_reducer(
    method: str | Sensitivity[Any] | Reducer,
    sampling: Sampling = "systematic",
    n_clusters: int | None = None,
) -> Reducer:
    """Return the reducer that a ``method`` argument stands for.

    Parameters
    ----------
    method : str, Sensitivity or Reducer
        As in `daskcoreset.build`, or a reducer of one's own.
    sampling : {"systematic", "multinomial"}, default="systematic"
        For a sensitivity; reducers have draws of their own.
    n_clusters : int or None, default=None
        Clusters that the coreset is for, as in `daskcoreset.build`.

    Raises
    ------
    InvalidInputError, InvalidTypeError
        For an unknown method or sampling.

    Examples
    --------
    >>> resolve_reducer("uniform")
    SensitivityReducer(construction=Uniform(), sampling='systematic')
    """
    if isinstance(method, Reducer):
        if n_clusters is not None:
            raise InvalidInputError(
                f"n_clusters={n_clusters} has no use beside the reducer {method!r}",
                argument="n_clusters",
                remedy="leave it out",
            )
        return method
    if is_int(method):
        raise InvalidTypeError(
            f"method is {method}, a number", argument="method", remedy=f"pass size={method}"
        )
    if not isinstance(method, (str, Sensitivity)):
        raise InvalidTypeError(
            "method must be a name, a construction such as Lightweight() or a Reducer, got "
            f"{shown(method)}",
            argument="method",
            remedy="pass one of these, of which the names are "
            f"{', '.join(map(repr, CONSTRUCTIONS))}",
        )
    return SensitivityReducer(construction_for(method, n_clusters), sampling)
