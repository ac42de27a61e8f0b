"""A value that a Dask graph will produce, as a Dask collection."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import numpy as np

from daskcoreset.execution.timeout import compute_all

if TYPE_CHECKING:
    from dask.typing import Key

T = TypeVar("T")
U = TypeVar("U")

# The names of all our layers start so.
OURS = "coreset-"

# The names of layers whose tasks read blocks start so.
LEAF = f"{OURS}leaf-"


class Lazy(Generic[T]):
    """A value that a Dask graph will produce: a collection of one key, ``(layer, ...)``.

    Functions of `finish` are applied to the value, one after another. `compute` calls them on the
    side of the caller. If Dask collects the value (``dask.compute``) they run as one more task.
    """

    def __init__(self, graph: Any, key: Any, *finish: Callable[[Any], Any]) -> None:
        self._graph, self._key, self._finish = graph, key, finish
        self._token = uuid.uuid4().hex  # functions have no sure one

    def __dask_graph__(self) -> Any:
        return self._graph

    def __dask_keys__(self) -> list[Key]:
        return [self._key]

    def __dask_layers__(self) -> tuple[str, ...]:
        return (self._key[0],)

    def __dask_tokenize__(self) -> str:
        return self._token

    @property
    def __dask_optimize__(self) -> Callable[..., Any]:
        # The very function of arrays: if a compute mixes several, Dask optimises by kind and
        # returns the results by kind too, whatever the order in which they were asked for.
        from dask.array.core import Array

        return Array.__dask_optimize__  # type: ignore[no-any-return]

    @property
    def __dask_scheduler__(self) -> Callable[..., Any]:
        # That of arrays: Dask refuses to mix collections of different schedulers.
        import dask.threaded

        return dask.threaded.get

    def __dask_postcompute__(self) -> tuple[Callable[..., T], tuple[Any, ...]]:
        if not self._finish:
            from dask.delayed import single_key

            return single_key, ()  # as a Delayed does: Dask adds no task for it
        return _finished, self._finish

    def __dask_postpersist__(self) -> tuple[Callable[..., Lazy[T]], tuple[Any, ...]]:
        return _rebuild, (self._key, *self._finish)

    def then(self, finish: Callable[[T], U]) -> Lazy[U]:
        """Return the same value, with `finish` applied once it is there, after what was before."""
        return Lazy(self._graph, self._key, *self._finish, finish)

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

        where = {name: options[name] for name in ("scheduler", "num_workers") if name in options}
        with dask.config.set(where):  # for blocks that `finish` reads again
            results = compute_all(Lazy(self._graph, self._key), **options)
            value: T = _finished(results, *self._finish)
            return value

    def as_array(self) -> Any:
        """Return the value as a 0-d object array, the form in which `blockwise` takes it."""
        from dask.array.core import Array

        return Array(self._graph, self._key[0], (), meta=np.empty((), dtype=object))


def _finished(results: Sequence[Any], *finish: Callable[[Any], Any]) -> Any:
    (value,) = results
    for function in finish:
        value = function(value)
    return value


def _rebuild(graph: Any, key: Any, *finish: Callable[[Any], Any], rename: Any = None) -> Lazy[Any]:
    from dask.base import replace_name_in_key
    from dask.highlevelgraph import HighLevelGraph

    key = replace_name_in_key(key, rename or {})
    if not isinstance(graph, HighLevelGraph):
        graph = HighLevelGraph.from_collections(key[0], graph)
    return Lazy(graph, key, *finish)
