"""Compare the time of usual builds of two checkouts, alternating, on threads and on a cluster.

Each checkout has a process of its own that stays up; the two take turns, so that what else the
machine does falls on both alike. Prints the median ratio of old to new times.

    git worktree add /tmp/old main
    python benchmarks/same_speed.py /tmp/old .
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median

import common

D, CHUNK_ROWS = 20, 100_000  # 8 MB

CHILD = """
import sys, time
import daskcoreset

def main():
    where, path = sys.argv[1:]
    if where == "cluster":
        from distributed import Client, LocalCluster
        cluster = LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0")
        client = Client(cluster)
    for passes in sys.stdin:
        start = time.perf_counter()
        daskcoreset.build(path, random_state=0, progress=False, passes=int(passes))
        print(time.perf_counter() - start, flush=True)

if __name__ == "__main__":
    main()
"""


class Child:
    """The process of a checkout."""

    def __init__(self, checkout: Path, script: Path, where: str, path: Path) -> None:
        self.process = subprocess.Popen(
            [sys.executable, str(script), where, str(path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ | {"PYTHONPATH": str(checkout.resolve())},
        )

    def build(self, passes: int) -> float:
        """Seconds of one build."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        print(passes, file=self.process.stdin, flush=True)
        return float(self.process.stdout.readline())

    def end(self) -> None:
        """End the process, and its workers."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait(60)


def main() -> None:
    """Print the median ratios."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("checkouts", type=Path, nargs=2, metavar="CHECKOUT", help="old, new")
    parser.add_argument("--blocks", type=int, default=40)
    parser.add_argument("--repeats", type=int, default=9)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        path, script = folder / "X.zarr", folder / "child.py"
        script.write_text(CHILD)
        common.write_rows(path, args.blocks * CHUNK_ROWS, D, CHUNK_ROWS, common.gaussian(D))
        for where in ("threads", "cluster"):
            pair = [Child(checkout, script, where, path) for checkout in args.checkouts]
            for passes in (1, 2):
                for child in pair:
                    child.build(passes)  # workers import and compile once
                times = [[child.build(passes) for child in pair] for _ in range(args.repeats)]
                ratio = median(old / new for old, new in times)
                new = median(new for _, new in times)
                print(
                    f"{where}, passes={passes}: old / new {ratio:.3f}, new {new:.2f} s", flush=True
                )
            for child in pair:
                child.end()


if __name__ == "__main__":
    main()
