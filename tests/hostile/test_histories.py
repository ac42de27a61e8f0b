"""Histories of stored trees and streams: changes, kills, full disks and rivals, in any order.

After every fault the store opens, is what it was before the change or after it, `verify` finds
nothing, no row is lost or counted twice, and the next change clears away what was left.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import pytest
from hypothesis import Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from tests.tools.disk import Disk
from tests.tools.histories import History, StreamHistory, TreeHistory
from tests.tools.light_groups import light_groups


@pytest.fixture
def disk() -> Iterator[Disk]:
    with Disk().installed() as failing:
        yield failing


def run(machine: type[History], disk: Disk, examples: int, steps: int = 50) -> Counter[str]:
    """Run a machine; return how often what happened."""
    seen: Counter[str] = Counter()
    bound = type(machine.__name__, (machine,), {"disk": disk, "seen": seen})
    # Without shrinking, which takes minutes: the seconds before the fault are printed as it is.
    options = settings(
        max_examples=examples,
        stateful_step_count=steps,
        phases=[Phase.generate],
        report_multiple_bugs=False,
    )
    run_state_machine_as_test(bound, settings=options)
    return seen


@pytest.mark.parametrize("machine", [TreeHistory, StreamHistory])
def test_history__with_light_groups(machine: type[History], disk: Disk) -> None:
    with light_groups():
        seen = run(machine, disk, 12)
    print(seen)
