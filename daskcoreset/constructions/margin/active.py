"""Maximum-margin separators from few labels, of rows out of core."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from daskcoreset.constructions.margin.active_run import ActiveRun, Oracle
from daskcoreset.constructions.margin.active_state import (
    ActiveMargin,
    ActiveOptions,
    ActiveState,
    Step,
)
from daskcoreset.constructions.margin.labels import Label, Labelled, Phase, plain_labels
from daskcoreset.constructions.margin.pool import Pool, open_pool
from daskcoreset.constructions.margin.query_strategy import add_labels
from daskcoreset.core.errors import InvalidInputError, InvalidTypeError
from daskcoreset.core.random import RandomState, resolve_seed
from daskcoreset.core.validation import (
    a_type,
    check_choice,
    check_count,
    check_flag,
    check_positive,
    check_share,
    shown,
)
from daskcoreset.core.zarr_places import Location


@dataclass(frozen=True)
class ActiveMaxMargin:
    r"""Find a separator of large margin, asking for as few labels as possible.

    Parameters
    ----------
    oracle : callable or None, default=None
        ``oracle(rows)`` returns one label a row; if it has a parameter `indices`, it gets the
        numbers of the rows, too. None for `start`, with `ask` and `tell`.
    epsilon : float, default=0.1
        Rows nearer to the boundary than ``(1 - epsilon)`` times the margin on the core set are
        asked for: at the end no row is left in that strip.
    error : float, default=0.05
        Share of the pool, by weight, that may be misclassified.
    delta : float, default=0.05
        Chance that more is misclassified, over the draws of the whole run.
    intercept : bool, default=True
        Whether the boundary may miss the origin. The paper has it through the origin.
    batch : int, default=1
        Labels asked for at a time. Of the rows in the strip the closest is taken, and then
        those that lie farthest from what is taken; the more, the fewer reads and the more
        labels.
    strategy : {"pool", "stream", "cover"}, default="pool"
        "pool" asks for the row closest to the boundary in the whole pool, one read a question;
        "stream" for the first row in the strip, reading on from block to block. "cover" asks for
        rows that stand for the pool as well, one read a batch: first, until there are two
        classes, for those that cover the pool best (then in turns with random ones), and then
        for those among the rows closest to the boundary that cover these best where no row with
        a label does; one row in five is random. Where classes overlap, are rare or come in
        groups, it needs fewer labels, also in batches.
    max_labels : int or None, default=None
        Stop when so many labels were paid for, with what is certified by then.
    C : float, default=inf
        Infinite for labels without errors. Otherwise wrong ones are forgiven as by the squared
        hinge loss with this C on the core set; then the error of the best separator should lie
        below `error`, or no verification succeeds.
    classes : pair of labels or None, default=None
        The two classes. None takes the first two values that are given, so that a slip may
        become a class.
    random_state : int, Generator, RandomState or None, default=None
        Determines the random rows. The same seed, answers and data give the same questions, and
        the same bits, on every scheduler.

    See Also
    --------
    daskcoreset.estimators.ActiveMaxMarginClassifier : the same as an estimator.

    Notes
    -----
    A row with sample weight zero is never asked for. The core set stays within the bound of
    Corollary 3.2 of the paper, :math:`1 + 4 R^2 / (\epsilon \rho)^2` with its constant worked
    out; through the origin R is the length of the longest row, and with an intercept, for which
    the same steps lead to one row more, the radius of a ball around the rows.

    Nobody can do with few labels what section 4.3 of the paper shows to need all of them: a
    class of one row that every rule can cut off is found by chance, or not at all, and then
    stays within `error`.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(20_000, 2))
    >>> X = X[np.abs(X[:, 0] - 0.3) > 0.05]  # a margin
    >>> def oracle(rows):
    ...     return np.where(rows[:, 0] > 0.3, "right", "left")
    >>> result = ActiveMaxMargin(oracle, random_state=0).run(X)
    >>> result.stopped, result.n_labels < 150, len(X) > 18_000
    ('verified', True, True)
    >>> bool((result.predict(X) == oracle(X)).all())
    True

    By hand, and kept on disk with ``store="labels.zarr"``:

    >>> run = ActiveMaxMargin(random_state=0).start(X)
    >>> request = run.ask()
    >>> run.tell(["left" if row[0] < 0.3 else "right" for row in request.rows])
    >>> run.n_labels
    1

    References
    ----------
    Har-Peled, Roth and Zimak (2007), Maximum margin coresets for active and noise tolerant
    learning, Fig. 2, Lemmas 4.1 and 4.2.
    """

    oracle: Oracle | None = None
    epsilon: float = 0.1
    error: float = 0.05
    delta: float = 0.05
    intercept: bool = True
    batch: int = 1
    strategy: Literal["pool", "stream", "cover"] = "pool"
    max_labels: int | None = None
    C: float = math.inf
    classes: tuple[Label, Label] | None = None
    random_state: RandomState = None

    def __post_init__(self) -> None:
        for name in ("epsilon", "error", "delta"):
            check_share(name, getattr(self, name))
        check_count("batch", self.batch)
        if self.max_labels is not None:
            check_count("max_labels", self.max_labels)
        check_choice("strategy", self.strategy, "pool", "stream", "cover")
        check_flag("intercept", self.intercept)
        check_positive("C", self.C)
        if self.oracle is not None and not callable(self.oracle):
            raise InvalidTypeError(
                f"oracle is {a_type(self.oracle)}, which cannot be called; pass a "
                f"function of rows, or use start() with ask() and tell()."
            )
        if self.classes is not None:
            classes: Any = self.classes
            if (
                isinstance(classes, str)
                or not isinstance(classes, Sequence | np.ndarray)
                or (isinstance(classes, np.ndarray) and classes.ndim != 1)
            ):
                raise InvalidTypeError(f"classes is {shown(self.classes)}; pass two labels.")
            pair = plain_labels(list(self.classes), 2)
            if pair[0] == pair[1] or isinstance(pair[0], str) != isinstance(pair[1], str):
                raise InvalidInputError(
                    f"classes must be two different values of one type, got {self.classes!r}; "
                    f"pass both."
                )

    def start(
        self,
        X: Any,
        *,
        sample_weight: Any = None,
        known: tuple[Any, Any] | None = None,
        store: Location | None = None,
        chunks: int | Literal["auto"] = "auto",
        on_invalid: Literal["raise", "drop"] = "raise",
    ) -> ActiveRun:
        """Open a pool, ready to ask.

        Parameters
        ----------
        X : array-like of shape (n, d), or path
            Rows without labels, any input of `daskcoreset.build`.
        sample_weight : array-like of shape (n,), str or None
            Random rows are drawn, and the error is measured, by weight.
        known : pair of array-likes or None, default=None
            Numbers of rows and their labels that are there already, at no cost: with one row of
            each class nothing is spent on looking for a rare one.
        store : path-like or Zarr store, or None, default=None
            Where every question and answer is kept, before `tell` returns. A run that is there
            already is never overwritten: `resume` it.
        chunks, on_invalid
            As in `daskcoreset.build`.

        Returns
        -------
        ActiveRun

        Raises
        ------
        InvalidInputError, InvalidTypeError
            If the data or known labels cannot be used.
        StoreError
            If there is something in the store already, or it cannot be written.
        """
        pool = open_pool(X, None, sample_weight, chunks=chunks, on_invalid=on_invalid)
        active_run = self.start_on(pool, known=known)
        if store is not None:
            active_run.save(store, overwrite=False)
        return active_run

    def start_on(self, pool: Pool, *, known: tuple[Any, Any] | None = None) -> ActiveRun:
        """Start on a pool that is open.

        Parameters
        ----------
        pool : Pool
        known : pair of array-likes or None, default=None

        Returns
        -------
        ActiveRun
        """
        none = np.empty(0, dtype=np.int64)
        rows = np.empty((0, pool.n_features), dtype=pool.blocks.schema.dtype)
        classes = () if self.classes is None else tuple(plain_labels(list(self.classes), 2))
        labelled = Labelled(none, rows, none, none, classes, self.classes is not None)
        state = ActiveState(self._active_options(), labelled, queue_rows=rows)
        if known is not None:
            state = _with_known_labels(state, pool, known)
        if state.options.cover and state.fit is None:
            state = replace(state, phase=Phase.QUERYING)
        return ActiveRun(state, pool)

    @staticmethod
    def resume(
        store: Location,
        X: Any,
        *,
        sample_weight: Any = None,
        chunks: int | Literal["auto"] = "auto",
        on_invalid: Literal["raise", "drop"] = "raise",
    ) -> ActiveRun:
        """Continue a saved run, with all its labels.

        Parameters
        ----------
        store : path-like or Zarr store
            As given to `start`, or to `ActiveRun.save`; it is kept there further.
        X, sample_weight, chunks, on_invalid
            As given to `start`.

        Returns
        -------
        ActiveRun

        Raises
        ------
        InvalidInputError
            If X is not the same data.
        StoreError
            If the store holds no complete run.
        """
        pool = open_pool(X, None, sample_weight, chunks=chunks, on_invalid=on_invalid)
        return ActiveRun.load(store, pool)

    def run(
        self,
        X: Any,
        *,
        progress: bool | None = False,
        report: Callable[[Step], None] | None = None,
        **options: Any,
    ) -> ActiveMargin:
        """Ask `oracle` until the separator passes.

        Parameters
        ----------
        X : array-like of shape (n, d), or path
        progress, report
            As in `ActiveRun.run`.
        **options
            As in `start`.

        Returns
        -------
        ActiveMargin

        Raises
        ------
        InvalidTypeError
            Without an oracle.
        OracleError
            As in `ActiveRun.run`.
        """
        if self.oracle is None:
            raise InvalidTypeError(
                "oracle is None; pass a callable, or use start() with ask() and tell()."
            )
        return self.start(X, **options).run(self.oracle, progress=progress, report=report)

    def _active_options(self) -> ActiveOptions:
        return ActiveOptions(
            float(self.epsilon),
            float(self.error),
            float(self.delta),
            bool(self.intercept),
            int(self.batch),
            self.strategy == "stream",
            None if self.max_labels is None else int(self.max_labels),
            float(self.C),
            resolve_seed(self.random_state),
            self.strategy == "cover",
        )


def _with_known_labels(state: ActiveState, pool: Pool, known: tuple[Any, Any]) -> ActiveState:
    """Add labels that are known already."""
    indices = np.asarray(known[0])
    if (
        indices.ndim != 1
        or indices.dtype.kind not in "iu"
        or len(set(indices.tolist())) < len(indices)
    ):
        raise InvalidInputError(
            "known[0] must be numbers of rows, each once; pass a vector of integers."
        )
    indices = indices.astype(np.int64)
    if len(indices) and not 0 <= indices.min() <= indices.max() < pool.n_rows:
        raise InvalidInputError(
            f"known[0] goes from {indices.min()} to {indices.max()}, but X has {pool.n_rows} rows; "
            f"pass numbers of rows of X."
        )
    rows = pool.fetch(indices)
    if len(rows) < len(indices):
        raise InvalidInputError(
            "known[0] names rows with NaN or infinity, which X leaves out; leave them out, too."
        )
    state = replace(state.queued(rows), phase=Phase.GIVEN, requested=np.arange(len(indices)))
    state = add_labels(state, known[1])
    if state.fit is None:
        state = replace(state.queued(None), phase=Phase.SEEDING)
    return state
