r"""`CoresetStream`: a coreset of rows as they come.

A stream that is killed and goes on::

    from pathlib import Path

    if Path("stream.zarr").exists():
        stream = CoresetStream.load("stream.zarr")
    else:
        stream = CoresetStream("lightweight", 1000, random_state=0, store="stream.zarr")
    for start in range(stream.n_rows, len(X), 10_000):
        stream.partial_fit(X[start : start + 10_000])

Every batch is on the disk when `partial_fit` returns, with the number of rows consumed: feeding
from ``stream.n_rows`` on loses nothing, counts nothing twice, and ends with the same bytes as a
stream that was never killed.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

from daskcoreset.constructions.tree.answer import AnswerInfo
from daskcoreset.constructions.tree.job import concatenate_parts
from daskcoreset.constructions.tree.persistence import Settings
from daskcoreset.constructions.tree.reducer import Reducer
from daskcoreset.constructions.tree.stream_state import (
    Growth,
    SavedStream,
    StreamState,
    open_batch,
    read_ahead,
)
from daskcoreset.core.errors import InvalidInputError
from daskcoreset.core.random import RandomState, Stage, stream
from daskcoreset.core.validation import as_path

if TYPE_CHECKING:
    from daskcoreset.core.coreset import Coreset
    from daskcoreset.core.points import WeightedPoints
    from daskcoreset.core.typing import Sampling
    from daskcoreset.sensitivities import Sensitivity


class CoresetStream:
    r"""A coreset of rows that come one by one or in batches, in little memory.

    Rows wait until they fill a leaf, which becomes a coreset; two coresets of a level become
    one on the level above. Memory is that of `leaf_size` rows and :math:`\log_2 (n /`
    `leaf_size` :math:`) + 1` coresets of `inner_size` rows, whatever n is. The coreset depends
    on the sequence of the rows and on the seed, not on how they were cut into batches.

    Parameters
    ----------
    method : str, Sensitivity or Reducer, default="lightweight"
        As in `daskcoreset.build`; a construction of several folds as well.
    size : int, default=1000
        Rows of a coreset that is asked for.
    leaf_size : int or None, default=None
        Rows of a leaf; None takes 32 times `size`. Larger leaves make a shallower tree, less
        work a row and a smaller error, and take more memory. At least `inner_size` + 1.
    inner_size : int or None, default=None
        Rows of a coreset that is kept; None takes twice `size`, for the reasons in
        `daskcoreset.constructions.tree.job`.
    random_state : int, Generator, RandomState or None, default=None
        With an int, the same rows give the same bits.
    sampling : {"systematic", "multinomial"}, default="systematic"
        As in `daskcoreset.build`.
    on_invalid : {"raise", "drop"}, default="raise"
        What becomes of rows with NaN or infinity: a batch with such a row is refused as a
        whole, or they are left out and counted.
    n_clusters : int or None, default=None
        As in `daskcoreset.build`; ``stream.coreset().audit(X)`` remembers it.
    store : path or None, default=None
        A folder that does not exist yet. With it, the stream is saved there while it runs, and
        `load` goes on after a crash.
    save_every : int, default=1
        Batches after which it is saved; with 1, all that `partial_fit` took is on the disk when
        it returns. Saving takes some ten milliseconds.

    Attributes
    ----------
    n_rows : int
        Rows that came, those left out included: feeding goes on from here.
    n_dropped : int
        Rows left out.
    n_held : int
        Rows in memory.
    total_weight : float
        Weight of all rows that came.
    levels : tuple of int
        Levels that hold a coreset.

    Raises
    ------
    InvalidInputError, InvalidTypeError
        When an argument cannot be used.
    StoreError
        When `store` exists already.

    Examples
    --------
    >>> import numpy as np
    >>> stream = CoresetStream("lightweight", size=100, random_state=0)
    >>> rng = np.random.default_rng(0)
    >>> for day in range(30):
    ...     _ = stream.partial_fit(rng.normal(day, 1.0, size=(1000, 3)))
    >>> stream
    CoresetStream(lightweight: 30,000 rows seen, 1,600 held, size 100, seed 0)
    >>> stream.coreset()
    Coreset(lightweight: 100 of 30,000 rows, 3 features, float64, total weight ..., seed 0)

    References
    ----------
    Tukan, Baykal, Feldman and Rus (2020), Algorithm 2.
    """

    def __init__(
        self,
        method: str | Sensitivity[Any] | Reducer = "lightweight",
        size: int = 1000,
        leaf_size: int | None = None,
        *,
        inner_size: int | None = None,
        random_state: RandomState = None,
        sampling: Sampling = "systematic",
        on_invalid: Literal["raise", "drop"] = "raise",
        n_clusters: int | None = None,
        store: str | os.PathLike[str] | None = None,
        save_every: int = 1,
    ) -> None:
        if store is not None:
            as_path("store", store)
        sizes = {"size": size, "leaf_size": leaf_size, "inner_size": inner_size}
        settings = Settings.checked(
            method,
            {**sizes, "save_every": save_every},
            n_clusters=n_clusters,
            random_state=random_state,
            sampling=sampling,
            on_invalid=on_invalid,
        )
        if store is None:
            settings = replace(settings, save_every=None)
        self._begin(None, settings, StreamState())
        if store is not None:
            self.save(store)

    def _begin(self, kept: SavedStream | None, settings: Settings, state: StreamState) -> None:
        self._kept = kept
        self._settings = settings
        self._state = state
        self._unsaved = 0

    def __repr__(self) -> str:
        said = self._settings
        return (
            f"{type(self).__name__}({said.reducer.name}: {self.n_rows:,} rows seen, "
            f"{self.n_held:,} held, size {said.size:,}, seed {said.seed})"
        )

    def __len__(self) -> int:
        return self.n_rows

    def __bool__(self) -> bool:
        return True

    @property
    def n_rows(self) -> int:
        """Rows that came."""
        return self._state.n_rows

    @property
    def n_dropped(self) -> int:
        """Rows left out."""
        return self._state.n_dropped

    @property
    def n_held(self) -> int:
        """Rows in memory."""
        return self._state.buckets.n_held

    @property
    def total_weight(self) -> float:
        """Weight of all rows that came."""
        return self._state.buckets.total_weight

    @property
    def levels(self) -> tuple[int, ...]:
        """Levels that hold a coreset, the highest first."""
        return self._state.buckets.levels

    @property
    def _growth(self) -> Growth:
        said = self._settings
        assert said.leaf_size is not None  # noqa: S101 - a stream has one
        return Growth(said.reducer, said.leaf_size, said.inner_size, said.seed)

    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> CoresetStream:
        """Take further rows.

        Parameters
        ----------
        X : array-like of shape (n, d), path, or iterator
            Any input of `daskcoreset.build`; or an iterator of batches, each of which is such
            an X, or a tuple ``(X, y)`` or ``(X, y, sample_weight)``.
        y : array-like of shape (n,), or str, optional
            Labels: for all rows of the stream or for none.
        sample_weight : array-like of shape (n,), or str, optional
            Input weights; ones by default.

        Returns
        -------
        CoresetStream
            Itself.

        Raises
        ------
        InvalidInputError, InvalidTypeError
            If rows cannot be used, or do not fit those before. Of data in memory, nothing was
            taken. What is out of core is taken block by block, and an iterator batch by batch,
            without holding more: all before the bad block was taken, and `n_rows` says how much.
        StoreError
            If the stream could not be saved; the batch was not taken.
        """
        if isinstance(X, Iterator):
            if y is not None or sample_weight is not None:
                raise InvalidInputError(
                    "X is an iterator of batches, so that y and sample_weight belong to each of "
                    "them; let it give tuples (X, y) or (X, y, sample_weight)."
                )
            for batch in X:
                self.partial_fit(*(batch if isinstance(batch, tuple) else (batch,)))
            return self
        blocks = open_batch(X, y, sample_weight, self._settings.on_invalid)
        form = self._state.agree(blocks, self._growth)
        start = 0
        for rows in read_ahead(blocks):
            state = self._state.add(rows, start, form, self._growth)
            self._advance(state)
            form, start = state.form or form, start + rows.read
        return self

    def _advance(self, state: StreamState) -> None:
        every, kept = self._settings.save_every, self._kept
        due = every is not None and kept is not None and self._unsaved + 1 >= every
        if due and kept is not None:
            self._kept = kept.write(state)
        self._state = state
        self._unsaved = 0 if due else self._unsaved + 1

    def rows(self) -> WeightedPoints:
        """Return all rows in memory with their weights: what a coreset would be drawn from.

        Raises
        ------
        InvalidInputError
            If no row came yet.
        """
        if not self._state.n_kept:
            raise InvalidInputError("the stream has no rows yet; call partial_fit first.")
        return concatenate_parts(self._state.buckets.parts())

    def coreset(self, *, normalize: bool = False) -> Coreset:
        """Return a coreset of all rows so far; the stream goes on as if it had not been asked.

        Parameters
        ----------
        normalize : bool, default=False
            Whether to scale the weights to the total weight of the rows, as in
            `daskcoreset.build`.

        Raises
        ------
        InvalidInputError
            If no row of positive weight came yet.
        """
        state, said, rows = self._state, self._settings, self.rows()
        assert state.form is not None  # noqa: S101 - there are rows
        answer = AnswerInfo(
            strategy="stream",
            n=state.n_kept,
            n_dropped=state.n_dropped,
            weight=self.total_weight,
            columns=state.form.columns,
            facts={
                "source": None,
                "leaf_size": said.leaf_size,
                "levels": 1 + max(self.levels, default=-1),
            },
        )
        rng = stream(said.seed, Stage.TREE_ROOT, state.n_rows)
        return answer.coreset([rows], said, rng, normalize=normalize)

    def save(self, path: str | os.PathLike[str] | None = None, *, overwrite: bool = False) -> None:
        """Save the stream with all that it needs to go on, whole or not at all.

        Parameters
        ----------
        path : path or None, default=None
            A folder, which becomes a Zarr group; None for the one it was last saved to or
            loaded from, where the old state stays until the new one is complete.
        overwrite : bool, default=False
            Whether to replace a stream that is at `path`, and has not come from this one.

        Raises
        ------
        StoreError
            If something else is there, another process has saved there since, or the disk
            refused. What was there is unchanged.
        InvalidInputError
            If there is no path yet.
        """
        kept = self._kept
        target = None if path is None else as_path("path", path)
        if kept is not None and target in (None, kept.path):
            self._kept = kept.write(self._state)
            self._unsaved = 0
            return
        if target is None:
            raise InvalidInputError("path is missing, and the stream was never saved; pass one.")
        made = SavedStream.create(target, self._settings, self._state, overwrite=overwrite)
        if kept is None:
            self._kept, self._unsaved = made, 0

    @classmethod
    def load(cls, path: str | os.PathLike[str], method: Any = None) -> CoresetStream:
        """Load a stream; it goes on with the same bytes as if it had never stopped.

        Parameters
        ----------
        path : path
            Where it was saved. A stream made with `store` goes on being saved there.
        method : str, Sensitivity or Reducer, optional
            What the stream was made with; needed for a reducer of one's own, and for
            constructions with parameters that are no plain values.

        Raises
        ------
        StoreError
            If there is none, or it is damaged or of another version.
        InvalidInputError
            If `method` is needed or is another one.
        """
        loaded = cls.__new__(cls)
        loaded._begin(*SavedStream.open(as_path("path", path), method))  # noqa: SLF001 - its own class
        return loaded
