"""The layer of a graph that merges the values of blocks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

from dask.highlevelgraph import Layer

from daskcoreset.execution.merging import Merger, levels_below_root

if TYPE_CHECKING:
    from dask.typing import Key

T = TypeVar("T")


class FoldLayer(Layer):
    """The tasks of a tree over leaf tasks, which are made only where they are scheduled.

    A graph that is sent to a cluster holds the measures of the tree in place of its tasks: of
    100,000 blocks these would be several megabytes.

    Parameters
    ----------
    name, leaves : str
        Of this layer, and of that of the leaves.
    axes : int
        Axes of the leaves, of which all but the first have one block.
    blocks : range
        The leaves to merge.
    combine : callable
        ``combine(parts)`` merges one or more neighbouring parts.
    split_every : int
    levels : int or None, default=None
        How many times neighbours are merged before the root lists what is left; None
        merges all, at the root as well.
    """

    has_legacy_tasks = False

    def __init__(  # noqa: PLR0917 - all of them are always given
        self,
        name: str,
        leaves: str,
        axes: int,
        blocks: range,
        combine: Callable[[Sequence[Any]], Any],
        split_every: int,
        levels: int | None = None,
    ) -> None:
        super().__init__()
        self.root: Key = (name,)
        self._name, self._leaves, self._axes, self._blocks = name, leaves, axes, blocks
        self._combine, self._split_every, self._levels = combine, split_every, levels

    @cached_property
    def _tasks(self) -> dict[Key, Any]:
        from dask._task_spec import List, Task, TaskRef

        tasks: dict[Key, Any] = {}

        def task(key: Key, function: Callable[[Sequence[Any]], Any], keys: Sequence[Key]) -> Key:
            tasks[key] = Task(key, function, List(*map(TaskRef, keys)))
            return key

        def merged(keys: Sequence[Key]) -> Key:
            return task((self._name, len(tasks)), self._combine, keys)

        levels = self._levels
        if levels is None:
            levels = levels_below_root(len(self._blocks), self._split_every)
        merger: Merger[Key] = Merger(merged, self._split_every, levels)
        tail = (0,) * (self._axes - 1)
        for block in self._blocks:
            merger.add((self._leaves, block, *tail))
        task(self.root, self._combine if self._levels is None else _listed, merger.parts())
        return tasks

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_tasks"}

    def __getitem__(self, key: Key) -> Any:
        return self._tasks[key]

    def __iter__(self) -> Iterator[Key]:
        return iter(self._tasks)

    def __len__(self) -> int:
        return len(self._tasks)

    def is_materialized(self) -> bool:
        """Whether the tasks are there."""
        return "_tasks" in vars(self)

    def get_output_keys(self) -> set[Key]:
        """Return the key of the root, the only one that other layers use."""
        return {self.root}


def _listed(parts: Sequence[T]) -> list[T]:
    return list(parts)
