"""`build`, and the checks of its arguments."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial, wraps
from typing import Any, Literal, TypeAlias, TypedDict, TypeVar, Unpack, overload

from daskcoreset.constructions.coverage.cover import (
    Coverage,
    build_cover,
    check_options,
    resolve_coverage,
)
from daskcoreset.constructions.portfolio import PortfolioJob
from daskcoreset.constructions.sampling.auto_size import AutoSize, auto_size
from daskcoreset.constructions.sampling.final_draw import FinalDraw, Selection
from daskcoreset.constructions.sampling.held_out import HeldOut
from daskcoreset.constructions.sampling.job import SamplingJob
from daskcoreset.constructions.tree.job import (
    INNER_FACTOR,
    Settings,
    TreeJob,
    check_inner_size,
)
from daskcoreset.constructions.tree.reducer import Reducer, resolve_reducer
from daskcoreset.core.coreset import Coreset
from daskcoreset.core.errors import (
    InvalidInputError,
    InvalidTypeError,
    about_member,
    warn_user,
)
from daskcoreset.core.portfolio import Portfolio, check_member_name
from daskcoreset.core.random import RandomState, resolve_seed
from daskcoreset.core.typing import Metric, Sampling
from daskcoreset.core.validation import (
    check_choice,
    check_flag,
    is_choice,
    is_int,
    is_number,
    shown,
)
from daskcoreset.execution.lazy import Lazy
from daskcoreset.execution.local import compute_options
from daskcoreset.execution.plan import BuildPlan, plan_build
from daskcoreset.execution.progress import show_progress
from daskcoreset.inputs.blocks import RowBlocks, row_blocks
from daskcoreset.inputs.cube_opening import placed
from daskcoreset.inputs.cubes import Cube
from daskcoreset.inputs.options import DEFAULTS, MissingChunks, ReadOptions, Rows
from daskcoreset.sensitivities import Sensitivity, construction_for, resolve_method

_SAMPLINGS = ("systematic", "multinomial")

# Results merged by one task.
_SPLIT_EVERY = 16


Method: TypeAlias = str | Sensitivity[Any] | Reducer | Coverage

# Of the members of a portfolio.
Methods: TypeAlias = Mapping[str, str | Sensitivity[Any] | Reducer] | Sequence[Any]

_Job: TypeAlias = SamplingJob | TreeJob


class _Shared(TypedDict, total=False):
    """Options of `build` for one coreset and for several."""

    sample_weight: Any
    random_state: RandomState
    sampling: Sampling
    passes: Literal[1, 2]
    chunks: int | Literal["auto"]
    on_invalid: Literal["raise", "drop"] | None
    normalize: bool
    strategy: Literal["sampling", "tree"]
    inner_size: int | None
    split_every: int
    progress: bool | None
    epsilon: float
    delta: float
    n_clusters: int | None
    diameter: float | None
    metric: Metric
    storage_options: Mapping[str, Any] | None
    columns: Sequence[str] | None
    missing_chunks: MissingChunks
    sample_dims: str | Sequence[str] | None
    feature_dims: str | Sequence[str] | None


class _Options(_Shared, total=False):
    """Options of `build` for one coreset that do not decide what it returns."""

    size: int | Literal["auto"] | None
    method: Method


F = TypeVar("F", bound=Callable[..., Any])


def _data_by_position(function: F) -> F:
    """Let what is passed by position beside X and y be an error that names the keyword."""

    @wraps(function)
    def checked(*args: Any, **kwargs: Any) -> Any:
        if len(args) > 2:
            name = "size" if is_int(args[2]) else "method" if isinstance(args[2], str) else "name"
            raise InvalidTypeError(
                f"X and y are all that build takes by position, got {shown(args[2])} after them; "
                f"size, method and all else are keywords: pass {name}={shown(args[2])}."
            )
        return function(*args, **kwargs)

    return checked  # type: ignore[return-value] # it has the signature of the function


@overload
def build(
    X: Any,
    y: Any = None,
    *,
    compute: Literal[True] = True,
    dry_run: Literal[False] = False,
    **options: Unpack[_Options],
) -> Coreset: ...


@overload
def build(
    X: Any,
    y: Any = None,
    *,
    compute: Literal[False],
    dry_run: Literal[False] = False,
    **options: Unpack[_Options],
) -> Lazy[Coreset]: ...


@overload
def build(
    X: Any,
    y: Any = None,
    *,
    compute: bool = True,
    dry_run: Literal[True],
    **options: Unpack[_Options],
) -> BuildPlan: ...


@overload
def build(
    X: Any,
    y: Any = None,
    *,
    method: Mapping[str, Any] | list[Any] | tuple[Any, ...],
    size: int | Mapping[str, int] | None = None,
    compute: Literal[True] = True,
    dry_run: Literal[False] = False,
    **options: Unpack[_Shared],
) -> Portfolio: ...


@overload
def build(
    X: Any,
    y: Any = None,
    *,
    method: Mapping[str, Any] | list[Any] | tuple[Any, ...],
    size: int | Mapping[str, int] | None = None,
    compute: Literal[False],
    dry_run: Literal[False] = False,
    **options: Unpack[_Shared],
) -> Lazy[Portfolio]: ...


@overload
def build(
    X: Any,
    y: Any = None,
    *,
    method: Mapping[str, Any] | list[Any] | tuple[Any, ...],
    size: int | Mapping[str, int] | None = None,
    compute: bool = True,
    dry_run: Literal[True],
    **options: Unpack[_Shared],
) -> BuildPlan: ...


@_data_by_position
def build(
    X: Any,
    y: Any = None,
    *,
    size: int | Literal["auto"] | Mapping[str, int] | None = None,
    method: Method | Methods = "lightweight",
    sample_weight: Any = None,
    random_state: RandomState = None,
    sampling: Sampling = "systematic",
    passes: Literal[1, 2] = 1,
    chunks: int | Literal["auto"] = "auto",
    on_invalid: Literal["raise", "drop"] | None = None,
    normalize: bool = False,
    strategy: Literal["sampling", "tree"] = "sampling",
    inner_size: int | None = None,
    split_every: int = _SPLIT_EVERY,
    compute: bool = True,
    dry_run: bool = False,
    progress: bool | None = None,
    epsilon: float = 0.05,
    delta: float = 0.1,
    n_clusters: int | None = None,
    diameter: float | None = None,
    metric: Metric = "euclidean",
    storage_options: Mapping[str, Any] | None = None,
    columns: Sequence[str] | None = None,
    missing_chunks: MissingChunks = "raise",
    sample_dims: str | Sequence[str] | None = None,
    feature_dims: str | Sequence[str] | None = None,
) -> Coreset | Portfolio | Lazy[Any] | BuildPlan:
    r"""Build a coreset: a small weighted subset that stands for all rows.

    Every construction scores rows by an upper bound on their share in the cost of any
    query, draws `size` rows in proportion, and weighs a row with input weight u by
    :math:`u / (m q)`, so that weighted costs are unbiased for every query.

    Parameters
    ----------
    X : array-like of shape (n, d), or path
        A Dask array (dense or sparse blocks, unknown chunk sizes allowed), NumPy array or
        memmap, Zarr array, or group with the array "X", HDF5 data set, xarray DataArray
        (rows along its first dimension, or see `sample_dims`) or Dataset, pandas, polars or Dask
        DataFrame, table or Parquet data set of pyarrow, SciPy sparse matrix, Zarr store; or the
        path or URL of a Zarr store, a Parquet file or folder, an HDF5, .npy or .npz file, a glob
        such as ``"data/*.parquet"`` or a list of paths, whose rows follow one another. Integers,
        booleans, float16 are promoted, block by block; float32
        stays float32. All sums are float64; rows less than about
        :math:`10^{-162}` apart have squared distances of zero, and count as equal. Where they
        are up to :math:`10^{-150}` apart, one over those may overflow, and an error asks for
        scaled ones; so it may with weights of less than :math:`10^{-290}`. Blocks that
        are not what their Dask array declares are errors: other rows or columns, and dtypes that
        would change values, such as float64 where float32 was declared. Of the same rows in the
        same blocks, dense or sparse, systematic draws are the same; the weights of "lightweight"
        may differ in the last digits.
    y : array-like of shape (n,), or str, optional
        Labels that the coreset keeps for its rows. A string names a column of the data
        frame, table or Parquet data, or an array of the group or .npz file, of X; where X has
        none, it is a path, URL or glob.
    size : int, "auto", mapping of str to int, or None, default=None
        Rows wanted, m. None takes 10,000, or 100 a cluster where the construction is for more
        than a hundred: so many cost a solver next to nothing, and an error of the kind that
        falls with :math:`1 / \sqrt m` is about a hundredth. With ``size >= n`` all rows come
        back with their own weights. "auto" doubles the size until two independent coresets
        agree on the cost of candidate solutions, and returns their union: see
        `daskcoreset.sizing.auto_size`. With ``method="coverage"`` core points at most; None
        leaves their number to the diameter. Of several methods a number for all, or a mapping of
        names to numbers, in which a member that is left out has the default.
    method : str, Sensitivity, Reducer or Coverage, or mapping or list, default="lightweight"
        A name, such as "lightweight", "uniform", "kmeans" (with `n_clusters`), "svm",
        "logistic" or "least_squares" (with `y`), or a construction with its parameters, such as
        ``StrongKMeans(10)`` or ``SVM(lam=0.1)``; with ``strategy="tree"`` also a
        `daskcoreset.Reducer` of one's own. "coverage" draws nothing: see `diameter`. A
        mapping of names to methods, or a list of methods with different names of their own, builds
        a `Portfolio`: a coreset by each, the same bits that a build of its own would give with this
        seed, from as many reads as the method that needs most. All other options hold for each of
        them.
    sample_weight : array-like of shape (n,), or str, optional
        Input weights u, finite and non-negative; ones by default. Of xarray objects with
        `sample_dims` also a DataArray with some of these, the name of a variable or coordinate, or
        "area" for the cosine of latitude, which the attributes of the CF conventions name.
    random_state : int, Generator, RandomState or None, default=None
        With an int, the same input, chunks and versions give the same bits on every
        scheduler. The seed used is in ``coreset.provenance["seed"]`` in any case, but of
        "coverage", which draws nothing.
    sampling : {"systematic", "multinomial"}, default="systematic"
        "systematic" draws without replacement, one row in every unit of inclusion probability,
        so that no order of the rows, periodic ones included, makes it worse than independent
        draws (Deville 1998; Chauvet and Ruiz-Gazen 2017): blocks draw candidates in the order
        of their rows, and the root draws among these along an order in which neighbours are
        alike, which lowers the error at equal size (``benchmarks/quality.py``). It gives
        exactly `size` distinct rows; where fewer have a score, the build warns. "multinomial"
        draws independently; rows drawn twice are merged, so that fewer than `size` rows may
        come back.
    passes : {1, 2}, default=1
        Reads of the data. With 1, blocks offer candidates by their own statistics and the
        root draws from them, by re-weighting (systematic) or by rejection (multinomial);
        a block whose candidates are too few is read again, alone. With 2, the procedure of
        the paper. The error is the same. "svm" reads once more in either form, for a pilot.
    chunks : int or "auto", default="auto"
        Rows per block. "auto" keeps sensible chunks, groups tiny ones, splits huge ones,
        and aims at 32 MiB where it is free to choose. Part of what determines the bits.
    on_invalid : {"raise", "drop"} or None, default=None
        What becomes of rows with NaN or infinity: an error with the first such row, or
        they are left out and counted in ``provenance["n_dropped"]``. None leaves them out of xarray
        objects with `sample_dims`, where they are masked cells, and raises for all else. Values so
        large that squared distances overflow, some 1e146, are an error in either case, but for rows
        of weight zero.
    normalize : bool, default=False
        Whether to scale the weights to the total weight of the data. False keeps every
        weighted cost unbiased. True makes totals exact at the price of a bias of order 1 / m;
        for k-means it changes no solution, and its errors were measured to be the same. The
        clustering estimators use it.
    strategy : {"sampling", "tree"}, default="sampling"
        "sampling" draws from all rows by scores of all the data. "tree" merges and reduces: a
        coreset of every block, coresets of unions of coresets above them, one read. For any
        reducer, and for constructions that would have to read several times. Rows are drawn more
        than once, which adds to the variance: ``docs/guide/streams.md`` says how much at equal
        size.
    inner_size : int or None, default=None
        Rows that the nodes of the tree below its root keep; None takes twice `size`, for the
        reasons in `daskcoreset.constructions.tree.job`. At least `size`.
    split_every : int, default=16
        Results merged by one task of the reduction tree.
    compute : bool, default=True
        Whether to compute now. With False, a Dask collection comes back: pass it to
        ``dask.compute`` with other work, or call its ``compute()``. It is the graph of the whole
        build up to 131,072 blocks; of more, whose reads run as several graphs one after another,
        it is one task that runs these where it is computed.
    dry_run : bool, default=False
        Whether to return only the plan: reads, bytes, tasks, predicted peak memory.
    progress : bool or None, default=None
        Whether to show a progress bar; None shows one on a terminal, or in a notebook that has
        widgets, when the work takes longer than a second.
    epsilon, delta : float, default=0.05, 0.1
        For ``size="auto"``: the relative difference of costs that is tolerated, and the
        share of random solutions on which there may be more.
    n_clusters : int or None, default=None
        Centers of the solutions that the coreset is for; by default those of the construction,
        where it has any. With a method by name, also the parameter of its construction.
        ``coreset.audit(X)`` remembers it.
    diameter : float or None, default=None
        For ``method="coverage"``, a delta-cover: every row lies within half of it of a core
        point, whose weight is that of the rows nearest to it. None finds the diameter for
        `size` core points. `daskcoreset.coverage.Coverage` has more options.
    metric : {"euclidean", "cosine"}, default="euclidean"
        By "cosine" every row is divided by its length when its block is read, so that squared
        distances are twice the cosine distances; float16 stays float16 on disk and on its way. The
        points of the coreset are of these unit rows, or means of them, for which costs on it hold,
        and ``provenance["metric"]`` says so: audits and figures divide the rows of X as well.
        Those of X come from ``coreset.source_rows(X=X)``. A row of zeros has no direction: it is
        treated as one with NaN is, see `on_invalid`.
    storage_options : mapping of str to object or None, default=None
        For the file system of a URL, by the names that fsspec has for it, as in Dask, pandas and
        Zarr: ``{"anon": True}``, ``{"key": ..., "secret": ...}``. None takes what the environment
        says. They are handed to the workers, and never kept, printed or saved.
    columns : sequence of str or None, default=None
        Features to read, in this order, of a data frame, a table or Parquet files; None takes
        all columns. Those that `y` and `sample_weight` name are no features in either case; that
        `columns` names one of them is a warning. Also of the variables of a Dataset.
    missing_chunks : {"raise", "fill"}, default="raise"
        What a chunk of a Zarr array is that is not stored, be it a whole one or one inside a
        shard: a `StoreError` that names chunk and store, or, by "fill", rows of the array's fill
        value. Zarr leaves out chunks that hold nothing but the fill value unless it is told
        ``write_empty_chunks=True``, and nothing that it stores tells such a chunk from one that
        was lost or never written: whoever wrote the store has to say so. "fill" holds for `X`,
        `y` and `sample_weight`. It fills nothing where an array has no fill value (null in
        format 2), and a store that a worker cannot see, or that holds another array there, is an
        error in any case. Checked are Zarr arrays, also inside Dask arrays by ``da.from_zarr``,
        in what xarray opened, and as arguments of functions in a graph, such as
        ``dask.delayed(read)(array, i)``, which get them to read only; and HDF5 files and data sets.
        Not checked is what functions in a graph open for themselves or find in groups, objects
        and closures, and HDF5 inside Dask arrays or opened by xarray, NetCDF among it.
    sample_dims, feature_dims : str or sequence of str, or None, default=None
        Of an xarray DataArray or Dataset of any number of dimensions: those whose cells are rows,
        such as ``("time", "lat", "lon")``, and those whose cells are columns, such as ``"level"``.
        Where one is None, it is all dimensions that the other does not name. Variables of a Dataset
        are columns, too. Blocks are read as they lie, in the chunks of the dimensions, and
        flattened in the task; rows have their numbers in C order of `sample_dims`.

    Returns
    -------
    Coreset, or Portfolio, or Lazy, or BuildPlan
        A `Coreset`, or a `Portfolio` of several methods; with ``compute=False`` a Dask collection
        that computes to one; with ``dry_run=True`` a `BuildPlan`.

    Raises
    ------
    InvalidInputError, InvalidTypeError
        When an argument cannot be used: the message names it, says what was found and what
        to do, and of several methods which member it is about. Both derive from the builtin
        ValueError and TypeError.
    OutOfTimeError
        When a `time_limit` has passed; it is a TimeoutError. The message says where the build
        stood.
    ClusterError
        When a cluster has lost the build: its scheduler ended or no longer answers, or workers
        end again and again while they run one task. Of a worker that is lost, others do the work.
        Also, before any read, when no worker has the memory for one block.

    Warns
    -----
    CoresetWarning
        When nothing was reduced, for `size`, given or not, is not below n; when `size` is below
        the number of clusters of the construction; when `columns` names what `y` or
        `sample_weight` does; when ``size="auto"`` found no agreement; when
        workers have too little memory for the blocks that their threads read at a time.

    Examples
    --------
    >>> import dask.array as da
    >>> X = da.random.default_rng(0).normal(size=(100_000, 5), chunks=(10_000, 5))
    >>> build(X, random_state=0)
    Coreset(lightweight: 10,000 of 100,000 rows, 5 features, float64, total weight ..., seed 0)
    >>> coreset = build(X, size=500, random_state=0)
    >>> coreset.points.shape, coreset.weights.shape
    ((500, 5), (500,))
    >>> from sklearn.cluster import KMeans
    >>> model = KMeans(3, n_init=1).fit(coreset.points, sample_weight=coreset.weights)

    References
    ----------
    Bachem, Lucic and Krause (2018), Algorithm 1 and section 4.2.
    """
    flags = {"normalize": normalize, "compute": compute, "dry_run": dry_run}
    _check_flags(epsilon, delta, progress, **flags)
    _check_strategy(strategy, inner_size)
    check_choice("metric", metric, "euclidean", "cosine")
    _check_place(y, size)
    options = ReadOptions(storage_options, columns, missing_chunks, sample_dims, feature_dims)
    # All arguments are checked before the data are opened, which may take long for remote stores.
    rule, coverage = None, None
    defined: dict[str, partial[SamplingJob] | partial[TreeJob]] = {}
    methods = _members(method)
    if methods is None and (isinstance(method, Coverage) or is_choice(method, ("coverage",))):
        max_points = check_options(
            size,  # type: ignore[arg-type] # it refuses what is no number
            compute=compute,
            dry_run=dry_run,
            sampling=(sampling, "systematic"),
            passes=(passes, 1),
            normalize=(normalize, False),
            strategy=(strategy, "sampling"),
            n_clusters=(n_clusters, None),
        )
        coverage = resolve_coverage(method, diameter, max_points)
    elif diameter is not None:
        raise InvalidInputError(
            f'diameter={diameter!r} is for method="coverage"; leave it out, or pass this method.'
        )
    else:
        sizes: dict[str, Any] = {"": size}
        if methods is not None:
            sizes, random_state = _sizes(size, methods), resolve_seed(random_state)
        for name, rows in sizes.items():
            with about_member(name or None):
                rule, defined[name] = _defined(
                    method if methods is None else methods[name],
                    rows,
                    inner_size,
                    n_clusters,
                    random_state,
                    strategy=strategy,
                    sampling=sampling,
                    passes=passes,
                    split_every=split_every,
                    rule=(epsilon, delta),
                    computes=compute and not dry_run,
                )
    X = X if options == DEFAULTS else Rows(X, options)
    blocks = row_blocks(X, y, sample_weight, chunks=chunks, on_invalid=on_invalid).by(metric)
    if coverage is not None:
        cover = build_cover(coverage, blocks, split_every=split_every, progress=progress)
        return placed(cover, blocks.cube)
    jobs: dict[str, _Job] = {}
    for name, define in defined.items():
        with about_member(name or None):
            jobs[name] = define(
                blocks=blocks, split_every=int(split_every), normalize=bool(normalize)
            )
    if methods is not None:
        shared = PortfolioJob(blocks, jobs, int(split_every))
        return _run(shared, compute=compute, dry_run=dry_run, progress=progress)
    (job,) = jobs.values()
    # A search reads the data several times, and decides after each read whether to go on.
    if rule is not None and isinstance(job, SamplingJob):
        return placed(auto_size(job, rule, progress=progress), blocks.cube)
    return _run(job, compute=compute, dry_run=dry_run, progress=progress)


def build_and_hold_out(
    blocks: RowBlocks,
    n_held_out: int,
    *,
    size: int,
    method: Sensitivity[Any],
    n_clusters: int | None,
    random_state: RandomState,
    sampling: Sampling,
    passes: Literal[1, 2],
    normalize: bool,
) -> tuple[Coreset, HeldOut | None]:
    """Build a coreset by draws, and keep rows beside it that it did not take.

    Parameters
    ----------
    blocks : RowBlocks
    n_held_out : int
        Rows to be kept at most. They are candidates of the draw: no read is made for them.
    size, method, n_clusters, random_state, sampling, passes, normalize
        As in `build`.

    Returns
    -------
    Coreset
        That of `build`, to the bit.
    HeldOut or None
        None where all rows were taken, and of independent draws.
    """
    construction = construction_for(method, n_clusters)
    _check_sizes(size, _SPLIT_EVERY, construction)
    _check_sampling(construction, sampling, passes)
    seed = resolve_seed(random_state)
    draw = FinalDraw(construction, int(size), sampling, seed, n_held_out=n_held_out)
    found: list[Selection] = []
    job = SamplingJob(
        row_blocks(blocks),
        draw,
        passes,
        _SPLIT_EVERY,
        normalize,
        n_clusters=n_clusters,
        beside=found.append,
    )
    coreset: Any = _run(job, compute=True, dry_run=False, progress=None)
    return coreset, found[0].held_out


def _members(method: Any) -> dict[str, Any] | None:
    """Return the methods of a portfolio by name; None for one method."""
    if not isinstance(method, Mapping | list | tuple):
        return None
    if not method:
        raise InvalidInputError(
            f"method is empty, got {method!r}; pass at least one method, such as "
            f'{{"plain": "uniform"}}.'
        )
    if isinstance(method, Mapping):
        members = {check_member_name(name): one for name, one in method.items()}
    else:
        members = {}
        for one in method:
            name = one if isinstance(one, str) else getattr(one, "name", None)
            if not isinstance(name, str):
                resolve_method(one)  # says what a method may be
                continue
            if name in members:
                raise InvalidInputError(
                    f"two members of method are named {name!r}; pass a mapping that gives each a "
                    f"name of its own."
                )
            members[name] = one
    for name, one in members.items():
        _check_shares(name, one)
    return members


def _check_shares(name: str, method: Any) -> None:
    """Refuse a member that shares no read."""
    if isinstance(method, Coverage) or is_choice(method, ("coverage",)):
        raise InvalidInputError(
            f'member {name!r}: method="coverage" decides after each read whether to go on, '
            f"and shares none; build it by itself."
        )


def _sizes(size: Any, methods: Mapping[str, Any]) -> dict[str, Any]:
    """Return the size of every member."""
    if _is_auto(size) or (isinstance(size, Mapping) and any(map(_is_auto, size.values()))):
        raise InvalidInputError(
            'size="auto" decides after each read whether to go on, and shares none with other '
            "members; pass a number of rows, or build the coreset by itself."
        )
    if isinstance(size, list | tuple):
        raise InvalidTypeError(
            f"size is {shown(size)}; pass one number of rows for all members, or a mapping of "
            f"their names, such as {{{next(iter(methods))!r}: 1000}}."
        )
    if not isinstance(size, Mapping):
        return dict.fromkeys(methods, size)
    unknown = [name for name in size if name not in methods]
    if unknown:
        names = ", ".join(map(repr, methods))
        raise InvalidInputError(
            f"size names {unknown[0]!r}, and method has no such member; pass sizes for {names}."
        )
    return {name: size.get(name) for name in methods}


def _defined(
    method: Any,
    size: Any,
    inner_size: int | None,
    n_clusters: int | None,
    random_state: RandomState,
    *,
    strategy: str,
    sampling: Sampling,
    passes: Literal[1, 2],
    split_every: int,
    rule: tuple[float, float],
    computes: bool,
) -> tuple[AutoSize | None, partial[SamplingJob] | partial[TreeJob]]:
    """Check the arguments of one coreset; return the rule of its size, and its job but for data."""
    given = size is not None
    if strategy == "tree":
        _check_tree(size, sampling, passes)
        if isinstance(method, Reducer):
            reducer = resolve_reducer(method, n_clusters=n_clusters)
        else:
            reducer = resolve_reducer(_construction(method, n_clusters, size), sampling)
        rows = _default_rows(reducer, n_clusters) if size is None else size
        _check_sizes(rows, split_every, getattr(reducer, "construction", reducer), inner_size)
        inner_size = int(INNER_FACTOR * rows if inner_size is None else inner_size)
        seed = resolve_seed(random_state)
        settings = Settings(reducer, int(rows), inner_size, seed, n_clusters)
        return None, partial(TreeJob, settings=settings, size_given=given)
    construction = _construction(method, n_clusters, size)
    rows = _default_rows(construction, n_clusters) if size is None else size
    growth = _size_rule(rows, construction, n_clusters, *rule, computes=computes)
    if growth is not None:
        rows, n_clusters = growth.start, growth.n_clusters
    _check_sizes(rows, split_every, construction)
    _check_sampling(construction, sampling, passes)
    final_draw = FinalDraw(construction, int(rows), sampling, resolve_seed(random_state))
    return growth, partial(
        SamplingJob,
        final_draw=final_draw,
        passes=passes,
        n_clusters=n_clusters,
        size_given=given,
    )


def _run(
    job: _Job | PortfolioJob, *, compute: bool, dry_run: bool, progress: bool | None
) -> Coreset | Portfolio | Lazy[Any] | BuildPlan:
    """Return the plan of a job, its graph, or its coreset."""
    if dry_run:
        return plan_build(job.blocks, job.lazy(), job.reads, job.n_candidates)
    cube = job.blocks.cube
    if not compute:
        lazy = job.lazy()
        return lazy if cube is None else lazy.then(partial(_placed, cube=cube))
    if not job.is_graph:
        return _placed(job.compute_now(), cube)
    lazy = job.lazy()
    with show_progress(progress, lazy):
        return _placed(lazy.compute(**compute_options(job.blocks)), cube)


def _placed(built: Coreset | Portfolio, cube: Cube | None) -> Coreset | Portfolio:
    """Return what was built with the row numbers and coordinates of a cube."""
    if isinstance(built, Coreset):
        return placed(built, cube)
    if cube is None:
        return built
    members = {name: placed(member, cube) for name, member in built.items()}
    return replace(built, members=members)


def _check_place(y: Any, size: Any) -> None:
    """Check that what stands in the place of the labels is none of the keywords."""
    if is_number(y) and size is None:
        raise InvalidTypeError(
            f"y is {y!r}, and the second argument is the labels; size is a keyword: pass "
            f"size={y!r}."
        )
    if isinstance(y, Sensitivity):
        raise InvalidTypeError(
            f"y is {y!r}, and the second argument is the labels; method is a keyword: pass "
            f"method={y!r}."
        )


def _check_flags(epsilon: Any, delta: Any, progress: Any, **flags: Any) -> None:
    """Check the types of flags and numbers, of unused options as well."""
    AutoSize(1, epsilon, delta)
    for name, value in flags.items():
        check_flag(name, value)
    if progress is not None:
        check_flag("progress", progress)


def _construction(
    method: str | Sensitivity[Any] | Reducer, n_clusters: int | None, size: Any
) -> Sensitivity[Any]:
    """Resolve the method, for solutions of `n_clusters` centers."""
    if isinstance(method, Reducer):
        raise InvalidInputError(
            f"method {method.name!r} is a Reducer, which reduces rows in memory; pass "
            f'strategy="tree".'
        )
    if n_clusters is None or not isinstance(size, str):
        return construction_for(method, n_clusters)
    try:
        return construction_for(method, n_clusters)
    except InvalidInputError:
        # size="auto" may compare solutions of more or fewer centers than the construction has.
        return resolve_method(method)


def default_size(n_clusters: int) -> int:
    """Return the default size of a coreset.

    A hundred rows a cluster tell where its center is, within a tenth of its width; ten
    thousand cost a solver next to nothing, however few clusters there are.

    Examples
    --------
    >>> default_size(8), default_size(500)
    (10000, 50000)
    """
    return max(10_000, 100 * n_clusters)


def _default_rows(construction: Any, n_clusters: int | None) -> int:
    """Return the default size for a construction or a reducer, by the clusters it is for."""
    if construction.needs_labels:
        return default_size(0)  # its clusters are cells, and its solutions are classifiers
    objective = construction.objective
    n_parts = None if objective is None else objective.n_parts
    return default_size(max(n_clusters or 0, n_parts or 0))


def _size_rule(
    size: Any,
    construction: Sensitivity[Any],
    n_clusters: int | None,
    epsilon: float,
    delta: float,
    *,
    computes: bool,
) -> AutoSize | None:
    """Return the rule by which ``size="auto"`` grows; None for a number of rows."""
    if not _is_auto(size):
        return None
    if getattr(construction, "representatives", "rows") != "rows":
        raise InvalidInputError(
            'size="auto" compares coresets of rows; pass a number with representatives="centroids".'
        )
    if not computes:
        raise InvalidInputError(
            'size="auto" reads the data to decide what to do next, so it can be neither lazy nor '
            "planned; leave out compute=False and dry_run=True, or pass a number of rows."
        )
    objective = construction.objective
    if n_clusters is not None:
        objective = objective.with_parts(n_clusters)
    if objective.n_parts is None:
        raise InvalidInputError(
            f'size="auto" compares the costs of solutions, and {construction.name!r} does not say '
            f"of how many centers; pass n_clusters."
        )
    return AutoSize(objective.n_parts, epsilon, delta)


def _check_strategy(strategy: Any, inner_size: Any) -> None:
    """Check the strategy, and that no option of the other one is given."""
    check_choice("strategy", strategy, "sampling", "tree")
    if strategy == "sampling" and inner_size is not None:
        raise InvalidInputError(
            f"inner_size={inner_size!r} is for the nodes of a tree; leave it out, or pass "
            f'strategy="tree".'
        )


def _check_sizes(size: Any, split_every: Any, construction: Any, inner_size: Any = None) -> None:
    """Check the sizes; warn of a size below the clusters of the construction."""
    checks = [("size", size, 1), ("split_every", split_every, 2)]
    if inner_size is not None:
        checks.append(("inner_size", inner_size, 1))
    for name, value, minimum in checks:
        if not is_int(value):
            word = ' or "auto"' if name == "size" else ""
            raise InvalidTypeError(f"{name} must be an integer, got {value!r}; pass an int{word}.")
        if value < minimum:
            raise InvalidInputError(
                f"{name} must be at least {minimum}, got {value}; pass a larger int."
            )
    if inner_size is not None:
        check_inner_size(inner_size, size)
    n_clusters = getattr(construction, "n_clusters", None) or 1
    if size < n_clusters:
        warn_user(
            f"size={size} is below n_clusters={n_clusters}: fewer rows than clusters cannot stand "
            f"for them; pass a size of at least several rows a cluster."
        )


def _check_sampling(construction: Sensitivity[Any], sampling: Any, passes: Any) -> None:
    """Check that the construction can be drawn in this way, in so many reads."""
    check_choice("sampling", sampling, *_SAMPLINGS)
    if not is_int(passes) or passes not in (1, 2):
        raise InvalidInputError(f"passes must be 1 or 2, got {passes!r}; pass one of these.")
    if passes == 1 and construction.n_folds > 1 and not construction.design.scores_from_pilot:
        raise InvalidInputError(
            f"passes=1, but {construction.name!r} needs {construction.n_folds} folds of the data "
            f'before it can score; pass passes=2, or strategy="tree".'
        )
    if _is_unbounded(construction, sampling, passes):
        raise InvalidInputError(
            f'sampling="multinomial" with passes=1, but {construction.name!r} has no bound for '
            f'rejection; pass passes=2, or sampling="systematic".'
        )


def _is_unbounded(construction: Sensitivity[Any], sampling: Any, passes: Any) -> bool:
    """Whether exact draws from one read are asked for, and the construction knows no bound."""
    return passes == 1 and sampling == "multinomial" and construction.proposal_bound is None


def _check_tree(size: Any, sampling: Any, passes: Any) -> None:
    """Check options that a tree has in fewer forms."""
    if _is_auto(size):
        raise InvalidInputError(
            'size="auto" grows a sample; pass a number of rows, or leave out strategy="tree".'
        )
    check_choice("sampling", sampling, *_SAMPLINGS)
    if not is_int(passes) or passes != 1:
        raise InvalidInputError(
            f"passes={passes!r}, but a tree reads the data once; leave passes out."
        )


def _is_auto(size: Any) -> bool:
    # An array of sizes, which is an error, would be compared element by element.
    return isinstance(size, str) and size == "auto"
