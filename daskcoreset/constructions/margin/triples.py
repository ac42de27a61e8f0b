"""Triples of example, right answer and wrong answer: the worst of the data, by one read."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from daskcoreset.constructions.margin.examples import (
    BatchProblem,
    Edges,
    Examples,
    cut_block,
    encoded,
    merge_edges,
)
from daskcoreset.core.blocks import InvalidRow
from daskcoreset.core.typing import AnyArray, FloatArray, IndexArray
from daskcoreset.execution.fold import BlockResults, map_reduce

if TYPE_CHECKING:
    from collections.abc import Mapping

    from daskcoreset.constructions.margin.examples import StructuredProblem
    from daskcoreset.core.blocks import Block
    from daskcoreset.inputs.blocks import RowBlocks

__all__ = ["Place", "Triples", "WorstTriples", "rivals_of", "worst_triples"]

Place = tuple[int, int]
"""Block, and row in it, of the first row of an example."""

_MOST = 1000
"""Triples that a read returns at most."""


@dataclass(frozen=True, eq=False)
class Triples:
    """Some triples.

    Attributes
    ----------
    places : ndarray of shape (m, 2), int64
        Block, and row in it, of the first row of the example.
    margins : ndarray of shape (m,), float64
        When they were found, with slacks.
    differences : ndarray of shape (m, D), float64
    answers, rivals : tuple of m ndarrays of int64
        The right and the wrong answer of each.
    """

    places: IndexArray
    margins: FloatArray
    differences: FloatArray
    answers: tuple[IndexArray, ...]
    rivals: tuple[IndexArray, ...]

    def __len__(self) -> int:
        return len(self.margins)

    @classmethod
    def none(cls, dimension: int) -> Triples:
        """Return no triple."""
        return cls(np.empty((0, 2), np.int64), np.empty(0), np.empty((0, dimension)), (), ())

    def take(self, order: IndexArray) -> Triples:
        """Return some of them, in this order."""
        return Triples(
            self.places[order],
            self.margins[order],
            self.differences[order],
            tuple(self.answers[i] for i in order),
            tuple(self.rivals[i] for i in order),
        )

    def and_also(self, other: Triples) -> Triples:
        """Return these and others."""
        return Triples(
            np.concatenate([self.places, other.places]),
            np.concatenate([self.margins, other.margins]),
            np.concatenate([self.differences, other.differences]),
            self.answers + other.answers,
            self.rivals + other.rivals,
        )

    def below(self, level: float) -> Triples:
        """Return those of a margin below `level`."""
        return self.take(np.flatnonzero(self.margins < level))

    def missing_from(self, other: Triples) -> Triples:
        """Return those that `other` does not hold."""
        held = set(other.keys())
        return self.take(
            np.array([i for i, key in enumerate(self.keys()) if key not in held], dtype=np.int64)
        )

    def keys(self) -> list[tuple[Place, bytes]]:
        """Return example and wrong answer of each, to be compared."""
        places = map(tuple, self.places.tolist())
        return [(place, y.tobytes()) for place, y in zip(places, self.rivals, strict=True)]


@dataclass(frozen=True, eq=False)
class _Seen:
    """What some blocks tell."""

    worst: Triples
    least: float
    n_examples: int
    edges: Edges


@dataclass(frozen=True, eq=False)
class _Asked:
    """What every block needs to know."""

    problem: StructuredProblem
    w: FloatArray
    slacks: Mapping[Place, float]
    classes: AnyArray | None


@dataclass(frozen=True, eq=False)
class WorstTriples:
    """What a read has found.

    Attributes
    ----------
    worst : Triples
        Of least margin, some of every block.
    least : float
        The least margin of all.
    n_examples : int
    """

    worst: Triples
    least: float
    n_examples: int
    read: BlockResults[Any]

    def numbers(self, places: IndexArray) -> IndexArray:
        """Return the numbers, in the whole data, of rows given by block and row in it."""
        return np.array([self.read.row(b, i) for b, i in places.tolist()], dtype=np.int64)


@dataclass(frozen=True)
class _Look:
    count: int
    grouped: bool

    def __call__(self, block: Block, number: int, asked: _Asked) -> _Seen | InvalidRow:
        labels = encoded(block, asked.classes)
        if isinstance(labels, InvalidRow):
            return labels
        examples, edges = cut_block(block, number, labels, grouped=self.grouped)
        worst, least = _worst_of(examples, asked, self.count)
        return _Seen(worst, least, len(examples), edges)


def _merge(first: _Seen, second: _Seen) -> _Seen:
    return _Seen(
        _fewer(first.worst.and_also(second.worst)),
        min(first.least, second.least),
        first.n_examples + second.n_examples,
        merge_edges(first.edges, second.edges),
    )


def _fewer(triples: Triples) -> Triples:
    if len(triples) <= _MOST:
        return triples
    # In the order of the data, so that merging stays associative.
    chosen = np.sort(np.argsort(triples.margins, kind="stable")[:_MOST])
    return triples.take(chosen)


def worst_triples(
    blocks: RowBlocks,
    problem: StructuredProblem,
    w: FloatArray,
    *,
    slacks: Mapping[Place, float],
    classes: AnyArray | None,
    grouped: bool,
    count: int,
) -> WorstTriples:
    """Find the triples of least margin, in one read.

    Parameters
    ----------
    blocks, problem, classes, grouped
        As in `structured_margin`.
    w : ndarray of shape (D,), float64
    slacks : mapping
        What examples of the core set gain.
    count : int
        Triples of a block.

    Returns
    -------
    Worst
    """
    asked = _Asked(problem, w, slacks, classes)
    read = map_reduce(blocks, _Look(count, grouped), _merge, given=asked)
    seen = read.value
    # Runs that block boundaries cut are whole only here.
    cut = seen.edges.closed(blocks.rules.n_features, blocks.rules.dtype)
    worst, least = _worst_of(cut, asked, max(count, 1))
    both = seen.worst.and_also(worst)
    return WorstTriples(both, min(seen.least, least), seen.n_examples + len(cut), read)


def _worst_of(examples: Examples, asked: _Asked, count: int) -> tuple[Triples, float]:
    problem, q = asked.problem, len(examples)
    if not q:
        return Triples.none(problem.dimension), math.inf
    rivals, margins, losses = rivals_of(problem, asked.w, examples)
    if asked.slacks:
        margins = margins + np.array(
            [asked.slacks.get((b, i), 0.0) for b, i in examples.places.tolist()]
        )
    chosen = _diverse(examples, rivals, margins, count)
    differences, answers, wrong = [], [], []
    for i in chosen.tolist():
        x, y = examples.one(i)
        other = rivals[examples.starts[i] : examples.starts[i + 1]]
        gap = problem.joint_features(x, y) - problem.joint_features(x, other)
        differences.append(gap / losses[i])
        answers.append(np.array(y))
        wrong.append(np.array(other))
    triples = Triples(
        examples.places[chosen],
        margins[chosen],
        np.stack(differences),
        tuple(answers),
        tuple(wrong),
    )
    return triples, float(margins.min())


def rivals_of(
    problem: StructuredProblem, w: FloatArray, examples: Examples, *, free: bool = False
) -> tuple[IndexArray, FloatArray, FloatArray]:
    """Ask the separation oracle about every example; with `free`, for the best of all answers."""
    if isinstance(problem, BatchProblem):
        labels = None if free else examples.labels
        return problem.rivals(w, examples.points, labels, examples.starts)
    rivals = np.empty(len(examples.labels), dtype=np.int64)
    margins, losses = np.empty(len(examples)), np.empty(len(examples))
    for i in range(len(examples)):
        x, y = examples.one(i)
        found = problem.separation_oracle(w, x, None if free else y)
        rivals[examples.starts[i] : examples.starts[i + 1]] = found.y
        margins[i], losses[i] = found.margin, found.loss
    return rivals, margins, losses


def _diverse(examples: Examples, rivals: IndexArray, margins: FloatArray, count: int) -> IndexArray:
    """Choose the worst example, the worst with other labels, and so on; then the next worst."""
    reach = min(len(margins), 50 * count)
    order = np.argpartition(margins, reach - 1)[:reach] if reach < len(margins) else None
    order = np.arange(len(margins)) if order is None else np.sort(order)
    order = order[np.argsort(margins[order], kind="stable")]
    first = examples.starts[order]
    pairs = np.stack([examples.labels[first], rivals[first]], axis=1)
    _, new = np.unique(pairs, axis=0, return_index=True)
    new = np.sort(new)[:count]
    rest = np.setdiff1d(np.arange(len(order)), new)[: count - len(new)]
    chosen: IndexArray = order[np.sort(np.concatenate([new, rest]))]
    return chosen
