"""`build` and its relatives: `plan`, `build_many` and `grow`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, TypeAlias

from daskcoreset.constructions.coverage.cover import Coverage, cover_rows
from daskcoreset.constructions.draws import Draw, MergeReduce
from daskcoreset.constructions.portfolio import PortfolioJob
from daskcoreset.constructions.sampling.auto_size import AutoSize, auto_size
from daskcoreset.constructions.sampling.final_draw import FinalDraw, Selection
from daskcoreset.constructions.sampling.held_out import HeldOut
from daskcoreset.constructions.sampling.job import SamplingJob
from daskcoreset.constructions.sampling.size_rule import SizeRule
from daskcoreset.constructions.tree.job import Settings, TreeJob
from daskcoreset.constructions.tree.reducer import Reducer, method_for
from daskcoreset.core.coreset import Coreset
from daskcoreset.core.messages import about_member, warn_user
from daskcoreset.core.portfolio import Portfolio
from daskcoreset.core.random import RandomState, resolve_seed
from daskcoreset.core.validation import as_int, check_flag, check_type, is_choice, is_number, shown
from daskcoreset.errors import InvalidInputError, InvalidTypeError
from daskcoreset.execution.plan import Plan
from daskcoreset.execution.steps import names_of
from daskcoreset.inputs.blocks import RowBlocks, row_blocks
from daskcoreset.sensitivities import Sensitivity

Method: TypeAlias = str | Sensitivity[Any] | Reducer | Coverage
Methods: TypeAlias = Mapping[str, str | Sensitivity[Any] | Reducer] | Sequence[Any]
OnInvalid: TypeAlias = Literal["raise", "drop"]


def build(
    X: Any,
    y: Any = None,
    *,
    size: int | None = None,
    method: Method | None = None,
    n_clusters: int | None = None,
    sample_weight: Any = None,
    random_state: RandomState = None,
    chunks: int | Literal["auto"] = "auto",
    on_invalid: OnInvalid = "raise",
    draw: Draw | MergeReduce = Draw(),
    progress: bool | None = None,
) -> Coreset:
    """Build a coreset: a small weighted subset that represents all rows.

    Fit any solver that accepts ``sample_weight`` on the result. Its weighted cost is an unbiased
    estimate of the cost on all rows. :doc:`/choose` helps you to choose a method, and
    :doc:`/guarantees` lists the assumptions.

    Parameters
    ----------
    X : array-like of shape (n, d), path, URL, or Rows
        NumPy, Dask, Zarr, HDF5, SciPy sparse, xarray, pandas, polars or pyarrow, in memory, on
        disk or on a cluster. `open_rows` selects columns and passes credentials.
    y : array-like of shape (n,), or column name, optional
        Labels. They are kept for the selected rows.
    size : int, optional
        Number of rows. Default: 10,000, or 100 per cluster if that is more. If `n_clusters` is
        known and data are small, the default is all rows. :doc:`/choose` has the rule.
    method : str, Sensitivity, Reducer or Coverage, optional
        How rows are chosen, for example "kmeans", "svm" or ``StrongKMeans(10)``. Default:
        "kmeans" if `n_clusters` is given, "lightweight" otherwise.
    n_clusters : int, optional
        Number of clusters of the models that you will fit.
    sample_weight : array-like of shape (n,), or column name, optional
        Finite and non-negative weights of the rows. Default: ones.
    random_state : int, Generator, RandomState or None
        Seed, recorded in ``coreset.provenance["seed"]``. The same data, chunks and seed give
        the same coreset on every scheduler.
    chunks : int or "auto", default="auto"
        Rows per block. "auto" keeps sensible chunks and aims at 32 MiB otherwise.
    on_invalid : {"raise", "drop"}, default="raise"
        Raise an error for the first row with NaN or infinity, or drop and count such rows.
    draw : Draw or MergeReduce, default=Draw()
        How rows are drawn. `MergeReduce` merges and reduces coresets of blocks.
    progress : bool, optional
        Whether to show a progress bar. Default: if the work takes longer than a second.

    Returns
    -------
    Coreset
        With ``points``, ``weights``, ``indices``, ``labels`` and ``provenance``.

    Raises
    ------
    InvalidInputError, InvalidTypeError
        If an argument cannot be used. They are also a ValueError and a TypeError.
    OutOfTimeError, ClusterError
        If a `time_limit` has passed, or if the cluster has lost the work.

    Warns
    -----
    CoresetWarning
        If X has at most the `size` rows that you pass. The coreset contains all of them.

    Examples
    --------
    >>> import dask.array as da, daskcoreset
    >>> X = da.random.default_rng(0).normal(size=(100_000, 5), chunks=(10_000, 5))
    >>> daskcoreset.build(X, size=500, n_clusters=3, random_state=0)
    Coreset(kmeans: 500 of 100,000 rows, 5 features, no labels, seed 0)
    """
    _check_arguments(y, size, progress)
    blocks = row_blocks(X, y, sample_weight, chunks=chunks, on_invalid=on_invalid)
    if _is_cover(method):
        cover = _coverage(method, size, n_clusters, random_state, draw)
        return cover_rows(blocks, cover, progress)
    job = job_of(blocks, method, size, n_clusters, random_state=random_state, draw=draw)
    return job.run(progress)


def plan(
    X: Any,
    y: Any = None,
    *,
    size: int | None = None,
    method: Method | None = None,
    n_clusters: int | None = None,
    sample_weight: Any = None,
    random_state: RandomState = None,
    chunks: int | Literal["auto"] = "auto",
    on_invalid: OnInvalid = "raise",
    draw: Draw | MergeReduce = Draw(),
    progress: bool | None = None,
) -> Plan[Coreset]:
    """Predict what a build costs, and return it as a lazy Dask collection.

    No row is read. ``plan(...).compute()`` returns the same coreset as ``build(...)``.
    :doc:`/guides/machines` uses plans on a cluster.

    Parameters
    ----------
    X, y, size, method, n_clusters, sample_weight, random_state, chunks, on_invalid, draw, progress
        As in `build`. `Coverage` decides after each pass whether to read again, so it cannot be
        planned.

    Returns
    -------
    Plan
        With ``reads``, ``bytes_read`` and ``peak_bytes``. It prints one sentence. Compute it with
        ``plan.compute()``, or together with other work with ``dask.compute(plan, other)``.

    Raises
    ------
    InvalidInputError, InvalidTypeError
        If an argument cannot be used.

    Examples
    --------
    >>> import dask.array as da, daskcoreset
    >>> X = da.ones((100_000, 5), chunks=(10_000, 5))
    >>> plan = daskcoreset.plan(X, size=500)
    >>> plan.reads, plan.bytes_read
    (1, 4000000)
    """
    _check_arguments(y, size, progress)
    blocks = row_blocks(X, y, sample_weight, chunks=chunks, on_invalid=on_invalid)
    job = job_of(blocks, method, size, n_clusters, random_state=random_state, draw=draw)
    return Plan(job.lazy(), job.blocks, job.reads, job.n_candidates, progress)


def build_many(
    X: Any,
    y: Any = None,
    *,
    methods: Methods,
    sizes: int | Mapping[str, int] | None = None,
    n_clusters: int | None = None,
    sample_weight: Any = None,
    random_state: RandomState = None,
    chunks: int | Literal["auto"] = "auto",
    on_invalid: OnInvalid = "raise",
    draw: Draw | MergeReduce = Draw(),
    progress: bool | None = None,
) -> Portfolio:
    """Build a coreset with each of several methods, from shared passes over the data.

    The data are read as often as the method with the most passes needs. :doc:`/benchmarks/passes`
    compares this with separate builds.

    Parameters
    ----------
    X, y, n_clusters, sample_weight, random_state, chunks, on_invalid, draw, progress
        As in `build`. All members share them.
    methods : list, or mapping of str to method
        Methods as in `build`. The keys of a mapping name the members. The methods of a list must
        have different names.
    sizes : int, or mapping of str to int, optional
        Number of rows of each member. Default: as in `build`.

    Returns
    -------
    Portfolio
        A mapping of names to coresets. Each member equals the coreset that `build` returns for
        the same seed. ``portfolio.moments`` has the exact moments of all rows.

    Raises
    ------
    InvalidInputError, InvalidTypeError
        If an argument cannot be used. The message names the member.

    Examples
    --------
    >>> import numpy as np, daskcoreset
    >>> X = np.random.default_rng(0).normal(size=(10_000, 3))
    >>> members = daskcoreset.build_many(X, methods=["uniform", "kmeans"], n_clusters=5, sizes=100)
    >>> {name: len(coreset) for name, coreset in members.items()}
    {'uniform': 100, 'kmeans': 100}
    """
    _check_arguments(y, None, progress)
    members = members_of(methods)
    seed = resolve_seed(random_state)
    names = names_of(members)
    blocks = row_blocks(X, y, sample_weight, chunks=chunks, on_invalid=on_invalid)
    jobs: dict[str, SamplingJob | TreeJob] = {}
    for name, size in _sizes(sizes, members).items():
        with about_member(names[name]):
            jobs[name] = job_of(
                blocks, members[name], size, n_clusters, random_state=seed, draw=draw
            )
    return PortfolioJob(blocks, jobs, draw.split_every).run(progress)


def grow(
    X: Any,
    y: Any = None,
    *,
    n_clusters: int,
    epsilon: float = 0.05,
    delta: float = 0.1,
    method: Method | None = None,
    sample_weight: Any = None,
    random_state: RandomState = None,
    chunks: int | Literal["auto"] = "auto",
    on_invalid: OnInvalid = "raise",
    draw: Draw = Draw(),
    progress: bool | None = None,
) -> Coreset:
    """Grow a coreset until it is large enough for a wanted error.

    Two independent coresets of one size are built. If solutions have different costs on them, the
    size is doubled. If the costs agree, one more pass checks them on all rows, and the union of the
    two coresets is returned. :doc:`/guides/trust` compares this with an audit.

    Parameters
    ----------
    X, y, sample_weight, random_state, chunks, on_invalid, progress
        As in `build`.
    n_clusters : int
        Number of clusters of the solutions that are compared.
    epsilon : float, default=0.05
        Largest relative difference of costs.
    delta : float, default=0.1
        Share of random solutions whose costs may differ by more.
    method : str or Sensitivity, optional
        As in `build`. Default: "kmeans".
    draw : Draw, default=Draw()
        How rows are drawn.

    Returns
    -------
    Coreset
        ``provenance["size_rule"]`` has the sizes that were tried, their differences, and whether
        the last two coresets agreed.

    Raises
    ------
    InvalidInputError, InvalidTypeError
        If an argument cannot be used.

    Warns
    -----
    CoresetWarning
        If coresets of half the rows, or of 2**20 rows, do not agree.

    Examples
    --------
    >>> import numpy as np, daskcoreset
    >>> X = np.random.default_rng(0).normal(size=(20_000, 2))
    >>> coreset = daskcoreset.grow(X, n_clusters=3, epsilon=0.2, random_state=0)
    >>> coreset.provenance["size_rule"]["agreed"]
    True
    """
    _check_arguments(y, None, progress)
    rule = AutoSize(n_clusters, epsilon, delta)
    check_type("draw", draw, Draw, "pass a Draw, because grow draws samples")
    blocks = row_blocks(X, y, sample_weight, chunks=chunks, on_invalid=on_invalid)
    job = _sampled(blocks, method, rule.start, n_clusters, random_state=random_state, draw=draw)
    return job.labelled(auto_size(job, rule, progress=progress))


def build_and_hold_out(
    blocks: RowBlocks,
    n_held_out: int,
    *,
    size: int,
    method: Sensitivity[Any],
    n_clusters: int | None,
    random_state: RandomState,
    draw: Draw,
) -> tuple[Coreset, HeldOut | None]:
    """Build a coreset, and keep other candidates of the draw for a check.

    Parameters
    ----------
    blocks : RowBlocks
    n_held_out : int
        Most rows that are kept. They are candidates of the draw, so they need no further pass.
    size, method, n_clusters, random_state, draw
        As in `build`.

    Returns
    -------
    Coreset
        Identical to the result of `build`.
    HeldOut or None
        None if all rows were taken, and for independent draws.
    """
    job = _sampled(blocks, method, size, n_clusters, random_state=random_state, draw=draw)
    found: list[Selection] = []
    final_draw = replace(job.final_draw, n_held_out=n_held_out)
    coreset = replace(job, final_draw=final_draw, beside=found.append).run(None)
    return coreset, found[0].held_out


def default_size(n_clusters: int) -> int:
    """Return the default size of a coreset.

    A hundred rows per cluster determine its center within a tenth of its width. A solver is fast
    on ten thousand rows.

    Examples
    --------
    >>> default_size(8), default_size(500)
    (10000, 50000)
    """
    return max(10_000, 100 * n_clusters)


def _check_arguments(y: Any, size: Any, progress: Any) -> None:
    """Check that `y` is not an argument that was meant for another place."""
    if isinstance(y, (Sensitivity, Reducer, Coverage)) or (is_number(y) and size is None):
        name = "size" if is_number(y) else "method"
        raise InvalidTypeError(
            f"y is {y!r}, but the second argument is for labels",
            argument="y",
            remedy=f"pass {name}={y!r} by its name",
        )
    if progress is not None:
        check_flag("progress", progress)


def _is_cover(method: Any) -> bool:
    """Whether a method is a cover, which draws nothing."""
    return isinstance(method, Coverage) or is_choice(method, ("coverage",))


def _coverage(method: Any, size: Any, n_clusters: Any, random_state: Any, draw: Any) -> Coverage:
    """Return the cover that is asked for, after checks of the other arguments."""
    given = {
        "n_clusters": n_clusters,
        "random_state": random_state,
        "size": size if isinstance(method, Coverage) else None,
        "draw": draw if draw != Draw() else None,
    }
    if unused := [name for name, value in given.items() if value is not None]:
        raise InvalidInputError(
            f"{unused[0]} has no effect with {method!r}",
            argument=unused[0],
            remedy="leave it out",
        )
    return method if isinstance(method, Coverage) else Coverage(size=size)


def members_of(methods: Any) -> dict[str, Any]:
    """Return the methods of a portfolio by name."""
    if isinstance(methods, str) or not isinstance(methods, Mapping | Sequence):
        raise InvalidTypeError(
            f"methods is {shown(methods)}",
            argument="methods",
            remedy="pass a list of methods or a mapping of names to methods, or call build for one",
        )
    if not methods:
        raise InvalidInputError(
            f"methods is empty, got {methods!r}",
            argument="methods",
            remedy='pass at least one method, such as ["uniform"]',
        )
    if isinstance(methods, Mapping):
        for name in methods:
            check_type("the name of a member", name, str, "pass text")
        members = dict(methods)
    else:
        members = {}
        for one in methods:
            key: Any = one if isinstance(one, str) else getattr(one, "name", None)
            if key in members:
                raise InvalidInputError(
                    f"methods has two members named {key!r}",
                    argument="methods",
                    remedy="pass a mapping with a different name for each",
                )
            members[key] = one
    return members


def _sizes(sizes: Any, members: Mapping[str, Any]) -> dict[str, Any]:
    """Return the size of every member."""
    if not isinstance(sizes, Mapping):
        return dict.fromkeys(members, sizes)
    if unknown := [name for name in sizes if name not in members]:
        names = ", ".join(map(repr, members))
        raise InvalidInputError(
            f"sizes names {unknown[0]!r}, and methods has no such member",
            argument="sizes",
            remedy=f"pass sizes for {names}",
        )
    return {name: sizes.get(name) for name in members}


def job_of(
    blocks: RowBlocks,
    method: Any,
    size: Any,
    n_clusters: int | None,
    *,
    random_state: RandomState,
    draw: Draw | MergeReduce,
) -> SamplingJob | TreeJob:
    """Check the arguments of one coreset, and return its job."""
    if isinstance(draw, Draw):
        return _sampled(blocks, method, size, n_clusters, random_state=random_state, draw=draw)
    check_type("draw", draw, MergeReduce, "pass a Draw or a MergeReduce")
    rows = _rows_for(_construction(method, n_clusters), size, n_clusters)
    if isinstance(rows, SizeRule):
        rows = rows.size
    settings = Settings.of(method, rows, n_clusters, resolve_seed(random_state), "raise", draw)
    return TreeJob(blocks, settings)


def _sampled(
    blocks: RowBlocks,
    method: Any,
    size: Any,
    n_clusters: int | None,
    *,
    random_state: RandomState,
    draw: Draw,
) -> SamplingJob:
    """Return the job of a sample."""
    construction = _construction(method, n_clusters)
    if isinstance(construction, Reducer):
        raise InvalidInputError(
            f"method {construction.name!r} is a Reducer, which reduces rows in memory",
            argument="method",
            remedy="pass draw=MergeReduce()",
        )
    rows = _rows_for(construction, size, n_clusters)
    rule = rows if isinstance(rows, SizeRule) else None
    if isinstance(rows, SizeRule):
        rows = rows.rows(blocks.n_rows, blocks.schema.n_features)
    return SamplingJob(
        blocks,
        FinalDraw(construction, rows, draw.sampling, resolve_seed(random_state)),
        draw.passes,
        draw.split_every,
        draw.normalize,
        n_clusters=n_clusters,
        size_rule=rule,
    )


def _construction(method: Any, n_clusters: int | None) -> Any:
    """Return the construction or the reducer. A cover is neither."""
    if _is_cover(method):
        raise InvalidInputError(
            'method "coverage" decides after each pass whether to read on',
            argument="method",
            remedy="pass it to build, or pass another method",
        )
    return method_for(method, n_clusters)


def _rows_for(construction: Any, size: Any, n_clusters: int | None) -> int | SizeRule:
    """Return the size, or its rule if none is given. Warn of fewer rows than clusters."""
    if isinstance(size, SizeRule):
        return size
    if size is None:
        objective = construction.objective
        n_parts = None if objective is None else objective.n_parts
        # With labels, clusters are cells, and solutions are classifiers.
        labelled = construction.labels is not None
        k = 0 if labelled else max(n_clusters or 0, n_parts or 0)
        return SizeRule(default_size(k), k)
    rows = as_int("size", size, remedy="pass a number of rows")
    least = getattr(construction, "n_clusters", None) or 1
    if rows < least:
        warn_user(
            f"size={rows} is below n_clusters={least}: fewer rows than clusters cannot "
            f"represent them; pass several rows per cluster."
        )
    return rows
