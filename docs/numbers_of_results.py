"""Numbers in the sentences of the guide, from the results of the benchmarks.

A sentence holds the name of a number in double braces, ``{{ one_read_disk_time }}``, and the build
of the documentation puts the number there.
"""

from __future__ import annotations

import json
import re
import statistics
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parent.parent / "benchmarks" / "results"


def _read(name: str) -> dict[str, Any]:
    results: dict[str, Any] = json.loads((RESULTS / f"{name}.json").read_text())
    return results


def _one_read() -> dict[str, str]:
    """Seconds and peak memory of a portfolio over those of its dearest member."""
    found = {}
    for name, ratios in zip(
        ("disk", "remote", "slow"), _read("one_read")["ratios"].values(), strict=True
    ):
        found[f"one_read_{name}_time"] = f"{statistics.median(ratios['seconds']):.1f}"
        found[f"one_read_{name}_memory"] = f"{ratios['peak']:.1f}"
    return found


def _refresh() -> dict[str, str]:
    """Smallest and largest ratio of the errors of views and direct builds."""
    text = _read("refresh")["parts"]["error"]["text"]
    ratios = [
        float(ratio) for ratio in re.findall(r"\| (\d\.\d\d) \| \d\.\d\d - \d\.\d\d \|", text)
    ]
    return {"refresh_least": f"{min(ratios):.2f}", "refresh_most": f"{max(ratios):.2f}"}


def _rows(name: str) -> list[list[str]]:
    """Cells of the tables of a report, row by row."""
    lines = (RESULTS / f"{name}.md").read_text().splitlines()
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if "|" in line]


def _representatives() -> dict[str, str]:
    """Excess cost of centers over those of all rows, from ten points a cluster, in per cent."""
    found = {}
    for name, k, size, rows, centroids, *_ in _rows("representatives"):
        if (k, size) == ("100", "1,000") and name in {"cod_rna", "credit", "kdd_bio"}:
            for kind, cell in (("rows", rows), ("centroids", centroids)):
                found[f"{kind}_{name}"] = f"{float(cell.split()[0]):.1f}"
    return found


def _boosting() -> dict[str, str]:
    """Of nine sets, on how many the gap is at most half of a uniform sample's, and the others."""
    heads, _, *rows = _rows("boosting")
    found = {}
    for draw in ("svm", "gradient"):
        gaps = [float(row[heads.index(draw)]) for row in rows]
        others = [gap for gap in gaps if gap > 0.5]
        found[f"boosting_{draw}_half"] = f"{len(gaps) - len(others)}"
        found[f"boosting_{draw}_least"] = f"{min(others):.2f}"
        found[f"boosting_{draw}_most"] = f"{max(others):.2f}"
    return found | {"boosting_sets": f"{len(rows)}"}


def _cube() -> dict[str, str]:
    """Size of the cube that was clustered, and the memory that it took."""
    cells = dict(row for row in _rows("cube") if len(row) == 2)
    return {
        "cube_size": cells["cube"].split(" in ")[0],
        "cube_peak": cells["peak memory"],
    }


def substitutions() -> dict[str, str]:
    """Return the numbers by the names that stand in the text."""
    return _one_read() | _refresh() | _representatives() | _boosting() | _cube()
