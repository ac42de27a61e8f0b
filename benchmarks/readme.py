"""Write the tables of the README, and the reports beside the results, from the results.

    python benchmarks/readme.py           # writes
    python benchmarks/readme.py --check   # fails where something differs from its results
    python benchmarks/readme.py --figures # draws the figures again too; measures nothing

A table stands between the lines ``<!-- results:NAME -->`` and ``<!-- /results:NAME -->``, and is
what ``readme(data)`` of the benchmark of that name makes of its results; ``report(data)`` makes
``results/NAME.md``, and ``page(data)``, where there is one, ``docs/guide/NAME.md``. Nobody writes
them by hand.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import active_margin
import boosting
import bregman
import by_task
import common
import covers
import install_size
import kernels
import logistic
import mixtures
import peers_kmeans
import quality
import representatives
import strong_blocks
import svm_offline
import svm_queries
import svm_streaming
import table1
import table2
import throughput
import time_to_accuracy
import tree

_WRITTEN = (
    quality, table1, svm_offline, svm_queries, svm_streaming, time_to_accuracy, covers,
    install_size, peers_kmeans, strong_blocks, tree, active_margin, boosting,
    bregman, kernels, logistic, mixtures, representatives,
    throughput,
)  # fmt: skip

MODULES = {module.NAME: module for module in _WRITTEN}

# Those of `max_margin` need a run: its curves are not among the results.
DRAWN = (
    *(module for module in _WRITTEN if hasattr(module, "figures")),
    table2,
)


def placed(text: str, name: str, table: str) -> str:
    """Put a table between its marks."""
    first, last = f"<!-- results:{name} -->\n", f"\n<!-- /results:{name} -->"
    before, found, rest = text.partition(first)
    _, ended, after = rest.partition(last.lstrip("\n"))
    if not (found and ended):
        raise SystemExit(f"README.md has no place for {name}: it needs the lines {first}{last[1:]}")
    return f"{before}{first}{table}{last}{after}"


def rendered(text: str, results: Path) -> str:
    """Return the text of the README with its tables made again."""
    for name, module in MODULES.items():
        if hasattr(module, "readme"):
            text = placed(text, name, module.readme(common.read(name, results)))
    return placed(text, by_task.NAME, by_task.table(results))


def main() -> None:
    """Write or check."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="write nothing, fail on differences")
    parser.add_argument("--results", type=Path, default=common.RESULTS)
    parser.add_argument("--readme", type=Path, default=Path(__file__).parent.parent / "README.md")
    parser.add_argument("--figures", action="store_true", help="draw the figures again too")
    args = parser.parse_args()
    for module in DRAWN if args.figures else ():
        common.draw(common.read(module.NAME, args.results), args.results, module.figures)
    wanted = {args.readme: rendered(args.readme.read_text(), args.results)}
    for name, module in MODULES.items():
        wanted[args.results / f"{name}.md"] = module.report(common.read(name, args.results))
    differing = [
        path for path, text in wanted.items() if not path.exists() or path.read_text() != text
    ]
    if args.check and differing:
        names = ", ".join(path.name for path in differing)
        sys.exit(f"{names} differ from the results; run python benchmarks/readme.py")
    for path in differing:
        path.write_text(wanted[path])
        print(f"wrote {path}")


if __name__ == "__main__":
    main()
