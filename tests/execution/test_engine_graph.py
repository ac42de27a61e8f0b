from __future__ import annotations

import ast
import itertools
import math
import os
import pickle
import re
import subprocess
import sys
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import dask
import dask.array as da
import numpy as np
import pytest
import scipy.sparse as sp
import zarr
from dask._task_spec import DataNode, convert_legacy_graph
from dask.base import is_dask_collection, tokenize
from dask.callbacks import Callback
from dask.delayed import delayed
from dask.graph_manipulation import bind

import daskcoreset
from daskcoreset.build import build
from daskcoreset.core.errors import CoresetWarning
from daskcoreset.core.typing import Sampling
from daskcoreset.execution import engine as engine_module
from daskcoreset.execution.engine import apply, tree_reduce, tree_reduce_in_memory
from daskcoreset.execution.lazy import Alone, Lazy, active_client, leaf_layers
from daskcoreset.inputs.blocks import row_blocks
from daskcoreset.testing import CountingScheduler

if TYPE_CHECKING:
    from daskcoreset.core.blocks import ReadBlock

N_BLOCKS = 20
ROWS = 50
N = N_BLOCKS * ROWS
PARTS = (("X",), ("X", "y"), ("X", "y", "sample_weight"))

Reader = Callable[[Path, tuple[str, ...]], dict[str, Any]]


def rows_of(names: tuple[str, ...]) -> dict[str, Any]:
    rng = np.random.default_rng(0)
    values = {
        "X": rng.normal(size=(N, 3)),
        "y": rng.integers(0, 3, size=N),
        "sample_weight": rng.uniform(0.5, 2.0, size=N),
    }
    return {name: values[name] for name in names}


def zarr_arrays(folder: Path, names: tuple[str, ...]) -> dict[str, Any]:
    opened = {}
    for name, values in rows_of(names).items():
        chunks = (ROWS, *values.shape[1:])
        array = zarr.create_array(
            folder / f"{name}.zarr", shape=values.shape, chunks=chunks, dtype=values.dtype
        )
        array[:] = values
        opened[name] = array
    return opened


def from_zarr(folder: Path, names: tuple[str, ...]) -> dict[str, Any]:
    arrays = zarr_arrays(folder, names)
    return {name: da.from_zarr(array) for name, array in arrays.items()}


def from_array_like(folder: Path, names: tuple[str, ...]) -> dict[str, Any]:
    arrays = zarr_arrays(folder, names)
    return {name: da.from_array(array, chunks=array.chunks) for name, array in arrays.items()}


def from_random(folder: Path, names: tuple[str, ...]) -> dict[str, Any]:
    del folder
    rng = da.random.default_rng(0)
    arrays = {
        "X": rng.normal(size=(N, 3), chunks=(ROWS, 3)),
        "y": rng.integers(0, 3, size=N, chunks=ROWS),
        "sample_weight": rng.uniform(0.5, 2.0, size=N, chunks=ROWS),
    }
    return {name: arrays[name] for name in names}


def from_columns(folder: Path, names: tuple[str, ...]) -> dict[str, Any]:
    arrays = from_zarr(folder, names)
    # Ones are blockwise, so that the concatenation is all that is added to the reads.
    return arrays | {"X": da.concatenate([arrays["X"], da.ones((N, 2), chunks=(ROWS, 2))], axis=1)}


def from_small_chunks(folder: Path, names: tuple[str, ...]) -> dict[str, Any]:
    arrays = from_zarr(folder, names)
    return {name: array.rechunk({0: ROWS // 5}) for name, array in arrays.items()}


def from_slices(folder: Path, names: tuple[str, ...]) -> dict[str, Any]:
    return {name: array[::-1] for name, array in from_zarr(folder, names).items()}


def from_memory(folder: Path, names: tuple[str, ...]) -> dict[str, Any]:
    del folder
    return {name: da.from_array(values, chunks=ROWS) for name, values in rows_of(names).items()}


SELF_READING: dict[str, Reader] = {"zarr": zarr_arrays}
# Their reads are blockwise layers, which Dask fuses with a blockwise leaf.
FUSING: dict[str, Reader] = {"from_zarr": from_zarr, "from_array": from_array_like}
MATERIALISED: dict[str, Reader] = {
    "random": from_random,
    "columns": from_columns,
    "rechunked": from_small_chunks,
    "sliced": from_slices,
    "memory": from_memory,
}
READERS = SELF_READING | FUSING | MATERIALISED


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


def second_moment(rows: ReadBlock, mean: Any) -> float:
    assert rows.block is not None
    return float(((np.asarray(rows.block.points) - mean) ** 2).sum())


def first_moment(rows: ReadBlock, broadcast: Any) -> float:
    del broadcast
    assert rows.block is not None
    return float(np.asarray(rows.block.points).sum())


def total(parts: Sequence[float]) -> float:
    return float(sum(parts))


def mean_of(value: float) -> float:
    return value / (3 * N)


def two_passes(X: Any) -> Lazy[float]:
    blocks = row_blocks(X, chunks=ROWS)
    mean = apply(mean_of, tree_reduce(blocks, first_moment, total))
    return tree_reduce(blocks, second_moment, total, broadcast=mean)


def optimised(value: Lazy[Any]) -> dict[Any, Any]:
    return dict(Alone.optimize(value.__dask_graph__(), value.__dask_keys__()))


def name_of(key: Any) -> str:
    return str(key[0] if isinstance(key, tuple) else key)


def is_leaf(key: Any) -> bool:
    return name_of(key).startswith("coreset-leaf-")


def tree_tasks(n_leaves: int, split_every: int) -> int:
    """Tasks of a tree that merges neighbours until at most `split_every` are left."""
    tasks = 1
    while n_leaves > split_every:
        groups, alone = math.ceil(n_leaves / split_every), n_leaves % split_every == 1
        tasks += groups - alone
        n_leaves = groups
    return tasks


class Watcher(Callback):
    """Notes the order of tasks and the most blocks that the scheduler held at a time."""

    def __init__(self) -> None:
        self.order: list[Any] = []
        self.held = 0
        super().__init__(posttask=self._note)  # type: ignore[no-untyped-call]

    def _note(self, key: Any, result: Any, graph: Any, state: Any, worker: Any) -> None:
        del result, graph, worker
        self.order.append(key)
        blocks = [value for value in state["cache"].values() if isinstance(value, np.ndarray)]
        self.held = max(self.held, len(blocks))


# --- one task per block ------------------------------------------------------------------


@pytest.mark.parametrize("names", PARTS, ids="+".join)
@pytest.mark.parametrize("reader", (SELF_READING | FUSING).values(), ids=SELF_READING | FUSING)
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


def test_optimise__is_left_to_the_user(tmp_path: Path) -> None:
    lazy = tree_reduce(
        row_blocks(**from_random(tmp_path, ("X",)), chunks=ROWS), first_moment, total
    )
    expected = lazy.compute(scheduler="sync")
    with dask.config.set({"optimization.fuse.active": False}):
        assert lazy.n_tasks == 2 * N_BLOCKS + tree_tasks(N_BLOCKS, 16)
        assert lazy.compute(scheduler="sync") == expected


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


@pytest.mark.parametrize("sampling", ["systematic", "multinomial"])
@pytest.mark.parametrize("reads", [1, 2])
@pytest.mark.parametrize("names", PARTS, ids="+".join)
@pytest.mark.parametrize("reader", READERS.values(), ids=READERS)
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


# --- the tree ----------------------------------------------------------------------------


@pytest.mark.parametrize("split_every", [2, 3, 16])
@pytest.mark.parametrize("n_blocks", [1, 2, 3, 4, 9, 10, 16, 17, 33, 257])
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


@pytest.mark.parametrize("split_every", [2, 5, 16])
@pytest.mark.parametrize("n_blocks", [1, 2, 6, 17, 40])
def test_fold_now__has_the_same_tree(n_blocks: int, split_every: int) -> None:
    blocks = row_blocks(np.zeros((n_blocks, 1)), chunks=1)
    lazy = tree_reduce(blocks, block_index, nested, split_every=split_every)
    here = tree_reduce_in_memory(blocks, block_index, nested, split_every=split_every)
    assert here == lazy.compute(scheduler="sync")


def test_fold__tree_stays_below_a_tenth_of_the_tasks() -> None:
    blocks = row_blocks(np.zeros((2000, 1)), chunks=1)
    assert tree_reduce(blocks, block_index, nested).n_tasks <= 1.07 * 2000


# --- the second pass ---------------------------------------------------------------------


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


# --- Lazy as a collection of Dask --------------------------------------------------------


def lazy_sum() -> Lazy[float]:
    return tree_reduce(row_blocks(np.ones((40, 2)), chunks=4), first_moment, total)


def in_words(value: float) -> str:
    return f"sum {value:.0f}"


def with_process(value: float) -> tuple[float, int]:
    warnings.warn("finished", CoresetWarning, stacklevel=1)
    return value, os.getpid()


def test_lazy__computes_with_other_work() -> None:
    lazy, other = lazy_sum(), da.ones(10, chunks=5).sum()
    words, number, plain = dask.compute(lazy.then(in_words), other, lazy, scheduler="sync")
    assert (words, number, plain) == ("sum 80", 10.0, 80.0)


def test_lazy__inside_containers_and_delayed() -> None:
    lazy = lazy_sum().then(in_words)
    assert dask.compute({"a": [lazy]}, scheduler="sync") == ({"a": ["sum 80"]},)
    assert delayed(str.upper)(lazy).compute(scheduler="sync") == "SUM 80"
    assert delayed(len)([lazy, lazy]).compute(scheduler="sync") == 2


@pytest.mark.parametrize("scheduler", ["sync", "threads"])
def test_lazy__persists(scheduler: str) -> None:
    (kept,) = dask.persist(lazy_sum().then(in_words), scheduler=scheduler)
    assert isinstance(kept, Lazy)
    with Watcher() as watcher:
        assert kept.compute(scheduler="sync") == "sum 80"
    assert not any(is_leaf(key) for key in watcher.order)


def test_lazy__optimises_to_an_equal_collection() -> None:
    lazy = lazy_sum().then(in_words)
    better: Any = dask.optimize(lazy)[0]
    assert len(dict(better.__dask_graph__())) == lazy.n_tasks
    assert better.compute(scheduler="sync") == "sum 80"


def test_lazy__rebuilds_under_another_name() -> None:
    lazy = lazy_sum()
    rebuild, extra = lazy.__dask_postpersist__()
    old, new = "coreset-fold-" + name_of(lazy.__dask_keys__()[0]).removeprefix("coreset-fold-"), "z"
    moved = rebuild({(new,): 5.0}, *extra, rename={old: new})
    assert moved.compute(scheduler="sync") == 5.0


def test_lazy__pickles() -> None:
    again = pickle.loads(pickle.dumps(lazy_sum().then(in_words)))
    assert again.compute(scheduler="sync") == "sum 80"


def test_lazy__tokens_differ_between_folds_and_not_between_copies() -> None:
    lazy = lazy_sum()
    assert is_dask_collection(lazy)
    assert tokenize(lazy) == tokenize(pickle.loads(pickle.dumps(lazy)))
    assert tokenize(lazy) != tokenize(lazy_sum())


def test_lazy__adds_no_task_without_a_finish() -> None:
    lazy = lazy_sum()
    with Watcher() as watcher:
        dask.compute(lazy, scheduler="sync")
    assert len(watcher.order) == lazy.n_tasks


def test_compute__finishes_in_the_process_of_the_caller() -> None:
    lazy = lazy_sum().then(with_process)
    with pytest.warns(CoresetWarning, match="finished"):
        value, process = lazy.compute(scheduler="processes", num_workers=1)
    assert (value, process) == (80.0, os.getpid())


def compute_once_more(value: float) -> tuple[float, float, Any]:
    return value, lazy_sum().compute(), dask.config.get("scheduler", None)


@pytest.mark.parametrize("scheduler", ["sync", "threads"])
def test_compute__gives_its_scheduler_to_what_finish_computes(scheduler: str) -> None:
    lazy = lazy_sum().then(compute_once_more)
    assert lazy.compute(scheduler=scheduler) == (80.0, 80.0, scheduler)
    assert dask.config.get("scheduler", None) is None


def test_compute__looks_for_no_client_where_distributed_was_never_imported() -> None:
    code = (
        "import sys, numpy, daskcoreset\n"
        "daskcoreset.build(numpy.eye(9), size=3, chunks=2)\n"
        "assert 'dask.threaded' in sys.modules\n"
        "assert 'distributed' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_compute__obeys_the_setting_of_the_scheduler() -> None:
    counting = CountingScheduler()
    with dask.config.set(scheduler=counting):
        assert lazy_sum().compute() == 80.0
    assert counting.calls == 1


def test_compute__threads_are_the_default_of_a_mixed_compute() -> None:
    assert dask.compute(lazy_sum(), da.ones(3, chunks=1).sum()) == (80.0, 3.0)


# --- nothing runs while a graph is defined -----------------------------------------------


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


@pytest.mark.parametrize("reads", [1, 2])
@pytest.mark.parametrize("make", COLLECTIONS.values(), ids=COLLECTIONS)
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
    assert repr(values) == "_Literals(name='name')"


# --- helpers of progress -----------------------------------------------------------------


def test_leaf_layers__counts_the_blocks_of_every_read(tmp_path: Path) -> None:
    lazy = two_passes(from_zarr(tmp_path, ("X",))["X"])
    assert list(leaf_layers(lazy).values()) == [N_BLOCKS, N_BLOCKS]
    kept: Any = dask.persist(lazy, scheduler="sync")[0]
    assert leaf_layers(kept) == {}


def test_leaf_layers__are_the_names_of_tasks_that_run(tmp_path: Path) -> None:
    for reader in READERS.values():
        (folder := tmp_path / reader.__name__).mkdir()
        lazy = two_passes(reader(folder, ("X",))["X"])
        with Watcher() as watcher:
            lazy.compute(scheduler="sync")
        names = [name_of(key) for key in watcher.order]
        assert {name: names.count(name) for name in leaf_layers(lazy)} == leaf_layers(lazy)


def test_active_client__none_without_a_client() -> None:
    assert active_client() is None


# --- private modules ---------------------------------------------------------------------

PRIVATE = re.compile(r"(^|\.)_[a-z]")


def private_imports(source: str) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    libraries = ("dask", "distributed", "zarr", "numcodecs")
    return {name for name in found if name.split(".")[0] in libraries and PRIVATE.search(name)}


def test_private_modules_of_dask_are_imported_by_the_plumbing_alone() -> None:
    root = Path(daskcoreset.__file__).parent
    users = {
        str(path.relative_to(root)): names
        for path in sorted(root.rglob("*.py"))
        if (names := private_imports(path.read_text(encoding="utf-8")))
    }
    assert set(users) == {"execution/clone.py", "execution/engine.py", "execution/lazy.py"}
    modules = {name.rpartition(".")[0] for names in users.values() for name in names}
    assert modules == {"dask._task_spec"}


def test_private_imports__finds_them_in_every_form() -> None:
    source = "import dask._a\nfrom dask import _b\ndef f():\n    from dask._c import d\nimport dask"
    assert private_imports(source) == {"dask._a", "dask._b", "dask._c.d"}
