"""Copies of Dask arrays for a second read, by tasks of their own.

Two passes that share their reads in one graph make the scheduler hold every block of the
first until the second has used it: the whole array.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from daskcoreset.execution.lazy import Lazy, layer_of

if TYPE_CHECKING:
    from dask.typing import Key

T = TypeVar("T")


def clone_after(arrays: list[Any], broadcast: Any, seed: str) -> list[Any]:
    """Return copies of arrays under fresh keys, none of which is read before `broadcast`.

    Parameters
    ----------
    arrays : list of dask.array.Array
    broadcast : Lazy or object
        What to wait for; the arrays themselves come back when it is not lazy.
    seed : str
        Of the fresh keys: the same arrays and seed give the same keys.

    Returns
    -------
    list of dask.array.Array
        Nothing is computed.
    """
    if not isinstance(broadcast, Lazy) or not arrays:
        return arrays
    from dask.graph_manipulation import checkpoint

    waited_for: Any = checkpoint(broadcast)
    return [_copied_array(array, waited_for, seed) for array in arrays]


def _copied_array(array: Any, waited_for: Any, seed: str) -> Any:
    from dask.base import clone_key
    from dask.highlevelgraph import HighLevelGraph

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
    from dask._task_spec import convert_legacy_graph
    from dask.highlevelgraph import Layer

    keys = graph.get_all_external_keys()
    return {
        name: convert_legacy_graph(dict(layer), all_keys=keys)
        for name, layer in graph.layers.items()
        if type(layer).clone is Layer.clone
    }


def _does_work(nodes: Mapping[Key, Any], layers: Mapping[str, Any]) -> bool:
    from dask._task_spec import Task

    return any(
        isinstance(node, Task) or any(layer_of(need) in layers for need in node.dependencies)
        for node in nodes.values()
    )


def _copied_tasks(
    tasks: Mapping[Key, Any], keys: set[Key], waited_for: str, seed: str
) -> tuple[Any, bool]:
    from dask._task_spec import Alias, Task, TaskRef
    from dask.base import clone_key
    from dask.highlevelgraph import MaterializedLayer

    name_of = functools.cache(functools.partial(clone_key, seed=seed))

    def renamed(key: Any) -> Any:
        return (name_of(key[0]), *key[1:]) if isinstance(key, tuple) else name_of(key)

    copies: dict[Any, Any] = {}
    waits = False
    for key, task in tasks.items():
        inputs = {need: renamed(need) for need in task.dependencies if need in keys}
        new = renamed(key)
        if isinstance(task, Alias):  # `substitute` renames none whose target keeps its name
            copies[new] = Alias(new, inputs.get(task.target, task.target))
        else:
            copies[new] = task.substitute(inputs, key=new)
        if not inputs and isinstance(task, Task):
            waits = True
            copies[new] = Task(new, _after, copies[new], TaskRef(waited_for))
    return MaterializedLayer(copies), waits


def _after(value: T, waited_for: object) -> T:
    del waited_for
    return value
