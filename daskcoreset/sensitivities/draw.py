r"""Draws of the rows of a coreset from candidates, as functions for `Sensitivity.draw`.

A candidate came with the probability :math:`\pi_1`. A draw takes it with :math:`\pi_2 \propto s /
\pi_1`, which makes the chance of a row in the coreset proportional to its score s again. The weight
:math:`u / (\pi_1 \pi_2)` is unbiased for every query.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple, TypeVar

import numpy as np

from daskcoreset.core.block import Block
from daskcoreset.core.ordering import spatial_order
from daskcoreset.core.sampling import class_inclusion, inclusion_probabilities, systematic
from daskcoreset.core.typing import AnyArray, FloatArray, IndexArray
from daskcoreset.errors import InvalidInputError

T = TypeVar("T")

__all__ = ["Candidates", "Drawn", "best_of", "spatial_order", "strata", "systematic_draw"]

# An eighth of the rows is spread over the classes evenly; the other rows go by score. A class of
# few rows, which may have most of the cost, is then not left to two or three of them.
CLASS_SHARE = 8


@dataclass(frozen=True, eq=False)
class Candidates:
    r"""Rows of which the rows of a coreset are drawn.

    Attributes
    ----------
    rows : Block
        k rows of positive weight.
    first : ndarray of shape (k,), float64
        Probabilities :math:`\pi_1` with which they became candidates.
    final : bool, default=True
        Whether the coreset of all the data is drawn. False for nodes of trees, of which no facts
        are kept.
    """

    rows: Block
    first: FloatArray
    final: bool = True

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def weights(self) -> FloatArray:
        """Weights with which the candidates represent all the data."""
        return np.asarray(self.rows.weights / self.first)

    @property
    def classes(self) -> AnyArray:
        """Sorted labels of the rows."""
        return self.rows.coded[1]

    @property
    def codes(self) -> IndexArray:
        """Position of the label of every row among `classes`."""
        return self.rows.coded[2]


class Drawn(NamedTuple):
    r"""Rows that were drawn from candidates.

    Attributes
    ----------
    chosen : ndarray of shape (m,), int64
        Their positions among the candidates, increasing.
    weights : ndarray of shape (m,), float64
        :math:`u / (\pi_1 \pi_2)`, or calibrated weights.
    second : ndarray of shape (k,), float64
        :math:`\pi_2` of every candidate.
    facts : dict, default empty
        Facts for the provenance, as plain JSON values.
    """

    chosen: IndexArray
    weights: FloatArray
    second: FloatArray
    facts: dict[str, Any] = {}  # noqa: RUF012 - of a NamedTuple, and never written to


@dataclass(frozen=True, eq=False)
class SystematicDraws:
    """Systematic draws from the same candidates, by the same scores and in the same order."""

    candidates: Candidates
    second: FloatArray
    order: IndexArray = field(repr=False)

    @cached_property
    def is_certain(self) -> bool:
        """Whether all draws are the same, because every row is taken for certain, or never."""
        return not ((self.second > 0.0) & (self.second < 1.0)).any()

    def __call__(self, rng: np.random.Generator) -> Drawn:
        """Draw once. Asks for one number for each row, and one more."""
        chosen = np.sort(self.order[systematic(self.second[self.order], rng)])
        rows, first = self.candidates.rows, self.candidates.first
        weights = rows.weights[chosen] / (first[chosen] * self.second[chosen])
        return Drawn(chosen, weights, self.second)


Order = Callable[[Candidates, FloatArray], IndexArray]


def systematic_draws(
    candidates: Candidates,
    scores: FloatArray,
    size: int,
    *,
    codes: IndexArray | None = None,
    order: Order | None = None,
    even: bool = True,
) -> SystematicDraws:
    """Return draws that can be made several times. See `systematic_draw`.

    Without `even` classes have their share of the scores, and two rows at least.
    """
    by_score = scores / candidates.first
    second = (
        inclusion_probabilities(by_score, size)
        if codes is None
        else _class_inclusion(by_score, size, codes, even=even)
    )
    find_order = order or _spatially
    return SystematicDraws(candidates, second, find_order(candidates, second))


def systematic_draw(
    candidates: Candidates,
    scores: FloatArray,
    size: int,
    rng: np.random.Generator,
    *,
    codes: IndexArray | None = None,
    order: Order | None = None,
) -> Drawn:
    r"""Draw candidates with :math:`\pi_2 \propto s / \pi_1`, one in every stretch of an order.

    Parameters
    ----------
    candidates : Candidates
    scores : ndarray of shape (k,), float64
        s of the candidates.
    size : int
        Number of rows to draw.
    rng : numpy.random.Generator
        Asked for one number for each row, and one more.
    codes : ndarray of shape (k,), int64, optional
        Classes. An eighth of the rows is spread over them evenly, and each keeps two rows.
    order : callable, optional
        Returns a permutation of the candidates from them and :math:`\pi_2`. Default: a spatial
        order.

    Raises
    ------
    InvalidInputError
        If `size` is below two rows for every class.
    """
    return systematic_draws(candidates, scores, size, codes=codes, order=order)(rng)


def _spatially(candidates: Candidates, second: FloatArray) -> IndexArray:
    return spatial_order(candidates.rows.points, second)


def strata(candidates: Candidates, second: FloatArray) -> IndexArray:
    """Order by class, and in space within every class."""
    points: Any = candidates.rows.points
    codes, parts = candidates.codes, []
    for code in range(len(candidates.classes)):
        members = np.flatnonzero(codes == code)
        parts.append(members[spatial_order(points[members], second[members])])
    return np.concatenate(parts)


def best_of(draws: Sequence[T], losses: Sequence[float]) -> T:
    """Return the draw of the least loss, the first of equal ones. A draw may come with a model."""
    return draws[int(np.argmin(losses))]


def _class_inclusion(scores: FloatArray, size: int, codes: IndexArray, *, even: bool) -> FloatArray:
    """Inclusion probabilities with which no class is left out."""
    n_classes = int(codes.max(initial=-1)) + 1
    # Two rows of a class, so that its spread shows; of a class of one row, that one.
    n_scored = np.bincount(codes[scores > 0.0], minlength=n_classes)
    needed = int(np.minimum(n_scored, 2).sum())
    if size < needed:
        raise InvalidInputError(
            f"size={size} is too small for {n_classes} classes, which need two rows each",
            argument="size",
            remedy=f"pass at least {needed}",
        )
    floors = np.full(n_classes, max(2, even * size // (CLASS_SHARE * max(n_classes, 1))))
    return class_inclusion(scores, size, codes, floors)
