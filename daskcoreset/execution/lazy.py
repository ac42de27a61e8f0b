"""A value that a Dask graph will produce, as a Dask collection."""

from __future__ import annotations

import sys
import uuid
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import numpy as np

from daskcoreset.core.tables import counted, html_table
from daskcoreset.execution.waiting import compute_all, in_worker

if TYPE_CHECKING:
    from dask.typing import Key

T = TypeVar("T")
U = TypeVar("U")

# The names of all our layers start so.
OURS = "coreset-"

# The names of layers whose tasks read blocks start so.
LEAF = f"{OURS}leaf-"


class Lazy(Generic[T]):
    """A value that a Dask graph will produce: a collection of one key.

    Parameters
    ----------
    graph : HighLevelGraph
    key : hashable
        The key of the value.
    finish : callable, optional
        Applied to the value once it is there. `compute` does so on the side of the caller.
        If Dask collects the value (``dask.compute``, ``delayed``) it runs as one more task.
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
        return (layer_of(self._key),)

    def __dask_tokenize__(self) -> Key:
        return self._token

    @property
    def __dask_optimize__(self) -> Callable[..., Any]:
        # The very function of arrays: where a compute mixes several, Dask optimises by kind and
        # returns the results by kind too, whatever the order in which they were asked for.
        from dask.array.core import Array

        return Array.__dask_optimize__  # type: ignore[no-any-return]

    @property
    def __dask_scheduler__(self) -> Callable[..., Any]:
        # Again that of arrays itself: Dask refuses to mix collections of different schedulers.
        import dask.threaded

        return dask.threaded.get

    def __dask_postcompute__(self) -> tuple[Callable[..., T], tuple[Any, ...]]:
        if self._finish is None:
            from dask.delayed import single_key

            return single_key, ()  # as a Delayed does: Dask adds no task for it
        return _finished, (self._finish,)

    def __dask_postpersist__(self) -> tuple[Callable[..., Lazy[T]], tuple[Any, ...]]:
        return _rebuild, (self._key, self._finish)

    def then(self, finish: Callable[[T], U]) -> Lazy[U]:
        """Return the same value, with `finish` applied once it is there, after what was before."""
        before: Any = self._finish
        after = finish if before is None else partial(_one_after_other, before, finish)
        return Lazy(self._graph, self._key, after)

    def compute(self, **options: Any) -> T:
        """Compute the value on the active client or on threads, or as `options` define.

        Parameters
        ----------
        **options
            As ``dask.compute`` takes them, for example ``scheduler="processes"``.

        Raises
        ------
        OutOfTimeError
            If a time limit has passed.
        ClusterError
            If a cluster has lost the work.
        """
        import dask

        value: Any
        with _free_worker(), dask.config.set(_choice_of_scheduler(options)):
            (value,) = compute_all(Lazy(self._graph, self._key), **options)
            # Here, and under the same choice: what it warns about must reach the caller, and
            # blocks that it reads again must not wait for the worker that it would occupy.
            return value if self._finish is None else self._finish(value)

    def as_array(self) -> Any:
        """Return the value as a 0-d object array, the form in which `blockwise` takes it."""
        from dask.array.core import Array

        return Array(self._graph, layer_of(self._key), (), meta=np.empty((), dtype=object))

    def __repr__(self) -> str:
        blocks = counted(sum(leaf_layers(self).values()), "block")
        return f"{type(self).__name__}({blocks} to read; compute() gives the value)"

    def _repr_html_(self) -> str:
        n_blocks = sum(leaf_layers(self).values())
        facts = [
            ("tasks", f"{self.n_tasks:,}"),
            ("blocks to read", f"{n_blocks:,}"),
            ("value", "not computed; call compute(), or dask.compute with others"),
        ]
        return html_table(facts, caption=type(self).__name__)

    @property
    def n_tasks(self) -> int:
        """Number of tasks that `compute` runs."""
        from dask._task_spec import DataNode

        graph = self.__dask_optimize__(self._graph, [self._key])
        return sum(not isinstance(node, DataNode) for node in graph.values())


def _one_after_other(first: Callable[[Any], Any], second: Callable[[Any], U], value: Any) -> U:
    return second(first(value))


def _finished(results: Sequence[Any], finish: Callable[[Any], T]) -> T:
    with _free_worker():
        return finish(results[0])


def _choice_of_scheduler(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings by which computes inside `finish` run where the outer one ran."""
    return {name: options[name] for name in ("scheduler", "num_workers", "pool") if name in options}


def _free_worker() -> AbstractContextManager[Any]:
    """Leave the thread pool of a worker while a task of it waits for other tasks.

    A worker of one thread that computed in a task would otherwise wait for itself.
    """
    if not in_worker():
        return nullcontext()
    return sys.modules["distributed"].worker_client()  # type: ignore[no-any-return]


def _rebuild(graph: Any, key: Any, finish: Any, *, rename: Any = None) -> Lazy[Any]:
    from dask.highlevelgraph import HighLevelGraph

    if rename:
        from dask.base import replace_name_in_key

        key = replace_name_in_key(key, rename)
    if not isinstance(graph, HighLevelGraph):
        graph = HighLevelGraph.from_collections(layer_of(key), graph)
    return Lazy(graph, key, finish)


def layer_of(key: Key) -> str:
    """Return the name of the layer that a key belongs to."""
    return str(key[0]) if isinstance(key, tuple) else str(key)


def active_client() -> Any:
    """Return the distributed client that computes would use, or None."""
    distributed = sys.modules.get("distributed")
    if distributed is None:  # never imported, so there is no client
        return None
    try:
        return distributed.get_client()
    except ValueError:
        return None


def leaf_layers(value: Lazy[Any]) -> dict[str, int]:
    """Return the number of blocks in every read of a graph, by the name of its leaf tasks."""
    return {
        name: len(layer.get_output_keys())
        for name, layer in value.__dask_graph__().layers.items()
        if name.startswith(LEAF)
    }
