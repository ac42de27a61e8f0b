"""Examples of several rows, and the protocol of a structured problem."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from daskcoreset.core.blocks import Block, InvalidRow, labels_of
from daskcoreset.core.typing import AnyArray, FloatArray, IndexArray, Points


@dataclass(frozen=True, eq=False)
class Examples:
    """Some examples, one after another.

    Attributes
    ----------
    points : ndarray of shape (n, d) or csr_array
        All their rows.
    labels : ndarray of shape (n,), int64
    starts : ndarray of shape (q + 1,), int64
        Where each begins; the last entry is n.
    places : ndarray of shape (q, 2), int64
        Block, and row in it, of the first row of each.
    """

    points: Points
    labels: IndexArray
    starts: IndexArray
    places: IndexArray

    def __len__(self) -> int:
        return len(self.starts) - 1

    def one(self, i: int) -> tuple[AnyArray, IndexArray]:
        """Return the rows, dense float64, and the labels of an example."""
        rows: Any = self.points[self.starts[i] : self.starts[i + 1]]
        dense = rows if isinstance(rows, np.ndarray) else rows.toarray()
        return dense.astype(np.float64), self.labels[self.starts[i] : self.starts[i + 1]]


@dataclass(frozen=True, eq=False)
class _Piece:
    """Rows of one group at an end of a range of blocks."""

    group: float
    points: AnyArray
    labels: IndexArray
    place: tuple[int, int]

    def and_then(self, other: _Piece) -> _Piece:
        return _Piece(
            self.group,
            np.concatenate([self.points, other.points]),
            np.concatenate([self.labels, other.labels]),
            self.place,
        )


@dataclass(frozen=True, eq=False)
class Edges:
    """Runs of rows at the ends of a range of blocks, and runs that were cut within it.

    Attributes
    ----------
    head, tail : piece or None
        Of the first and the last group; one group throughout is a head without a tail.
    whole : tuple of pieces
        Runs that were cut by a boundary within the range.
    """

    head: _Piece | None = None
    tail: _Piece | None = None
    whole: tuple[_Piece, ...] = field(default=())

    def closed(self, n_features: int, dtype: Any) -> Examples:
        """Return the runs, with those at the ends, when there is nothing before and after."""
        ends = [piece for piece in (self.head, self.tail) if piece is not None]
        pieces = [*self.whole, *ends]
        none: list[AnyArray] = [np.empty((0, n_features), dtype)]
        return Examples(
            np.concatenate([piece.points for piece in pieces] or none),
            np.concatenate([piece.labels for piece in pieces] or [np.empty(0, np.int64)]),
            np.cumsum([0, *(len(piece.labels) for piece in pieces)]),
            np.array([piece.place for piece in pieces], dtype=np.int64).reshape(-1, 2),
        )


def merge_edges(first: Edges, second: Edges) -> Edges:
    """Join the open ends of two neighbouring ranges; associative.

    Examples
    --------
    >>> def piece(group):
    ...     return _Piece(group, np.zeros((1, 1)), np.zeros(1, dtype=int), (0, 0))
    >>> both = merge_edges(Edges(piece(1.0), piece(2.0)), Edges(piece(2.0), piece(3.0)))
    >>> both.head.group, [len(run.labels) for run in both.whole], both.tail.group
    (1.0, [2], 3.0)
    """
    if first.head is None or second.head is None:
        return second if first.head is None else first
    last = first.head if first.tail is None else first.tail
    whole = (*first.whole, *second.whole)
    if last.group == second.head.group:
        joined = last.and_then(second.head)
        if first.tail is None:
            return Edges(joined, second.tail, whole)
        if second.tail is None:
            return Edges(first.head, joined, whole)
        return Edges(first.head, second.tail, (*first.whole, joined, *second.whole))
    done = [] if first.tail is None else [first.tail]
    done += [] if second.tail is None else [second.head]
    tail = second.tail or second.head
    return Edges(first.head, tail, (*first.whole, *done, *second.whole))


def cut_block(
    block: Block, block_index: int, labels: IndexArray, *, grouped: bool
) -> tuple[Examples, Edges]:
    """Cut a block into examples; with groups, those at its ends stay open.

    Parameters
    ----------
    block : Block
        With groups, they are its weights; without, rows of weight zero are left out.
    block_index : int
    labels : ndarray of shape (n,), int64
    grouped : bool

    Returns
    -------
    examples : Examples
        Whole ones.
    edges : Edges
    """
    n = len(block)
    rows = np.arange(n) if block.rows is None else block.rows
    if not grouped:
        block, labels, rows = _with_weight(block, labels, rows)
        n = len(block)
        places = np.stack([np.full(n, block_index), rows], axis=1)
        return Examples(block.points, labels, np.arange(n + 1), places), Edges()
    groups = block.weights
    bounds = np.flatnonzero(np.diff(groups)) + 1
    bounds = np.concatenate([[0], bounds, [n]]) if n else np.zeros(1, np.int64)
    runs = len(bounds) - 1
    ends = [_piece(block, block_index, labels, bounds, i) for i in sorted({0, runs - 1}) if runs]
    inner = bounds[1:-1] if runs > 2 else np.zeros(1, np.int64)
    first, last = (int(inner[0]), int(inner[-1])) if runs > 2 else (0, 0)
    places = np.stack([np.full(len(inner) - 1, block_index), rows[inner[:-1]]], axis=1)
    within = Examples(block.points[first:last], labels[first:last], inner - first, places)
    return within, Edges(ends[0] if ends else None, ends[1] if len(ends) > 1 else None)


def _with_weight(
    block: Block, labels: IndexArray, rows: IndexArray
) -> tuple[Block, IndexArray, IndexArray]:
    """Leave out rows without weight."""
    used = np.flatnonzero(block.weights)
    if len(used) == len(block):
        return block, labels, rows
    return block.take(used), labels[used], rows[used]


def _piece(
    block: Block, block_index: int, labels: IndexArray, bounds: IndexArray, i: int
) -> _Piece:
    rows: Any = block.points[bounds[i] : bounds[i + 1]]
    first = int(bounds[i])
    return _Piece(
        float(block.weights[first]),
        np.array(rows) if isinstance(rows, np.ndarray) else rows.toarray(),
        np.array(labels[bounds[i] : bounds[i + 1]]),
        (block_index, first if block.rows is None else int(block.rows[first])),
    )


def encoded(block: Block, classes: AnyArray | None) -> IndexArray | InvalidRow:
    """Return the labels of a block as numbers of classes, or whole numbers as they are.

    Parameters
    ----------
    block : Block
    classes : ndarray of shape (K,), sorted, or None

    Returns
    -------
    ndarray of shape (n,), int64, or InvalidRow
        The first label that is no class, or no whole number.
    """
    labels = labels_of(block)
    if classes is None:
        whole = np.asarray(labels.astype(np.float64) if labels.dtype.kind in "biuf" else np.nan)
        bad = np.broadcast_to(whole != np.floor(whole), (len(block),))
        codes = np.zeros(len(block), np.int64) if bad.any() else labels.astype(np.int64)
    else:
        codes = np.minimum(np.searchsorted(classes, labels), len(classes) - 1).astype(np.int64)
        bad = classes[codes] != labels
    if not bad.any():
        return codes
    row = int(np.flatnonzero(bad)[0])
    label = f"y is {labels[row]!r}".replace("{", "{{").replace("}", "}}")
    return InvalidRow(label + "{row}, which is no class; pass labels of the classes only.", row)


@dataclass(frozen=True, eq=False)
class Rival:
    """The wrong answer that a separator likes best.

    Attributes
    ----------
    y : ndarray of shape (t,), int64
    margin : float
        What the right answer is ahead by, divided by `loss`.
    loss : float
        How wrong `y` is; 1 where all wrong answers are equally wrong.
    """

    y: IndexArray
    margin: float
    loss: float = 1.0


class StructuredProblem(ABC):
    """Two functions that make a problem; examples are runs of rows, answers labels of them.

    Picklable, and without a state that changes.
    """

    @property
    @abstractmethod
    def dimension(self) -> int:
        """Length D of the joint features."""

    @abstractmethod
    def joint_features(self, x: AnyArray, y: IndexArray) -> FloatArray:
        r"""Return :math:`\\Phi(x, y)`.

        Parameters
        ----------
        x : ndarray of shape (t, d), float64
            The rows of an example.
        y : ndarray of shape (t,), int64
            A label for each.

        Returns
        -------
        ndarray of shape (D,), float64
        """

    @abstractmethod
    def separation_oracle(self, w: FloatArray, x: AnyArray, y: IndexArray | None) -> Rival:
        r"""Find the answer other than y that is least behind it.

        Parameters
        ----------
        w : ndarray of shape (D,), float64
        x : ndarray of shape (t, d), float64
        y : ndarray of shape (t,), int64, or None
            None to find the best of all answers, whose margin is then 0.

        Returns
        -------
        Rival
            Exactly the one of least
            :math:`\\langle w, \\Phi(x, y) - \\Phi(x, y')\\rangle / \\text{loss}(y, y')`.
        """


class BatchProblem(StructuredProblem, ABC):
    """A problem that also answers for many examples at a time."""

    @abstractmethod
    def rivals(
        self, w: FloatArray, points: Points, labels: IndexArray | None, starts: IndexArray
    ) -> tuple[IndexArray, FloatArray, FloatArray]:
        """Do what `separation_oracle` does, for each of many examples.

        Parameters
        ----------
        w : ndarray of shape (D,), float64
        points : ndarray of shape (n, d) or csr_array
            Rows of all examples.
        labels : ndarray of shape (n,), int64, or None
        starts : ndarray of shape (q + 1,), int64
            Where each example begins, and n.

        Returns
        -------
        rivals : ndarray of shape (n,), int64
            One answer after another.
        margins, losses : ndarray of shape (q,), float64
        """
