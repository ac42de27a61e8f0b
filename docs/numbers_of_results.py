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


# Where the rows of one_read.py come from, as its results name it, and as pages do.
_PLACES = {
    "local disk, in the cache of the system": "disk",
    "local disk, not in the cache of the system": "cold",
    "30 ms and 50 MB/s a request": "remote",
    "100 MB/s in all": "slow",
}


def _read(name: str) -> dict[str, Any]:
    results: dict[str, Any] = json.loads((RESULTS / f"{name}.json").read_text())
    return results


def _one_read() -> dict[str, str]:
    """Seconds and peak memory of a portfolio over those of its dearest member.

    A disk outside of the cache is there only where the system of the run can drop files from it.
    """
    found = {
        "one_read_cold": "The disk itself was not measured, for this system does not drop files "
        "from its cache;"
    }
    for place, ratios in _read("one_read")["ratios"].items():
        name, time = _PLACES[place], f"{statistics.median(ratios['seconds']):.1f}"
        found[f"one_read_{name}_time"] = time
        found[f"one_read_{name}_memory"] = f"{ratios['peak']:.1f}"
        if name == "cold":
            found["one_read_cold"] = (
                f"From the disk itself, as data larger than memory are read, it was {time} times "
                f"as long;"
            )
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
    return _cells((RESULTS / f"{name}.md").read_text())


def _cells(text: str) -> list[list[str]]:
    lines = [line for line in text.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def _number(cell: str) -> float:
    """Return the first number of a cell."""
    found = re.search(r"-?[\d,]*\.?\d+", cell)
    if found is None:
        raise ValueError(f"{cell!r} has no number")
    return float(found[0].replace(",", ""))


def _columns(name: str, column: str, *keys: str) -> list[str]:
    """Return the cells of a column of a report in all rows that have these cells before it."""
    found, at = [], None
    for cells in _rows(name):
        if set(cells[0]) <= {"-", ":"}:
            continue  # the line under the heads
        if column in cells:
            at, width = cells.index(column), len(cells)
        elif at is not None and len(cells) == width and set(keys) <= set(cells[:at]):
            found.append(cells[at])
        elif at is not None and len(cells) != width:
            at = None  # another table
    if not found:
        raise ValueError(f"{name}.md has no cell of {column!r} in a row of {keys}")
    return found


def _cell(name: str, column: str, *keys: str) -> float:
    return _number(_columns(name, column, *keys)[0])


def _representatives() -> dict[str, str]:
    """Excess cost of centers over those of all rows, from ten points a cluster, in per cent."""
    found = {}
    for name in ("cod_rna", "credit", "kdd_bio"):
        for kind in ("rows", "centroids"):
            cost = _cell("representatives", f"{kind}: cost", name, "100", "1,000")
            found[f"{kind}_{name}"] = f"{cost:.1f}"
    return found


def _boosting() -> dict[str, str]:
    """On how many sets the gap is at most half of a uniform sample's, by learner, and the others.

    And on which the loss is larger, in the mean or beyond chance, the hostile ones apart.
    """
    text = (RESULTS / "boosting.md").read_text().partition("## Seconds")[0]
    found = {"boosting_seeds": re.findall(r"deviation of (\d+) seeds", text)[0]}
    real, _, made = text.partition("## Hostile sets")
    for end, part in (("", real), ("_hostile", made)):
        heads, *rows = (row for row in _cells(part) if set(row[0]) != {"-"})
        at = next(i for i, row in enumerate(rows) if row[0] == "construction")
        counts, rows = [dict(zip(rows[at], row, strict=True)) for row in rows[at + 1 :]], rows[:at]
        found[f"boosting_sets{end}"] = f"{len({row[0] for row in rows})}"
        for draw in ("svm", "logistic", "gradient"):
            own = [one for one in counts if one["construction"] == draw]
            beyond = [one["larger beyond chance"].partition(": ")[2] for one in own]
            names = sorted({name for one in beyond for name in one.split(", ") if name})
            found[f"boosting_{draw}_larger{end}"] = ", ".join(names) or "none"
            if not end:
                gaps = [_number(row[heads.index(draw)]) for row in rows]
                found[f"boosting_{draw}_most"] = f"{max(gaps):.2f}"
                halves = {one["model"]: one["half the gap"] for one in own}
                found |= {f"boosting_{draw}_{model}": half for model, half in halves.items()}
    return found


def _cube() -> dict[str, str]:
    """Size of the cube that was clustered, and the memory that it took."""
    cells = dict(row for row in _rows("cube") if len(row) == 2)
    return {
        "cube_size": cells["cube"].split(" in ")[0],
        "cube_peak": cells["peak memory"],
    }


def _mixtures() -> dict[str, str]:
    """How far the objective of EM and `lower_bound_` are from the likelihood, and who wins."""
    heads, _, *rows = _rows("mixtures")
    at = heads.index("to gain") - 1
    found = {"mixtures_sets": f"{len({name for name, *_ in rows})}"}
    for end, size in (("", "1,000"), ("_large", "10,000")):
        cells = _columns("mixtures", "objective above, coreset", size)
        objective = [_number(cell) for cell in cells]
        gains = [
            [float(part) for part in cell.split(" ± ")]
            for cell in _columns("mixtures", "gain", size)
        ]
        even = []
        for name, *cells in rows:
            gap, width = (float(part) for part in cells[at].split(" ± "))
            even += [name] if cells[1] == size and gap <= width else []
        found |= {
            f"mixtures_even{end}": ", ".join(even) or "none",
            f"mixtures_objective_least{end}": f"{min(objective):.2f}",
            f"mixtures_objective_most{end}": f"{max(objective):.2f}",
            f"mixtures_won{end}": f"{sum(mean > width for mean, width in gains)}",
            f"mixtures_lost{end}": f"{sum(-mean > width for mean, width in gains)}",
        }
        for peer, head in (
            ("peer", "gain over scikit-learn"),
            ("alone", "gain over uniform alone"),
        ):
            over = [_number(cell) for cell in _columns("mixtures", head, size)]
            found |= {
                f"mixtures_{peer}_least{end}": f"{min(over):.2f}",
                f"mixtures_{peer}_most{end}": f"{max(over):.2f}",
            }
    fitted, whole = (
        [_number(cell) for cell in _columns("mixtures", head, "10,000")]
        for head in ("coreset", "scikit-learn, all rows")
    )
    above = sum(one > other for one, other in zip(fitted, whole, strict=True))
    found["mixtures_above_all"] = f"{above}"
    off = [abs(_number(cell)) for cell in _columns("mixtures", "`lower_bound_` above, coreset")]
    return found | {"mixtures_off_most": f"{max(off):.2f}"}


def _bregman() -> dict[str, str]:
    """Excess divergence of hard clusterings of counts on 300 rows, in %."""
    off = [_number(cell) for cell in _columns("bregman", "k-means, transformed", "300")]
    hard = off[: len(off) // 2]  # the second table is of mixtures, in nats
    return {"bregman_transformed": f"{max(hard):.1f}"} | {
        f"bregman_{short}_{kind}": f"{_cell('bregman', kind, name, '300'):.1f}"
        for short, name in (("topics", "topics (made)"), ("words", "w8a words"))
        for kind in ("strong", "uniform")
    }


def _logistic() -> dict[str, str]:
    """Least ratio of the excess costs of one read and of two, where two are made."""
    ratios, sets = [], set()
    for part in re.split(r"^## ", (RESULTS / "logistic.md").read_text(), flags=re.MULTILINE)[1:]:
        name = part.split(":")[0]
        if name != "w8a":  # of so many columns that a second read is of no use
            head, *rows = _cells(part)
            cells = dict(
                zip(head, next(row for row in rows if row[0] == "the same problem"), strict=True)
            )
            ratios.append(_number(cells["one read"]) / _number(cells["two reads"]))
            sets.add(name)
    return {"logistic_sets": f"{len(sets)}", "logistic_least": f"{min(ratios):.1f}"}


def _svm_losses() -> dict[str, str]:
    """Largest excess cost of a loss that the coreset is not for, in %."""
    worst = [_number(cell) for cell in _columns("svm_losses", "svm, worst")]
    rows = re.search(r"per cent, (\d+) rows", (RESULTS / "svm_losses.md").read_text())
    return {
        "svm_losses_worst": f"{max(worst):.1f}",
        "svm_losses_sets": f"{len(set(_columns('svm_losses', 'set')))}",
        "svm_losses_rows": rows[1] if rows else "",
    }


def _costs_of_builds() -> dict[str, str]:
    """Processor seconds of builds in one read, of rows in memory."""
    jobs = {"10": "k = 10, one read", "100": "k = 100, one read", "lightweight": "lightweight"}
    data = "2,000,000 x 20 float32"
    seconds = {
        name: _cell("strong_blocks", "processor now", data, job) for name, job in jobs.items()
    }
    return {f"build_{name}": f"{value:.2f}" for name, value in seconds.items()}


def _trees() -> dict[str, str]:
    """Errors of trees and streams, with nodes of twice the size, over those of one build."""
    whole, found = {}, {}
    heads, _, *rows = (row for row in _rows("tree") if len(row) == 6)
    at = heads.index("inner = 2 size")
    ratios: dict[str, list[float]] = {"tree, split_every=16": [], "stream": []}
    for data, form, *cells in rows:
        if form == "from all rows":
            whole[data] = _number(cells[0])
        elif form in ratios:
            ratios[form].append(_number(cells[at - 2]) / whole[data])
    for name, form in (("tree", "tree, split_every=16"), ("stream", "stream")):
        found[f"{name}_least"] = f"{min(ratios[form]):.2f}"
        found[f"{name}_most"] = f"{max(ratios[form]):.2f}"
    return found


_PARTS = (
    _one_read, _refresh, _representatives, _boosting, _cube,
    _mixtures, _bregman, _logistic, _svm_losses,
    _costs_of_builds, _trees,
)  # fmt: skip


def substitutions() -> dict[str, str]:
    """Return the numbers by the names that stand in the text."""
    return {name: number for part in _PARTS for name, number in part().items()}
