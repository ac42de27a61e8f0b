"""One progress bar for local schedulers and clusters, silent where nobody looks."""

from __future__ import annotations

import sys
import threading
from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from daskcoreset.passes import active_client, leaf_layers

if TYPE_CHECKING:
    from daskcoreset.passes import Lazy

__all__ = ["showing"]

_DELAY = 1.0
"""Seconds before a bar appears: short work stays quiet."""

_INTERVAL = 0.2
"""Seconds between two questions to a scheduler; one takes about a millisecond."""


@contextmanager
def showing(progress: bool | None, lazy: Lazy[Any]) -> Iterator[None]:
    """Show how many blocks of `lazy` are done while the body computes it.

    Parameters
    ----------
    progress : bool or None
        True shows a bar, False none; None shows one where the error stream is a terminal
        or a notebook listens, once the work has taken a second.
    lazy : Lazy
    """
    if progress is None:
        progress = sys.stderr.isatty() or "ipykernel" in sys.modules
    if not progress:
        yield
        return
    from tqdm.auto import tqdm  # noqa: PLC0415 - only where a bar is shown

    total = leaf_layers(lazy)
    client = active_client()
    with tqdm(
        total=sum(total.values()), desc="daskcoreset", unit="block", delay=_DELAY, leave=False
    ) as bar:
        watch = _on_this_machine if client is None else _on_a_cluster
        with watch(bar, total, client):
            yield


@contextmanager
def _on_this_machine(bar: Any, total: dict[str, int], client: None) -> Iterator[None]:
    from dask.callbacks import Callback  # noqa: PLC0415

    del client

    def posttask(key: Hashable, *_: Any) -> None:
        if isinstance(key, tuple) and key[0] in total:
            bar.update()

    with Callback(posttask=posttask):
        yield


@contextmanager
def _on_a_cluster(bar: Any, total: dict[str, int], client: Any) -> Iterator[None]:
    stop = threading.Event()

    def poll() -> None:
        while not stop.wait(_INTERVAL):
            try:
                done = client.run_on_scheduler(_blocks_done, names=list(total))
            except Exception:  # noqa: BLE001 - a bar must never end the work it shows
                return
            if done > bar.n:
                bar.update(done - bar.n)

    watcher = threading.Thread(target=poll, name="daskcoreset-progress", daemon=True)
    watcher.start()
    try:
        yield
    finally:
        stop.set()
        watcher.join(timeout=5)


def _blocks_done(names: list[str], dask_scheduler: Any = None) -> int:
    """Count blocks whose task has finished; runs on the scheduler."""
    groups = (dask_scheduler.task_groups.get(name) for name in names)
    finished = ("memory", "released", "forgotten")
    return sum(
        group.states.get(state, 0) for group in groups if group is not None for state in finished
    )
