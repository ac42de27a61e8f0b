"""The front door: `build`."""

from __future__ import annotations

import dataclasses
import functools
import numbers
import platform
import sys
import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, overload

import numpy as np

from daskcoreset.coreset import Coreset
from daskcoreset.errors import CoresetWarning, InvalidInputError, InvalidTypeError
from daskcoreset.inputs import RowBlocks, row_blocks
from daskcoreset.passes import Lazy, apply, fold, fold_now
from daskcoreset.plan import BuildPlan, plan_build
from daskcoreset.progress import showing
from daskcoreset.randomness import RandomState, resolve_seed
from daskcoreset.rounds import (
    Census,
    Combine,
    Harvest,
    Plan,
    Root,
    Sampling,
    Selection,
    Summarise,
    TakePlanned,
)
from daskcoreset.sensitivities import Sensitivity, resolve_method

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["build"]


def build(
    X: Any,
    y: Any = None,
    *,
    size: int,
    method: str | Sensitivity[Any] = "lightweight",
    sample_weight: Any = None,
    random_state: RandomState = None,
    sampling: Sampling = "systematic",
    passes: Literal[1, 2] = 1,
    chunks: int | Literal["auto"] = "auto",
    on_invalid: Literal["raise", "drop"] = "raise",
    split_every: int = 16,
    compute: bool = True,
    dry_run: bool = False,
    progress: bool | None = None,
) -> Any:
    r"""Build a coreset: a small weighted subset that stands for all rows.

    Every construction scores rows by an upper bound on their share in the cost of any
    query, draws `size` rows in proportion, and weighs a row with input weight u by
    :math:`u / (m q)`, so that weighted costs are unbiased for every query.

    Parameters
    ----------
    X : array-like of shape (n, d), or path
        A Dask array (dense or sparse blocks, unknown chunk sizes allowed), NumPy array or
        memmap, Zarr array, or group with the array "X", HDF5 data set, xarray DataArray
        (rows along its first dimension), pandas or Dask DataFrame, SciPy sparse matrix;
        or the path or URL of a Zarr store, or the path of a Parquet file or folder, an
        HDF5, .npy or .npz file. Integers, booleans and float16 are promoted; float32
        stays float32. All sums are float64.
    y : array-like of shape (n,), or str, optional
        Labels that the coreset keeps for its rows. A string names a column of the data
        frame or Parquet data, or an array of the Zarr group or .npz file, of X.
    size : int
        Rows wanted, m. With ``size >= n`` all rows come back with their own weights.
    method : str or Sensitivity, default="lightweight"
        "lightweight" or "uniform", or a construction such as ``Lightweight()``.
    sample_weight : array-like of shape (n,), or str, optional
        Input weights u, finite and non-negative; ones by default.
    random_state : int, Generator, RandomState or None, default=None
        With an int, the same input, chunks and versions give the same bits on every
        scheduler. The seed used is in ``coreset.provenance["seed"]`` in any case.
    sampling : {"systematic", "multinomial"}, default="systematic"
        "systematic" draws without replacement along an order in which neighbours are
        alike, which lowers the error at equal size (``benchmarks/quality.py``) and gives
        exactly `size` distinct rows. "multinomial" draws independently, as the papers do;
        rows drawn twice are merged, so that fewer than `size` rows may come back.
    passes : {1, 2}, default=1
        Reads of the data. With 1, blocks offer candidates by their own statistics and the
        root draws from them, by re-weighting (systematic) or by rejection (multinomial);
        a block whose candidates are too few is read again, alone. With 2, the procedure of
        the paper. The error is the same.
    chunks : int or "auto", default="auto"
        Rows per block. "auto" keeps sensible chunks, groups tiny ones, splits huge ones,
        and aims at 32 MiB where it is free to choose. Part of what determines the bits.
    on_invalid : {"raise", "drop"}, default="raise"
        What becomes of rows with NaN or infinity: an error with the first such row, or
        they are left out and counted in ``provenance["n_dropped"]``.
    split_every : int, default=16
        Results merged by one task of the reduction tree.
    compute : bool, default=True
        Whether to compute now. With False, a Dask collection comes back: pass it to
        ``dask.compute`` with other work, or call its ``compute()``.
    dry_run : bool, default=False
        Whether to return only the plan: reads, bytes, tasks, predicted peak memory.
    progress : bool or None, default=None
        Whether to show a progress bar; None shows one on a terminal or in a notebook when
        the work takes longer than a second.

    Returns
    -------
    Coreset, or Lazy, or BuildPlan
        A `Coreset`; with ``compute=False`` a Dask collection that computes to one; with
        ``dry_run=True`` a `BuildPlan`.

    Raises
    ------
    InvalidInputError, InvalidTypeError
        When an argument cannot be used: the message names it, says what was found and what
        to do. Both derive from the builtin ValueError and TypeError.

    Warns
    -----
    CoresetWarning
        When ``size >= n``, so that nothing was reduced.

    Examples
    --------
    >>> import dask.array as da
    >>> X = da.random.default_rng(0).normal(size=(100_000, 5), chunks=(10_000, 5))
    >>> coreset = build(X, size=500, random_state=0)
    >>> coreset.points.shape, coreset.weights.shape
    ((500, 5), (500,))
    >>> from sklearn.cluster import KMeans
    >>> model = KMeans(3, n_init=1).fit(coreset.points, sample_weight=coreset.weights)

    References
    ----------
    Bachem, Lucic and Krause (2018), Algorithm 1 and section 4.2.
    """
    construction = resolve_method(method)
    _check(size, construction, sampling, passes, split_every)
    blocks = row_blocks(X, y, sample_weight, chunks=chunks, on_invalid=on_invalid)
    job = _Job(
        blocks=blocks,
        root=Root(construction, int(size), sampling, resolve_seed(random_state)),
        passes=passes,
        split_every=int(split_every),
    )
    if dry_run:
        return plan_build(job.blocks, job.lazy(), job.reads, job.root.candidates)
    if not compute:
        return job.lazy()
    if blocks.in_memory and blocks.n_blocks == 1:
        return job.run_here()
    lazy = job.lazy()
    with showing(progress, lazy):
        return lazy.compute()


def _check(
    size: Any, construction: Sensitivity[Any], sampling: Any, passes: Any, split_every: Any
) -> None:
    for name, value, least in (("size", size, 1), ("split_every", split_every, 2)):
        if isinstance(value, bool) or not isinstance(value, numbers.Integral):
            raise InvalidTypeError(f"{name} must be an integer, got {value!r}; pass an int.")
        if value < least:
            raise InvalidInputError(
                f"{name} must be at least {least}, got {value}; pass a larger int."
            )
    if sampling not in ("systematic", "multinomial"):
        raise InvalidInputError(
            f'sampling must be "systematic" or "multinomial", got {sampling!r}; pass one of these.'
        )
    if passes not in (1, 2):
        raise InvalidInputError(f"passes must be 1 or 2, got {passes!r}; pass one of these.")
    if passes < construction.passes:
        raise InvalidInputError(
            f"passes=1, but {construction.name!r} needs {construction.passes} folds of the data "
            f"before it can score; pass passes=2."
        )
    if passes == 1 and sampling == "multinomial" and construction.proposal_bound is None:
        raise InvalidInputError(
            f'sampling="multinomial" with passes=1, but {construction.name!r} has no bound for '
            f'rejection; pass passes=2, or sampling="systematic".'
        )


@dataclass(frozen=True, eq=False)
class _Job:
    """One build: the same leaves and the same root, on a scheduler or without one."""

    blocks: RowBlocks
    root: Root
    passes: int
    split_every: int

    @property
    def takes_all(self) -> bool:
        """Whether it is known before reading that every row is wanted."""
        rows = self.blocks.n_rows
        return rows is not None and rows <= self.root.size

    @property
    def reads(self) -> int:
        """Reads of the data."""
        if self.takes_all or self.passes == 1:
            return 1
        return self.root.construction.passes + 1

    @property
    def combine(self) -> Combine:
        return Combine(self.root.construction)

    @property
    def harvest(self) -> Harvest:
        root = self.root
        return Harvest(
            root.construction,
            root.sampling,
            root.seed,
            root.candidates,
            self.blocks.n_rows,
            self.blocks.n_blocks,
        )

    @property
    def take(self) -> TakePlanned:
        return TakePlanned(self.root.construction, self.root.sampling, self.root.seed)

    def lazy(self) -> Lazy[Coreset]:
        """Define the graph of the whole build."""
        settings: dict[str, Any] = {"split_every": self.split_every}
        blocks, combine = self.blocks, self.combine
        if self.takes_all:
            taken = fold(blocks, self.take, combine, **settings)
            return taken.then(self.finish_all)
        if self.passes == 1:
            return fold(blocks, self.harvest, combine, **settings).then(self.finish_harvest)
        census: Lazy[Census] | None = None
        for _ in range(self.root.construction.passes):
            summarise = Summarise(self.root.construction)
            census = fold(blocks, summarise, combine, given=census, **settings)
        plan = apply(self.root.plan, census)
        second = fold(blocks, self.take, combine, given=plan, **settings)
        return apply(_pair, plan, second).then(self.finish_planned)

    def run_here(self) -> Coreset:
        """Run without a scheduler, on blocks in memory."""
        if self.takes_all:
            return self.finish_all(self._fold_here(self.blocks, self.take))
        if self.passes == 1:
            return self.finish_harvest(self._fold_here(self.blocks, self.harvest))
        census: Census | None = None
        for _ in range(self.root.construction.passes):
            summarise = Summarise(self.root.construction)
            census = self._fold_here(self.blocks, summarise, census)
        assert census is not None  # noqa: S101 - passes >= 1
        plan = self.root.plan(census)
        return self.finish_planned((plan, self._fold_here(self.blocks, self.take, plan)))

    def _fold_here(self, blocks: RowBlocks, leaf: Any, given: Any = None) -> Census:
        return fold_now(blocks, leaf, self.combine, given=given, split_every=self.split_every)

    def _reread(self, numbers: list[int], leaf: TakePlanned, plan: Plan) -> Census:
        some = self.blocks.select(numbers)
        if self.blocks.in_memory and self.blocks.n_blocks == 1:
            return self._fold_here(some, leaf, plan)
        return fold(some, leaf, self.combine, given=plan, split_every=self.split_every).compute()

    # The three ends: what the blocks sent becomes a Coreset on the caller's side.

    def finish_all(self, census: Census) -> Coreset:
        plan = Plan(None, census, None)
        return self._coreset(self.root.finish_planned(plan, census))

    def finish_harvest(self, census: Census) -> Coreset:
        return self._coreset(self.root.finish_harvest(census, self._reread))

    def finish_planned(self, results: tuple[Plan, Census]) -> Coreset:
        return self._coreset(self.root.finish_planned(*results))

    def _coreset(self, selection: Selection) -> Coreset:
        rows = selection.rows
        if selection.complete:
            warnings.warn(
                f"size={self.root.size} is not below the number of rows, {len(rows)}: the coreset "
                f"is the whole data set, every row with its own weight.",
                CoresetWarning,
                stacklevel=_outside(),
            )
        return Coreset(
            points=rows.points,
            weights=selection.weights,
            indices=selection.indices,
            labels=rows.labels,
            provenance=self._provenance(selection),
        )

    def _provenance(self, selection: Selection) -> dict[str, Any]:
        root, census = self.root, selection.census
        summary = census.summary
        facts = {} if summary is None else root.construction.describe(summary)
        return {
            "method": root.construction.name,
            "parameters": root.construction.parameters(),
            "citation": root.construction.citation,
            "sampling": root.sampling,
            "passes": self.reads,
            "blocks_read_again": selection.rereads,
            "size": root.size,
            "m": len(selection.rows),
            "n": census.n_rows,
            "n_dropped": sum(census.read.values()) - census.n_rows,
            "d": self.blocks.rules.n_features,
            "n_blocks": self.blocks.n_blocks,
            "total_weight": census.weight,
            **facts,
            "seed": root.seed,
            "source": self.blocks.name,
            "columns": None if self.blocks.columns is None else list(self.blocks.columns),
            "versions": _versions(),
        }


def _outside() -> int:
    """Return the stack level of the first caller outside this package."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith(__package__):
        level, frame = level + 1, frame.f_back
    return level


def _pair(plan: Plan, second: Census) -> tuple[Plan, Census]:
    return plan, second


@functools.cache
def _versions() -> dict[str, str]:
    from importlib.metadata import PackageNotFoundError, version  # noqa: PLC0415

    found = {"python": platform.python_version()}
    for package in ("daskcoreset", "numpy", "dask", "numba"):
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found
