"""Histories of stored trees and streams with faults: what was done, how often, and what was lost.

The state machines of the tests, on a disk in memory, until there are so many steps: rows, weights
and versions of the store are compared with a model. A part of a history that ends with a
difference, or with an error, is recorded, and the script then fails when all is done. Results
are written after every part, of all machines in turn, so that a run that is stopped leaves a
table of what it did.

    python benchmarks/histories.py --steps 100000
"""

from __future__ import annotations

import sys
import time
import traceback
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import common
from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis.stateful import run_state_machine_as_test

sys.path.insert(0, str(Path(__file__).parent.parent))

from tests.acceptance.tools.disk import Connection, Disk
from tests.acceptance.tools.histories import RemoteTreeHistory, StreamHistory, TreeHistory

STEPS = 50  # of a history

# What it is, on what, and its part of all steps.
MACHINES: dict[str, tuple[Any, Any, float]] = {
    "tree": (TreeHistory, Disk, 0.48),
    "stream": (StreamHistory, Disk, 0.48),
    "tree on an object store": (RemoteTreeHistory, Connection, 0.04),
}

# What is counted beside faults.

OPTIONS = settings(
    max_examples=10, stateful_step_count=STEPS, phases=[Phase.generate], deadline=None,
    database=None, derandomize=False, report_multiple_bugs=False,
    suppress_health_check=list(HealthCheck),
)  # fmt: skip


@dataclass
class Found:
    """What a machine did.

    Attributes
    ----------
    seen : Counter
        Steps, faults, and what was compared, by how often.
    failures : list of str
        Differences from the model and errors, with the seeds of their parts.
    """

    seen: Counter[str] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)
    parts: int = 0
    seconds: float = 0.0


def run(name: str, found: Found) -> None:
    """Run a machine for another part, with a seed of its own."""
    machine, failing, _ = MACHINES[name]
    start = time.perf_counter()
    with failing().installed() as disk:
        bound = type(machine.__name__, (machine,), {"disk": disk, "seen": found.seen})
        try:
            run_state_machine_as_test(seed(found.parts)(bound), settings=OPTIONS)
        except Exception as error:  # noqa: BLE001 - whatever it is, nothing like it may be
            traceback.print_exc()
            found.failures.append(f"seed {found.parts}: {error!r}")
    found.parts += 1
    found.seconds += time.perf_counter() - start


def main() -> int:
    """Run the benchmark."""
    parser = common.arguments(__doc__)
    parser.add_argument("--steps", type=int, default=100_000)
    args = parser.parse_args()
    stamp = common.stamp(steps=args.steps)
    results = {name: Found() for name in MACHINES}

    def done(name: str) -> float:
        found = results[name]
        # One that fails at once would never come to its steps.
        given_up = len(found.failures) >= 20
        return 1.0 if given_up else found.seen["steps"] / (args.steps * MACHINES[name][-1])

    while (last := min(results, key=done)) and done(last) < 1:
        run(last, results[last])
        common.printed([last, results[last].seen["steps"], f"{results[last].seconds:.0f} s"])
        cells = {name: vars(found) for name, found in results.items()}
        common.write("histories", {"stamp": stamp, "results": cells}, args.out)
    return int(any(found.failures for found in results.values()))


if __name__ == "__main__":
    sys.exit(main())
