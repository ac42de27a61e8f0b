"""One progress bar for local schedulers and clusters, shown on terminals and in notebooks."""

from __future__ import annotations

import importlib.util
import sys
import threading
import warnings
from collections.abc import Callable, Hashable, Iterator
from concurrent.futures import wait
from contextlib import contextmanager, suppress
from typing import Any

from daskcoreset.core.compiling import watch_compiling
from daskcoreset.core.validation import check_flag
from daskcoreset.execution.lazy import Lazy, active_client, blocks_of_a_task, leaf_layers
from daskcoreset.execution.waiting import on_loop
from daskcoreset.execution.watch import APART, known_groups

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
        True shows a bar, False none; None shows one where the error stream is a terminal
        or a notebook with widgets listens, once the work has taken a second.
    lazy : Lazy
    """
    if not _is_shown(progress):
        yield
        return
    layers = leaf_layers(lazy)
    if not layers:  # it has graphs of its own, and a bar for them
        yield
        return
    with count_reads(True, sum(layers.values())) as advance, watch_blocks(advance, layers):
        yield


@contextmanager
def watch_blocks(
    advance: Callable[[int], None], layers: dict[str, int]
) -> Iterator[Callable[[], int]]:
    """Advance a bar by the blocks of some layers while the body computes them.

    Parameters
    ----------
    advance : callable
        As `count_reads` yields it.
    layers : dict of str to int
        Blocks of each layer, by its name.

    Yields
    ------
    callable
        ``missed()``: blocks that were not counted, for a scheduler forgets some between two
        questions.
    """
    if advance is ignore_steps:
        yield lambda: 0
        return
    counted = 0

    def count(steps: int) -> None:
        nonlocal counted
        counted += steps
        advance(steps)

    # Both at once, for a setting of Dask may send the work past an active client.
    with _on_this_machine(count, layers), _on_a_cluster(count, layers):
        yield lambda: max(0, sum(layers.values()) - counted)


@contextmanager
def count_reads(
    progress: bool | None, total: int, *, unit: str = "block"
) -> Iterator[Callable[[int], None]]:
    """Yield a function that advances the bar by some steps; it does nothing without a bar.

    A bar never ends the work that it shows: what fails in it is ignored.

    Parameters
    ----------
    progress : bool or None
        As in `show_progress`.
    total : int
        Number of steps of the whole work.
    unit : str, default="block"
        What one step is called.

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
        yield ignore_steps
        return
    bar = _Bar(total, unit)
    try:
        with watch_compiling(bar.show_compiling):
            yield bar.advance
    finally:
        bar.close()


@contextmanager
def announce_compiling(progress: bool | None, total: int) -> Iterator[None]:
    """Show a bar while loops are compiled, around work that needs none otherwise.

    Parameters
    ----------
    progress : bool or None
        As in `show_progress`.
    total : int
        Number of blocks of the work.
    """
    bars: list[_Bar] = []

    def tell(begins: bool) -> None:
        # Opened when there is something to say: work in memory may be done before a bar is made.
        if begins and _is_shown(progress):
            bars.append(_Bar(total, "block"))
            bars[-1].show_compiling(begins)
        elif bars:
            bars.pop().close()

    try:
        with watch_compiling(tell):
            yield
    finally:
        for bar in bars:
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


def ignore_steps(steps: int) -> None:
    """Show nothing: what `count_reads` yields without a bar."""
    del steps


class _Bar:
    """A tqdm bar that is closed silently when it cannot be drawn."""

    def __init__(self, total: int, unit: str) -> None:
        self._total, self._done = total, 0
        self._failed = False
        self._bar: Any = None
        self._quietly(lambda: self._open(unit))

    def _open(self, unit: str) -> None:
        with warnings.catch_warnings():
            # About widgets that a notebook lacks; tqdm then draws the bar as text.
            warnings.simplefilter("ignore")
            from tqdm.auto import tqdm

            self._bar = tqdm(
                total=self._total, desc="daskcoreset", unit=unit, delay=_DELAY, leave=False
            )
        draw = self._bar.display

        def display(*args: Any, **options: Any) -> Any:
            # tqdm would keep its lock, for which bars of other threads wait, and the program's end.
            try:
                return draw(*args, **options)
            except Exception:  # noqa: BLE001 - `_quietly` looks whether there was one
                self._failed = True
                return False

        self._bar.display = display

    def advance(self, steps: int) -> None:
        """Move forward, to the end at most."""
        steps = min(steps, self._total - self._done)
        self._done += steps
        if self._bar is not None and steps > 0:
            self._quietly(lambda: self._bar.update(steps))

    def show_compiling(self, begins: bool) -> None:
        """Say why nothing moves in the first seconds after an installation."""
        if self._bar is not None:
            self._bar.delay = 0.0  # shown now, so that closing removes it
            text = "daskcoreset, compiling loops once" if begins else "daskcoreset"
            self._quietly(lambda: self._bar.set_description(text))

    def close(self) -> None:
        """Remove the bar."""
        if self._bar is not None:
            self._quietly(self._bar.close)

    def _quietly(self, action: Callable[[], object]) -> None:
        with suppress(Exception):  # a bar must never end the work it shows
            action()
            if not self._failed:
                return
        if self._bar is not None:
            with suppress(Exception):
                self._bar.close()  # tqdm would keep a line for it, above all later bars
            self._bar.disable = True  # from now on its methods, __del__ too, do nothing
        self._bar = None


@contextmanager
def _on_this_machine(advance: Callable[[int], None], layers: dict[str, int]) -> Iterator[None]:
    from dask.callbacks import Callback

    def posttask(key: Hashable, *_: Any) -> None:
        name = str(key[0]).removesuffix(APART) if isinstance(key, tuple) else None
        if name in layers:
            advance(blocks_of_a_task(name))

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
        # The most that was seen of each pass: a scheduler forgets what nothing needs.
        counted = dict.fromkeys(layers, 0)
        while not stop.wait(_INTERVAL):
            try:
                asked = on_loop(client, client.run_on_scheduler, _blocks_done, names=list(layers))
                while not (stop.wait(0.0) or asked.done()):
                    wait([asked], _INTERVAL)  # not for ever: a scheduler may never answer
                done = asked.result(0.0)
            except Exception:  # noqa: BLE001 - a bar must never end the work it shows
                return
            for name, count in done.items():
                advance(max(0, count - counted[name]))
                counted[name] = max(counted[name], count)

    watcher = threading.Thread(target=poll, name="daskcoreset-progress", daemon=True)
    watcher.start()
    try:
        yield
    finally:
        stop.set()
        watcher.join(timeout=5)


def _blocks_done(names: list[str], dask_scheduler: Any = None) -> dict[str, int]:
    """Count the blocks of each pass whose task has finished; runs on the scheduler."""
    groups = known_groups(names, dask_scheduler)
    finished = ("memory", "released", "forgotten")
    return {
        name: blocks_of_a_task(name) * sum(group.states.get(state, 0) for state in finished)
        for name, group in groups.items()
        if group is not None
    }
