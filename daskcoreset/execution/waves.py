"""Reads of more blocks than one graph holds: one graph after another, each of bounded size.

A scheduler keeps some kilobytes for every task that it knows. A read of more than `GRAPH_BLOCKS`
blocks runs in *waves*: graphs of neighbouring blocks, each of whole subtrees of the tree that one
graph would have. What a wave leaves, the roots of its subtrees, comes
to the caller, who merges them in the order of the tree as they arrive: the bits are those of one
graph. When it is there the scheduler forgets the wave, for nothing on the cluster is needed later;
a worker that dies costs what it was to give to the running wave, which the scheduler repeats.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Protocol, TypeVar, runtime_checkable

from daskcoreset.execution.lazy import OURS, Alone, Lazy, leaf_layers
from daskcoreset.execution.merging import Merger, levels_below_root
from daskcoreset.execution.progress import watch_blocks
from daskcoreset.inputs.blocks import RowBlocks

T = TypeVar("T")

# Blocks of one graph at most. A scheduler takes about 6 KB a task (benchmarks/scale.py): 0.8 GB for
# Dask arrays, and a sixteenth where tasks read several blocks. Waves of fewer blocks take less, and
# leave workers idle more often, at the end of each.
GRAPH_BLOCKS = 2**17

# From so many blocks on a task reads several: a scheduler has some 700 tasks a second, and fewer
# blocks keep more workers at work as tasks of their own.
MANY_BLOCKS = 2**14

# Blocks of one task at most.
TASK_BLOCKS = 16


@runtime_checkable
class Divisible(Protocol):
    """A broadcast with an entry for every block, of which a wave needs those of its blocks."""

    def of_blocks(self, first: int, stop: int) -> Any:
        """Return the same for the blocks from `first` to `stop` (exclusive)."""


def fits_one_graph(blocks: RowBlocks) -> bool:
    """Whether a read of these blocks is one graph."""
    return blocks.n_blocks <= GRAPH_BLOCKS


def waves_of(n_blocks: int, split_every: int) -> tuple[int, list[range]]:
    """Cut blocks into waves of whole subtrees.

    Parameters
    ----------
    n_blocks, split_every : int

    Returns
    -------
    levels : int
        Of the subtrees.
    waves : list of range
        Blocks of each.

    Examples
    --------
    >>> waves_of(300_000, 16)
    (4, [range(0, 131072), range(131072, 262144), range(262144, 300000)])
    """
    levels, subtree = 0, 1
    while subtree * split_every <= min(GRAPH_BLOCKS, n_blocks):
        levels, subtree = levels + 1, subtree * split_every
    step = GRAPH_BLOCKS // subtree * subtree
    return levels, [range(i, min(i + step, n_blocks)) for i in range(0, n_blocks, step)]


def levels_of_a_task(n_blocks: int, split_every: int, levels: int | None, *, loose: bool) -> int:
    """Return the levels of the subtree whose blocks are read by one task; none for one block.

    Parameters
    ----------
    n_blocks, split_every : int
    levels : int or None
        Of the whole graph; None for all there are.
    loose : bool
        Whether a task may read several blocks; those of Dask arrays are tasks themselves.

    Examples
    --------
    >>> [levels_of_a_task(100_000, split_every, None, loose=True) for split_every in (2, 16, 17)]
    [4, 1, 0]
    """
    if n_blocks < MANY_BLOCKS or not loose:
        return 0
    most = levels_below_root(n_blocks, split_every) if levels is None else levels
    inner = 0
    while inner < most and split_every ** (inner + 1) <= TASK_BLOCKS:
        inner += 1
    return inner


def merge_waves(
    define: Callable[[range, int], Lazy[list[T]]],
    combine: Callable[[Any], T],
    n_blocks: int,
    split_every: int,
    *,
    ends: Callable[[T], bool],
    advance: Callable[[int], None],
) -> T:
    """Compute wave after wave, and merge what they leave.

    Parameters
    ----------
    define : callable
        ``define(blocks, levels)`` is the graph of a wave, which gives the roots of its subtrees.
    combine : callable
        ``combine(parts)`` merges one or more neighbouring parts.
    n_blocks, split_every : int
    ends : callable
        Whether a part makes the waves after it needless, as an invalid row does.
    advance : callable
        Is told how many blocks are done.
    """
    levels, waves = waves_of(n_blocks, split_every)
    merger: Merger[T] = Merger(
        combine, split_every, levels_below_root(n_blocks, split_every) - levels
    )
    for parts in _computed(define, levels, waves, advance):
        for part in parts:
            merger.add(part)
        if any(map(ends, parts)):
            break
    return combine(merger.parts())


def _computed(
    define: Callable[[range, int], Lazy[list[T]]],
    levels: int,
    waves: list[range],
    advance: Callable[[int], None],
) -> Iterator[list[T]]:
    for blocks in waves:
        wave = define(blocks, levels)
        with watch_blocks(advance, dict.fromkeys(leaf_layers(wave), len(blocks))) as missed:
            parts = _culled(wave).compute()
        advance(missed())
        yield parts


def _culled(wave: Lazy[T]) -> Lazy[T]:
    """Return the same without the plain tasks that the input has for blocks of other waves."""
    from dask.blockwise import Blockwise
    from dask.highlevelgraph import HighLevelGraph

    graph, (key,) = wave.__dask_graph__(), wave.__dask_keys__()
    # Blockwise layers and our own are small, however many tasks they stand for.
    small = {
        name
        for name, layer in graph.layers.items()
        if isinstance(layer, Blockwise) or name.startswith(OURS)
    }
    if len(small) < len(graph.layers):
        # Culling adds a token to the names, by which layers would no longer find one another.
        culled = {
            name.rpartition("-")[0]: layer for name, layer in graph.cull({key}).layers.items()
        }
        layers = {name: graph.layers[name] if name in small else culled[name] for name in culled}
        needs = {name: graph.dependencies[name] & layers.keys() for name in layers}
        graph = HighLevelGraph(layers, needs)
    return Alone(graph, key)
