"""The table of the summary page: for every task the best line of its results, and the worst.

A line is one setting of a benchmark: a set and a size, with our figure and that of the peer. Best
and worst are those with the smallest and the largest ratio of both, or difference if a figure may
be zero or below. Nothing is measured here.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import common
import numpy as np

Values = Sequence[float] | np.ndarray


class Line(NamedTuple):
    """A setting, our figures and those of the peer: one per seed, or one for all."""

    where: str
    ours: Values
    theirs: Values

    @property
    def means(self) -> tuple[float, float]:
        """Our mean and that of the peer."""
        return float(np.mean(self.ours)), float(np.mean(self.theirs))


@dataclass(frozen=True)
class Task:
    """A row of the table.

    `digits` are those behind the point; None writes shares as per cent. `ratio` says whether lines
    are ranked by ratios, `more` that more is better.
    """

    name: str
    figure: str
    peer: str
    page: str
    results: str
    lines: Callable[[dict[str, Any]], Iterator[Line]]
    digits: int | None = None
    ratio: bool = False
    more: bool = False

    def behind(self, line: Line) -> float:
        """Return how far a line is behind the peer; below zero it is ahead."""
        ours, theirs = line.means
        if self.more:
            ours, theirs = theirs, ours
        return ours / theirs - 1 if self.ratio else ours - theirs

    def shown(self, values: Values) -> str:
        """Return the mean of a figure."""
        value = float(np.mean(values))
        return common.cell(value) if self.digits is None else f"{value:,.{self.digits}f}"

    def cell(self, line: Line) -> str:
        """Return a cell of the table."""
        return f"{self.shown(line.ours)} against {self.shown(line.theirs)} ({line.where})"

    def row(self, data: dict[str, Any]) -> list[str]:
        """Return the row of the table."""
        found = sorted(self.lines(data), key=self.behind)
        lost = sum(self.behind(line) > 0 for line in found)
        return [
            f"[{self.name}]({self.page}.md): {self.figure}", self.peer, f"{lost} of {len(found)}",
            self.cell(found[0]), self.cell(found[-1]),
        ]  # fmt: skip


def near(sizes: Sequence[int], wanted: float) -> int:
    """Return the size whose ratio to the one wanted is nearest to one."""
    return min(sizes, key=lambda size: abs(math.log(size / wanted)))


def excess(result: dict[str, Any], kind: str, method: str, size: int) -> np.ndarray:
    """Return excess costs: a share of the best of hard clustering, nats per row of mixtures."""
    own = {key: values for key, values in result["costs"].items() if key.startswith(kind)}
    best = min(min(values) for values in own.values())
    gap = np.array(own[f"{kind}|{method}|{size}"]) - best
    return np.asarray(gap / best if kind == "hard" else gap)


def _sampled(peer: str | None) -> Callable[[dict[str, Any]], Iterator[Line]]:
    """Return lines of `CoresetKMeans` against rows of a method, or against all rows."""

    def lines(data: dict[str, Any]) -> Iterator[Line]:
        for one in data["results"]:
            for size in common.sizes_of(one["cells"]):
                ours = one["cells"][f"`CoresetKMeans`|{size}"]["errors"]
                theirs = one["cells"][f"{peer}|{size}"]["errors"] if peer else [0.0]
                yield Line(f"{one['set']}, {size:,} rows", ours, theirs)

    return lines


def _libraries(data: dict[str, Any]) -> Iterator[Line]:
    for one in data["results"]:
        costs = {name: [run["cost"] for run in runs] for name, runs in one["runs"].items() if runs}
        best = min(map(min, costs.values()))
        shares = {name: np.array(found) / best - 1 for name, found in costs.items()}
        where = f"{one['set'].replace('made', 'synthetic')}, {one['k']:,} clusters"
        for name, found in shares.items():
            if "." in name and "CoresetKMeans" in shares:
                yield Line(f"{where}, {name}", shares["CoresetKMeans"], found)


def _svm(peer: str) -> Callable[[dict[str, Any]], Iterator[Line]]:
    def lines(data: dict[str, Any]) -> Iterator[Line]:
        for one in data["results"]:
            for size in common.sizes_of(one["errors"]):
                ours = one["errors"][f"default|{size}"]
                other = one["sgd"]["errors"] if peer == "sgd" else one["errors"][f"{peer}|{size}"]
                yield Line(f"{one['set']}, {size:,} rows", ours, other)

    return lines


def _logistic(data: dict[str, Any]) -> Iterator[Line]:
    for one in data["results"]:
        for family in {key.split("|")[0]: None for key in one["errors"]}:
            ours, uniform = (one["errors"][f"{family}|{way}"] for way in ("logistic", "uniform"))
            yield Line(f"{one['set']}, {one['size']:,} rows, {family}", ours, uniform)


def _mixtures(peer: str) -> Callable[[dict[str, Any]], Iterator[Line]]:
    def lines(data: dict[str, Any]) -> Iterator[Line]:
        for one in data["results"]:
            other = [one["all"]] if peer == "all" else one[peer]
            yield Line(f"{one['set']}, {one['size']:,} rows", one["mixture"], other)

    return lines


def _divergence(peer: str, size_of_peer: int | None) -> Callable[[dict[str, Any]], Iterator[Line]]:
    def lines(data: dict[str, Any]) -> Iterator[Line]:
        for one in data["results"]:
            for size in (300, 1000):
                ours = excess(one, "hard", "strong", size)
                own = size if size_of_peer is None else size_of_peer
                where = f"{one['set'].replace('made', 'synthetic')}, {size:,} rows"
                yield Line(where, ours, excess(one, "hard", peer, own))

    return lines


def _boosted(data: dict[str, Any]) -> Iterator[Line]:
    for name, methods in data["results"]["ceilings"].items():
        light = methods["LightGBM"]["median"][0]
        for method, one in methods.items():
            if method.startswith("ours"):
                where = f"{name}, {method.removeprefix('ours, ')}"
                yield Line(where, [100 * one["median"][0]], [100 * light])


def _nystroem(data: dict[str, Any]) -> Iterator[Line]:
    """Return accuracies beside the best Nystroem machine with as many points and rows."""
    for name, methods in data["results"]["ceilings"].items():
        best = {method: 100 * one["median"][0] for method, one in methods.items()}
        for method in (method for method in best if method.startswith("ours")):
            points = method.removeprefix("ours, ")
            peers = [best[f"Nystroem + {solver}, {points}"] for solver in ("ridge", "logistic")]
            peers += [best["Nystroem + LinearSVC"]] if points == "400 points" else []
            yield Line(f"{name}, {points}", [best[method]], [max(peers)])


def _stream(peer: str) -> Callable[[dict[str, Any]], Iterator[Line]]:
    def lines(data: dict[str, Any]) -> Iterator[Line]:
        for one in data["results"]:
            for size in common.sizes_of(one["cells"]):
                ours, other = (one["cells"][f"{m}|{size}"]["errors"] for m in ("stream", peer))
                yield Line(f"{one['set']}, {size:,} rows", ours, other)

    return lines


def _active(peer: str) -> Callable[[dict[str, Any]], Iterator[Line]]:
    def lines(data: dict[str, Any]) -> Iterator[Line]:
        for one in data["results"]:
            curves = {name: 100 * np.array(found)[:, :, 1] for name, found in one["curves"].items()}
            name = one["set"].replace("made ", "").replace("as it is", "unchanged")
            for place, count in enumerate(data["labels"]):
                ours, other = curves["active max margin"][:, place], curves[peer][:, place]
                yield Line(f"{name}, {count} labels", ours, other)

    return lines


def _throughput(data: dict[str, Any]) -> Iterator[Line]:
    for run in (data, *data.get("elsewhere", [])):
        found = run["results"]
        for row in found["stored"]:
            if row["job"] == "passes=1":
                yield Line(f"{row['rows']:,} rows from Zarr", [row["ratio"][1]], [1])
        for row in found["memory"]:
            yield Line(f"{row['rows']:,} rows in memory", [row["ratios"]["passes=1"][1]], [1])
        for row in found["batches"]:
            where = f"a stream, batches of {row['batch']:,} rows"
            yield Line(where, [row["ratios"]["stream"][1]], [1])


def _readers(data: dict[str, Any]) -> Iterator[Line]:
    for one in data["results"]:
        yield Line(one["store"], [np.median(one["ratios"]["build"], axis=0)[0]], [1])


COST = "excess cost, %"
LIKELIHOOD = "log-likelihood"
TASKS = (
    Task("k-means", COST, "uniform rows", "kmeans", "quality", _sampled("uniform")),
    Task("k-means", COST, "k-means on all rows, one start", "kmeans", "quality", _sampled(None)),
    Task("k-means", COST, "other libraries", "kmeans", "peers_kmeans", _libraries),
    Task("Gaussian mixtures", LIKELIHOOD, "uniform rows", "mixtures", "mixtures",
         _mixtures("uniform"), digits=2, more=True),
    Task("Gaussian mixtures", LIKELIHOOD, "uniform rows alone", "mixtures", "mixtures",
         _mixtures("alone"), digits=2, more=True),
    Task("Gaussian mixtures", LIKELIHOOD, "uniform rows alone, scikit-learn", "mixtures",
         "mixtures", _mixtures("scikit-learn"), digits=2, more=True),
    Task("Gaussian mixtures", LIKELIHOOD, "all rows, scikit-learn", "mixtures", "mixtures",
         _mixtures("all"), digits=2, more=True),
    Task("Bregman clustering", COST, "uniform rows", "mixtures", "bregman",
         _divergence("uniform", None)),
    Task("Bregman clustering", COST, "k-means on all rows, transformed", "mixtures", "bregman",
         _divergence("k-means, transformed", 0)),
    Task("support vector machines", COST, "uniform rows", "linear", "svm_offline",
         _svm("uniform")),
    Task("support vector machines", COST, "uniform rows, same work", "linear", "svm_offline",
         _svm("uniform, same budget")),
    Task("support vector machines", COST, "averaged SGD on all rows", "linear", "svm_offline",
         _svm("sgd")),
    Task("logistic regression", COST, "uniform rows", "linear", "logistic", _logistic),
    Task("kernel machines", "accuracy, %", "LightGBM on 10,000 rows", "kernels", "kernels",
         _boosted, digits=1, more=True),
    Task("kernel machines", "accuracy, %", "Nystroem, equal points and rows", "kernels", "kernels",
         _nystroem, digits=1, more=True),
    Task("streams", COST, "a reservoir of the same size", "streams", "svm_streaming",
         _stream("reservoir")),
    Task("streams", COST, "a reservoir of the same memory", "streams", "svm_streaming",
         _stream("reservoir, same memory")),
    Task("few labels", "balanced accuracy, %", "random rows", "margins", "active_margin",
         _active("random"), digits=1, more=True),
    Task("few labels", "balanced accuracy, %", "uncertainty sampling", "margins", "active_margin",
         _active("uncertainty"), digits=1, more=True),
    Task("throughput", "time, ratio", "the fastest plain decode", "throughput", "readers",
         _readers, digits=2),
    Task("throughput", "processor time, ratio", "a plain pass", "throughput", "throughput",
         _throughput, digits=2),
)  # fmt: skip
HEADS = ("task", "compared with", "losses", "best line", "worst line")


def by_task(results: Path) -> list[str]:
    """Return the table of the summary page."""
    rows = [task.row(common.read(task.results, results)) for task in TASKS]
    caption = (
        "Each line compares our mean with that of the other method, on one set and size. A loss is "
        "a line in which ours is worse, by any margin."
    )
    return [caption, "", *common.table(HEADS, rows)]
