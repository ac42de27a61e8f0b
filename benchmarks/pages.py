"""Write the generated tables of the README and of the documentation from the results.

    python benchmarks/pages.py           # writes
    python benchmarks/pages.py --check   # fails if a table differs from its results

A table stands between the lines ``<!-- results:NAME -->`` and ``<!-- /results:NAME -->``, and is
what the function of that name in `TABLES` makes of ``results/*.json``. Nobody writes them by hand.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from statistics import mean, median
from typing import Any

import by_task
import common
import numpy as np

ROOT = Path(__file__).parent.parent
PAGES = (
    ROOT / "README.md", ROOT / "docs" / "index.md", ROOT / "docs" / "guarantees.md",
    *sorted((ROOT / "docs" / "benchmarks").glob("*.md")),
)  # fmt: skip
_MARKED = re.compile(r"<!-- results:(\w+) -->\n(.*?)<!-- /results:\1 -->", re.DOTALL)

Data = dict[str, Any]


def percent(shares: Sequence[float] | np.ndarray) -> str:
    """Return the mean of shares in per cent, with its 95 % interval."""
    values = 100 * np.asarray(shares)
    places = 0 if abs(values.mean()) >= 20 else 1
    text = f"{round(float(values.mean()), places) + 0.0:.{places}f}"
    return f"{text}\u00a0±\u00a0{common.interval(values):.{places}f}" if len(values) > 1 else text


def number(values: Sequence[float], places: int = 2) -> str:
    """Return a mean with its 95 % interval."""
    return f"{np.mean(values):.{places}f}\u00a0±\u00a0{common.interval(values):.{places}f}"


def bold_least(cells: Sequence[str], values: Sequence[float]) -> list[str]:
    """Return the cells, of which those that show the smallest value are bold."""
    least = cells[int(np.argmin(values))]
    return [f"**{cell}**" if cell == least else cell for cell in cells]


def seeds_of(counts: Iterable[int]) -> str:
    """Return how many seeds there are."""
    known = sorted(set(counts))
    return f"{' to '.join(str(one) for one in dict.fromkeys((known[0], known[-1])))} seeds"


def stamped_others(data: Data) -> str:
    """Say which run made the results of the other methods, if it was another one."""
    stamp = data.get("stamp of others", data.get("stamp of peers"))
    return common.stamped({"stamp": stamp}).replace("Run:", " Others:") if stamp else ""


# --- k-means ---------------------------------------------------------------------------------

_SAMPLED = {
    "`CoresetKMeans`": "`CoresetKMeans`",
    "`StrongKMeans`": "`StrongKMeans`",
    "`build`": "`build(X)`",
    "lightweight, paper": "lightweight, as published",
    "uniform": "uniform",
}
CONTESTANTS = {
    "CoresetKMeans": "`CoresetKMeans`",
    "sklearn.KMeans, all rows": "`KMeans`, all rows",
    "uniform, 10,000 rows": "10,000 uniform rows",
    "uniform, 50,000 rows": "50,000 uniform rows",
    "sklearn.MiniBatchKMeans": "`MiniBatchKMeans`",
    "dask_ml.KMeans": "dask-ml `KMeans`",
    "faiss.Kmeans, all rows": "faiss, all rows",
    "faiss.Kmeans": "faiss, its sample",
}
"""Contestants of `peers_kmeans`, and how the tables name them."""
HEADLINE = (
    "CoresetKMeans", "sklearn.KMeans, all rows", "uniform, 50,000 rows", "sklearn.MiniBatchKMeans",
    "dask_ml.KMeans",
)  # fmt: skip


def above(result: Data, name: str) -> float:
    """Return the mean cost of a contestant above that of the best run of all, in per cent."""
    best = min(run["cost"] for runs in result["runs"].values() for run in runs)
    return 100 * (mean(run["cost"] for run in result["runs"][name]) / best - 1)


def peak_of(result: Data, name: str) -> float:
    """Return the largest memory of the runs of a contestant, in MiB."""
    return max(run["peak"] for run in result["runs"][name]) / 2**20


def median_of(result: Data, name: str, clock: str) -> float:
    """Return the median seconds of a contestant."""
    return median(run[clock] for run in result["runs"][name])


def contest_stamps(results: Sequence[Data]) -> str:
    """Say which runs made results of `peers_kmeans`, and by which rules."""
    stamps = {one["stamp"]["commit"]: one["stamp"] for one in results}
    last = results[-1]["stamp"]
    versions = ", ".join(f"{name} {one}" for name, one in last["peers"].items())
    first = " The runs had priority over other work." if last["niceness"] < 0 else ""
    runs = " ".join(common.stamped({"stamp": stamp}) for stamp in stamps.values())
    return (
        f"Mean cost, median time and largest memory of at most {last['turns']} runs. A run is "
        f"stopped after {last['limit']} s of processor time. {runs}{first} Versions: {versions}."
    )


def headline(results: Path) -> list[str]:
    """Return the table of the README, and the errors on two real sets."""
    data, quality = (common.read(name, results) for name in ("peers_kmeans", "quality"))
    made = next(one for one in data["results"] if (one["set"], one["k"]) == ("made", 100))
    rows = []
    for name in HEADLINE:
        cells = ["stopped" if name in made["runs"] else "not installed", "", ""]
        if made["runs"].get(name):
            cost, peak = f"{above(made, name):.1f} %", f"{peak_of(made, name):.0f} MiB"
            cells = [cost, peak, f"{median_of(made, name, 'wall'):.1f} s"]
        rows.append([CONTESTANTS[name], *cells])
    n, d = made["shape"]
    caption = f"{n:,} x {d} rows in a Zarr store, 100 clusters. {contest_stamps([made])}"
    cells = {one["set"]: one["cells"] for one in quality["results"]}

    def error(name: str, method: str) -> str:
        return f"{100 * np.mean(cells[name][f'{method}|1000']['errors']):.0f} %"

    uniform, ours = (
        [error(name, method) for name in ("kdd_bio", "covtype")]
        for method in ("uniform", "`CoresetKMeans`")
    )
    real = (
        f"On kdd_bio and covtype, with {quality['stamp']['k']} clusters and 1,000 rows, uniform "
        f"samples cost {' and '.join(uniform)} more than k-means on all rows. `CoresetKMeans` "
        f"costs {' and '.join(ours)} more."
    )
    heads = ["method", "cost above the best run", "peak memory", "time"]
    return [caption, "", *common.table(heads, rows), "", real]


def quality(results: Path) -> list[str]:
    """Return errors at equal size on real sets."""
    data = common.read("quality", results)
    rows = []
    for one in data["results"]:
        for size in common.sizes_of(one["cells"]):
            found = [one["cells"][f"{method}|{size}"]["errors"] for method in _SAMPLED]
            cells = bold_least([*map(percent, found)], [*map(np.mean, found)])
            rows.append([one["set"], f"{size:,}", *cells])
    cells = data["results"][0]["cells"].items()
    ours, others = (
        {len(one["errors"]) for key, one in cells if ("CoresetKMeans" in key) == own}
        for own in (True, False)
    )
    counts = seeds_of(others)
    if "stamp of others" in data:
        counts += f" (`CoresetKMeans`: {seeds_of(ours)})"
    caption = (
        f"Cost above that of k-means on all rows, in %, with 95 % intervals of {counts}. The best "
        f"of a row is bold. {common.stamped(data)}{stamped_others(data)}"
    )
    return [caption, "", *common.table(["set", "size", *_SAMPLED.values()], rows)]


def peers_kmeans(results: Path) -> list[str]:
    """Return cost and processor time beside other libraries."""
    data = common.read("peers_kmeans", results)["results"]
    rows = []
    for one in data:
        found = {name: (above(one, name), median_of(one, name, "cpu"))
                 for name, runs in one["runs"].items() if runs}  # fmt: skip
        row = [one["set"].replace("made", "synthetic"), f"{one['k']:,}"]
        for name in CONTESTANTS:
            if name not in found:
                row.append("stopped" if name in one["runs"] else "-")
                continue
            cost, seconds = found[name]
            beaten = any(a < cost and b < seconds for a, b in found.values())
            cell = f"{cost:.1f} ({seconds:.1f} s)"
            row.append(cell if beaten else f"**{cell}**")
        rows.append(row)
    caption = (
        "Cost above the best run in %, and processor time. Bold: no other method has both a "
        f"smaller cost and less time. {contest_stamps(data)}"
    )
    return [caption, "", *common.table(["set", "k", *CONTESTANTS.values()], rows)]


def peers_memory(results: Path) -> list[str]:
    """Return peak memory beside other libraries."""
    sets: dict[str, list[Data]] = {}
    for one in common.read("peers_kmeans", results)["results"]:
        sets.setdefault(one["set"], []).append(one)
    rows = []
    for name, found in sets.items():
        n, d = found[0]["shape"]
        row = [name.replace("made", "synthetic"), f"{n:,} x {d}"]
        for each in CONTESTANTS:
            peaks = [peak_of(one, each) for one in found if one["runs"].get(each)]
            row.append(f"{max(peaks):,.0f}" if peaks else "-")
        rows.append(row)
    caption = "Largest memory beyond that of the imports, in MiB, of the runs that ended."
    return [caption, "", *common.table(["set", "rows", *CONTESTANTS.values()], rows)]


# --- mixtures and Bregman clustering -----------------------------------------------------------


def mixtures(results: Path) -> list[str]:
    """Return likelihoods of mixtures on coresets and on uniform rows."""
    data = common.read("mixtures", results)
    columns = ("mixture", "uniform", "alone", "scikit-learn")
    rows = []
    for one in data["results"]:
        cells = [number(one[name]) for name in columns] + [f"{one['all']:.2f}"]
        values = [-float(np.mean(one[name])) for name in columns] + [-one["all"]]
        rows.append([one["set"], f"{one['size']:,}", *bold_least(cells, values)])
    counts = seeds_of(len(one["mixture"]) for one in data["results"])
    heads = ["set", "size", "coreset", "uniform, chosen by others", "uniform"]
    heads += ["uniform, scikit-learn", "all rows, scikit-learn"]
    caption = (
        f"Mean log-likelihood of all rows, in nats per row, with 95 % intervals of {counts}. "
        f"Larger is better, and the best of a row is bold. {common.stamped(data)}"
    )
    return [caption, "", *common.table(heads, rows)]


def bregman(results: Path) -> list[str]:
    """Return excess divergences of hard and soft clusterings."""
    data = common.read("bregman", results)
    kinds = {"hard": "hard, %", "soft": "soft, nats"}
    ours, peers = ("strong", "lightweight", "uniform"), ("all rows", "k-means, transformed")
    rows = []
    for kind, unit in kinds.items():
        for one in data["results"]:
            sizes = common.sizes_of({key: 0 for key in one["costs"] if not key.endswith("|0")})
            for size in sizes:
                found = [by_task.excess(one, kind, method, size) for method in ours]
                found += [by_task.excess(one, kind, method, 0) for method in peers]
                write: Callable[[Any], str] = percent if kind == "hard" else number
                cells = [*map(write, found[:3]), *(write(one).split(" ")[0] for one in found[3:])]
                cells = bold_least(cells, [*map(np.mean, found)])
                rows.append([one["set"].replace("made", "synthetic"), unit, f"{size:,}", *cells])
    heads = ["set", "kind", "size", *ours, "all rows", "k-means"]
    caption = (
        f"Cost above the best centers found, with 95 % intervals of {data['stamp']['seeds']} seeds "
        "on coresets. All rows, and k-means on all rows after a transform, are means of 3 seeds. "
        f"The best of a row is bold. {common.stamped(data)}"
    )
    return [caption, "", *common.table(heads, rows)]


# --- linear classifiers ------------------------------------------------------------------------


def svm_offline(results: Path) -> list[str]:
    """Return errors and seconds of support vector machines on rows of several methods."""
    data = common.read("svm_offline", results)
    methods = ("default", "uniform", "uniform, same budget", "Algorithm 1")
    rows = []
    for one in data["results"]:
        n = one["shape"][0]
        size = by_task.near(common.sizes_of(one["errors"]), min(1200, n / 4))
        found = [float(np.mean(one["errors"][f"{method}|{size}"])) for method in methods]
        took = [one["seconds"][f"{method}|{size}"] for method in methods]
        found.append(float(np.mean(one["sgd"]["errors"])))
        took.append(one["sgd"]["seconds"])
        cells = [
            f"{common.cell(error)} ({second:.2f} s)"
            for error, second in zip(found, took, strict=True)
        ]
        if abs(found[2]) < 1e-5:
            cells[2] = "all rows"
        whole = f"{one['seconds']['everything']:.2f} s"
        rows.append([f"{one['set']}: {size:,} of {n:,}", *cells, whole])
    heads = ["set: size of rows", '`"svm"`', "uniform", "uniform, same work", "Algorithm 1"]
    heads += ["averaged SGD", "all rows"]
    trials = seeds_of(one["trials"] for one in data["results"])
    apart = "".join(
        common.stamped(one).replace("Run:", f" {one['set']}:")
        for one in data["results"]
        if "stamp" in one
    )
    caption = (
        "Cost above that of the classifier on all rows, in %, and processor time to draw and train."
        f' Means of {trials}. With the same work, uniform rows are those that `"svm"` looks at. '
        f"{common.stamped(data)}{apart}"
    )
    return [caption, "", *common.table(heads, rows)]


_QUESTIONS = {
    "hinge": "hinge loss",
    "squared hinge": "squared hinge loss",
    "random w": "cost of random models",
    "poor w": "cost of poor models",
}


def logistic(results: Path) -> list[str]:
    """Return errors for the problem that the rows were drawn for, and for others."""
    data = common.read("logistic", results)
    families = dict.fromkeys(key.split("|")[0] for key in data["results"][0]["errors"])
    rows = []
    for family in families:
        own, uniform = (
            [float(np.mean(one["errors"][f"{family}|{way}"])) for one in data["results"]]
            for way in ("logistic", "uniform")
        )
        losses = sum(a > b for a, b in zip(own, uniform, strict=True))
        cells = [common.cell(median(own)), common.cell(median(uniform))]
        rows.append([_QUESTIONS.get(family, family), *cells, f"{losses} of {len(own)}"])
    heads = ["question", '`"logistic"`', "uniform", "losses"]
    measured: dict[str, set[int]] = {}
    for one in data["results"]:
        measured.setdefault(one["set"], set()).add(one["size"])
    both = set.union(*measured.values())
    sizes = " and ".join(f"{size:,}" for size in sorted(both))
    lack = [f"{name}: {min(own):,} only" for name, own in measured.items() if own != both]
    sizes += f" ({', '.join(lack)})" if lack else ""
    trials = seeds_of(one["trials"] for one in data["results"])
    caption = (
        f"Median error in % over {len(measured)} sets and sizes {sizes}, means of {trials}. The "
        f"last column counts the cases in which uniform rows have the smaller error. "
        f"{common.stamped(data)}"
    )
    return [caption, "", *common.table(heads, rows)]


# --- kernel machines ---------------------------------------------------------------------------


def kernels(results: Path) -> list[str]:
    """Return accuracies and seconds of kernel machines and of boosted trees."""
    data = common.read("kernels", results)
    sets = data["results"]["ceilings"]
    methods = list(next(iter(sets.values())))
    methods.sort(key=lambda method: (not method.startswith("ours"), "LightGBM" not in method))
    best = {name: max(one["median"][0] for one in found.values()) for name, found in sets.items()}
    rows = []
    for method in methods:
        n_rows = max(found[method]["median"][3] for found in sets.values())
        cells = []
        for name, found in sets.items():
            accuracy, fit = found[method]["median"][:2]
            cell = f"{100 * accuracy:.1f} ({fit:.1f} s)"
            cells.append(f"**{cell}**" if accuracy == best[name] else cell)
        shown = method.replace("ours", "`CoresetKernelClassifier`")
        rows.append([shown, f"{n_rows:,.0f}", *cells])
    caption = (
        f"Accuracy in %, and processor time to train. Medians of {data['stamp']['seeds']} seeds, "
        f"the best of a column is bold. {common.stamped(data)}{stamped_others(data)}"
    )
    return [caption, "", *common.table(["method", "rows", *sets], rows)]


# --- streams -----------------------------------------------------------------------------------


def svm_streaming(results: Path) -> list[str]:
    """Return errors of support vector machines on streams and on reservoirs."""
    data = common.read("svm_streaming", results)
    methods = {
        "stream": "`CoresetStream`",
        "stream, leaves of 8": "leaf_size = 8 size",
        "stream, leaves of 4": "leaf_size = 4 size",
        "reservoir": "reservoir",
        "reservoir, same memory": "reservoir, same memory",
        "Algorithm 2": "Algorithm 2",
    }
    rows = []
    for one in data["results"]:
        n = one["shape"][0]
        for size in common.sizes_of(one["cells"]):
            found = [one["cells"][f"{method}|{size}"] for method in methods]
            cells = [
                f"{common.cell(float(np.mean(cell['errors'])))} "
                f"({'all rows' if cell['held'] >= n else format(cell['held'], ',')})"
                for cell in found
            ]
            rows.append([one["set"], f"{size:,}", *cells])
    trials = seeds_of(one["trials"] for one in data["results"])
    caption = (
        "Cost above that of the classifier on all rows, in %, and the rows that are held at most. "
        f"Means of {trials}. {common.stamped(data)}"
    )
    return [caption, "", *common.table(["set", "size", *methods.values()], rows)]


def tree(results: Path) -> list[str]:
    """Return errors of trees and streams beside those of one build."""
    data = common.read("tree", results)
    rows = []
    for one in data["results"]:
        errors = {form: np.sqrt(np.mean(found)) for form, found in one["squares"].items()}
        whole = errors["all rows"]
        rows.append(
            [
                one["set"],
                f"{100 * whole:.2f}",
                *(
                    f"{100 * errors[form]:.2f} (x {errors[form] / whole:.2f})"
                    for form in ("tree", "stream")
                ),
            ]
        )
    made = data["stamp"]
    caption = (
        f"Root mean square error of the costs of twelve solutions, in %, and its ratio to that of "
        f"one build. Size {made['size']:,}, {made['blocks']} blocks, {made['seeds']} seeds. "
        f"{common.stamped(data)}"
    )
    heads = ["data, method", "one build", "`MergeReduce()`", "`CoresetStream`"]
    return [caption, "", *common.table(heads, rows)]


# --- throughput --------------------------------------------------------------------------------


def _runs(data: Data) -> list[Data]:
    return [data, *data.get("elsewhere", [])]


def throughput(results: Path) -> list[str]:
    """Return times and memory of builds from a store, beside a plain sum."""
    data = common.read("throughput", results)
    rows = []
    for run in _runs(data):
        where = common.processor_of(run["stamp"])
        for row in run["results"]["stored"]:
            job = (
                row["job"].replace("passes=1", "`build`").replace("passes=2", "`build`, two passes")
            )
            low, high = np.quantile(row["turns"], [0.25, 0.75])
            ratio = f"{row['ratio'][1]:.2f} ({low:.2f} to {high:.2f})"
            peak = f"{row['peak'] / 2**20:.0f} MiB"
            rows.append([where, job, f"{row['seconds'][1]:.2f} s", ratio, peak])
    n_rows = data["results"]["stored"][0]["rows"]
    turns = seeds_of(run["stamp"]["turns"] for run in _runs(data)).removesuffix(" seeds")
    heads = ["processor", "job", "processor time", "ratio to the plain sum", "peak memory"]
    caption = (
        f"{n_rows:,} x 20 rows of float32 in Zarr, {turns} turns side by side. "
        "Medians, and ratios with their quartiles. " + " ".join(map(common.stamped, _runs(data)))
    )
    return [caption, "", *common.table(heads, rows)]


def readers(results: Path) -> list[str]:
    """Return times of builds beside the fastest plain decode of the same bytes."""
    data = common.read("readers", results)
    rows = []
    for one in data["results"]:
        wall, cpu = (
            {name: np.quantile(np.array(found)[:, clock], [0.25, 0.5, 0.75])
             for name, found in one["ratios"].items()}
            for clock in (0, 1)
        )  # fmt: skip
        low, middle, high = wall["build"]
        fastest = f"{one['fastest']}, {one['seconds'][one['fastest']][0]:.2f} s"
        others = ", ".join(
            f"{name} {found[1]:.2f}"
            for name, found in wall.items()
            if name != one["fastest"] and not name.startswith(("build", "sum"))
        )
        build = f"{middle:.2f} ({low:.2f} to {high:.2f})"
        plain = f"{wall['sum'][1]:.2f}"
        clusters = f"{wall['build for clusters'][1]:.2f}"
        cpu_of_build = f"{cpu['build'][1]:.2f}"
        rows.append(
            [one["store"], fastest, others, plain, build, cpu_of_build, clusters, one["decoder"]]
        )
    made = data["stamp"]
    versions = ", ".join(f"{name} {version}" for name, version in made["readers"].items())
    caption = (
        f"{made['rows']:,} x 20 rows of float32, {made['turns']} turns side by side. Wall time "
        f"over that of the fastest decode, medians, with quartiles for `build`. "
        f"{common.stamped(data)} Versions: {versions}."
    )
    heads = [
        "store", "fastest plain decode", "other decodes", "Dask's sum", "`build`",
        "`build`, processor time", "`build`, 10 clusters", "`build` decodes by",
    ]  # fmt: skip
    return [caption, "", *common.table(heads, rows)]


def in_memory(results: Path) -> list[str]:
    """Return ratios of builds in memory and of streams to simple code."""
    data = common.read("throughput", results)
    runs = _runs(data)
    names = [common.processor_of(run["stamp"]) for run in runs]
    rows = []
    for row in zip(*(run["results"]["memory"] for run in runs), strict=True):
        what = f"`build` of {row[0]['rows']:,} rows in memory", "NumPy in two passes"
        rows.append([*what, *(f"{one['ratios']['passes=1'][1]:.2f}" for one in row)])
    for row in zip(*(run["results"]["batches"] for run in runs), strict=True):
        what = f"`CoresetStream`, batches of {row[0]['batch']:,} rows", "reading the rows from Zarr"
        rows.append([*what, *(f"{one['ratios']['stream'][1]:.2f}" for one in row)])
    heads = ["job", "compared with", *(f"ratio, {name}" for name in names)]
    caption = "Processor time over that of simple code, from the same runs. Below 1 is faster."
    return [caption, "", *common.table(heads, rows)]


_STEPS = {
    "plain sum": "sum of all rows, by Dask",
    "build": "`build`",
    "cluster": "`CoresetKMeans` on the coreset",
    "label": "labels of all rows, stored",
    "uniform": "uniform rows, `CoresetKMeans` on them",
    "cost": "cost of three solutions on all rows",
}


def billion(results: Path) -> list[str]:
    """Return time, memory and passes of the steps on a billion rows."""
    data = common.read("billion", results)
    found, made = data["results"], data["stamp"]
    rows = []
    for name, step in _STEPS.items():
        one, shared = found["steps"][name], found["workers"].get(name)
        cells = [f"{one['wall']:.0f} s", f"{one['cpu']:.0f} s", f"{one['peak'] / 1e6:.0f} MB"]
        cells.append(f"{one['read'] / 1e9:.2f} GB")
        cells += (
            [f"{shared['wall']:.0f} s", f"{max(shared['peaks']) / 1e6:.0f} MB"]
            if shared
            else ["-", "-"]
        )
        rows.append([step, *cells])
    sizes = found["rows of clusters"]
    ours, uniform = (
        found["costs"][name] / found["costs"]["planted"] for name in ("coreset", "uniform")
    )
    lost = sum(one["restarted"] for one in found["workers"].values())
    same = "the same coreset" if found["same bits"] else "another coreset"
    caption = (
        f"{made['rows']:,} x {made['columns']} rows of float32 in Zarr, {found['stored'] / 1e9:.2f}"
        f" GB stored, in {len(sizes)} clusters of about {sizes[-1]:,.0f} to {sizes[0]:,.0f} rows. "
        f"On all rows, centers from {made['size']:,} rows of the coreset cost {ours:.3f} times the "
        f"true centers. Those from as many uniform rows cost {uniform:.1f} times as much. Each "
        f"step on threads is a process of its own with at most {made['limit'] / 1e9:.0f} GB. The "
        f"two workers with 1 GB each build {same}, and {lost or 'none'} was restarted. "
        f"{common.stamped(data)}"
    )
    heads = ["step", "time", "processor time", "peak memory", "read"]
    heads += ["time, two workers", "peak memory of a worker"]
    return [caption, "", *common.table(heads, rows)]


# --- installation ------------------------------------------------------------------------------


def install(results: Path) -> list[str]:
    """Return seconds, bytes and packages of installations, and seconds of what comes first."""
    data = common.read("install", results)
    rows = []
    for name, one in data["results"].items():
        sizes = [sum(one["packages"].values()), one["downloaded"]]
        cells = [len(one["packages"]), *(f"{size / 1e6:.0f} MB" for size in sizes)]
        cells.append(f"{one['install']:.0f} s")
        for place in range(2 if one["k-means"] else 1):
            cells += [f"{one[when][place]:.2f} s" for when in ("first", "later")]
        rows.append([f"`{name}`", *cells, *["-"] * (8 - len(cells))])
    turns = data["stamp"]["turns"]
    caption = (
        "Each alone in a fresh environment, by pip, from files that are downloaded. k-means is of "
        f"10,000 x 8 rows in memory. Turns: {turns}. Times are medians. {common.stamped(data)}"
    )
    heads = ["what is installed", "packages", "on disk", "downloaded", "installation"]
    heads += [f"{when} {what}" for what in ("import", "k-means") for when in ("first", "later")]
    return [caption, "", *common.table(heads, rows)]


def install_packages(results: Path) -> list[str]:
    """Return the bytes of the ten largest packages."""
    found = {
        name: one["packages"] for name, one in common.read("install", results)["results"].items()
    }
    largest: dict[str, int] = {}
    for sizes in found.values():
        largest |= sizes
    rows = [
        [name, *(f"{sizes[name] / 1e6:.0f}" if name in sizes else "-" for sizes in found.values())]
        for name in sorted(largest, key=lambda one: -largest[one])[:10]
    ]
    total = ["all packages", *(f"{sum(sizes.values()) / 1e6:.0f}" for sizes in found.values())]
    caption = "The ten largest packages, in MB on disk."
    return [
        caption,
        "",
        *common.table(["package", *(f"`{name}`" for name in found)], [*rows, total]),
    ]


def small(results: Path) -> list[str]:
    """Return ratios of fits of few rows in memory to those of scikit-learn."""
    data = common.read("small", results)
    names = [name for name in data["cold"] if name != "KMeans"]
    rows = []
    for one in data["results"]:
        taken = "all" if one["rows"][0] == one["shape"][0] else f"{one['rows'][0]:,}"
        ratios = [f"{one['ratios'][name]:.2f}" for name in names]
        seconds = f"{1000 * one['seconds']['KMeans']:.3g}"
        shape = [f"{size:,}" for size in one["shape"]]
        rows.append([*shape, seconds, ratios[0], taken, ratios[1], f"{one['cost']:.3f}"])
    median_of = {name: median(one["ratios"][name] for one in data["results"]) for name in names}
    above = {name: sum(one["ratios"][name] > 1.1 for one in data["results"]) for name in names}
    said = ", ".join(
        f"`{name}` median {median_of[name]:.2f}, {above[name]} of {len(rows)} rows above 1.1"
        for name in names
    )
    cold = ", ".join(f"`{name}` {seconds:.2f} s" for name, seconds in data["cold"].items())
    heads = ["rows", "columns", "clusters", "`KMeans`, ms", "`build`", "rows in it",
             "`CoresetKMeans`", "its cost"]  # fmt: skip
    caption = (
        f"Seconds and cost over those of scikit-learn's `KMeans`: {said}. "
        f"New processes: {cold}. {common.stamped(data)}"
    )
    return [caption, "", *common.table(heads, rows)]


# --- margins -----------------------------------------------------------------------------------


def max_margin(results: Path) -> list[str]:
    """Return shares of the largest margin, of core sets and of machines on all rows."""
    data = common.read("max_margin", results)
    rows = []
    for one in data["real"]:
        for machine, found in one["machines"].items():
            shown = "all rows" if "reads" not in found else f"{found['size']:,}"
            shown_reads = str(found.get("reads", "-"))
            name = machine if "SVC" in machine else machine.replace("core set, ", "core set: ")
            share = f"{found['share']:.3f}"
            rows.append([one["set"], f"{one['n']:,} x {one['d']}", name, share, shown_reads, shown])
    for one in data["stored"]:
        shape = f"{one['rows']:,} x {one['d']}"
        cells = [f"{one['share']:.3f}", f"{one['reads']:.0f}", f"{one['size']:,.0f}"]
        rows.append(["synthetic, in Zarr", shape, "core set: default", *cells])
    peak = max(one["peak"] for one in data["stored"]) / 1e6
    heads = ["set", "rows x columns", "machine", "share", "passes", "rows kept"]
    caption = (
        "Share of the largest margin: a core set certifies it, the other machines reach it, and a "
        "negative one does not separate the classes. The stores took at most "
        f"{peak:.0f} MB of memory. {common.stamped(data)}"
    )
    return [caption, "", *common.table(heads, rows)]


def active_margin(results: Path) -> list[str]:
    """Return balanced accuracies by the number of labels."""
    data = common.read("active_margin", results)
    methods = {
        "active max margin": "`ActiveMaxMarginClassifier`",
        "uncertainty": "uncertainty sampling",
        "random": "random rows",
    }
    rows = []
    for one in data["results"]:
        for count in (20, 60, 200):
            place = data["labels"].index(count)
            found = [100 * np.array(one["curves"][method])[:, place, 1] for method in methods]
            cells = bold_least(
                [number(values, 1) for values in found], [-values.mean() for values in found]
            )
            shown = one["set"].replace("made ", "").replace("as it is", "unchanged")
            rows.append([shown, count, *cells])
    caption = (
        f"Balanced accuracy on all rows in %, with 95 % intervals of {data['stamp']['seeds']} "
        f"seeds. {common.stamped(data)}"
    )
    return [caption, "", *common.table(["set", "labels", *methods.values()], rows)]


# --- views, portfolios and cubes ---------------------------------------------------------------


def one_read(results: Path) -> list[str]:
    """Return passes, bytes, memory and seconds of builds alone and together."""
    data = common.read("one_read", results)
    found = data["results"]
    alone = {name: one for name, one in found.items() if name != "all together"}
    dearest = np.max([one["seconds"] for one in alone.values()], axis=0)
    rows = []
    for name, one in found.items():
        ratio = float(np.median(np.array(one["seconds"]) / dearest))
        cells = [f"{one['passes']:.0f}", f"{one['bytes'] / 1e6:.0f} MB"]
        cells += [f"{one['peak'] / 1e6:.0f} MB", f"{ratio:.2f}"]
        names = {
            "all together": "`build_many`, all five", "churn": "logistic", "plain": "uniform",
            "clusters": "k-means",
        }  # fmt: skip
        rows.append([names.get(name, name), *cells])
    passes, size = (sum(one[key] for one in alone.values()) for key in ("passes", "bytes"))
    summed = np.sum([one["seconds"] for one in alone.values()], axis=0)
    cells = [f"{passes:.0f}", f"{size / 1e6:.0f} MB"]
    cells += [f"{max(one['peak'] for one in alone.values()) / 1e6:.0f} MB"]
    rows.insert(-1, ["one after another", *cells, f"{np.median(summed / dearest):.2f}"])
    made = data["stamp"]
    same = "equal, bit by bit," if data["same_bits"] else "not equal"
    heads = ["build", "passes", "read", "peak memory", "time over the slowest single build"]
    caption = (
        f"{made['rows']:,} rows in Zarr, coresets of {made['size']:,} rows. The coresets of "
        f"`build_many` are {same} to those of their own builds. Times are processor times. "
        f"{common.stamped(data)}"
    )
    return [caption, "", *common.table(heads, rows)]


def refresh(results: Path) -> list[str]:
    """Return the bytes that a refresh reads."""
    data = common.read("refresh", results)
    rows = [
        [name, f"{read:,}", f"{stored:,}", f"{100 * read / stored:.2f} %"]
        for name, (read, stored) in data["results"].items()
    ]
    caption = f"Sources of 100 parts, to which one part was appended. {common.stamped(data)}"
    heads = ["source", "bytes read by the refresh", "bytes stored", "share"]
    return [caption, "", *common.table(heads, rows)]


def cube(results: Path) -> list[str]:
    """Return passes and memory of a fit to a cube."""
    data = common.read("cube", results)
    found, made = data["results"], data["stamp"]
    rows = [
        [
            f"{found['bytes'] / 1e9:.0f} GB in {found['chunks']:,} chunks",
            f"{found['rows']:,}",
            found["reads"],
            f"{found['peak'] / 1e9:.2f} GB",
            f"{found['peak_before'] / 1e9:.2f} GB",
        ]
    ]
    heads = ["cube", "cells that are not masked", "passes", "peak memory"]
    heads += ["peak memory of a plain pass"]
    caption = (
        f"k-means with {made['n_clusters']} clusters of four variables, {made['threads']} threads, "
        f"address space limited to {made['limit']:.0f} GB. {common.stamped(data)}"
    )
    return [caption, "", *common.table(heads, rows)]


# --- guarantees --------------------------------------------------------------------------------


FAULTS = {
    "killed": "a writing process killed",
    "read while": "a coreset read while overwritten",
    "a file cut": "a stored file cut, altered or removed",
    "worker": "a worker killed, stopped or out of memory",
    "network": "the network of a worker or client cut",
    "scheduler": "the scheduler killed or stopped",
}
"""What was done, by words in the names of the results; the last one that fits counts."""


def reliability(results: Path) -> list[str]:
    """Return how often faults were tried, and how often anything was lost."""
    crashes, histories, faults = (
        common.read(name, results) for name in ("crashes", "histories", "cluster_faults")
    )
    tried = [tuple(line[:4]) for line in crashes["lines"]]
    for name, one in faults["results"].items():
        lost = one["wrong"] + one["other"] + one["hung"]
        tried.append((name, one["runs"], one["refused"], lost))
    counts = {what: np.zeros(3, dtype=int) for what in FAULTS.values()}
    for name, *found in tried:
        kinds = [what for word, what in FAULTS.items() if word in name]
        if kinds:
            counts[kinds[-1]] += found
    for name, one in histories["results"].items():
        seen = one["seen"]
        refused = sum(count for event, count in seen.items() if event.endswith("refused"))
        what = f"random histories of a {name}, steps"
        counts[what] = np.array([seen["steps"], refused, len(one["failures"])])
    rows = [[what, *(f"{count:,}" for count in found)] for what, found in counts.items()]
    runs = {"crashes": crashes, "histories": histories, "clusters": faults}
    caption = " ".join(
        common.stamped(data).replace("Run:", f"Run of {name}:") for name, data in runs.items()
    )
    heads = ["what was done", "times", "refused with an error", "lost or wrong"]
    return [caption, "", *common.table(heads, rows)]


TABLES: Mapping[str, Callable[[Path], list[str]]] = {
    each.__name__: each
    for each in (
        headline, quality, peers_kmeans, peers_memory, mixtures, bregman, svm_offline, logistic,
        kernels, svm_streaming, tree, readers, throughput, in_memory, small, billion, install,
        install_packages,
        max_margin, active_margin, one_read, refresh, cube, reliability, by_task.by_task,
    )
}  # fmt: skip


def rendered(text: str, results: Path) -> str:
    """Return the text of a page with its tables made again."""

    def table(found: re.Match[str]) -> str:
        name = found[1]
        lines = "\n".join(TABLES[name](results))
        return f"<!-- results:{name} -->\n{lines}\n<!-- /results:{name} -->"

    return _MARKED.sub(table, text)


def main() -> None:
    """Write or check."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--check", action="store_true", help="write nothing, fail on differences")
    parser.add_argument("--results", type=Path, default=common.RESULTS)
    args = parser.parse_args()
    wanted = {page: rendered(page.read_text(), args.results) for page in PAGES}
    differing = [page for page, text in wanted.items() if page.read_text() != text]
    if args.check and differing:
        names = ", ".join(page.name for page in differing)
        sys.exit(f"{names} differ from the results; run python benchmarks/pages.py")
    for page in differing:
        page.write_text(wanted[page])
        print(f"wrote {page}")


if __name__ == "__main__":
    main()
