"""The core set while it grows: its rows, and the separator they give."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from daskcoreset.solvers.hard import HardMargin, hard_margin, hard_margin_bias, hard_margin_gram
from daskcoreset.core.tiles import dense_rows
from daskcoreset.constructions.margin.kernelised import (Kernel, Separator)
from daskcoreset.constructions.margin.picked import Picked, joined
from daskcoreset.constructions.margin.separability import NotSeparableError, opposite_duplicates

if TYPE_CHECKING:
    from daskcoreset.core.typing import AnyArray, FloatArray, IndexArray, Points

__all__ = ["Core", "Fit", "fit_core"]


@dataclass(frozen=True, eq=False)
class Core:
    """Rows of the core set.

    Attributes
    ----------
    rows : Picked
    indices : ndarray of shape (m,), int64
        Row numbers in the whole data.
    kernel : Kernel
    intercept : bool
    gram : ndarray of shape (m, m), float64, or None
        Kernel values of all pairs; None for the linear kernel.
    """

    rows: Picked
    indices: IndexArray
    kernel: Kernel
    intercept: bool
    gram: FloatArray | None = None

    def __len__(self) -> int:
        return len(self.indices)

    @property
    def points(self) -> Points:
        """The rows."""
        return self.rows.block.points

    def start(self) -> Core:
        """Return the core set with its kernel values."""
        if self.kernel.is_linear:
            return self
        gram = _symmetric(self.kernel(self.points, self.points))
        return Core(self.rows, self.indices, self.kernel, self.intercept, gram)

    def with_rows(self, rows: Picked, indices: IndexArray) -> Core:
        """Return a core set with more rows, those left out that it has already."""
        new = np.flatnonzero(~np.isin(indices, self.indices))
        rows, indices = rows.take(new), indices[new]
        gram = None
        if self.gram is not None:
            across = self.kernel(self.points, rows.block.points)
            within = _symmetric(self.kernel(rows.block.points, rows.block.points))
            gram = np.block([[self.gram, across], [across.T, within]])
        both = joined([self.rows, rows])
        numbers = np.concatenate([self.indices, indices])
        return Core(both, numbers, self.kernel, self.intercept, gram)

    def take(self, positions: IndexArray) -> Core:
        """Return some of the rows."""
        gram = None if self.gram is None else self.gram[np.ix_(positions, positions)]
        rows, indices = self.rows.take(positions), self.indices[positions]
        return Core(rows, indices, self.kernel, self.intercept, gram)


@dataclass(frozen=True, eq=False)
class Fit:
    """The separator with the largest margin on a core set.

    Attributes
    ----------
    hard : HardMargin
    separator : Separator
        Of a normal of length one.
    middle : ndarray of shape (d,), float64, or None
        With an intercept and without a kernel, the point midway between the hulls.
    """

    hard: HardMargin
    separator: Separator
    middle: FloatArray | None


def fit_core(core: Core, tol: float = 1e-9) -> Fit:
    """Solve the hard-margin problem on the rows of a core set.

    Parameters
    ----------
    core : Core
    tol : float, default=1e-9

    Returns
    -------
    Fit

    Raises
    ------
    NotSeparableError
        With the evidence.
    """
    signs = core.rows.signs
    middle = None
    if core.gram is not None:
        with_bias = signs if core.intercept else None
        hard = hard_margin_gram(core.gram * np.outer(signs, signs), with_bias, tol=tol)
        _check(core, hard)
        normal = 2.0 * hard.length if core.intercept else hard.length
        held = np.flatnonzero(hard.dual > 0.0)
        separator = Separator(
            core.kernel,
            rows=core.points[held],
            coefficients=hard.dual[held] * signs[held] / normal,
            intercept=hard.intercept,
        )
        return Fit(hard, separator, None)
    # Columns that are zero in every row of the core set are zero in the normal.
    points, columns = _spread(core.points)
    if core.intercept:
        hard = hard_margin_bias(points, signs, tol=tol)
        middle = np.zeros(core.points.shape[1])
        middle[columns] = hard.dual @ points / 2.0
    else:
        hard = hard_margin(points * signs[:, None], tol=tol)
    _check(core, hard)
    w = np.zeros(core.points.shape[1])
    w[columns] = hard.w
    return Fit(hard, Separator(core.kernel, w, intercept=hard.intercept), middle)


def _spread(points: Points) -> tuple[FloatArray, Any]:
    if isinstance(points, np.ndarray):
        return points.astype(np.float64), slice(None)
    columns = np.unique(points.indices)
    if not len(columns):
        columns = np.zeros(1, dtype=np.int64)
    return dense_rows(points[:, columns]).astype(np.float64), columns


def _symmetric(gram: FloatArray) -> FloatArray:
    return (gram + gram.T) / 2.0


def _check(core: Core, hard: HardMargin) -> None:
    if hard.separable:
        return
    held = np.flatnonzero(hard.dual > 0.0)
    labels: Any = core.rows.block.labels
    raise NotSeparableError(
        core.indices[held],
        labels[held],
        hard.dual[held],
        # The length is half of the distance between the hulls where there are two.
        2.0 * hard.length if core.intercept else hard.length,
        intercept=core.intercept,
        duplicates=opposite_duplicates(_key(core.points), core.rows.signs, core.indices),
    )


def _key(points: Points) -> AnyArray:
    return _spread(points)[0]
