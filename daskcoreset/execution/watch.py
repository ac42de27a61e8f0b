"""What a cluster is doing with a graph, asked of its scheduler and told in words."""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import dask
from dask.utils import format_bytes, key_split, parse_timedelta

from daskcoreset.core.errors import ClusterError
from daskcoreset.core.tables import counted

LOG = logging.getLogger("daskcoreset")
"""Of warnings that must not end the work, as a warning does where warnings are errors."""

# A worker sends word of itself every half second, or more rarely where there are hundreds.
_SILENT = 15.0

# Tasks and workers that a message names.
_SHOWN = 3

# States of tasks that have been run; a scheduler forgets what nothing needs.
_DONE = ("memory", "released", "forgotten")


# What follows the names of our layers in a graph whose tasks may be known under these names as
# others: computed with other values they read what is stored in tasks of their own, which a value
# that is computed alone has in the tasks that need it.
APART = "-alone"


def stall_after() -> float:
    """Seconds without a finished task after which a build counts as stalled.

    Dask's setting ``daskcoreset.stall-after``, a minute unless it is set: a block that takes
    longer is far larger than blocks should be.
    """
    return float(parse_timedelta(dask.config.get("daskcoreset.stall-after", "60s")))


def scheduler_ttl() -> float:
    """Seconds without an answer after which a scheduler counts as lost.

    Dask's setting ``daskcoreset.scheduler-ttl``, five minutes unless it is set: as long as
    schedulers wait for word of a worker.
    """
    return float(parse_timedelta(dask.config.get("daskcoreset.scheduler-ttl", "5 minutes")))


@dataclass(frozen=True)
class Standing:
    """Where the tasks of a graph stand, as far as their scheduler knows.

    Attributes
    ----------
    states : dict of str to int
        Tasks by their state.
    running : tuple of (str, str)
        Some tasks that are with workers, and the worker of each.
    workers : tuple of dict
        Address, status, memory, limit and silence, in seconds, of every worker.
    """

    states: dict[str, int]
    running: tuple[tuple[str, str], ...]
    workers: tuple[dict[str, Any], ...]

    @property
    def total(self) -> int:
        """Tasks in all."""
        return sum(self.states.values())

    @property
    def done(self) -> int:
        """Tasks that have been run."""
        return sum(self.states.get(state, 0) for state in _DONE)

    def __str__(self) -> str:
        workers = counted(len(self.workers), "worker")
        said = [f"{self.done} of {self.total} tasks are done, with {workers}"]
        for task, worker in self.running[:_SHOWN]:
            said.append(f"{task} is with {worker}")
        return "; ".join([*said, *self._trouble()])

    def _trouble(self) -> list[str]:
        """Name what may be the reason that nothing goes on, and what to do."""
        if not self.workers:
            return ["no worker has come: start some, or look at the queue that they wait in"]
        trouble = []
        paused = [worker for worker in self.workers if worker["status"] == "paused"]
        silent = [worker for worker in self.workers if worker["silence"] > _SILENT]
        if paused:
            trouble.append(
                f"{len(paused)} paused for want of memory ({_listed(paused)}): give workers more "
                f"memory or fewer threads, or pass smaller chunks"
            )
        if silent:
            ttl = dask.config.get("distributed.scheduler.worker-ttl", None)
            trouble.append(
                f"{len(silent)} without a word for {max(one['silence'] for one in silent):.0f} s "
                f"({_listed(silent)}): their tasks go to others after distributed.scheduler."
                f"worker-ttl ({ttl}), or when they are ended"
            )
        if not trouble and self.states.get("no-worker"):
            trouble.append("no worker may run what waits: look at resources and restrictions")
        return trouble


def _listed(workers: Sequence[dict[str, Any]]) -> str:
    named = [
        f"{one['address']} with {format_bytes(one['memory'])}"
        + (f" of {format_bytes(one['limit'])}" if one["limit"] else "")
        for one in workers[:_SHOWN]
    ]
    return ", ".join(named) + (", ..." if len(workers) > _SHOWN else "")


def _named(key: Any) -> str:
    """Return the name of a task without the part that makes it unique."""
    name, *position = key if isinstance(key, tuple) else (key,)
    return " ".join([key_split(name), *map(str, position)])


def known_groups(names: Sequence[str], scheduler: Any) -> dict[str, Any]:
    """Return the groups of tasks that a scheduler knows by the names of layers; None for none."""
    known = scheduler.task_groups
    return {name: known.get(f"{name}{APART}") or known.get(name) for name in names}


def standing_of(groups: Sequence[str], dask_scheduler: Any = None) -> Standing:
    """Return where the tasks of some layers stand; runs on the scheduler.

    Parameters
    ----------
    groups : sequence of str
        Names of layers; those that were fused into others are not there.
    """
    states: dict[str, int] = {}
    running: list[tuple[str, str]] = []
    known = known_groups(groups, dask_scheduler)
    for group in known.values():
        for state, count in (group.states if group is not None else {}).items():
            states[state] = states.get(state, 0) + count
    wanted = {group.name for group in known.values() if group is not None}
    for worker in dask_scheduler.workers.values():
        tasks = (task for task in worker.processing if task.group_key in wanted)
        running += [(_named(task.key), worker.address) for task in tasks if len(running) < _SHOWN]
    now = time.time()
    workers = [
        {
            "address": worker.address,
            "status": worker.status.name,
            "memory": worker.memory.process,
            "limit": worker.memory_limit,
            "silence": now - worker.last_seen,
        }
        for worker in dask_scheduler.workers.values()
    ]
    return Standing(states, tuple(running), tuple(workers))


@dataclass
class Watch:
    """Tells where a build stands once nothing has moved for a while, and then ever more rarely.

    Attributes
    ----------
    stalled, lost : float
        See `stall_after` and `scheduler_ttl`.
    standing : Standing or None
        The last that was heard of.
    """

    stalled: float = field(default_factory=stall_after)
    lost: float = field(default_factory=scheduler_ttl)
    standing: Standing | None = None
    _heard: float = field(default_factory=time.monotonic)
    _moved: float = field(default_factory=time.monotonic)
    _told: float = 0.0

    @property
    def interval(self) -> float:
        """Seconds between two looks: some for every stall, and no load for a scheduler."""
        return min(max(min(self.stalled, self.lost) / 6, 0.05), 10.0)

    @property
    def silent(self) -> bool:
        """Whether the scheduler has not answered for longer than it takes."""
        return time.monotonic() - self._heard > min(_SILENT, self.lost)

    @property
    def where(self) -> str:
        """Where the build stands, as far as is known."""
        said = f"the scheduler has not answered for {time.monotonic() - self._heard:.0f} s"
        if self.standing is None:
            return said
        if self.silent:
            return f"{said}; before, {self.standing}"
        return str(self.standing)

    def hear(self, standing: Standing) -> None:
        """Take an answer of the scheduler."""
        now = time.monotonic()
        if self.standing is None or standing.states != self.standing.states:
            self._moved, self._told = now, 0.0
        self.standing, self._heard = standing, now

    def tell(self) -> None:
        """Say that nothing goes on, where it is time to.

        Raises
        ------
        ClusterError
            If the scheduler has not answered for too long.
        """
        now = time.monotonic()
        if now - self._heard > self.lost:
            raise ClusterError(
                f"the scheduler is lost: {self.where}. See whether its process runs and can be "
                f"reached, and build again; Dask's setting daskcoreset.scheduler-ttl says how "
                f"long to wait."
            )
        stood = now - self._moved
        if stood > max(self.stalled, 2 * self._told):
            self._told = stood
            LOG.warning("no task of the build has finished for %.0f s: %s.", stood, self.where)
