"""Histories of stored trees and streams: changes, kills, full disks and rivals, in any order.

After every fault the store opens, is what it was before the change or after it, `verify` finds
nothing, no row is lost or counted twice, and the next change clears away what was left.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator

import pytest
from hypothesis import Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from tests.tools.disk import Connection, Disk, Fault, Kind
from tests.tools.histories import (
    History,
    RemoteStreamHistory,
    RemoteTreeHistory,
    StreamHistory,
    TreeHistory,
)
from tests.tools.light_groups import light_groups

MACHINES = [TreeHistory, StreamHistory]

REMOTE = [RemoteTreeHistory, RemoteStreamHistory]

KINDS: tuple[Kind, ...] = (
    "killed",
    "data lost",
    "power cut",
    "full",
    "broken",
    "rival",
    "interrupted",
)


@pytest.fixture
def disk() -> Iterator[Disk]:
    with Disk().installed() as failing:
        yield failing


@pytest.fixture
def connection() -> Iterator[Connection]:
    pytest.importorskip("obstore")
    with Connection().installed() as failing:
        yield failing


def run(
    machine: type[History], disk: Disk | Connection, examples: int, steps: int = 50
) -> Counter[str]:
    """Run a machine; return how often what happened."""
    seen: Counter[str] = Counter()
    bound = type(machine.__name__, (machine,), {"disk": disk, "seen": seen})
    # Without shrinking, which takes minutes: the steps that led to a failure are printed as they
    # are.
    options = settings(
        max_examples=examples,
        stateful_step_count=steps,
        phases=[Phase.generate],
        report_multiple_bugs=False,
    )
    run_state_machine_as_test(bound, settings=options)
    return seen


@pytest.mark.parametrize("machine", MACHINES)
def test_history__of_a_few_hundred_steps(machine: type[History], disk: Disk) -> None:
    """What happens is drawn; what must happen at least, `test_history__every_fault` sees to."""
    with light_groups():
        seen = run(machine, disk, examples=14)
    assert seen["steps"] >= 400  # as many as a version of hypothesis draws


def walk(machine: type[History], disk: Disk | Connection, n_places: int) -> Counter[str]:
    """Let every fault happen at as many places of a change, one after the other."""
    seen: Counter[str] = Counter()
    history = type(machine.__name__, (machine,), {"disk": disk, "seen": seen})()
    try:
        history.begin()
        faults = [Fault(kind, 2 * place / 32) for place in range(n_places) for kind in KINDS]
        for number, fault in enumerate(faults):
            history.go_on(number, fault)
    finally:
        history.teardown()
    return seen


def check_faults(seen: Counter[str]) -> None:
    """Every kind of fault struck, more than once."""
    assert seen["killed: killed"] >= 2
    assert seen["power cut: killed"] >= 2
    assert seen["full: refused"] >= 2
    assert seen["rival: refused"] >= 2
    assert seen["interrupted: interrupted"] >= 2


@pytest.mark.parametrize("machine", MACHINES)
def test_history__every_fault(machine: type[History], disk: Disk) -> None:
    with light_groups():
        seen = walk(machine, disk, 16)
    check_faults(seen)


@pytest.mark.parametrize("machine", REMOTE)
def test_history__every_fault_on_an_object_store(
    machine: type[History], connection: Connection
) -> None:
    seen = walk(machine, connection, 8)
    check_faults(seen)


# Whoever is killed leaves coroutines of Zarr that nobody awaits.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("machine", MACHINES)
def test_history__with_groups_of_zarr(machine: type[History], disk: Disk) -> None:
    """The same with the groups that users get, fifty times as slow."""
    # Zarr writes from threads, in no fixed order: nothing is drawn, so that no draw depends on it.
    seen = walk(machine, disk, 6)
    check_faults(seen)


@pytest.mark.parametrize("machine", REMOTE)
def test_history__on_an_object_store(machine: type[History], connection: Connection) -> None:
    assert run(machine, connection, examples=7, steps=25)["steps"] >= 50


@pytest.mark.nightly
@pytest.mark.long
@pytest.mark.parametrize(("machine", "examples"), [(TreeHistory, 300), (StreamHistory, 400)])
def test_history__of_tens_of_thousands_of_steps(
    machine: type[History], examples: int, disk: Disk
) -> None:
    """Of both machines together; ``HISTORIES=4`` in the environment makes four times as many."""
    examples *= int(os.environ.get("HISTORIES", "1"))
    with light_groups():
        seen = run(machine, disk, examples)
    assert seen["steps"] >= 35 * examples
