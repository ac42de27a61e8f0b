r"""The protocol of a reducer: few weighted rows that represent many.

`SensitivityReducer` lifts any sensitivity of the library to weighted rows in memory: its
folds, its scores, then the draw. Reducing weighted rows again is what merge-and-reduce rests
on: with :math:`\mathrm E` over the second draw, the weighted cost of what is left is that of
its input for every query, and so, over all draws, that of the data.

**One node's error.** A union of two :math:`\varepsilon`-coresets is an
:math:`\varepsilon`-coreset of both their data, and an :math:`\varepsilon`-coreset of an
:math:`\varepsilon'`-coreset is one with :math:`(1 + \varepsilon)(1 + \varepsilon') - 1`. With
:math:`\varepsilon' = \varepsilon / (2 \log n)` at every node, the errors of :math:`\log n`
levels add up to at most :math:`\varepsilon` (Tukan et al. 2020, Algorithm 2).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from daskcoreset.constructions.sampling.block_steps import draw_candidates
from daskcoreset.constructions.sampling.final_draw import MIN_CANDIDATES, OVERSAMPLING
from daskcoreset.core.block import Block
from daskcoreset.core.labels import check_classes
from daskcoreset.core.messages import check_total_scores, ignore_overflow
from daskcoreset.core.points import WeightedPoints
from daskcoreset.core.sampling import (
    draw_with_replacement,
    inclusion_probabilities,
    merge_duplicates,
)
from daskcoreset.core.typing import FloatArray, IndexArray, Sampling
from daskcoreset.core.validation import check_choice
from daskcoreset.errors import InvalidInputError
from daskcoreset.objectives import Objective
from daskcoreset.sensitivities import Sensitivity, construction_for, default_method
from daskcoreset.sensitivities.base import summary_of
from daskcoreset.sensitivities.draw import Candidates

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
    """Base class of your own reducers, which reduce weighted rows to few.

    Pass an instance as `method` with ``draw=MergeReduce()``, or to a stream or tree. Subclasses are
    frozen dataclasses. Their fields are the parameters, and they must be picklable. `reduce` gets
    any weighted rows, and also unions of earlier results. :doc:`/reference/extending` shows the
    steps.

    Attributes
    ----------
    citation : str
        Source of the method. Default: an empty text.
    labels : {"classes", "numbers"} or None
        What labels the rows must have. The library checks them. Default: None.
    max_columns : int or None
        Columns of X at most. Default: None.
    objective : Objective or None
        The cost that audits compare. Default: None.

    Examples
    --------
    A reducer that keeps the heaviest rows (a simple one, without guarantees):

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

    citation: ClassVar[str] = ""
    labels: ClassVar[Literal["classes", "numbers"] | None] = None
    max_columns: ClassVar[int | None] = None
    objective: ClassVar[Objective[Any] | None] = None

    @property
    def name(self) -> str:
        """Name in messages and in the provenance. Default: the name of the class."""
        return type(self).__name__

    def parameters(self) -> dict[str, Any]:
        """Return the parameters by name, as plain JSON values."""
        return {}

    @abstractmethod
    def reduce(self, points: WeightedPoints, size: int, rng: Generator) -> WeightedPoints:
        """Reduce weighted rows to about `size` weighted rows that represent them.

        Parameters
        ----------
        points : WeightedPoints
            Any weighted rows. Weights may be zero, and a row number may occur twice.
        size : int
            Number of rows wanted, at least 1. Fewer rows must be returned unchanged.
        rng : numpy.random.Generator
            Random numbers of this node. Use no others.

        Returns
        -------
        WeightedPoints
            The rows that are kept, with their row numbers and labels.
        """

    def thin(self, points: WeightedPoints, size: int, rng: Generator) -> WeightedPoints:
        """Thin out the rows of one leaf, before `reduce` gets them together with others.

        It may return more than `size` rows, and should take less time than `reduce`. Default:
        `reduce`.
        """
        return self.reduce(points, size, rng)

    def finish(self, points: WeightedPoints, size: int, rng: Generator) -> WeightedPoints:
        """Make the coreset from the rows at the root.

        It runs once, while `reduce` runs for every node, so it may take more time. Default:
        `reduce`.
        """
        return self.reduce(points, size, rng)

    def describe(self, points: WeightedPoints, rng: Generator) -> dict[str, Any]:
        """Return facts about weighted rows for the provenance, as plain JSON values.

        It is called once, with rows that represent all the data. It may raise an error to refuse
        them.
        """
        del points, rng
        return {}


@dataclass(frozen=True)
class SensitivityReducer(Reducer):
    r"""Any sensitivity as a reducer of weighted rows in memory.

    The construction folds over the rows, `construction.n_folds` times, and scores them. Then rows
    are drawn with :math:`\pi \propto s`, systematically along the construction's order, with the
    weight :math:`u / \pi`, and the construction calibrates the weights. Independent draws have the
    weight :math:`u / (m q)`, and rows drawn twice are merged.

    If there are many more rows than are wanted, four times as many candidates are taken first, in
    the order of the rows, with :math:`\pi_1 = \min(1, c s / \sum s)`. The draw among them has
    :math:`\pi_2 \propto s / \pi_1` and the weight :math:`u / (\pi_1 \pi_2)`. Only candidates have
    to be put in order, so that a leaf costs little more than its scores.

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

    def reduce(self, points: WeightedPoints, size: int, rng: Generator) -> WeightedPoints:
        """Draw `size` rows in proportion to their scores."""
        return self._reduced(points, size, rng, MIN_ORDERED)

    def thin(self, points: WeightedPoints, size: int, rng: Generator) -> WeightedPoints:
        """Draw candidates for `size` rows, in the order in which the rows stand."""
        return self._reduced(points, _THINNED * size, rng, None)

    def finish(self, points: WeightedPoints, size: int, rng: Generator) -> WeightedPoints:
        """Draw the rows of the coreset, in spatial order if there are up to 20,000."""
        return self._reduced(points, size, rng, MIN_CANDIDATES)

    def _reduced(
        self, points: WeightedPoints, size: int, rng: Generator, min_candidates: int | None
    ) -> WeightedPoints:
        """Reduce to `size` rows. With None these are candidates, which are not put in order."""
        # Rows without weight cost nothing and are never drawn, so they go first.
        if len(points) > size:
            points = _with_weight(points)
        if len(points) <= size:
            return points
        rows = as_block(points)
        with ignore_overflow():
            summary = self._summary(rows, rng)
            scores = self.construction.scores(rows, summary)
            check_total_scores(scores.sum(), self.construction.name)
            if self.sampling == "multinomial":
                positions, weights = _drawn_independently(rows, scores, size, rng)
                first, size = rows.weights[positions] / weights, len(positions)
            else:
                count = size
                if min_candidates is not None:
                    count = max(OVERSAMPLING * size, min_candidates)
                positions, first = np.arange(len(rows)), np.ones(len(rows))
                if len(rows) > count:  # of which only candidates are put in order
                    inclusion = inclusion_probabilities(scores, count)
                    positions = draw_candidates(self.construction, rows, scores, inclusion, rng)
                    first = inclusion[positions]
                if min_candidates is None:
                    size = len(positions)
            if len(positions) < len(rows):
                rows = rows.take(positions)
            candidates = Candidates(rows, first, final=False)
            drawn = self.construction.draw(candidates, summary, size, rng)
        return points.take(positions[drawn.chosen]).reweighted(drawn.weights)

    def describe(self, points: WeightedPoints, rng: Generator) -> dict[str, Any]:
        """Facts that the construction states of the rows, after its own check of them."""
        points = _with_weight(points)
        if not len(points):
            return {}
        if self.construction.labels == "classes":
            check_classes(as_block(points).coded[1], len(points))
        with ignore_overflow():
            summary = self._summary(as_block(points), rng)
        return self.construction.provenance(summary)

    def _summary(self, rows: Block, rng: Generator) -> Any:
        """Return the finalized summary of rows in memory."""
        summary: Any = None
        for _ in range(self.construction.n_folds):
            local = summary_of(self.construction.block_summary(rows, summary, rng))
            summary = self.construction.finalize(local, rng)
        return summary


def _drawn_independently(
    rows: Block, scores: FloatArray, size: int, rng: Generator
) -> tuple[IndexArray, FloatArray]:
    """Return positions of rows drawn independently, and their weights."""
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


def method_for(method: Any, n_clusters: int | None = None) -> Any:
    """Return the construction or the reducer for a ``method`` argument.

    Parameters
    ----------
    method : str, Sensitivity, Reducer or None
        As in `daskcoreset.build`.
    n_clusters : int or None, default=None
        Clusters that the coreset is for, as in `daskcoreset.build`.

    Raises
    ------
    InvalidInputError, InvalidTypeError
        For an unknown method.

    Examples
    --------
    >>> method_for("uniform")
    Uniform()
    """
    if not isinstance(method, Reducer):
        return construction_for(default_method(method, n_clusters), n_clusters)
    if n_clusters is not None:
        raise InvalidInputError(
            f"n_clusters={n_clusters} has no effect with the reducer {method!r}",
            argument="n_clusters",
            remedy="leave it out",
        )
    return method
