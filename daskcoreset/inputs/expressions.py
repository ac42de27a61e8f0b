"""Dask arrays that are expressions, brought to graphs of tasks."""

from __future__ import annotations

from typing import Any


def as_tasks(array: Any) -> Any:
    """Return a Dask array as one of tasks: same blocks, same values; nothing is computed.

    Expressions are those of ``dask_array.Array``, which xarray uses where that package is
    installed, and of Dask itself under its setting ``array.query-planning``. Arrays made from one
    that X and y share name its blocks alike, so that these are still read once.

    Parameters
    ----------
    array : dask.array.Array or dask_array.Array
        Anything else, such as an array of tasks, is returned as it is.
    """
    if not hasattr(array, "expr"):
        return array
    import dask
    from dask.array.utils import meta_from_array

    # Optimised, each array would get reads of its own, of the very columns that it needs.
    with dask.config.set({"array.optimize-graph": False}):
        plain = type(array)(array.expr)  # which remembers the setting
        return array_of(plain, array.chunks, meta_from_array(array))


def array_of(collection: Any, chunks: tuple[tuple[Any, ...], ...], meta: Any) -> Any:
    """Return any collection whose keys are those of the blocks of an array as that array."""
    from dask.array.core import Array
    from dask.core import flatten
    from dask.highlevelgraph import HighLevelGraph

    graph, name = collection.__dask_graph__(), next(flatten(collection.__dask_keys__()))[0]
    if not isinstance(graph, HighLevelGraph):
        graph = HighLevelGraph.from_collections(name, graph)
    return Array(graph, name, chunks, meta=meta)
