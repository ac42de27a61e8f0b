"""Numbers in the sentences of the guide, from the results of the benchmarks.

A sentence holds the name of a number in double braces, ``{{ one_read_disk_time }}``, and the build
of the documentation puts the number there.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parent.parent / "benchmarks" / "results"


def _read(name: str) -> dict[str, Any]:
    results: dict[str, Any] = json.loads((RESULTS / f"{name}.json").read_text())
    return results


def _one_read() -> dict[str, str]:
    """Seconds and peak memory of a portfolio over those of its dearest member."""
    found = {}
    for name, builds in zip(("disk", "remote"), _read("one_read")["results"].values(), strict=True):
        together = builds["all together"]
        alone = [build for member, build in builds.items() if member != "all together"]
        for word, key in (("time", "seconds"), ("memory", "peak")):
            ratio = together[key] / max(build[key] for build in alone)
            found[f"one_read_{name}_{word}"] = f"{ratio:.1f}"
    return found


def _refresh() -> dict[str, str]:
    """Smallest and largest ratio of the errors of views and direct builds."""
    text = _read("refresh")["parts"]["error"]["text"]
    ratios = [
        float(ratio) for ratio in re.findall(r"\| (\d\.\d\d) \| \d\.\d\d - \d\.\d\d \|", text)
    ]
    return {"refresh_least": f"{min(ratios):.2f}", "refresh_most": f"{max(ratios):.2f}"}


def substitutions() -> dict[str, str]:
    """Return the numbers by the names that stand in the text."""
    return _one_read() | _refresh()
