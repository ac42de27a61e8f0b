"""Triples of example, right answer and wrong answer: the worst of the data, by one read."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
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
from daskcoreset.execution.engine import map_reduce

if TYPE_CHECKING:
    from collections.abc import Mapping

    from daskcoreset.constructions.margin.examples import StructuredProblem
    from daskcoreset.core.blocks import Block
    from daskcoreset.execution.engine import BlockResults
    from daskcoreset.inputs.blocks import RowBlocks

Place = tuple[int, int]
"""Block, and row in it, of the first row of an example."""

_MAX_TRIPLES = 1000
"""Triples of all blocks that a read returns at most."""


@dataclass(frozen=True, eq=False)
class Triples:
    """Some triples.

    Attributes
    ----------
    places : ndarray of shape (m, 2), int64
        Block, and row in it, of the first row of the example.
    margins : ndarray of shape (m,), float64
        At the separator that they violated, with slacks.
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
        known = set(other.keys())
        new = [i for i, key in enumerate(self.keys()) if key not in known]
        return self.take(np.array(new, dtype=np.int64))

    def keys(self) -> list[tuple[Place, bytes]]:
        """Return example and wrong answer of each, to be compared."""
        places = map(tuple, self.places.tolist())
        return [(place, y.tobytes()) for place, y in zip(places, self.rivals, strict=True)]


@dataclass(frozen=True, eq=False)
class StructuredQuery:
    """A separator, and how rows are cut into examples.

    Attributes
    ----------
    problem : StructuredProblem
    w : ndarray of shape (D,), float64
    classes : ndarray of shape (K,), sorted, or None
    grouped : bool
        Both as in `structured_margin`.
    slacks : mapping
        Slack of the examples of the core set, by block and row in it.
    """

    problem: StructuredProblem
    w: FloatArray
    classes: AnyArray | None
    grouped: bool
    slacks: Mapping[Place, float] = field(default_factory=dict)


Work = Callable[[Examples, StructuredQuery], Any]


def read_examples(
    blocks: RowBlocks,
    query: StructuredQuery,
    work: Work,
    merge: Callable[[Any, Any], Any],
) -> tuple[BlockResults[Any], Examples]:
    """Read once: ``work(examples, query)`` of the whole examples of every block, merged.

    Returns
    -------
    read : BlockResults
    cut : Examples
        Those that block boundaries cut, which are whole only now.
    """
    merge_parts = partial(_merge_parts, merge=merge)
    read = map_reduce(blocks, partial(_work_on_block, work=work), merge_parts, broadcast=query)
    value, edges = read.value
    cut = edges.closed(blocks.schema.n_features, blocks.schema.dtype)
    return replace(read, value=value), cut


def _work_on_block(
    block: Block, block_index: int, query: StructuredQuery, *, work: Work
) -> tuple[Any, Edges] | InvalidRow:
    labels = encoded(block, query.classes)
    if isinstance(labels, InvalidRow):
        return labels
    examples, edges = cut_block(block, block_index, labels, grouped=query.grouped)
    return work(examples, query), edges


def _merge_parts(
    first: tuple[Any, Edges], second: tuple[Any, Edges], *, merge: Callable[[Any, Any], Any]
) -> tuple[Any, Edges]:
    return merge(first[0], second[0]), merge_edges(first[1], second[1])


@dataclass(frozen=True, eq=False)
class WorstTriples:
    """Triples of least margin.

    Attributes
    ----------
    worst : Triples
        Some of every block.
    margin : float
        The least margin of all; infinite without examples.
    n_examples : int
    """

    worst: Triples
    margin: float
    n_examples: int

    def merged_with(self, other: WorstTriples) -> WorstTriples:
        """Return the triples of both."""
        return WorstTriples(
            self.worst.and_also(other.worst),
            min(self.margin, other.margin),
            self.n_examples + other.n_examples,
        )


def _merge_worst(first: WorstTriples, second: WorstTriples) -> WorstTriples:
    both = first.merged_with(second)
    if len(both.worst) <= _MAX_TRIPLES:
        return both
    # In the order of the data, so that merging stays associative.
    chosen = np.sort(np.argsort(both.worst.margins, kind="stable")[:_MAX_TRIPLES])
    return replace(both, worst=both.worst.take(chosen))


def worst_triples(
    blocks: RowBlocks, query: StructuredQuery, count: int
) -> BlockResults[WorstTriples]:
    """Find the triples of least margin, `count` of every block, in one read."""
    work = partial(_worst_of, count=count)
    read, cut = read_examples(blocks, query, work, _merge_worst)
    return replace(read, value=read.value.merged_with(_worst_of(cut, query, max(count, 1))))


def _worst_of(examples: Examples, query: StructuredQuery, count: int) -> WorstTriples:
    problem = query.problem
    if not len(examples):
        return WorstTriples(Triples.none(problem.dimension), math.inf, 0)
    rivals, margins, losses = rivals_of(problem, query.w, examples)
    if query.slacks:
        margins = margins + np.array(
            [query.slacks.get((block, row), 0.0) for block, row in examples.places.tolist()]
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
    return WorstTriples(triples, float(margins.min()), len(examples))


def rivals_of(
    problem: StructuredProblem, w: FloatArray, examples: Examples, *, free: bool = False
) -> tuple[IndexArray, FloatArray, FloatArray]:
    """Return the rival of every example; with `free`, the best of all answers."""
    if isinstance(problem, BatchProblem):
        labels = None if free else examples.labels
        return problem.rivals(w, examples.points, labels, examples.starts)
    rivals = np.empty(len(examples.labels), dtype=np.int64)
    margins, losses = np.empty(len(examples)), np.empty(len(examples))
    for i in range(len(examples)):
        x, y = examples.one(i)
        rival = problem.separation_oracle(w, x, None if free else y)
        rivals[examples.starts[i] : examples.starts[i + 1]] = rival.y
        margins[i], losses[i] = rival.margin, rival.loss
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
