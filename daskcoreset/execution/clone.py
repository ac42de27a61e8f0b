"""Copies of Dask arrays for a second pass, by separate tasks.

Two passes that share their reads in one graph make the scheduler hold every block of the
first until the second has used it: the whole array.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from dask.highlevelgraph import HighLevelGraph, Layer, MaterializedLayer

from daskcoreset.execution.lazy import Lazy

if TYPE_CHECKING:
    from dask.typing import Key

T = TypeVar("T")


def clone_after(arrays: list[Any], broadcast: Any, seed: str) -> list[Any]:
    """Return copies of arrays under fresh keys, not read before `broadcast`.

    Parameters
    ----------
    arrays : list of dask.array.Array
    broadcast : Lazy or object
        The value to wait for. The arrays themselves come back when it is not lazy.
    seed : str
        Seed of the fresh keys: the same arrays and seed give the same keys.

    Returns
    -------
    list of dask.array.Array
        Nothing is computed.
    """
    if not isinstance(broadcast, Lazy) or not arrays:
        return arrays
    from dask.graph_manipulation import checkpoint

    waited_for: Any = checkpoint(broadcast)
    return [_copied(array, waited_for, seed) for array in arrays]


def _copied(array: Any, waited_for: Any, seed: str) -> Any:
    from dask._task_spec import convert_legacy_graph
    from dask.base import clone_key

    graph = array.__dask_graph__()
    keys = graph.get_all_external_keys()
    plain = {
        name: convert_legacy_graph(dict(layer), all_keys=keys)
        for name, layer in graph.layers.items()
        if type(layer).clone is Layer.clone
    }
    # What is in memory anyway need not be copied. Nor must it wait: the tasks that need it
    # would all become ready at one time, and Dask would run them before those that use them.
    kept = {name for name, tasks in plain.items() if not _does_work(tasks, graph.layers)}
    if array.name in kept:
        return array
    keys = keys.difference(*(plain[name] for name in kept))
    layers = dict(waited_for.__dask_graph__().layers)
    needs = dict(waited_for.__dask_graph__().dependencies)
    for name, layer in graph.layers.items():
        if name in kept:
            layers[name], needs[name] = layer, graph.dependencies[name]
            continue
        new, source = clone_key(name, seed), _PlainTasks(plain[name]) if name in plain else layer
        layers[new], waits = source.clone(keys=keys, seed=seed, bind_to=waited_for.key)
        needs[new] = {n if n in kept else clone_key(n, seed) for n in graph.dependencies[name]}
        if waits:
            needs[new].add(waited_for.key)
    rebuild, extra = array.__dask_postpersist__()
    rename = {array.name: clone_key(array.name, seed)}
    return rebuild(HighLevelGraph(layers, needs), *extra, rename=rename)


def _layer_of(key: Key) -> str:
    return str(key[0]) if isinstance(key, tuple) else str(key)


def _does_work(tasks: Mapping[Key, Any], layers: Mapping[str, Any]) -> bool:
    from dask._task_spec import Task

    return any(
        isinstance(node, Task) or any(_layer_of(need) in layers for need in node.dependencies)
        for node in tasks.values()
    )


class _PlainTasks(MaterializedLayer):
    """A mapping of tasks, whose copies name the copies of their inputs.

    `Layer.clone` leaves them with the inputs of the originals, so that two passes share reads.
    """

    def clone(self, keys: set[Key], seed: Any, bind_to: Key | None = None) -> tuple[Layer, bool]:
        """Return the tasks under fresh keys, and whether some wait for `bind_to`."""
        from dask._task_spec import Alias, Task, TaskRef
        from dask.base import clone_key

        fresh = functools.cache(functools.partial(clone_key, seed=seed))

        def renamed(key: Any) -> Any:
            return (fresh(key[0]), *key[1:]) if isinstance(key, tuple) else fresh(key)

        copies: dict[Key, Any] = {}
        waits = False
        for key, task in self.mapping.items():
            inputs = {need: renamed(need) for need in task.dependencies if need in keys}
            new = renamed(key)
            if isinstance(task, Alias):  # `substitute` renames none whose target keeps its name
                copies[new] = Alias(new, inputs.get(task.target, task.target))
            else:
                copies[new] = task.substitute(inputs, key=new)
            if bind_to is not None and not inputs and isinstance(task, Task):
                waits = True
                copies[new] = Task(new, _after, copies[new], TaskRef(bind_to))
        return MaterializedLayer(copies), waits


def _after(value: T, waited_for: object) -> T:
    del waited_for
    return value
