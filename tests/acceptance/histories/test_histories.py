"""Histories of stored trees, streams and views: changes, kills, full disks and rivals.

After every fault the store opens, is what it was before the change or after it, `verify` finds
nothing, no row is lost or counted twice, and the next change clears away what was left.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from hypothesis import Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from tests.acceptance.tools.disk import Connection, Disk, Fault, Kind
from tests.acceptance.tools.histories import (
    History,
    RemoteStreamHistory,
    RemoteTreeHistory,
    StreamHistory,
    TreeHistory,
)
from tests.acceptance.tools.view_histories import run_history
from tests.pairs import few

# Whoever is killed leaves coroutines of Zarr that nobody awaits.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")

MACHINES = [TreeHistory, StreamHistory, RemoteTreeHistory, RemoteStreamHistory]

KINDS: tuple[Kind, ...] = (
    "killed",
    "data lost",
    "power cut",
    "full",
    "broken",
    "rival",
    "interrupted",
)


def is_remote(machine: type[History]) -> bool:
    return machine in {RemoteTreeHistory, RemoteStreamHistory}


@pytest.fixture(params=MACHINES, ids=lambda machine: machine.__name__)
def machine(request: pytest.FixtureRequest) -> Iterator[type[History]]:
    """A machine, on a disk or an object store that fails."""
    kind: type[History] = request.param
    with ExitStack() as stack:
        place: Any = Connection() if is_remote(kind) else Disk()
        seen: Counter[str] = Counter()
        stack.enter_context(place.installed())
        yield type(kind.__name__, (kind,), {"disk": place, "seen": seen})


def run(machine: type[History], examples: int, steps: int) -> Counter[str]:
    """Run a machine; return how often what happened."""
    # Without shrinking, which takes minutes: the steps that led to a failure are printed as they
    # are.
    options = settings(
        max_examples=examples,
        stateful_step_count=steps,
        phases=[Phase.generate],
        report_multiple_bugs=False,
        deadline=None,
        derandomize=True,
    )
    run_state_machine_as_test(machine, settings=options)
    return machine.seen


def test_history__of_random_steps(machine: type[History]) -> None:
    """What happens is drawn; what must happen at least, `test_history__every_fault` sees to."""
    assert run(machine, examples=4, steps=15)["steps"] >= 20


@pytest.mark.nightly
def test_history__of_thousands_of_random_steps(machine: type[History]) -> None:
    """``HISTORIES=4`` in the environment makes four times as many."""
    examples = 60 * int(os.environ.get("HISTORIES", "1"))
    assert run(machine, examples, steps=50)["steps"] >= 30 * examples


def test_history__every_fault(machine: type[History]) -> None:
    """Every fault at several places of a change, one after the other."""
    history = machine()
    n_places = 6 if issubclass(machine, (RemoteTreeHistory, RemoteStreamHistory)) else 5
    try:
        history.begin()
        faults = [
            Fault(kind, 32 * place / n_places / 32) for place in range(n_places) for kind in KINDS
        ]
        for number, fault in enumerate(faults):
            history.go_on(number, fault)
    finally:
        history.teardown()
    seen = machine.seen
    for kind, end in (
        ("killed", "killed"),
        ("power cut", "killed"),
        ("full", "refused"),
        ("rival", "refused"),
        ("interrupted", "interrupted"),
    ):
        assert seen[f"{kind}: {end}"] >= 2, seen


@pytest.mark.parametrize("kind", ["array", "files"])
@few("seed", range(4), 2)
def test_history__of_a_source_ends_with_the_bits_of_a_fresh_view(
    seed: int, kind: str, tmp_path: Path
) -> None:
    seen = run_history(tmp_path, seed, kind, steps=2)
    assert seen["died"] + seen["none"] >= 1
