"""A core set for the maximum margin, by a few reads of all rows: Fig. 1 of Har-Peled et al."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from operator import add
from typing import Any, Literal

import numpy as np

from daskcoreset.constructions.margin.core_set import (
    CoreRows,
    Fit,
    MarginCoreset,
    Pass,
    fit_core,
    margin_of_levels,
)
from daskcoreset.constructions.margin.rows import (
    FirstRead,
    find_classes,
    refuse_wide,
    signs_of,
)
from daskcoreset.constructions.margin.separators import Kernel, KernelLike, NotSeparableError
from daskcoreset.constructions.margin.violators import ViolatorQuery, ViolatorRows, find_violators
from daskcoreset.core.blocks import MAX_LABELS, Block
from daskcoreset.core.coreset import Coreset
from daskcoreset.core.errors import (
    InvalidInputError,
    InvalidTypeError,
    package_versions,
    warn_user,
)
from daskcoreset.core.linalg import dense_rows, inner_products
from daskcoreset.core.points import WeightedPoints
from daskcoreset.core.typing import AnyArray, FloatArray
from daskcoreset.core.validation import check_count, check_flag, check_share, is_choice, shown
from daskcoreset.execution.engine import BlockResults, map_reduce
from daskcoreset.inputs.blocks import RowBlocks, row_blocks
from daskcoreset.inputs.cubes import refuse_cube
from daskcoreset.objectives import MARGIN


def find_opposite_duplicate(blocks: RowBlocks, core: CoreRows) -> tuple[int, int] | None:
    """Look in all the data for a row equal to one of a core set, with the other label.

    Returns
    -------
    tuple of int or None
        Numbers of the two rows, the smaller one first.
    """
    rows = (dense_rows(core.points), core.signs)
    work = partial(_duplicate_in_block, classes=core.classes)
    read = map_reduce(blocks, work, add, broadcast=rows)
    if not read.value:
        return None
    block_index, position, row = read.value[0]
    pair = sorted((read.row(block_index, position), int(core.rows.indices[row])))
    return pair[0], pair[1]


def _duplicate_in_block(
    block: Block, block_index: int, rows: tuple[AnyArray, FloatArray], *, classes: AnyArray
) -> list[tuple[int, int, int]]:
    """Block, and row in it, of the first row that equals one of the core set, and this one."""
    points, core_signs = rows
    signs = signs_of(block, classes)
    # Equal rows have equal products with anything; few others have.
    key = np.sqrt(np.arange(2.0, points.shape[1] + 2.0))[None]
    products = inner_products(block.points, key)[:, 0]
    core_products = inner_products(points, key)[:, 0]
    for position in np.flatnonzero((signs != 0.0) & np.isin(products, core_products)):
        row = block.take(np.array([position]))
        same = (points == dense_rows(row.points)).all(axis=1) & (core_signs == -signs[position])
        if same.any():
            within: Any = row.rows
            return [(block_index, int(within[0]), int(same.argmax()))]
    return []


class Run:
    """One run of the loop, from the first read."""

    def __init__(
        self, options: MaxMarginCoreset, blocks: RowBlocks, read: BlockResults[FirstRead] | None
    ) -> None:
        self.options = options
        self.blocks = blocks
        self.kernel = Kernel(options.kernel, options.gamma, options.degree, options.coef0)
        n_blocks, in_all = blocks.n_blocks, options.violators
        if in_all == "auto":
            in_all = max(20, min(2 * blocks.schema.n_features, 1000))
        elif in_all == "block":
            in_all = n_blocks
        self.in_all = int(in_all)
        # Twice its share from each block, for blocks are not alike.
        share = -(-2 * self.in_all // n_blocks) if n_blocks > 1 else self.in_all
        self.per_block = 1 if options.violators == "block" else min(share, self.in_all)
        # Of each class as many rows to start from.
        self.n_first = 1 if options.violators == 1 else max(1, self.in_all // 2)
        max_classes = 2 if options.positive is None else MAX_LABELS
        self.first = read or find_classes(blocks, max_classes=max_classes, n_keep=self.n_first)
        self.center: FloatArray | None = None
        self.radius = 0.0

    def result(self) -> MarginCoreset:
        """Run it."""
        core = self._first_core()
        trace: list[Pass] = []
        best: tuple[CoreRows, Fit, float] | None = None
        upper = np.inf
        reason = ""
        while True:
            fit = self._fit(core)
            # No margin on the data passes that on a part of them, whichever rows were dropped.
            upper = min(upper, fit.hard.length)
            if best is not None and best[2] >= (1.0 - self.options.epsilon) * upper:
                break
            if len(trace) == self.options.max_passes:
                reason = f"max_passes={len(trace)} is reached; pass a larger one"
                break
            violators = self._find_violators(fit, core, measure=not trace)
            margin = margin_of_levels(violators.levels, intercept=self.options.intercept)
            # The margin on the data may fall from a pass to the next, and the best one counts.
            if best is None or margin > best[2]:
                best = (core, self._centred(fit, violators.levels), margin)
            if not trace:
                self.radius = float(np.sqrt(violators.square))
            trace.append(Pass(len(trace) + 2, len(core), fit.hard.margin, margin, best[2]))
            self._report(trace[-1])
            if best[2] >= (1.0 - self.options.epsilon) * upper:
                break
            # Without new violators rounding has the last word.
            if np.isin(violators.rows.indices, core.rows.indices).all():
                reason = "the margin is too small for double precision; scale the columns"
                break
            if self.options.drop:
                core = core.take(np.flatnonzero(fit.hard.dual > 0.0))
            core = core.with_rows(violators.rows)
        assert best is not None  # noqa: S101 - max_passes is at least one
        if reason:
            warn_user(
                f"the margin is certified to {best[2] / upper:.3g} of the largest and not to "
                f"{1 - self.options.epsilon:.3g}: {reason}."
            )
        return self._pack(core, best, upper, tuple(trace), converged=not reason)

    def _first_core(self) -> CoreRows:
        """Rows to start from, of the two sides of the separator."""
        options, classes = self.options, self.first.value.classes
        if isinstance(options.positive, list | tuple) or np.ndim(options.positive):
            raise InvalidTypeError(f"positive is {shown(options.positive)}; pass one label.")
        positive = classes[1] if options.positive is None else options.positive
        try:
            is_positive = np.asarray(classes == positive, dtype=bool)
        except TypeError as error:  # missing, in pandas' way
            problem = f"positive is {shown(positive)}; pass one label."
            raise InvalidTypeError(problem) from error
        if not is_positive.any():
            raise InvalidInputError(
                f"positive is {options.positive!r}, but y has the labels "
                f"{classes[:10].tolist()}; pass one of them."
            )
        # Labels that are not the second one are on the negative side.
        sides = classes[[int((~is_positive).argmax()), int(is_positive.argmax())]]
        rows = self.first.value.first_rows(self.n_first)
        if options.intercept:
            # The radius of rows about their own middle, not about a distant origin.
            points: Any = rows.block.points
            self.center = np.asarray(points.mean(axis=0, dtype=np.float64)).ravel()
        return CoreRows.start(rows, sides, self.kernel, intercept=options.intercept)

    def _fit(self, core: CoreRows) -> Fit:
        try:
            return fit_core(core)
        except NotSeparableError as error:
            if error.duplicates is None:
                evidence = core.take(np.flatnonzero(np.isin(core.rows.indices, error.indices)))
                duplicates = find_opposite_duplicate(self.blocks, evidence)
                if duplicates is not None:
                    raise error.with_duplicates(duplicates) from None
            raise

    def _find_violators(self, fit: Fit, core: CoreRows, *, measure: bool) -> ViolatorRows:
        query = ViolatorQuery(
            fit,
            core.classes,
            self.options.epsilon,
            core.intercept,
            self.per_block,
            self.in_all,
            dict(self.first.offsets()),
            self.center,
            measure,
        )
        return find_violators(self.blocks, query)

    def _centred(self, fit: Fit, levels: FloatArray) -> Fit:
        """Move the hyperplane into the middle of the strip that the data leave."""
        if not self.options.intercept:
            return fit
        middle = float(levels[1] - levels[0]) / 2
        return replace(fit, separator=replace(fit.separator, intercept=middle))

    def _report(self, done: Pass) -> None:
        progress = self.options.progress
        if callable(progress):
            progress(done)
        elif progress is True:
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
        best_core, fit, margin = best
        if self.options.drop:
            core = best_core  # rows of the separator may have been dropped since
        # Otherwise rows were only added, after those of the best separator.
        dual = np.zeros(len(core))
        dual[: len(best_core)] = fit.hard.dual
        block = core.rows.block
        return MarginCoreset(
            WeightedPoints(block.points, np.ones(len(core)), core.rows.indices, block.labels),
            dual,
            core.signs,
            core.classes,
            fit.separator,
            margin,
            float(upper),
            self.options.epsilon,
            converged,
            self.options.intercept,
            self.radius,
            len(trace) + 1,
            self.first.n_rows,
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
    A margin does not depend on weights: rows with a ``sample_weight`` of zero are left out, and all
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
        """Build the core set.

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
        refuse_cube("a margin coreset", X)
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
        survey : BlockResults of FirstRead, optional
            The result of `find_classes`; saves a read.

        Returns
        -------
        MarginCoreset
        """
        if is_choice(self.kernel, ("linear",)):
            refuse_wide(blocks)
        elif not callable(self.kernel):
            blocks.refuse_zeros()
        return Run(self, blocks, survey).result()


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
        Of weights one, since a margin has none: any solver of the hard-margin problem finds on
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
    refuse_cube("a margin coreset", X)
    construction = MaxMarginCoreset(**options)
    blocks = row_blocks(
        X, y, sample_weight, chunks=construction.chunks, on_invalid=construction.on_invalid
    )
    margin_coreset = construction.run_blocks(blocks)
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
    columns = None if blocks.columns is None else list(blocks.columns)
    beside = {"parameters": parameters, "source": blocks.name, "columns": columns}
    return coreset_of(margin_coreset, beside)


def coreset_of(found: MarginCoreset, beside: Mapping[str, Any]) -> Coreset:
    """Return the rows of a core set as a coreset, with what is known beside it."""
    facts = {"epsilon": found.epsilon, **beside, **found.describe()}
    return margin_rows("max_margin", found.core, found.n_rows, facts)


def margin_rows(
    method: str, core: WeightedPoints, n_rows: int, facts: Mapping[str, Any]
) -> Coreset:
    """Return rows that keep a margin as a coreset of weights one, which say nothing of a margin.

    Parameters
    ----------
    method : str
    core : WeightedPoints
    n_rows : int
        Of the data.
    facts : mapping of str to JSON
        What is known beside; "core_margin" is the largest margin on the rows.
    """
    record = {
        "method": method,
        "m": len(core),
        "n": n_rows,
        "d": core.n_features,
        "versions": package_versions(),
        "objective": MARGIN,
        **facts,
    }
    return Coreset(core.points, core.weights, core.indices, core.labels, record)
