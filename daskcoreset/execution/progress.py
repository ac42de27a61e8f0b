"""One progress bar for local schedulers and clusters, shown on terminals and in notebooks."""

from __future__ import annotations

import importlib.util
import sys
import threading
from collections.abc import Callable, Hashable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

from daskcoreset.core.validation import check_flag
from daskcoreset.execution.lazy import LEAF, Lazy
from daskcoreset.execution.timeout import active_client

# Seconds before a bar appears: short work stays quiet.
_DELAY = 1.0

# Seconds between two questions to a scheduler; one takes about a millisecond.
_INTERVAL = 0.2


@contextmanager
def show_progress(progress: bool | None, lazy: Lazy[Any]) -> Iterator[None]:
    """Show how many blocks of `lazy` are read while the body computes it.

    A pass over the data counts every block once, so two passes count it twice.

    Parameters
    ----------
    progress : bool or None
        True shows a bar, False none. None shows one on a terminal, or in a notebook with widgets,
        once the work has taken a second.
    lazy : Lazy
    """
    if not _is_shown(progress):
        yield
        return
    from dask.callbacks import Callback

    layers = lazy.__dask_graph__().layers
    reads = {name: len(layers[name].get_output_keys()) for name in layers if name.startswith(LEAF)}
    over, client = threading.Event(), active_client()
    with count_reads(True, sum(reads.values())) as advance:

        def posttask(key: Hashable, *_: Any) -> None:
            if isinstance(key, tuple) and key[0] in reads:
                advance(1)

        if client is not None:
            poll = threading.Thread(target=_poll, args=(client, reads, advance, over), daemon=True)
            poll.start()
        try:
            # Both, for a setting of Dask may send the work past an active client.
            with Callback(posttask=posttask):
                yield
        finally:
            over.set()


@contextmanager
def count_reads(
    progress: bool | None, total: int, *, unit: str = "block"
) -> Iterator[Callable[[int], Any]]:
    """Yield a function that advances the bar of `total` steps. It does nothing without a bar.

    Examples
    --------
    >>> with count_reads(False, total=3) as advance:
    ...     advance(1)
    """
    from tqdm import auto

    hidden = not _is_shown(progress)
    named: dict[str, Any] = {"desc": "daskcoreset", "unit": unit, "delay": _DELAY, "leave": False}
    with auto.tqdm(total=total, disable=hidden, **named) as bar:
        yield bar.update


def _is_shown(progress: bool | None) -> bool:
    if progress is not None:
        check_flag("progress", progress)
        return progress
    # A program without a console has no error stream at all.
    if sys.stderr is not None and sys.stderr.isatty():
        return True
    # Without widgets a notebook would keep the bar's lines as text.
    return "ipykernel" in sys.modules and importlib.util.find_spec("ipywidgets") is not None


def _poll(
    client: Any, reads: Mapping[str, int], advance: Callable[[int], Any], over: threading.Event
) -> None:
    """Advance a bar by the blocks that a cluster has read, until the work is over."""
    counted = 0
    with suppress(Exception):  # work goes on without its bar
        while not over.wait(_INTERVAL):
            done = client.run_on_scheduler(_blocks_read, names=list(reads))
            # A scheduler forgets what nothing needs.
            advance(max(0, done - counted))
            counted = max(counted, done)


def _blocks_read(names: list[str], dask_scheduler: Any = None) -> int:
    """Count the blocks whose task has finished. Runs on the scheduler."""
    groups = [dask_scheduler.task_groups.get(name) for name in names]
    finished = ("memory", "released", "forgotten")
    return sum(
        group.states.get(state, 0) for group in groups if group is not None for state in finished
    )
