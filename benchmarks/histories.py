"""Histories of stored trees and streams with faults: what was done, how often, and what was lost.

The state machines of the tests, on a disk in memory, until there are so many steps. A step that
finds a row lost, a row counted twice, or a store that does not open ends the run.

    python benchmarks/histories.py --steps 100000
"""

from __future__ import annotations

import sys
import time
from collections import Counter
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import common
from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis.stateful import run_state_machine_as_test

sys.path.insert(0, str(Path(__file__).parent.parent))

from tests.tools.disk import Connection, Disk
from tests.tools.histories import RemoteTreeHistory, StreamHistory, TreeHistory
from tests.tools.light_groups import light_groups

STEPS = 50  # of a history

# What it is, on what, whether groups are light, and its part of all steps.
MACHINES: dict[str, tuple[Any, Any, bool, float]] = {
    "tree": (TreeHistory, Disk, True, 0.45),
    "stream": (StreamHistory, Disk, True, 0.45),
    "tree on an object store": (RemoteTreeHistory, Connection, False, 0.1),
}


def run(name: str, steps: int) -> tuple[Counter[str], float]:
    """Run a machine for so many steps, in parts with seeds of their own; return what happened."""
    machine, failing, light, _ = MACHINES[name]
    seen: Counter[str] = Counter()
    options = settings(
        max_examples=20, stateful_step_count=STEPS, phases=[Phase.generate], deadline=None,
        database=None, derandomize=False, report_multiple_bugs=False,
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    start, part = time.perf_counter(), 0
    with failing().installed() as disk, light_groups() if light else nullcontext():
        while seen["steps"] < steps:
            bound = type(machine.__name__, (machine,), {"disk": disk, "seen": seen})
            run_state_machine_as_test(seed(part)(bound), settings=options)
            part += 1
    return seen, time.perf_counter() - start


def report(data: dict[str, Any]) -> str:
    """Return the table."""
    results = data["results"]
    events = sorted({event for cell in results.values() for event in cell["seen"]} - {"steps"})
    rows = [
        ["steps", *(f"{cell['seen']['steps']:,}" for cell in results.values())],
        *([event, *(cell["seen"].get(event, 0) for cell in results.values())] for event in events),
        ["rows lost or counted twice", *(0 for _ in results)],
        ["stores that did not open", *(0 for _ in results)],
        ["seconds", *(f"{cell['seconds']:.0f}" for cell in results.values())],
    ]
    total = sum(cell["seen"]["steps"] for cell in results.values())
    text = (
        f"{total:,} steps of random histories; a fault and how the change under it ended, with how "
        f"often. A step that finds a loss ends the run. {common.stamped(data)}"
    )
    return "\n".join([text, "", *common.table(["event", *results], rows), ""])


def main() -> None:
    """Run the benchmark."""
    parser = common.arguments(__doc__)
    parser.add_argument("--steps", type=int, default=100_000)
    args = parser.parse_args()
    results: dict[str, Any] = {}
    stamp = common.stamp(steps=args.steps)
    for name, (*_, share) in MACHINES.items():
        seen, seconds = run(name, int(args.steps * share))
        results[name] = {"seen": dict(seen), "seconds": seconds}
        common.printed([name, seen["steps"], f"{seconds:.0f} s"])
        common.write("histories", {"stamp": stamp, "results": results}, args.out, report)


if __name__ == "__main__":
    main()
