"""One progress bar for local schedulers and clusters, shown on terminals and in notebooks."""

from __future__ import annotations

import importlib.util
import sys
import threading
import warnings
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from daskcoreset.core.validation import check_flag
from daskcoreset.execution.lazy import Lazy, active_client, leaf_layers
from daskcoreset.execution.waiting import on_loop

# Seconds before a bar appears: short work stays quiet.
_DELAY = 1.0

# Seconds between two questions to a scheduler; one takes about a millisecond.
_INTERVAL = 0.2


@contextmanager
def show_progress(progress: bool | None, lazy: Lazy[Any]) -> Iterator[None]:
    """Show how many blocks of `lazy` are done while the body computes it.

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
    layers = leaf_layers(lazy)
    # Both at once, for a setting of Dask may send the work past an active client.
    with (
        count_reads(True, sum(layers.values())) as advance,
        _on_this_machine(advance, layers),
        _on_a_cluster(advance, layers),
    ):
        yield


@contextmanager
def count_reads(
    progress: bool | None, total: int, *, unit: str = "block"
) -> Iterator[Callable[[int], None]]:
    """Yield a function that advances the bar by some steps. It does nothing without a bar.

    Parameters
    ----------
    progress : bool or None
        As in `show_progress`.
    total : int
        Number of steps of the whole work.
    unit : str, default="block"
        Name of one step.

    Yields
    ------
    callable
        ``advance(steps)``.

    Examples
    --------
    >>> with count_reads(False, total=3) as advance:
    ...     advance(1)
    """
    if not _is_shown(progress):
        yield _ignore_steps
        return
    bar = _Bar(total, unit)
    try:
        yield bar.advance
    finally:
        bar.close()


def _is_shown(progress: bool | None) -> bool:
    if progress is not None:
        check_flag("progress", progress)
        return progress
    # A program without a console has no error stream at all.
    stream: Any = sys.stderr
    if stream is not None and stream.isatty():
        return True
    # Without widgets a notebook would keep the bar's lines as text.
    return "ipykernel" in sys.modules and importlib.util.find_spec("ipywidgets") is not None


def _ignore_steps(steps: int) -> None:
    del steps


class _Bar:
    """A tqdm bar that never ends the work that it shows, whatever fails in it."""

    def __init__(self, total: int, unit: str) -> None:
        self._left = total
        self._bar: Any = None
        with suppress(Exception), warnings.catch_warnings():
            # About widgets that a notebook lacks; tqdm then draws the bar as text.
            warnings.simplefilter("ignore")
            from tqdm.auto import tqdm

            self._bar = tqdm(total=total, desc="daskcoreset", unit=unit, delay=_DELAY, leave=False)
            self._draw, self._bar.display = self._bar.display, self._display

    def _display(self, *args: Any, **options: Any) -> Any:
        # tqdm would keep its lock after an error, for which bars of other threads wait.
        try:
            return self._draw(*args, **options)
        except Exception:  # noqa: BLE001 - of any stream
            return False

    def advance(self, steps: int) -> None:
        """Move forward, to the end at most."""
        steps = min(steps, self._left)
        self._left -= steps
        if self._bar is not None:
            with suppress(Exception):
                self._bar.update(steps)

    def close(self) -> None:
        """Remove the bar."""
        if self._bar is not None:
            with suppress(Exception):
                self._bar.close()


@contextmanager
def _on_this_machine(advance: Callable[[int], None], layers: dict[str, int]) -> Iterator[None]:
    from dask.callbacks import Callback

    def posttask(key: Hashable, *_: Any) -> None:
        if isinstance(key, tuple) and key[0] in layers:
            advance(1)

    with Callback(posttask=posttask):
        yield


@contextmanager
def _on_a_cluster(advance: Callable[[int], None], layers: dict[str, int]) -> Iterator[None]:
    client = active_client()
    if client is None:
        yield
        return
    stop = threading.Event()

    def poll() -> None:
        # The most that was seen: a scheduler forgets what nothing needs.
        counted = 0
        with suppress(Exception):
            while not stop.wait(_INTERVAL):
                asked = on_loop(client, client.run_on_scheduler, _blocks_done, names=list(layers))
                done = asked.result(timeout=5)
                advance(max(0, done - counted))
                counted = max(counted, done)

    watcher = threading.Thread(target=poll, name="daskcoreset-progress", daemon=True)
    watcher.start()
    try:
        yield
    finally:
        stop.set()
        watcher.join(timeout=5)


def _blocks_done(names: list[str], dask_scheduler: Any = None) -> int:
    """Count the blocks whose task has finished. Runs on the scheduler."""
    groups = [dask_scheduler.task_groups.get(name) for name in names]
    finished = ("memory", "released", "forgotten")
    return sum(
        group.states.get(state, 0) for group in groups if group is not None for state in finished
    )
