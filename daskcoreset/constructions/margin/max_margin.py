"""A core set for the maximum margin, by a few reads of all rows: Fig. 1 of Har-Peled et al."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from daskcoreset.constructions.margin.classes import find_classes, signs_of
from daskcoreset.constructions.margin.core_set import (
    CoreRows,
    Fit,
    MarginCoreset,
    Pass,
    SelectedRows,
    concatenate_rows,
    fit_core,
    row_numbers,
    smallest,
)
from daskcoreset.constructions.margin.separators import Kernel, KernelLike, NotSeparableError
from daskcoreset.constructions.margin.violators import ViolatorQuery, ViolatorRows, find_violators
from daskcoreset.core.blocks import MAX_LABELS
from daskcoreset.core.coreset import Coreset
from daskcoreset.core.errors import InvalidInputError, package_versions, warn_user
from daskcoreset.core.linalg import dense_rows, inner_products
from daskcoreset.core.points import WeightedPoints
from daskcoreset.core.validation import check_count, check_flag, check_share, is_choice
from daskcoreset.execution.fold import map_reduce
from daskcoreset.inputs.blocks import row_blocks

if TYPE_CHECKING:
    from daskcoreset.constructions.margin.classes import FirstRead
    from daskcoreset.core.blocks import Block
    from daskcoreset.core.typing import AnyArray, FloatArray, IndexArray
    from daskcoreset.execution.fold import BlockResults
    from daskcoreset.inputs.blocks import RowBlocks

__all__ = ["MaxMarginCoreset", "Run", "build_margin", "find_twins", "margin_as_coreset"]


@dataclass(frozen=True, eq=False)
class _Wanted:
    points: AnyArray
    signs: FloatArray
    keys: FloatArray
    key: FloatArray
    classes: AnyArray


def find_twins(blocks: RowBlocks, core: CoreRows, classes: AnyArray) -> tuple[int, int] | None:
    """Look in all the data for a row equal to one of `core`, with the other label.

    Parameters
    ----------
    blocks : RowBlocks
        Read once.
    core : Core
        A few rows.
    classes : ndarray of shape (2,)

    Returns
    -------
    tuple of int or None
        Numbers of the two rows, the smaller one first.
    """
    points = dense_rows(core.points)
    # Equal rows have equal products with anything; few others have.
    key = np.sqrt(np.arange(2.0, points.shape[1] + 2.0))
    keys = inner_products(points, key[None])[:, 0]
    wanted = _Wanted(points, core.rows.signs, keys, key, classes)
    found = map_reduce(blocks, _look, _first, given=wanted)
    if not found.value:
        return None
    number, position, row = found.value[0]
    pair = sorted((found.row(number, position), int(core.indices[row])))
    return pair[0], pair[1]


def _look(block: Block, number: int, wanted: _Wanted) -> list[tuple[int, int, int]]:
    signs = signs_of(block, wanted.classes)
    keys = inner_products(block.points, wanted.key[None])[:, 0]
    close = np.flatnonzero((signs != 0.0) & np.isin(keys, wanted.keys))
    for position in close:
        row: Any = dense_rows(block.points[[position]])[0]
        same = (wanted.points == row).all(axis=1) & (wanted.signs == -signs[position])
        if same.any():
            return [(number, int(position), int(same.argmax()))]
    return []


def _first(
    one: list[tuple[int, int, int]], two: list[tuple[int, int, int]]
) -> list[tuple[int, int, int]]:
    return one or two


class Run:
    """One run of the loop."""

    def __init__(self, options: MaxMarginCoreset, blocks: RowBlocks, kernel: Kernel) -> None:
        self.options = options
        self.blocks = blocks
        self.kernel = kernel
        n_blocks, d = blocks.n_blocks, blocks.rules.n_features
        wanted = options.violators
        if wanted == "auto":
            wanted = max(20, min(2 * d, 1000))
        elif wanted == "block":
            wanted = n_blocks
        self.in_all = int(wanted)
        # Twice its share from each block, for blocks are not alike.
        share = -(-2 * self.in_all // n_blocks) if n_blocks > 1 else self.in_all
        self.per_block = 1 if options.violators == "block" else min(share, self.in_all)

    def result(self, survey: BlockResults[FirstRead] | None = None) -> MarginCoreset:
        """Run it, from what a first read found."""
        core = self._first(survey)
        trace: list[Pass] = []
        best: tuple[CoreRows, Fit, float] | None = None
        upper = np.inf
        ended = ""
        while True:
            fit = self._fit(core)
            upper = min(upper, fit.hard.length)
            if best is not None and best[2] >= (1.0 - self.options.epsilon) * upper:
                break
            if len(trace) == self.options.max_passes:
                ended = f"max_passes={len(trace)} is reached; pass a larger one"
                break
            answer = self._ask(core, fit, measure=not trace)
            levels = answer.value.levels
            margin = float(levels.sum()) / 2 if self.options.intercept else float(levels.min())
            if best is None or margin > best[2]:
                best = (core, self._centred(fit, levels), margin)
            if not trace:
                self.radius = float(np.sqrt(answer.value.square))
            trace.append(Pass(len(trace) + 2, len(core), fit.hard.margin, margin, best[2]))
            self._tell(trace[-1])
            if best[2] >= (1.0 - self.options.epsilon) * upper:
                break
            larger = self._grown(core, fit, answer)
            if larger is core:
                ended = "the margin is too small for double precision; scale the columns"
                break
            core = larger
        assert best is not None  # noqa: S101 - max_passes is at least one
        if ended:
            warn_user(
                f"the margin is certified to {best[2] / upper:.3g} of the largest and not to "
                f"{1 - self.options.epsilon:.3g}: {ended}."
            )
        return self._pack(core, best, upper, tuple(trace), converged=not ended)

    def _first(self, survey: BlockResults[FirstRead] | None) -> CoreRows:
        """Take the classes and rows to start from, of each class as many."""
        keep = 1 if self.options.violators == 1 else max(1, self.in_all // 2)
        positive = self.options.positive
        most = 2 if positive is None else MAX_LABELS
        gathered = survey or find_classes(self.blocks, most=most, keep=keep)
        found = gathered.value
        if positive is None:
            side = found.classes == found.classes[1]
        else:
            side = found.classes == positive
            if not side.any():
                raise InvalidInputError(
                    f"positive is {positive!r}, but y has the labels "
                    f"{found.classes[:10].tolist()}; pass one of them."
                )
        # Labels that are not the second one are on the negative side.
        self.classes: AnyArray = found.classes[[int((~side).argmax()), int(side.argmax())]]
        self.n_rows = gathered.n_rows
        parts = [
            SelectedRows(
                part.block, part.numbers, np.full(len(part), 1.0 if up else -1.0), part.values
            )
            for part, up in zip([smallest(one, keep) for one in found.firsts], side, strict=True)
        ]
        rows = concatenate_rows(parts)
        core = CoreRows(rows, self._numbers(gathered, rows), self.kernel, self.options.intercept)
        # The radius of rows about their own middle, not about a distant origin.
        self.center: FloatArray | None = None
        if self.options.intercept:
            points: Any = core.points
            self.center = np.asarray(points.mean(axis=0, dtype=np.float64)).ravel()
        return core.start()

    def _fit(self, core: CoreRows) -> Fit:
        try:
            return fit_core(core)
        except NotSeparableError as error:
            if error.duplicates is None:
                held = core.take(np.flatnonzero(np.isin(core.indices, error.indices)))
                twins = find_twins(self.blocks, held, self.classes)
                if twins is not None:
                    raise NotSeparableError(
                        error.indices,
                        error.labels,
                        error.coefficients,
                        error.norm,
                        intercept=error.intercept,
                        duplicates=twins,
                    ) from None
            raise

    def _ask(self, core: CoreRows, fit: Fit, *, measure: bool) -> BlockResults[ViolatorRows]:
        del core
        hard, share = fit.hard, 1.0 - self.options.epsilon
        floors = np.full(2, share * hard.length)
        if self.options.intercept:
            # Together twice the share of the margin: some row is below unless it is reached.
            floors = hard.levels + (hard.length - hard.margin) - self.options.epsilon * hard.length
        return find_violators(
            self.blocks,
            ViolatorQuery(
                fit.separator,
                self.classes,
                floors,
                hard.length,
                share,
                self.per_block,
                self.in_all,
                fit.middle,
                self.center,
                measure,
            ),
        )

    def _centred(self, fit: Fit, levels: FloatArray) -> Fit:
        """Move the hyperplane into the middle of the strip that the data leave."""
        if not self.options.intercept:
            return fit
        middle = float(levels[1] - levels[0]) / 2
        return replace(fit, separator=replace(fit.separator, intercept=middle))

    def _grown(self, core: CoreRows, fit: Fit, answer: BlockResults[ViolatorRows]) -> CoreRows:
        rows = answer.value.rows
        # Without new violators rounding has the last word.
        if rows is None or np.isin(self._numbers(answer, rows), core.indices).all():
            return core
        indices = self._numbers(answer, rows)
        if self.options.drop:
            core = core.take(np.flatnonzero(fit.hard.dual > 0.0))
        return core.with_rows(rows, indices)

    @staticmethod
    def _numbers(gathered: BlockResults[Any], rows: SelectedRows) -> IndexArray:
        within: Any = rows.block.rows
        return row_numbers(gathered, rows.numbers, within)

    def _tell(self, done: Pass) -> None:
        progress = self.options.progress
        if callable(progress):
            progress(done)
        elif progress:
            sys.stderr.write(
                f"read {done.reads}: margin {done.core_margin:.6g} on {done.size:,} rows, "
                f"{done.margin:.6g} on all\n"
            )

    def _pack(
        self,
        core: CoreRows,
        best: tuple[CoreRows, Fit, float],
        upper: float,
        trace: tuple[Pass, ...],
        *,
        converged: bool,
    ) -> MarginCoreset:
        of, fit, margin = best
        if self.options.drop:
            core = of  # rows of the separator may have been dropped since
        dual = np.zeros(len(core))
        place = {int(row): i for i, row in enumerate(core.indices)}
        dual[[place[int(row)] for row in of.indices]] = fit.hard.dual
        block = core.rows.block
        return MarginCoreset(
            WeightedPoints(block.points, np.ones(len(core)), core.indices, block.labels),
            dual,
            core.rows.signs,
            self.classes,
            fit.separator,
            margin,
            float(upper),
            self.options.epsilon,
            converged,
            self.options.intercept,
            self.radius,
            len(trace) + 1,
            self.n_rows,
            trace,
        )


Violators = int | Literal["auto", "block"]


@dataclass(frozen=True)
class MaxMarginCoreset:
    r"""Rows on which the largest margin is that of all the data, up to epsilon.

    Parameters
    ----------
    epsilon : float, default=0.1
        The separator reaches at least 1 - epsilon of the largest margin; between 0 and 1.
    intercept : bool, default=False
        False for hyperplanes through the origin, as in the paper. True for all hyperplanes:
        the largest margin is then half the distance between the hulls of the classes, which
        a column of ones would not give.
    kernel : {"linear", "rbf", "poly", "sigmoid"} or callable, default="linear"
        As in `sklearn.svm.SVC`; with others than "linear" the margin is that in the space of
        the kernel.
    gamma : float, default=1.0
    degree : int, default=3
    coef0 : float, default=0.0
    violators : {"auto", "block"} or int, default="auto"
        Rows added after a read, which are chosen to pull in different directions. "block"
        takes the worst row of every block; a number, so many of all rows, and 1 is Fig. 1.
        "auto" takes twice as many as there are columns, and at least 20: where reading is
        what costs, a larger core set is a good price for fewer reads.
    drop : bool, default=False
        Whether to drop rows without a coefficient after each pass, which keeps the core set
        at d + 1 rows and what is added. It ends as well (see `core_set`), but
        may read more often.
    max_passes : int, default=200
        Where to stop with a warning. Fig. 1 ends by itself, but with a tiny margin late.
    positive : label or None, default=None
        The class on the positive side, against all others; None where there are two classes,
        of which it is the greater.
    chunks : int or "auto", default="auto"
        As in `daskcoreset.build`.
    on_invalid : {"raise", "drop"}, default="raise"
        As in `daskcoreset.build`.
    progress : bool or callable, default=False
        True writes a line to the error stream after each read; a callable is given each
        `Pass`.

    Raises
    ------
    InvalidInputError
        If a parameter is out of range.

    Notes
    -----
    A margin knows no weights: rows with a ``sample_weight`` of zero are left out, and all
    others count the same.

    Nothing is random. The same data, chunks and versions give the same bits.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[2.0, 1.0], [1.0, 3.0], [-1.0, -2.0], [-4.0, 1.0]])
    >>> found = MaxMarginCoreset(epsilon=0.01).run(X, [1, 1, 0, 0])
    >>> found.factor >= 0.99, found.converged
    (True, True)
    >>> found.predict(X)
    array([1, 1, 0, 0])

    References
    ----------
    Har-Peled, Roth and Zimak (2007), Fig. 1, Lemma 3.1 and Corollary 3.2.
    """

    epsilon: float = 0.1
    intercept: bool = False
    kernel: KernelLike = "linear"
    gamma: float = 1.0
    degree: int = 3
    coef0: float = 0.0
    violators: Violators = "auto"
    drop: bool = False
    max_passes: int = 200
    positive: Any = None
    chunks: int | Literal["auto"] = "auto"
    on_invalid: Literal["raise", "drop"] = "raise"
    progress: bool | Callable[[Pass], object] = False

    def __post_init__(self) -> None:
        check_share("epsilon", self.epsilon)
        if not is_choice(self.violators, ("auto", "block")):
            check_count("violators", self.violators)
        check_flag("intercept", self.intercept)
        check_flag("drop", self.drop)
        check_count("max_passes", self.max_passes)

    def run(self, X: Any, y: Any, sample_weight: Any = None) -> MarginCoreset:
        """Build the core set, here and now.

        Parameters
        ----------
        X : array-like of shape (n, d), or path
            Any input of `daskcoreset.build`.
        y : array-like of shape (n,), or str
            Two labels of any kind, or more with `positive`.
        sample_weight : array-like of shape (n,), or str, optional
            Rows of weight zero are left out.

        Returns
        -------
        MarginCoreset

        Raises
        ------
        NotSeparableError
            With the evidence: a convex combination of a few rows that no hyperplane can have
            on one side.
        InvalidInputError
            If there are not two classes, or values or labels are missing.

        Warns
        -----
        CoresetWarning
            If it stops at `max_passes`, or at what double precision can tell.
        """
        blocks = row_blocks(X, y, sample_weight, chunks=self.chunks, on_invalid=self.on_invalid)
        return self.run_blocks(blocks)

    def run_blocks(
        self, blocks: RowBlocks, survey: BlockResults[FirstRead] | None = None
    ) -> MarginCoreset:
        """Build the core set of rows that are opened already.

        Parameters
        ----------
        blocks : RowBlocks
            With labels.
        survey : Gathered of Found, optional
            What `find_classes` found in them; saves a read.

        Returns
        -------
        MarginCoreset
        """
        if self.kernel != "linear" and not callable(self.kernel):
            blocks.refuse_zeros()
        kernel = Kernel(self.kernel, self.gamma, self.degree, self.coef0)
        return Run(self, blocks, kernel).result(survey)


def build_margin(X: Any, y: Any, sample_weight: Any = None, **options: Any) -> Coreset:
    """Build a core set for the largest margin, as a `Coreset`.

    Parameters
    ----------
    X : array-like of shape (n, d), or path
    y : array-like of shape (n,), or str
    sample_weight : array-like of shape (n,), or str, optional
        Rows of weight zero are left out.
    **options
        Parameters of `daskcoreset.MaxMarginCoreset`.

    Returns
    -------
    Coreset
        Of weights one, for a margin knows none: any solver of the hard-margin problem finds on
        it a separator of 1 - epsilon of the largest margin on the data. Margins, certificate
        and reads are in the provenance.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).uniform(-1, 1, size=(1000, 2))
    >>> coreset = build_margin(X, X[:, 0] > 0, intercept=True)
    >>> coreset.provenance["factor"] >= 0.9, len(coreset) < 100
    (True, True)
    """
    construction = MaxMarginCoreset(**options)
    blocks = row_blocks(
        X, y, sample_weight, chunks=construction.chunks, on_invalid=construction.on_invalid
    )
    found = construction.run_blocks(blocks)
    return margin_as_coreset(found, construction, source=blocks.name, columns=blocks.columns)


def margin_as_coreset(
    found: MarginCoreset,
    construction: MaxMarginCoreset,
    *,
    source: str | None = None,
    columns: tuple[str, ...] | None = None,
) -> Coreset:
    """Bring what was found to the form of a `Coreset`.

    Parameters
    ----------
    found : MarginCoreset
    construction : MaxMarginCoreset
        What found it.
    source : str or None, default=None
    columns : tuple of str or None, default=None

    Returns
    -------
    Coreset
    """
    core = found.core
    kernel = construction.kernel
    parameters = {
        "epsilon": float(construction.epsilon),
        "intercept": construction.intercept,
        "kernel": kernel if isinstance(kernel, str) else getattr(kernel, "__name__", repr(kernel)),
        "gamma": float(construction.gamma),
        "degree": int(construction.degree),
        "coef0": float(construction.coef0),
        "violators": construction.violators,
        "drop": construction.drop,
    }
    record = {
        "method": "max_margin",
        "parameters": parameters,
        "m": len(core),
        "n": found.n_rows,
        "d": core.n_features,
        "source": source,
        "columns": None if columns is None else list(columns),
        "versions": package_versions(),
        **found.describe(),
    }
    return Coreset(core.points, core.weights, core.indices, core.labels, record)
