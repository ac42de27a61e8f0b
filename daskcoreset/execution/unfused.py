"""Layers whose tasks Dask fuses with no others, so that a name always stands for the same task.

Dask names a fused task after its last part. What is fused depends on what is computed with it: a
block that only one value needs is read in the task that works on it, and one that several need in
a task of its own. So one name would stand for two tasks, which a cluster warns of while it holds
one of them. Where Dask is handed our graphs, the work on a block and at a root therefore stay tasks
of their own; only `Alone`, which computes one value, takes the layers as they were.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import TYPE_CHECKING, Any

from dask._task_spec import Task
from dask.highlevelgraph import HighLevelGraph, Layer

if TYPE_CHECKING:
    from dask.typing import Key


class UnfusedTask(Task):
    """A task that stays as it is."""

    __slots__ = ()

    @property
    def block_fusion(self) -> bool:
        """Whether Dask fuses it with no other."""
        return True


class UnfusedLayer(Layer):
    """The tasks of another layer, which stay as they are.

    Parameters
    ----------
    layer : Layer
        Of tasks, such as a blockwise one; made where they are scheduled, as it makes them.
    """

    has_legacy_tasks = False

    def __init__(self, layer: Any) -> None:
        super().__init__(annotations=layer.annotations)
        self.layer = layer

    @cached_property
    def _tasks(self) -> dict[Key, Any]:
        return {key: _unfused(task) for key, task in dict(self.layer).items()}

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_tasks"}

    def __getitem__(self, key: Key) -> Any:
        return self._tasks[key]

    def __iter__(self) -> Iterator[Key]:
        return iter(self.layer)

    def __len__(self) -> int:
        return len(self.layer)

    def is_materialized(self) -> bool:
        """Whether the tasks are there."""
        return "_tasks" in vars(self)

    def get_output_keys(self) -> set[Key]:
        """Return the keys that other layers use."""
        keys: set[Key] = self.layer.get_output_keys()
        return keys


def _unfused(task: Task) -> UnfusedTask:
    data_producer = task.data_producer
    return UnfusedTask(task.key, task.func, *task.args, _data_producer=data_producer, **task.kwargs)


def unfused(graph: HighLevelGraph, name: str) -> HighLevelGraph:
    """Return a graph, one layer of which is an `UnfusedLayer`.

    Examples
    --------
    >>> import dask.array as da
    >>> ones = da.ones((4, 2), chunks=2) + 1
    >>> graph = unfused(ones.dask, ones.name)
    >>> type(graph.layers[ones.name]).__name__, type(fusible(graph).layers[ones.name]).__name__
    ('UnfusedLayer', 'Blockwise')
    """
    layers = {**graph.layers, name: UnfusedLayer(graph.layers[name])}
    return HighLevelGraph(layers, graph.dependencies)


def fusible(graph: Any) -> Any:
    """Return a graph with all layers as they were before `unfused`."""
    if not isinstance(graph, HighLevelGraph):
        return graph
    layers = {
        name: layer.layer if isinstance(layer, UnfusedLayer) else layer
        for name, layer in graph.layers.items()
    }
    return HighLevelGraph(layers, graph.dependencies)
