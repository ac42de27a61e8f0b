"""All Dask plumbing: one fold over row blocks, as a graph of one task per block and a tree.

A leaf reads its block, brings it to form and hands it to a function of plain NumPy. Leaves
are merged by a tree reduction whose shape depends only on the number of blocks and
`split_every`, in the order of the blocks: which worker finishes first changes nothing.

Facts of Dask that this module rests on, pinned by its tests: a `blockwise` call whose
output is one object per block fuses with the read of a Dask array, so a block costs one
task; `ArrayValuesDep` hands every block its own literal; a second pass in the same graph
must read through keys of its own, or the scheduler keeps every block of the first;
and what ``__dask_postcompute__`` returns runs as a task, on a worker of a cluster.
"""

from __future__ import annotations

import functools
import itertools
import sys
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import numpy as np

from daskcoreset.blocks import BlockRows, Rules, rows_from
from daskcoreset.errors import InvalidInputError

if TYPE_CHECKING:
    from dask.typing import Key

    from daskcoreset.blocks import Block, Problem
    from daskcoreset.inputs import BlockSpec, RowBlocks

__all__ = ["Lazy", "active_client", "apply", "fold", "fold_now", "leaf_layers", "map_rows"]

T = TypeVar("T")
U = TypeVar("U")

_OURS = "coreset-"
_LEAF = f"{_OURS}leaf-"

Leaf = Callable[[BlockRows, int, Any], T]
"""``leaf(rows, number, given)``: the work on one block; `given` comes from an earlier fold."""

Combine = Callable[[Sequence[T]], T]
"""``combine(parts)``: merges neighbouring results, in the order of the blocks."""


class Lazy(Generic[T]):
    """A value that a Dask graph will produce: a collection of one key.

    Parameters
    ----------
    graph : HighLevelGraph
    key : hashable
        The key of the value.
    finish : callable, optional
        Applied to the value once it is there. `compute` does so on the side of the caller;
        where Dask collects the value (``dask.compute``, ``delayed``) it runs as one more task.
    """

    def __init__(self, graph: Any, key: Key, finish: Callable[[Any], T] | None = None) -> None:
        self._graph = graph
        self._key = key
        self._finish = finish
        # Of one key there are as many values as ways to finish; functions have no sure token.
        self._token: Key = key if finish is None else uuid.uuid4().hex

    def __dask_graph__(self) -> Any:
        return self._graph

    def __dask_keys__(self) -> list[Key]:
        return [self._key]

    def __dask_layers__(self) -> tuple[str, ...]:
        return (_layer_of(self._key),)

    def __dask_tokenize__(self) -> Key:
        return self._token

    @property
    def __dask_optimize__(self) -> Callable[..., Any]:
        # The very function of arrays: where a compute mixes several, Dask optimises by kind and
        # returns the results by kind too, whatever the order in which they were asked for.
        import dask.array as da  # noqa: PLC0415 - slow to import

        return da.Array.__dask_optimize__  # type: ignore[no-any-return]

    @property
    def __dask_scheduler__(self) -> Callable[..., Any]:
        # Again that of arrays itself: Dask refuses to mix collections of different schedulers.
        import dask.threaded  # noqa: PLC0415

        return dask.threaded.get

    def __dask_postcompute__(self) -> tuple[Callable[..., T], tuple[Any, ...]]:
        if self._finish is None:
            from dask.delayed import single_key  # noqa: PLC0415

            return single_key, ()  # as a Delayed does: Dask adds no task for it
        return _finished, (self._finish,)

    def __dask_postpersist__(self) -> tuple[Callable[..., Lazy[T]], tuple[Any, ...]]:
        return _rebuild, (self._key, self._finish)

    def then(self, finish: Callable[[T], U]) -> Lazy[U]:
        """Return the same value, with `finish` applied once it is there."""
        return Lazy(self._graph, self._key, finish)

    def compute(self, **options: Any) -> T:
        """Compute the value on the active client or on threads, or as `options` say.

        Parameters
        ----------
        **options
            As ``dask.compute`` takes them, for example ``scheduler="processes"``.
        """
        import dask  # noqa: PLC0415

        value: Any
        with _free_worker(), dask.config.set(_choice_of_scheduler(options)):
            (value,) = dask.compute(_Alone(self._graph, self._key), **options)
            # Here, and under the same choice: what it warns about must reach the caller, and
            # blocks that it reads again must not wait for the worker that it would occupy.
            return value if self._finish is None else self._finish(value)

    def as_array(self) -> Any:
        """Return the value as a 0-d object array, the form in which `blockwise` takes it."""
        import dask.array as da  # noqa: PLC0415

        return da.Array(self._graph, _layer_of(self._key), (), meta=np.empty((), dtype=object))

    @property
    def n_tasks(self) -> int:
        """Number of tasks that `compute` runs."""
        from dask._task_spec import DataNode  # noqa: PLC0415

        graph = _Alone.optimize(self._graph, [self._key])
        return sum(not isinstance(node, DataNode) for node in graph.values())


class _Alone(Lazy[T]):
    """A lazy value that is computed on its own, so that its graph may be tidied further."""

    @property
    def __dask_optimize__(self) -> Callable[..., Any]:
        return self.optimize

    @staticmethod
    def optimize(graph: Any, keys: Any, **_: Any) -> Any:
        """Fuse as arrays do, without what that leaves behind."""
        import dask.array as da  # noqa: PLC0415

        return _named_as_asked(da.Array.__dask_optimize__(graph, keys))


def _finished(results: Sequence[Any], finish: Callable[[Any], T]) -> T:
    with _free_worker():
        return finish(results[0])


def _choice_of_scheduler(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings by which computes inside `finish` run where the outer one ran."""
    import dask  # noqa: PLC0415

    chosen = {
        name: options[name] for name in ("scheduler", "num_workers", "pool") if name in options
    }
    if not chosen and not dask.config.get("scheduler", None) and "distributed" not in sys.modules:
        # Without a choice Dask imports distributed, half a second, to look for a client.
        chosen["scheduler"] = "threads"
    return chosen


def _free_worker() -> AbstractContextManager[Any]:
    """Leave the thread pool of a worker while a task of it waits for other tasks.

    A worker of one thread that computed in a task would otherwise wait for itself.
    """
    distributed = sys.modules.get("distributed")
    if distributed is None:
        return nullcontext()
    try:
        distributed.get_worker()
    except ValueError:  # not in a task of a worker
        return nullcontext()
    return distributed.worker_client()  # type: ignore[no-any-return]


def _named_as_asked(graph: Any) -> Any:
    """Give fused tasks the name of their last part, in place of an alias beside each.

    Fusion of tasks that are not blockwise (`da.random`) renames them and leaves an alias
    under the old name: a second task for every block.
    """
    from dask._task_spec import Alias  # noqa: PLC0415
    from dask.highlevelgraph import HighLevelGraph  # noqa: PLC0415

    if isinstance(graph, HighLevelGraph):  # fusion is switched off
        return graph
    for key, node in list(graph.items()):
        if isinstance(node, Alias) and _layer_of(key).startswith(_OURS):
            graph[key] = graph.pop(node.target).substitute({}, key=key)
    return graph


def _rebuild(graph: Any, key: Any, finish: Any, *, rename: Any = None) -> Lazy[Any]:
    from dask.highlevelgraph import HighLevelGraph  # noqa: PLC0415

    if rename:
        from dask.base import replace_name_in_key  # noqa: PLC0415

        key = replace_name_in_key(key, rename)
    if not isinstance(graph, HighLevelGraph):
        graph = HighLevelGraph.from_collections(_layer_of(key), graph)
    return Lazy(graph, key, finish)


def _layer_of(key: Key) -> str:
    return str(key[0]) if isinstance(key, tuple) else str(key)


@dataclass(frozen=True)
class _LeafTask(Generic[T]):
    """The task of one block; picklable, with a deterministic token."""

    leaf: Leaf[T]
    rules: Rules
    names: tuple[str, ...]  # the parts that arrive as Dask blocks, in this order

    def __call__(self, spec: BlockSpec, given: Any, *arrays: Any) -> T:
        blocks: dict[str, Any] = dict(zip(self.names, arrays, strict=True))
        return self.leaf(read_block(spec, blocks, self.rules), spec.number, given)


def read_block(spec: BlockSpec, blocks: Mapping[str, Any], rules: Rules) -> BlockRows:
    """Read the parts of a block that are not there yet, and bring all to form."""
    X, y, sample_weight = (
        blocks.get(name) if loader is None else loader()
        for name, loader in (("X", spec.X), ("y", spec.y), ("sample_weight", spec.sample_weight))
    )
    return rows_from(X, y, sample_weight, rules)


def fold(
    blocks: RowBlocks,
    leaf: Leaf[T],
    combine: Combine[T],
    *,
    given: Any = None,
    split_every: int = 16,
) -> Lazy[T]:
    """Define one read of the data: `leaf` on every block, merged by a tree of `combine`.

    Parameters
    ----------
    blocks : RowBlocks
    leaf : callable
        ``leaf(rows, number, given) -> T``. Picklable, with a deterministic token.
    combine : callable
        ``combine(parts) -> T`` for two or more neighbouring parts, in order.
    given : Lazy or object, optional
        Result of an earlier fold that every leaf needs; when it is lazy, no block is read
        before it is there.
    split_every : int, default=16
        Parts merged by one task. Sixteen keeps the tree under 7 % of the tasks and its
        depth at four for 65,536 blocks.

    Returns
    -------
    Lazy
        Nothing is computed.
    """
    import dask.array as da  # noqa: PLC0415
    from dask.highlevelgraph import HighLevelGraph  # noqa: PLC0415
    from dask.layers import ArrayValuesDep  # noqa: PLC0415

    names = tuple(blocks.arrays)
    token = uuid.uuid4().hex  # of a name, never of a result: hashing every spec would cost more
    arrays = _read_after(list(blocks.arrays.values()), given, token)
    pair = (given.as_array(), "") if isinstance(given, Lazy) else (given, None)
    task = _LeafTask(leaf, blocks.rules, names)
    values: Any = _Literals(token, blocks.specs)
    specs = ArrayValuesDep(((1,) * blocks.n_blocks,), values)
    pairs: list[Any] = [specs, "i", *pair]
    for array in arrays:
        pairs += [array, "ij" if array.ndim == 2 else "i"]
    two_dimensional = any(array.ndim == 2 for array in arrays)
    # The second axis has one block: kept, for a contracted index would not fuse.
    leaves = da.blockwise(
        task,
        "ij" if two_dimensional else "i",
        *pairs,
        name=f"{_LEAF}{token}",
        adjust_chunks={"i": 1, "j": 1} if two_dimensional else {"i": 1},
        align_arrays=False,
        concatenate=False,
        meta=np.empty((0, 0) if two_dimensional else (0,), dtype=object),
    )
    name = f"coreset-fold-{token}"
    tail = (0,) if two_dimensional else ()
    keys: list[Key] = [(leaves.name, i, *tail) for i in range(blocks.n_blocks)]
    layer, root = _tree(name, keys, combine, split_every)
    return Lazy(HighLevelGraph.from_collections(name, layer, dependencies=[leaves]), root)


@dataclass(frozen=True, eq=False)
class _Literals:
    """Per-block literals, addressed as Dask addresses the values of an array."""

    name: str
    # Dask hashes what `repr` returns: with the values in it, every block would be printed,
    # at ten times the cost of the rest of the graph.
    values: tuple[Any, ...] = field(repr=False)

    def __getitem__(self, index: tuple[int, ...]) -> Any:
        return self.values[index[0]]


def _read_after(arrays: list[Any], given: Any, seed: str) -> list[Any]:
    """Return copies of the arrays under fresh keys, none of which is read before `given`.

    Sharing the reads of the pass before would hold the whole array until this one.
    """
    if not isinstance(given, Lazy) or not arrays:
        return arrays
    from dask.graph_manipulation import checkpoint  # noqa: PLC0415

    waited_for: Any = checkpoint(given)
    return [_copied_array(array, waited_for, seed) for array in arrays]


def _copied_array(array: Any, waited_for: Any, seed: str) -> Any:
    from dask.base import clone_key  # noqa: PLC0415
    from dask.highlevelgraph import HighLevelGraph  # noqa: PLC0415

    graph = array.__dask_graph__()
    tasks = _plain_tasks(graph)
    # What is in memory anyway need not be copied. Nor must it wait: the tasks that need it
    # would all become ready at one time, and Dask would run them before those that use them.
    kept = {name for name, nodes in tasks.items() if not _does_work(nodes, graph.layers)}
    if array.name in kept:
        return array
    keys = {
        key
        for name, layer in graph.layers.items()
        if name not in kept
        for key in tasks.get(name) or layer.get_output_keys()
    }
    layers = dict(waited_for.__dask_graph__().layers)
    needs = dict(waited_for.__dask_graph__().dependencies)
    for name, layer in graph.layers.items():
        if name in kept:
            layers[name], needs[name] = layer, graph.dependencies[name]
            continue
        # `bind` of Dask would do, were it not for layers of plain tasks: it renames them and
        # leaves them with the inputs of the originals, so that two passes share their reads.
        if name in tasks:
            copy, waits = _copied_tasks(tasks[name], keys, waited_for.key, seed)
        else:
            copy, waits = layer.clone(keys=keys, seed=seed, bind_to=waited_for.key)
        new = clone_key(name, seed)
        layers[new] = copy
        needs[new] = {
            need if need in kept else clone_key(need, seed) for need in graph.dependencies[name]
        }
        if waits:
            needs[new].add(waited_for.key)
    rebuild, extra = array.__dask_postpersist__()
    new_name = clone_key(array.name, seed)
    return rebuild(HighLevelGraph(layers, needs), *extra, rename={array.name: new_name})


def _plain_tasks(graph: Any) -> dict[str, dict[Key, Any]]:
    """Return the tasks of all layers that are no more than a mapping of them."""
    from dask._task_spec import convert_legacy_graph  # noqa: PLC0415
    from dask.highlevelgraph import Layer  # noqa: PLC0415

    keys = graph.get_all_external_keys()
    return {
        name: convert_legacy_graph(dict(layer), all_keys=keys)
        for name, layer in graph.layers.items()
        if type(layer).clone is Layer.clone
    }


def _does_work(nodes: Mapping[Key, Any], layers: Mapping[str, Any]) -> bool:
    from dask._task_spec import Task  # noqa: PLC0415

    return any(
        isinstance(node, Task) or any(_layer_of(need) in layers for need in node.dependencies)
        for node in nodes.values()
    )


def _copied_tasks(
    tasks: Mapping[Key, Any], keys: set[Key], waited_for: str, seed: str
) -> tuple[Any, bool]:
    from dask._task_spec import Task, TaskRef  # noqa: PLC0415
    from dask.base import clone_key  # noqa: PLC0415
    from dask.highlevelgraph import MaterializedLayer  # noqa: PLC0415

    name_of = functools.cache(functools.partial(clone_key, seed=seed))

    def renamed(key: Any) -> Any:
        return (name_of(key[0]), *key[1:]) if isinstance(key, tuple) else name_of(key)

    copies: dict[Any, Any] = {}
    waits = False
    for key, task in tasks.items():
        inputs = {need: renamed(need) for need in task.dependencies if need in keys}
        new = renamed(key)
        copies[new] = task.substitute(inputs, key=new)
        if not inputs and isinstance(task, Task):
            waits = True
            copies[new] = Task(new, _after, copies[new], TaskRef(waited_for))
    return MaterializedLayer(copies), waits


def _after(value: T, waited_for: object) -> T:
    del waited_for
    return value


def _tree(
    name: str, keys: list[Key], combine: Combine[Any], split_every: int
) -> tuple[dict[Key, Any], Key]:
    from dask._task_spec import List, Task, TaskRef  # noqa: PLC0415

    layer: dict[Key, Any] = {}

    def merged(key: Key, group: Sequence[Key]) -> Key:
        layer[key] = Task(key, combine, List(*(TaskRef(part) for part in group)))
        return key

    level = 0
    while len(keys) > split_every:
        level += 1
        keys = [
            group[0] if len(group) == 1 else merged((name, level, number), group)
            for number, group in enumerate(_groups(keys, split_every))
        ]
    return layer, merged((name,), keys)


def apply(function: Callable[..., T], *values: Lazy[Any]) -> Lazy[T]:
    """Define ``function(*values)`` as one task at the root."""
    from dask._task_spec import Task, TaskRef  # noqa: PLC0415
    from dask.highlevelgraph import HighLevelGraph  # noqa: PLC0415

    name = f"coreset-root-{uuid.uuid4().hex}"
    key = (name,)
    task = Task(key, function, *(TaskRef(value.__dask_keys__()[0]) for value in values))
    above: Any = values
    graph = HighLevelGraph.from_collections(name, {key: task}, dependencies=above)
    return Lazy(graph, key)


def fold_now(
    blocks: RowBlocks,
    leaf: Leaf[T],
    combine: Combine[T],
    *,
    given: Any = None,
    split_every: int = 16,
) -> T:
    """Run a fold over blocks in memory here and now, without a scheduler.

    Same leaves, same tree, same bits as `fold`; for data that no graph is worth.
    """
    parts: list[T] = [
        leaf(read_block(spec, {}, blocks.rules), spec.number, given) for spec in blocks.specs
    ]
    while len(parts) > split_every:
        parts = [
            group[0] if len(group) == 1 else combine(group) for group in _groups(parts, split_every)
        ]
    return combine(parts)


def _groups(parts: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    for start in range(0, len(parts), size):
        yield parts[start : start + size]


@dataclass(frozen=True)
class _Placed:
    """A block and the number of its first row; None where Dask does not know it."""

    spec: BlockSpec
    start: int | None

    def error(self, problem: Problem) -> InvalidInputError:
        """Return the error, with the row counted as far from the start as is known."""
        if self.start is not None:
            return problem.error(self.start)
        place = "" if problem.row is None else f" at row {problem.row} of block {self.spec.number}"
        return InvalidInputError(problem.message.format(row=place))


@dataclass(frozen=True)
class _RowTask:
    """The task of one block of `map_rows`; picklable, with a deterministic token."""

    function: Callable[[Block], Any]
    rules: Rules
    names: tuple[str, ...]

    def __call__(self, placed: _Placed, *arrays: Any) -> Any:
        # Of an axis that the result has not, Dask hands over the list of its blocks: one.
        parts = (part[0] if isinstance(part, list) else part for part in arrays)
        rows = read_block(placed.spec, dict(zip(self.names, parts, strict=True)), self.rules)
        if rows.problem is not None:
            raise placed.error(rows.problem)
        return self.function(rows.block)  # type: ignore[arg-type] # there is one without a problem


def map_rows(
    blocks: RowBlocks, function: Callable[[Block], Any], *, dtype: Any, columns: int | None = None
) -> Any:
    """Define `function` of every block, as a Dask array with a row for every row of the data.

    Parameters
    ----------
    blocks : RowBlocks
        Rows that no cost can be given to are an error when their block runs, whatever the
        rules say: a row left out would leave the result shorter than the data.
    function : callable
        ``function(block)`` gives an array of as many rows as the block. Picklable, with a
        deterministic token.
    dtype : dtype
        What `function` returns.
    columns : int or None, default=None
        Columns of what `function` returns; None for a vector.

    Returns
    -------
    dask.array.Array of shape (n,) or (n, columns)
        One task a block, fused with its read; the chunks are the blocks', of unknown sizes
        where theirs are. Nothing is computed.
    """
    import dask.array as da  # noqa: PLC0415
    from dask.layers import ArrayValuesDep  # noqa: PLC0415

    token = uuid.uuid4().hex
    sizes = blocks.sizes or (np.nan,) * blocks.n_blocks
    starts: Any = itertools.repeat(None)
    if blocks.sizes is not None:
        starts = itertools.accumulate(blocks.sizes, initial=0)
    values: Any = _Literals(token, tuple(map(_Placed, blocks.specs, starts)))
    pairs: list[Any] = [ArrayValuesDep(((1,) * blocks.n_blocks,), values), "i"]
    for array in blocks.arrays.values():
        pairs += [array, "ij" if array.ndim == 2 else "i"]
    two_dimensional = any(array.ndim == 2 for array in blocks.arrays.values())
    new_axes, chunks = {}, {"i": sizes}
    if columns is not None and two_dimensional:
        chunks["j"] = (columns,)
    elif columns is not None:
        new_axes["j"] = columns
    return da.blockwise(
        _RowTask(function, replace(blocks.rules, on_invalid="raise"), tuple(blocks.arrays)),
        "i" if columns is None else "ij",
        *pairs,
        name=f"{_OURS}rows-{token}",
        new_axes=new_axes,
        adjust_chunks=chunks,
        align_arrays=False,
        concatenate=False,
        meta=np.empty((0,) if columns is None else (0, 0), dtype=dtype),
    )


def leaf_layers(value: Lazy[Any]) -> dict[str, int]:
    """Return the number of blocks in every fold of a graph, by the name of its leaf tasks."""
    return {
        name: len(layer.get_output_keys())
        for name, layer in value.__dask_graph__().layers.items()
        if name.startswith(_LEAF)
    }


def active_client() -> Any:
    """Return the distributed client that computes would use, or None."""
    distributed = sys.modules.get("distributed")
    if distributed is None:  # never imported, so there is no client
        return None
    try:
        return distributed.get_client()
    except ValueError:
        return None
