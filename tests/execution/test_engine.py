"""Reads: values in the order of the blocks, few tasks a block, and rows mapped lazily."""

from __future__ import annotations

import itertools
import pickle
from collections.abc import Callable, Sequence
from functools import partial
from operator import add
from pathlib import Path
from typing import Any, Literal

import dask
import dask.array as da
import numpy as np
import pytest
import scipy.sparse as sp
from dask._task_spec import DataNode, Task, convert_legacy_graph
from dask.base import is_dask_collection, tokenize
from dask.delayed import delayed
from dask.graph_manipulation import bind

from daskcoreset.build import build
from daskcoreset.core.blocks import Block, InvalidRow, ReadBlock
from daskcoreset.core.errors import InvalidInputError
from daskcoreset.core.typing import Sampling
from daskcoreset.execution import engine as engine_module
from daskcoreset.execution.engine import (
    Engine,
    Reduction,
    apply,
    map_reduce,
    map_rows,
    together,
    tree_reduce,
    tree_reduce_in_memory,
)
from daskcoreset.execution.lazy import Alone, Lazy, leaf_layers
from daskcoreset.inputs.blocks import row_blocks
from daskcoreset.testing import CountingArray, CountingScheduler
from tests.acceptance.tools.stored_rows import X, zarr_of
from tests.pairs import each, pairs
from tests.tools.graphs import (
    FUSING,
    MATERIALISED,
    N_BLOCKS,
    READERS,
    ROWS,
    SELF_READING,
    N,
    Reader,
    Watcher,
    first_moment,
    from_columns,
    from_memory,
    from_random,
    from_small_chunks,
    from_zarr,
    is_leaf,
    mean_of,
    name_of,
    rows_of,
    second_moment,
    total,
    tree_tasks,
    two_passes,
    zarr_arrays,
)


def first_values(block: Block, block_index: int, factor: Any) -> list[tuple[int, float]]:
    return [(block_index, float(row[0]) * (factor or 1.0)) for row in np.asarray(block.points)]


def refuse_negative(block: Block, block_index: int, broadcast: Any) -> int | InvalidRow:
    del block_index, broadcast
    bad = np.flatnonzero(np.asarray(block.points)[:, 0] < 0)
    return InvalidRow("X is negative{row}; pass more.", int(bad[0])) if len(bad) else len(block)


@pytest.mark.parametrize("split_every", [2, 16])
@pytest.mark.parametrize("scheduler", ["sync", "threads"])
def test_map_reduce__merges_in_the_order_of_the_blocks(scheduler: str, split_every: int) -> None:
    X = da.from_array(np.arange(40.0)[:, None], chunks=(3, 1))
    with dask.config.set(scheduler=scheduler):
        found = map_reduce(row_blocks(X), first_values, add, broadcast=2.0, split_every=split_every)
    assert [value for _, value in found.value] == [2.0 * i for i in range(40)]
    assert found.n_rows == 40
    assert found.row(2, 1) == 7


def test_map_reduce__of_one_block_in_memory_asks_no_scheduler() -> None:
    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("a scheduler was asked")

    with dask.config.set(scheduler=refuse):
        assert map_reduce(row_blocks([[1.0], [2.0]]), first_values, add).value == [
            (0, 1.0),
            (0, 2.0),
        ]


def test_map_reduce__names_the_first_problem_by_its_row_in_the_data() -> None:
    values = np.ones((30, 1))
    values[[17, 25]] = -1
    X = da.from_array(values, chunks=(4, 1))
    with pytest.raises(InvalidInputError, match="negative at row 17;"):
        map_reduce(row_blocks(X), refuse_negative, add)
    values[5] = np.nan
    X = da.from_array(values, chunks=(4, 1))
    with pytest.raises(InvalidInputError, match="row 5"):
        map_reduce(row_blocks(X), refuse_negative, add)


def test_map_reduce__of_no_rows_is_an_error() -> None:
    X = da.from_array(np.arange(4.0)[:, None], chunks=(2, 1))
    with pytest.raises(InvalidInputError, match="no rows"):
        map_reduce(row_blocks(X[X[:, 0] > 9]), first_values, add)


def count_rows(rows: ReadBlock, broadcast: Any) -> int:
    del broadcast
    assert rows.block is not None
    return len(rows.block)


def sum_rows(rows: ReadBlock, factor: float) -> float:
    assert rows.block is not None
    return factor * float(np.asarray(rows.block.points).sum())


def refuse_large(rows: ReadBlock, broadcast: Any) -> int | InvalidRow:
    del broadcast
    assert rows.block is not None
    large = np.flatnonzero(np.asarray(rows.block.points)[:, 0] > 35)
    return InvalidRow("X is large{row}.", int(large[0])) if len(large) else 0


@pytest.mark.parametrize("lazy", [False, True])
def test_together__several_reductions_share_a_read(lazy: bool) -> None:
    array = CountingArray(np.random.default_rng(0).normal(size=(40, 2)))
    blocks = row_blocks(array, chunks=7)
    engine = Engine(blocks, split_every=2, lazy=lazy)
    counts: Reduction[int] = Reduction(count_rows, sum)
    sums: Reduction[float] = Reduction(sum_rows, sum)
    results = engine.compute(engine.read(together(counts, sums), (None, 3.0)))
    assert (array.reads == 1).all()
    apart = [engine.compute(engine.read(*one)).value for one in ((counts, None), (sums, 3.0))]
    assert list(results.value) == apart
    assert results.n_rows == results.n_kept == apart[0] == 40


@pytest.mark.parametrize("lazy", [False, True])
def test_together__without_a_broadcast_and_with_values_of_none(lazy: bool) -> None:
    engine = Engine(row_blocks(np.ones((6, 1)), chunks=2), lazy=lazy)
    nothing: Reduction[None] = Reduction(lambda rows, broadcast: None, lambda values: len(values))  # type: ignore[arg-type] # noqa: PLW0108, ARG005 - counts them
    alone = engine.compute(engine.read(nothing)).value
    shared = engine.compute(engine.read(together(nothing, Reduction(count_rows, sum)))).value
    assert (alone, shared) == (3, (3, 6))


def test_engine__applies_a_function_to_plain_values_too() -> None:
    engine = Engine(row_blocks(np.ones((6, 1)), chunks=2), lazy=True)
    rows = engine.apply(n_rows_of, engine.read(Reduction(count_rows, sum)))
    assert engine.compute(engine.apply(pow, rows, 2)) == 36


def n_rows_of(results: Any) -> int:
    return int(results.value)


def test_together__names_the_first_invalid_row_of_any_reduction() -> None:
    X = da.from_array(np.arange(40.0)[:, None], chunks=(6, 1))
    engine = Engine.immediate(row_blocks(X))
    both = together(Reduction(count_rows, sum), Reduction(refuse_large, sum))
    results = engine.compute(engine.read(both, (None, None)))
    with pytest.raises(InvalidInputError, match=r"X is large at row 36\."):
        results.check()


def test_engine__counts_rows_that_are_dropped() -> None:
    X = np.arange(12.0)[:, np.newaxis]
    X[[2, 7]] = np.nan
    engine = Engine(row_blocks(X, chunks=5, on_invalid="drop"))
    results = engine.read(Reduction(count_rows, sum))
    assert (results.value, results.n_rows, results.n_kept) == (10, 12, 10)
    assert results.offsets() == {0: 0, 1: 5, 2: 10}
    with pytest.raises(InvalidInputError, match="none of the 3 rows of X is finite"):
        map_reduce(row_blocks(np.full((3, 1), np.nan), on_invalid="drop"), first_values, add)


def first(block: Block) -> Any:
    return np.asarray(block.points[:, 0])


def two(block: Block) -> Any:
    return np.asarray(block.points[:, :2])


def tasks_of(array: Any) -> int:
    optimize: Any = array.__dask_optimize__
    keys: Any = array.__dask_keys__()
    graph = dict(optimize(array.__dask_graph__(), keys))
    # Bare aliases are names, which no scheduler runs for long.
    return sum(isinstance(node, Task) and not isinstance(node, DataNode) for node in graph.values())


@pytest.mark.parametrize("kind", ["numpy", "zarr", "from_zarr", "memory", "columns"])
@pytest.mark.parametrize(("function", "columns"), [(first, None), (two, 2)])
def test_map_rows__keeps_rows_in_order(
    kind: str, function: Any, columns: int | None, tmp_path: Path
) -> None:
    kinds: dict[str, Callable[[], Any]] = {
        "numpy": lambda: X,
        "zarr": lambda: zarr_of(tmp_path),
        "from_zarr": lambda: da.from_zarr(zarr_of(tmp_path)),
        "memory": lambda: da.from_array(X, chunks=(300, 3)),
        "columns": lambda: da.from_array(X, chunks=(300, 2)),
    }
    blocks = row_blocks(kinds[kind]())
    mapped = map_rows(blocks, function, dtype=X.dtype, columns=columns)
    assert mapped.chunks[0] == blocks.sizes
    assert mapped.dtype == X.dtype
    wanted = X[:, 0] if columns is None else X[:, :2]
    np.testing.assert_array_equal(mapped.compute(), wanted)
    np.testing.assert_array_equal(mapped[5:700].compute(), wanted[5:700])


@pytest.mark.parametrize("columns", [None, 2])
def test_map_rows__unknown_chunks_stay_unknown(columns: int | None) -> None:
    lazy = da.from_array(X, chunks=(300, 3))
    some = lazy[lazy[:, 0] > 0]
    mapped = map_rows(
        row_blocks(some), first if columns is None else two, dtype=X.dtype, columns=columns
    )
    assert np.isnan(mapped.shape[0])
    wanted = X[X[:, 0] > 0]
    np.testing.assert_array_equal(
        mapped.compute(), wanted[:, 0] if columns is None else wanted[:, :2]
    )


@pytest.mark.parametrize(("function", "columns"), [(first, None), (two, 2)])
def test_map_rows__one_task_a_block(function: Any, columns: int | None, tmp_path: Path) -> None:
    for source in (zarr_of(tmp_path), da.from_zarr(zarr_of(tmp_path / "other"))):
        blocks = row_blocks(source, chunks=50)
        assert tasks_of(map_rows(blocks, function, dtype=X.dtype, columns=columns)) == 20


def test_map_rows__computes_and_reads_nothing_when_defined() -> None:
    rows, scheduler = CountingArray(X), CountingScheduler()
    with dask.config.set(scheduler=scheduler):
        mapped = map_rows(row_blocks(rows, chunks=100), first, dtype=X.dtype)
        assert scheduler.calls == 0
        assert not rows.reads.any()
        mapped.compute()
    assert scheduler.calls == 1


def test_map_rows__names_the_bad_row() -> None:
    bad = X.copy()
    bad[777, 1] = np.nan
    lazy = da.from_array(bad, chunks=(100, 3))
    # Rows left out would shift all that follow, so that the rule of the blocks does not count.
    mapped = map_rows(row_blocks(lazy, on_invalid="drop"), first, dtype=X.dtype)
    with pytest.raises(InvalidInputError, match="column 1 at row 777"):
        mapped.compute()
    np.testing.assert_array_equal(mapped[:300].compute(), X[:300, 0])
    filled = map_rows(
        row_blocks(lazy, on_invalid="drop"), first, dtype=X.dtype, missing=-1
    ).compute()
    np.testing.assert_array_equal(filled, np.where(np.arange(len(X)) == 777, -1, X[:, 0]))
    strict = map_rows(row_blocks(lazy, on_invalid="raise"), first, dtype=X.dtype, missing=-1)
    with pytest.raises(InvalidInputError, match="column 1 at row 777"):
        strict.compute()
    unknown = map_rows(row_blocks(lazy[lazy[:, 0] > -99]), first, dtype=X.dtype)
    with pytest.raises(InvalidInputError, match="column 1 at row 77 of block 7"):
        unknown.compute()


def test_map_rows__function_may_find_a_problem() -> None:
    def judge(block: Block) -> Any:
        bad = np.flatnonzero(np.asarray(block.points[:, 0]) == 501)
        return InvalidRow("too large{row}", int(bad[0])) if len(bad) else first(block)

    rows = np.arange(1000.0).reshape(-1, 1)
    mapped = map_rows(row_blocks(rows, chunks=100), judge, dtype=float)
    np.testing.assert_array_equal(mapped[:500].compute(), rows[:500, 0])
    with pytest.raises(InvalidInputError, match="too large at row 501"):
        mapped.compute()


def test_map_rows__wrong_columns_in_a_block_of_unknown_size() -> None:
    broken: Any = da.from_delayed(delayed(np.ones)((4, 2)), shape=(np.nan, 3), dtype=float)
    with pytest.raises(InvalidInputError, match="3 columns are expected"):
        map_rows(row_blocks(broken), first, dtype=float).compute()


def test_map_rows__tasks_pickle_with_a_sure_token() -> None:
    from daskcoreset.execution.engine import _row_values, _run_block

    schema = row_blocks(X).schema
    task = partial(_run_block, partial(_row_values, first), schema, ("X",))
    again = partial(_run_block, partial(_row_values, first), schema, ("X",))
    assert tokenize(task) == tokenize(again)
    assert tokenize(pickle.loads(pickle.dumps(task))) == tokenize(task)


PARTS = (("X",), ("X", "y"), ("X", "y", "sample_weight"))


def index_and_rows(rows: ReadBlock, broadcast: Any) -> tuple[Any, ...]:
    del broadcast
    return ((rows.index, rows.read),)


def joined(parts: Sequence[tuple[Any, ...]]) -> tuple[Any, ...]:
    return tuple(itertools.chain.from_iterable(parts))


def nested(parts: Sequence[Any]) -> Any:
    return tuple(parts)


def block_index(rows: ReadBlock, broadcast: Any) -> Any:
    del broadcast
    return rows.index


def optimised(value: Lazy[Any]) -> dict[Any, Any]:
    return dict(Alone.optimize(value.__dask_graph__(), value.__dask_keys__()))


@each(reader=SELF_READING | FUSING, names={"+".join(one): one for one in PARTS})
def test_fold__fuses_with_the_reads(reader: Reader, names: tuple[str, ...], tmp_path: Path) -> None:
    blocks = row_blocks(**reader(tmp_path, names), chunks=ROWS)
    lazy = tree_reduce(blocks, index_and_rows, joined, split_every=4)
    graph = optimised(lazy)
    assert sum(map(is_leaf, graph)) == N_BLOCKS
    assert lazy.n_tasks == N_BLOCKS + tree_tasks(N_BLOCKS, 4)
    # Beside these: the opened arrays, which are literals and no tasks.
    assert len(graph) - lazy.n_tasks <= len(names)


def test_fold__fuses_with_what_was_done_to_the_blocks(tmp_path: Path) -> None:
    X = from_zarr(tmp_path, ("X",))["X"]
    lazy = tree_reduce(row_blocks((X * 2 + 1).astype("f4"), chunks=ROWS), first_moment, total)
    assert lazy.n_tasks == N_BLOCKS + tree_tasks(N_BLOCKS, 16)


def test_fold__leaves_no_alias_beside_what_dask_renames(tmp_path: Path) -> None:
    lazy = tree_reduce(
        row_blocks(**from_random(tmp_path, ("X",)), chunks=ROWS), first_moment, total
    )
    assert lazy.n_tasks == N_BLOCKS + tree_tasks(N_BLOCKS, 16)
    assert sum(map(is_leaf, optimised(lazy))) == N_BLOCKS


def test_fold__a_contracted_index_would_not_fuse(tmp_path: Path) -> None:
    """The plain way to one number per block, which `tree_reduce` does not go."""
    X = from_zarr(tmp_path, ("X",))["X"]
    plain = X.map_blocks(lambda block: block[:, 0], drop_axis=1)
    (graph,) = dask.optimize(plain)
    assert len(dict(graph.__dask_graph__())) > N_BLOCKS + 1


def input_tasks(arrays: dict[str, Any]) -> int:
    """Tasks that it takes to bring all blocks of the input into memory, once."""
    collections = [array for array in arrays.values() if is_dask_collection(array)]
    merged = [c.rechunk({1: -1}) if c.ndim == 2 else c for c in collections]
    return sum(len(dict(c.__dask_graph__())) for c in dask.optimize(*merged)) if merged else 0


@pairs(
    reader=READERS,
    names={"+".join(one): one for one in PARTS},
    reads=[1, 2],
    sampling=["systematic", "multinomial"],
)
def test_build__at_most_four_tasks_per_block(
    reader: Reader,
    names: tuple[str, ...],
    reads: Literal[1, 2],
    sampling: Sampling,
    tmp_path: Path,
) -> None:
    """All tasks count, less those that bring the input itself into memory in each read.

    What fuses with its leaf costs nothing by that count: one task a block and read, and the
    tree.
    """
    arrays = reader(tmp_path, names)
    lazy = build(
        **arrays, size=10, chunks=ROWS, passes=reads, sampling=sampling, random_state=0,
        compute=False,
    )  # fmt: skip
    fuses = reader not in MATERIALISED.values()
    own = lazy.n_tasks - (0 if fuses else reads * input_tasks(arrays))
    assert own <= 4 * N_BLOCKS
    if fuses:
        # Beside leaves and trees: two roots, and once per array what its second read waits for.
        tree = tree_tasks(N_BLOCKS, 16)
        assert own <= reads * (N_BLOCKS + tree) + (reads - 1) * (2 + 2 * len(names))


@each(n_blocks=[1, 2, 3, 4, 9, 10, 16, 17, 33, 257], split_every=[2, 3, 16])
def test_fold__tree_is_as_deep_as_a_logarithm(n_blocks: int, split_every: int) -> None:
    blocks = row_blocks(np.zeros((n_blocks, 1)), chunks=1)
    lazy = tree_reduce(blocks, block_index, nested, split_every=split_every)
    tree = lazy.compute(scheduler="sync")

    def depth(node: Any) -> int:
        return 1 + max(map(depth, node)) if isinstance(node, tuple) else 0

    def leaves(node: Any) -> list[int]:
        return (
            [leaf for part in node for leaf in leaves(part)] if isinstance(node, tuple) else [node]
        )

    def widest(node: Any) -> int:
        return max([len(node), *map(widest, node)]) if isinstance(node, tuple) else 0

    levels = 1
    while split_every**levels < n_blocks:
        levels += 1
    assert depth(tree) == levels
    assert leaves(tree) == list(range(n_blocks))
    assert widest(tree) <= split_every
    # A single block and its root are fused.
    expected = n_blocks + tree_tasks(n_blocks, split_every) if n_blocks > 1 else 1
    assert lazy.n_tasks == expected


@each(n_blocks=[1, 2, 6, 17, 40], split_every=[2, 5, 16])
def test_fold_now__has_the_same_tree(n_blocks: int, split_every: int) -> None:
    blocks = row_blocks(np.zeros((n_blocks, 1)), chunks=1)
    lazy = tree_reduce(blocks, block_index, nested, split_every=split_every)
    here = tree_reduce_in_memory(blocks, block_index, nested, split_every=split_every)
    assert here == lazy.compute(scheduler="sync")


def test_fold__tree_stays_below_a_tenth_of_the_tasks() -> None:
    blocks = row_blocks(np.zeros((2000, 1)), chunks=1)
    assert tree_reduce(blocks, block_index, nested).n_tasks <= 1.07 * 2000


@pytest.mark.parametrize("reader", READERS.values(), ids=READERS)
def test_second_pass__shares_no_read_with_the_first(reader: Reader, tmp_path: Path) -> None:
    lazy = two_passes(reader(tmp_path, ("X",))["X"])
    graph = optimised(lazy)
    layers = list(leaf_layers(lazy))
    assert len(layers) == 2

    def below(layer: str) -> set[Any]:
        todo = {key for key in graph if name_of(key) == layer}
        seen: set[Any] = set()
        while todo:
            key = todo.pop()
            seen.add(key)
            # The plan is no read: what is below it belongs to the first pass.
            todo |= {
                dependency
                for dependency in graph[key].dependencies
                if dependency not in seen and not name_of(dependency).startswith("coreset-")
                and not name_of(dependency).startswith("checkpoint")
            }  # fmt: skip
        return {key for key in seen if isinstance(key, tuple)}  # blocks; opened arrays are not

    first, second = map(below, layers)
    assert len(first) >= N_BLOCKS
    assert len(second) >= N_BLOCKS
    shared = first & second
    # Literals are shared, for they are in memory at any rate.
    assert all(isinstance(graph[key], DataNode) for key in shared)


@pytest.mark.parametrize("reader", READERS.values(), ids=READERS)
def test_second_pass__holds_no_block_of_the_first(reader: Reader, tmp_path: Path) -> None:
    lazy = two_passes(reader(tmp_path, ("X",))["X"])
    with Watcher() as watcher:
        lazy.compute(scheduler="sync")
    # The five chunks of a block and what they become; an array in memory is held at any rate.
    assert watcher.held <= (N_BLOCKS if reader is from_memory else 6)


def test_second_pass__would_hold_the_array_if_it_shared_the_reads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine_module, "clone_after", lambda arrays, *_: arrays)
    lazy = two_passes(from_random(tmp_path, ("X",))["X"])
    with Watcher() as watcher:
        lazy.compute(scheduler="sync")
    assert watcher.held == N_BLOCKS


@pytest.mark.parametrize("reader", READERS.values(), ids=READERS)
def test_third_pass__shares_no_read_with_the_second(reader: Reader, tmp_path: Path) -> None:
    blocks = row_blocks(reader(tmp_path, ("X",))["X"], chunks=ROWS)
    mean = apply(mean_of, tree_reduce(blocks, first_moment, total))
    moment = tree_reduce(blocks, second_moment, total, broadcast=mean)
    lazy = tree_reduce(blocks, second_moment, total, broadcast=apply(mean_of, moment))
    assert list(leaf_layers(lazy).values()) == [N_BLOCKS] * 3
    with Watcher() as watcher:
        lazy.compute(scheduler="sync")
    assert watcher.held <= (N_BLOCKS if reader is from_memory else 6)


def test_second_pass__bind_of_dask_would_share_the_reads(tmp_path: Path) -> None:
    """Why `copying` exists: `bind` renames plain tasks and leaves them their old inputs."""
    X = from_small_chunks(tmp_path, ("X",))["X"].rechunk({0: ROWS})
    copy = bind(X, da.ones(1).sum().to_delayed())
    graph = convert_legacy_graph(dict(copy.__dask_graph__()))
    inputs = {name_of(need) for node in graph.values() for need in node.dependencies}
    originals = {name_of(key) for key in dict(X.__dask_graph__())}
    assert inputs & originals, "mended in Dask: bind may do, and `copying` go"


@pytest.mark.parametrize("reader", READERS.values(), ids=READERS)
def test_second_pass__waits_for_the_plan(reader: Reader, tmp_path: Path) -> None:
    lazy = two_passes(reader(tmp_path, ("X",))["X"])
    with Watcher() as watcher:
        lazy.compute(scheduler="threads", num_workers=4)
    names = [name_of(key) for key in watcher.order]
    plan = next(i for i, name in enumerate(names) if name.startswith("coreset-root-"))
    first, second = sorted(leaf_layers(lazy), key=names.index)
    assert names[:plan].count(first) == N_BLOCKS
    assert names[plan:].count(second) == N_BLOCKS
    if reader is from_random:  # its blocks are made by tasks of their own in the second pass
        assert sum(name.startswith("normal") for name in names[plan:]) == N_BLOCKS


@pytest.mark.parametrize("reader", READERS.values(), ids=READERS)
def test_second_pass__is_given_the_result_of_the_first(reader: Reader, tmp_path: Path) -> None:
    X = reader(tmp_path, ("X",))["X"]
    values = np.asarray(X)
    mean = values.sum() / (3 * N)
    expected = ((values - mean) ** 2).sum()
    assert two_passes(X).compute(scheduler="sync") == pytest.approx(expected, rel=1e-12)


def test_fold__takes_a_plain_value_for_all_blocks() -> None:
    blocks = row_blocks(np.ones((6, 2)), chunks=2)
    lazy = tree_reduce(blocks, second_moment, total, broadcast=3.0)
    assert lazy.compute(scheduler="sync") == 4.0 * 12


def test_fold__mixes_arrays_of_dask_with_others(tmp_path: Path) -> None:
    values = rows_of(("X", "y", "sample_weight"))
    X = da.from_array(values["X"], chunks=(ROWS, 3))
    y = zarr_arrays(tmp_path, ("y",))["y"]
    coreset = build(
        X, y, sample_weight=values["sample_weight"], size=40, chunks=ROWS, random_state=0
    )
    np.testing.assert_array_equal(coreset.points, values["X"][coreset.indices])
    assert coreset.labels is not None
    np.testing.assert_array_equal(coreset.labels, values["y"][coreset.indices])


def data_frame(folder: Path) -> Any:
    del folder
    dd = pytest.importorskip("dask.dataframe")
    pd = pytest.importorskip("pandas")
    return dd.from_pandas(pd.DataFrame(rows_of(("X",))["X"], columns=list("abc")), npartitions=4)


def xarray_of_dask(folder: Path) -> Any:
    xr = pytest.importorskip("xarray")
    return xr.DataArray(from_zarr(folder, ("X",))["X"], dims=("row", "column"))


def sparse_blocks(folder: Path) -> Any:
    return from_zarr(folder, ("X",))["X"].map_blocks(sp.csr_array, meta=sp.csr_array((0, 0)))


def unknown_chunks(folder: Path) -> Any:
    X = from_zarr(folder, ("X",))["X"]
    return X[X[:, 0] > 0]


COLLECTIONS: dict[str, Callable[[Path], Any]] = {
    "from_zarr": lambda folder: from_zarr(folder, ("X",))["X"],
    "random": lambda folder: from_random(folder, ("X",))["X"],
    "columns": lambda folder: from_columns(folder, ("X",))["X"],
    "frame": data_frame,
    "xarray": xarray_of_dask,
    "sparse": sparse_blocks,
    "unknown": unknown_chunks,
}


@each(make=COLLECTIONS, reads=[1, 2])
def test_build__computes_nothing_while_it_defines(
    make: Callable[[Path], Any], reads: Literal[1, 2], tmp_path: Path
) -> None:
    counting = CountingScheduler()
    with dask.config.set(scheduler=counting):
        X = make(tmp_path)
        lazy = build(X, size=10, passes=reads, random_state=0, compute=False)
        build(X, size=10, passes=reads, random_state=0, dry_run=True)
        assert counting.calls == 0
        coreset = lazy.compute()
    assert counting.calls >= 1  # the count works
    assert len(coreset) == 10


def test_fold__definition_prints_no_block() -> None:
    """Dask hashes the ``repr`` of per-block literals: it must not hold them."""

    class Loud:
        def __repr__(self) -> str:
            raise AssertionError("a literal was printed")

    values = engine_module._Literals("name", (Loud(), Loud()))
    assert values[1,] is values.values[1]
    assert repr(values) == "_Literals(name='name', group=1)"


# --- blocks that are not what they declare ---------------------------------------------------


def _odd(change: Any, **declared: Any) -> Any:
    def changed(block: Any, block_id: Any = None) -> Any:
        return change(block) if block_id[0] == 1 else block

    plain = da.from_array(np.random.default_rng(0).normal(size=(400, 3)), chunks=(100, 3))
    return plain.map_blocks(changed, **{"dtype": "f8", "meta": np.empty((0, 0)), **declared})


@each(
    change={
        "shorter": lambda b: b[:-10],
        "longer": lambda b: np.concatenate([b, b]),
        "empty": lambda b: b[:0],
        "narrower": lambda b: b[:, :2],
    },
    chunks=["auto", 50, 200],
)
def test_build__block_of_another_shape_is_named(change: Any, chunks: Any) -> None:
    with pytest.raises(InvalidInputError, match=r"block \(?1"):
        build(_odd(change), size=50, chunks=chunks, random_state=0)


@pytest.mark.parametrize(
    ("dtype", "declared"),
    [("f8", "f4"), ("i8", "i2"), ("object", "f8"), ("c16", "f8"), ("U9", "f8")],
)
def test_build__block_of_a_dtype_that_changes_values_is_named(dtype: str, declared: str) -> None:
    wrong = _odd(lambda b: b.astype(dtype), dtype=declared, meta=np.empty((0, 0), declared))
    with pytest.raises(InvalidInputError, match=r"X has dtype .* in block \d, which is not"):
        build(wrong, size=50, random_state=0)


@pytest.mark.parametrize(("dtype", "declared"), [("f4", "f8"), ("i2", "f8"), ("f8", "i8")])
def test_build__block_of_a_dtype_that_changes_nothing(dtype: str, declared: str) -> None:
    other = _odd(lambda b: b.astype(dtype), dtype=declared, meta=np.empty((0, 0), declared))
    assert len(build(other, size=50, random_state=0)) == 50


def test_build__text_among_numeric_labels_is_named() -> None:
    X = da.ones((400, 2), chunks=(100, 2))
    y = da.arange(400, chunks=100) % 2
    wrong = y.map_blocks(
        lambda b, block_id=None: b.astype(str) if block_id[0] == 2 else b, dtype=y.dtype
    )
    with pytest.raises(InvalidInputError, match=r"y has dtype <U\d+ in block 2"):
        build(X, wrong, method="svm", size=50, random_state=0)
