"""The short table of the README: for every task the best line of its results, and the worst.

A line is one setting of a benchmark: a set and a size, with our figure and that of the peer. Best
and worst are those with the smallest and the largest ratio of both, or difference where a figure
may be zero or below. `readme.py` writes the table; nothing is measured here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import bregman
import common
import kernels
import numpy as np
import throughput

NAME = "by_task"
HEADS = ("task", "figure", "peer", "budget", "best line", "worst line", "lines behind", "table")


class Line(NamedTuple):
    """A setting, our figures and those of the peer: one a seed, or one for all."""

    where: str
    ours: Sequence[float] | np.ndarray
    theirs: Sequence[float] | np.ndarray

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
    budget: str
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

    def shown(self, values: Sequence[float] | np.ndarray) -> str:
        """Return a figure, with its interval where there is one figure a seed."""
        values = np.asarray(values, dtype=float)
        if self.digits is None:
            return common.mean_cell(values)
        text = f"{values.mean():,.{self.digits}f}"
        half = f" ± {common.interval(values):,.{self.digits}f}" if len(values) > 1 else ""
        return text + half

    def cell(self, line: Line) -> str:
        """Return a cell of the table."""
        return f"{line.where}: {self.shown(line.ours)} against {self.shown(line.theirs)}"

    def row(self, data: dict[str, Any]) -> list[str]:
        """Return the row of the table."""
        found = sorted(self.lines(data), key=self.behind)
        lost = sum(self.behind(line) > 0 for line in found)
        return [
            self.name, self.figure, self.peer, self.budget, self.cell(found[0]),
            self.cell(found[-1]), f"{lost} of {len(found)}",
            f"[{self.results}](benchmarks/results/{self.results}.md)",
        ]  # fmt: skip


def _kmeans(data: dict[str, Any]) -> Iterator[Line]:
    for result in data["results"]:
        for size in common.sizes_of(result["cells"]):
            ours, uniform = (
                result["cells"][f"{method}|{size}"]["errors"]
                for method in ("`CoresetKMeans`", "uniform")
            )
            yield Line(f"{result['set']}, {size:,}", ours, uniform)


def _named(one: dict[str, Any]) -> str:
    return f"{one['set']}, k = {one['k']}, {one['size']:,}"


_KINDS = ("rows", "centroids")


def _centroids(data: dict[str, Any]) -> Iterator[Line]:
    for one in data["results"]:
        rows, cells = (np.array(one[kind]["cost"]) / one["whole"] - 1 for kind in _KINDS)
        yield Line(_named(one), cells, rows)


def _svm(data: dict[str, Any]) -> Iterator[Line]:
    for result in data["results"]:
        for size in common.sizes_of(result["errors"]):
            ours, uniform = (result["errors"][f"{way}|{size}"] for way in ("default", "uniform"))
            yield Line(f"{result['set']}, {size:,}", ours, uniform)


def _logistic(data: dict[str, Any]) -> Iterator[Line]:
    for result in data["results"]:
        families = {key.split("|")[0]: None for key in result["errors"]}
        for family in families:
            ours, uniform = (
                result["errors"][f"{family}|{way}"] for way in ("two reads", "uniform")
            )
            yield Line(f"{result['set']}, {result['size']:,}, {family}", ours, uniform)


def _mixtures(peer: str) -> Callable[[dict[str, Any]], Iterator[Line]]:
    """Return lines against uniform rows of three kinds, or against all rows."""

    def lines(data: dict[str, Any]) -> Iterator[Line]:
        for one in data["results"]:
            where = f"{one['set']}, {one['size']:,}"
            other = [one["all"]] if peer == "all" else one[peer]["score"]
            yield Line(where, one["mixture"]["score"], other)

    return lines


def _boosting(data: dict[str, Any]) -> Iterator[Line]:
    for one in data["results"]:
        for key in one["all"]:
            ours, uniform = (one["losses"][way][key] for way in ("svm", "uniform"))
            yield Line(f"{one['set']}, {one['size']:,}", ours, uniform)


def _divergence(peer: str) -> Callable[[dict[str, Any]], Iterator[Line]]:
    """Return excess divergences of hard clusterings on strong coresets, beside a peer's."""

    def lines(data: dict[str, Any]) -> Iterator[Line]:
        for result in data["results"]:
            for size in bregman.SIZES:
                ours, theirs = (
                    bregman.excess(result, "hard", method, 0 if method in bregman.PEERS else size)
                    for method in ("strong", peer)
                )
                yield Line(f"{result['set']}, {size:,}", ours, theirs)

    return lines


def _kernels(data: dict[str, Any]) -> Iterator[Line]:
    for name, methods in data["results"]["ceilings"].items():
        light = methods["LightGBM"]["median"][0]
        for method, one in methods.items():
            if method.startswith("ours"):
                where = f"{name}, {method.removeprefix('ours, ')}"
                yield Line(where, [100 * one["median"][0]], [100 * light])


def _nystroem(data: dict[str, Any]) -> Iterator[Line]:
    """Return accuracies beside the best solver of the peer with as many points and rows.

    LinearSVC has as many points, and fewer rows.
    """
    for name, methods in data["results"]["ceilings"].items():
        best = {method: 100 * one["median"][0] for method, one in methods.items()}
        for method, both in kernels.OURS.items():
            peers = [best[peer] for peer, one in kernels.EQUAL.items() if one[1:] == both]
            peers += [best[kernels.NYSTROEM]] if both == kernels.FEW else []
            if peers:
                where = f"{name}, {method.removeprefix('ours, ')}"
                yield Line(where, [best[method]], [max(peers)])


def _throughput(data: dict[str, Any]) -> Iterator[Line]:
    for run in throughput.runs_of(data):
        on = f", {run['stamp']['processor']}" if "processor" in run["stamp"] else ""
        for line in _of_run(run["results"]):
            yield line._replace(where=f"{line.where}{on}")


def _of_run(found: dict[str, Any]) -> Iterator[Line]:
    for row in found["stored"]:
        if row["job"] == "passes=1":
            yield Line(f"{row['rows']:,} rows from Zarr, over a plain sum", [row["ratio"][1]], [1])
    for row in found["memory"]:
        where = f"{row['rows']:,} rows in memory, over NumPy in two passes"
        yield Line(where, [row["ratios"]["passes=1"][1]], [1])
    for row in found["batches"]:
        where = f"a stream of {row['batch']:,} rows a batch, over reading them"
        yield Line(where, [row["ratios"]["stream"][1]], [1])


EQUAL = "as many rows"
ERROR = "excess cost, %"
TASKS = (
    Task("k-means, 100 clusters", ERROR, "uniform rows", f"{EQUAL}; 1 read, 2 of the peer",
         "quality", _kmeans),
    Task("k-means by centroids", ERROR, "rows of the same construction", f"{EQUAL}; 1 read",
         "representatives", _centroids),
    Task("support vector machines", ERROR, "uniform rows", f"{EQUAL}; 2 reads, 1 of the peer",
         "svm_offline", _svm),
    Task("logistic regression", ERROR, "uniform rows", f"{EQUAL}; 2 reads, 1 of the peer",
         "logistic", _logistic),
    Task("Gaussian mixtures", "log-likelihood, nats a row", "uniform rows, chosen by others",
         f"{EQUAL}; 1 read", "mixtures", _mixtures("uniform"), digits=2, more=True),
    Task("Gaussian mixtures", "log-likelihood, nats a row", "uniform rows alone",
         f"{EQUAL}; 1 read", "mixtures", _mixtures("alone"), digits=2, more=True),
    Task("Gaussian mixtures", "log-likelihood, nats a row", "uniform rows alone, scikit-learn",
         f"{EQUAL}; 1 read", "mixtures", _mixtures("scikit-learn"), digits=2, more=True),
    Task("Gaussian mixtures", "log-likelihood, nats a row", "all rows, scikit-learn",
         "a coreset; 1 read", "mixtures", _mixtures("all"), digits=2, more=True),
    Task("boosted trees on rows of `\"svm\"`", "log loss", "uniform rows",
         f"{EQUAL}; 2 reads, 1 of the peer", "boosting", _boosting, digits=4, ratio=True),
    Task("Bregman clustering", ERROR, "uniform rows", f"{EQUAL}; 1 read",
         "bregman", _divergence("uniform")),
    Task("Bregman clustering", ERROR, "k-means on all rows, transformed", "a coreset; 1 read",
         "bregman", _divergence("k-means, transformed")),
    Task("kernel machines", "accuracy, %", "LightGBM on 10,000 rows",
         "16,000 to 40,000 rows; 2 reads", "kernels", _kernels, digits=1, more=True),
    Task("kernel machines", "accuracy, %", "Nystroem, the best of three solvers",
         "as many points and rows, or 10,000 rows; 2 reads, 1 of the peer", "kernels", _nystroem,
         digits=1, more=True),
    Task("throughput", "processor time over the peer's", "a plain pass", "1 read",
         "throughput", _throughput, digits=2),
)  # fmt: skip


def table(results: Path) -> str:
    """Return the table of the README."""
    rows = [task.row(common.read(task.results, results)) for task in TASKS]
    lines = [
        "By task, the best line of the results and the worst: our figure against that of the peer,",
        "with 95 % intervals where there are several seeds; `lines behind` counts those in which",
        "our mean is the worse one, by however little. Seconds, more peers, and the run stand in",
        "the table that is named.",
        "",
        *common.table(HEADS, rows),
    ]
    return "\n".join(lines)
