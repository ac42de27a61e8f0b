"""The measurements of the frozen table: a function for each kind of row.

Each returns values by row: lists over seeds, counts, answers, digests, or ratios of processor time
to a reference in the same run. The library is called through `frozen_calls.py` alone; data, solvers
and references are those of the benchmarks. ``frozen.py`` records and compares what is returned.

    python benchmarks/frozen_rows.py --turns FOLDER     # seconds of calls, named on the input
    python benchmarks/frozen_rows.py --peak STORE       # peak bytes of a build
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import threading
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import common
import frozen_calls as calls
import numpy as np
from sets import load
from threadpoolctl import threadpool_limits

Values = dict[str, Any]
N_BLOCKS = 20


class Counting:
    """An array that counts the rows that are read of it."""

    ndim = 2

    def __init__(self, rows: np.ndarray) -> None:
        self.rows, self.dtype, self.shape = rows, rows.dtype, rows.shape
        self.count, self._lock = 0, threading.Lock()

    def __getitem__(self, where: Any) -> np.ndarray:
        """Read rows."""
        found = self.rows[where]
        with self._lock:
            self.count += len(found)
        return found

    @property
    def reads(self) -> float:
        """How often all rows were read."""
        return self.count / len(self.rows)


def lazy(rows: Any, n_blocks: int = N_BLOCKS) -> Any:
    """Return a Dask array of so many blocks."""
    import dask.array as da

    n = -(-rows.shape[0] // n_blocks)
    return da.from_array(rows, chunks=(n, *rows.shape[1:]), asarray=False)


# --- errors of k-means -----------------------------------------------------------------------


def mean_gaps(X: np.ndarray, centers: np.ndarray) -> float:
    """Return the sum of the squared distances to the nearest centers."""
    shift = X[:1000].mean(axis=0, dtype=np.float64)
    centers = np.asarray(centers, dtype=np.float64) - shift
    squares, total = (centers**2).sum(axis=1), 0.0
    for start in range(0, len(X), 50_000):
        part = X[start : start + 50_000] - shift
        nearest = (squares - 2.0 * part @ centers.T).min(axis=1)
        total += float(np.maximum(nearest + (part**2).sum(axis=1), 0.0).sum())
    return total


def _clustering(
    sets: dict[str, tuple[int, ...]], ways: dict[str, Any], k: int, seeds: int
) -> Values:
    """Return the excess cost of centers that are found by each way, over all rows."""
    from quality import solve

    full = json.loads((common.RESULTS / "full.json").read_text())
    found: Values = {}
    for name in common.loadable(sets):
        X = np.asarray(load(name).X)
        best = float(np.mean(full[f"{name}|{k}"]["costs"]))
        for way, draw in ways.items():
            for size in sets[name]:
                errors = []
                for seed in range(seeds):
                    made = draw(X, size, seed)
                    centers = made if len(made) == k else solve(*made, k, seed)
                    errors.append(mean_gaps(X, centers) / best - 1.0)
                found[f"{name}, {way}, {size}"] = errors
    return found


def _drawn(**options: Any) -> Callable[[np.ndarray, int, int], tuple[np.ndarray, np.ndarray]]:
    def draw(X: np.ndarray, size: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
        rows = -(-len(X) // N_BLOCKS)
        coreset = calls.build(X, size=size, random_state=seed, chunks=rows, **options)
        return coreset.points, coreset.weights

    return draw


INDEPENDENT = calls.Draw("multinomial", passes=2)


def quality() -> Values:
    """Excess cost of k-means on coresets, k = 100: see `quality.py`."""
    ways = {
        "uniform": _drawn(method="uniform", draw=INDEPENDENT),
        "lightweight as published": _drawn(method="lightweight", draw=INDEPENDENT),
        "build": _drawn(),
        "StrongKMeans": _drawn(n_clusters=100),
    }
    sets = dict.fromkeys(("cod_rna", "kdd_bio", "covtype", "skin", "ijcnn1", "credit"), (1000,))
    return _clustering(sets, ways, 100, seeds=6)


def kmeans() -> Values:
    """Excess cost of `CoresetKMeans` as it comes, k = 100."""

    def fit(X: np.ndarray, size: int, seed: int) -> np.ndarray:
        del size
        with threadpool_limits(1):
            centers: np.ndarray = (
                calls.CoresetKMeans(100, random_state=seed).fit(X).cluster_centers_
            )
        return centers

    names = ("cod_rna", "kdd_bio", "covtype", "skin", "ijcnn1", "credit")
    found = _clustering(dict.fromkeys(names, (0,)), {"CoresetKMeans": fit}, 100, seeds=4)
    return {name.removesuffix(", 0"): errors for name, errors in found.items()}


def table1() -> Values:
    """Table 1 of the lightweight-coreset paper: independent draws, two reads."""
    sizes = (1000, 2000, 5000)
    ways = {
        "UNIFORM": _drawn(method="uniform", draw=INDEPENDENT),
        "LWCS": _drawn(method="lightweight", draw=INDEPENDENT),
        "CS": _drawn(method="kmeans", n_clusters=100, draw=INDEPENDENT),
    }
    return _clustering({"kdd_bio": sizes, "cod_rna": sizes}, ways, 100, seeds=6)


# --- errors of classifiers and mixtures ------------------------------------------------------


def svm_offline() -> Values:
    """Excess cost of linear SVMs on coresets: see `svm_offline.py`."""
    from svm_offline import cost, data_of, sizes_of

    ways = {
        "uniform": {"method": "uniform", "draw": INDEPENDENT},
        "Algorithm 1": {"method": calls.SVM(variant="paper"), "draw": INDEPENDENT},
        "default": {"method": calls.SVM()},
    }
    found: Values = {}
    for name in common.loadable(("htru2", "credit", "skin", "cod_rna"), "pathological"):
        X, y = data_of(name)
        signs = y.astype(float)
        best = cost(X, y, *calls.solve_svm(X, signs, np.ones(len(y)), tol=1e-6))
        for size in (sizes_of(len(y), 15)[at] for at in (5, 9, 12)):
            for way, options in ways.items():
                errors = []
                for seed in range(8):
                    drawn = calls.build(X, y, size=size, random_state=seed, **options)
                    rows = (np.asarray(drawn.points), drawn.labels.astype(float), drawn.weights)
                    errors.append(cost(X, y, *calls.solve_svm(*rows, tol=1e-5)) / best - 1.0)
                found[f"{name}, {way}, {size}"] = errors
    return found


def logistic() -> Values:
    """Errors of logistic models on coresets of two reads: see `logistic.py`."""
    from logistic import BASE, PROBLEMS, data_and_labels, models, newton

    sets = ("htru2", "credit", "cod_rna", "skin", "magic04", "ijcnn1", "a9a")
    made = ("sorted", "periodic", "heavy tails", "units", "long row")
    asked = ("the same problem", "C = 0.001", "balanced classes", "half of the features")
    found: Values = {}
    for name in common.loadable((*sets, *made), *made):
        X, y = data_and_labels(name)
        signs, positives = y.astype(float), float(np.mean(y > 0))
        problems = {family: PROBLEMS[family] for family in asked}
        factors = {family: one.factors(signs, positives) for family, one in problems.items()}
        best = {
            family: one.cost(X, signs, factors[family], newton(one, X, signs, factors[family]))
            for family, one in problems.items()
        }
        given = models("random w", X, y)
        true = np.array([BASE.cost(X, signs, np.ones(len(y)), model) for model in given])
        for seed in range(6):
            coreset = calls.build(
                lazy(X, 8), lazy(y, 8), size=500, method=calls.Logistic(), random_state=seed
            )
            rows, own = np.asarray(coreset.points), coreset.labels.astype(float)
            for family, one in problems.items():
                model = newton(one, rows, own, coreset.weights * one.factors(own, positives))
                error = one.cost(X, signs, factors[family], model) / best[family] - 1.0
                found.setdefault(f"{name}, {family}", []).append(error)
            costs = np.array([BASE.cost(rows, own, coreset.weights, model) for model in given])
            error = float(np.sqrt(np.mean((costs / true - 1.0) ** 2)))
            found.setdefault(f"{name}, random w", []).append(error)
    return found


def never_worse() -> Values:
    """Excess cost of linear models on coresets and on as many uniform rows."""
    import logistic as of_logistic
    import svm_offline as of_svm

    few = tuple(of_logistic.FEW)
    cases = (
        ("svm", "hinge", (*of_svm.SETS, *few)),
        ("svm", "squared_hinge", few[:1]),
        ("logistic", "logistic", (*of_logistic.SETS, *of_logistic.MADE, *few)),
    )
    made = ("pathological", *of_logistic.MADE, *few)
    found: Values = {}
    for method, loss, names in cases:
        problem = of_logistic.Problem(getattr(of_logistic, loss))
        for name in common.loadable(names, *made):
            with threadpool_limits(1):
                rows = _beside_uniform(method, problem, *of_logistic.data_and_labels(name))
            found |= {f"{method}, {loss}, {name}, {size}": one for size, one in rows.items()}
    return found


def _beside_uniform(method: str, problem: Any, X: np.ndarray, y: np.ndarray) -> dict[int, Values]:
    """Return the excess cost of models on rows of a method and on uniform rows, by the size."""
    from logistic import solved

    ones, n_blocks = np.ones(len(y)), 8
    best = problem.cost(X, y, ones, solved(problem, X, y.astype(float), ones, 1e-5))

    def excess(way: str, size: int, seed: int) -> float:
        drawn = calls.build(
            X, y, size=size, method=way, random_state=seed, chunks=-(-len(y) // n_blocks)
        )
        signs = np.asarray(drawn.labels).astype(float)
        model: Any = (np.zeros(X.shape[1]), signs[0])
        if len(np.unique(signs)) > 1:
            model = solved(problem, np.asarray(drawn.points), signs, drawn.weights, 1e-4)
        return float(problem.cost(X, y, ones, model) / best - 1.0)

    return {
        size: {
            name: [excess(way, size, seed) for seed in range(20)]
            for name, way in (("own", method), ("uniform", "uniform"))
        }
        for size in (250, 500, 1000, 2000)
        if size < len(y)
    }


PARAMETERS = {
    "magic04": {"gamma": 1.0, "lam": 2048.0, "theta": 0.8, "mu": 0.2},
    "a9a": {"gamma": 0.0625, "lam": 512.0, "theta": 0.4, "mu": 0.2},
    "w8a": {"gamma": 0.0625, "lam": 2048.0, "theta": 0.8, "mu": 0.2},
    "cod_rna": {"gamma": 1.0, "lam": 2048.0, "theta": 0.6, "mu": 0.2},
    "ijcnn1": {"gamma": 1.0, "lam": 2048.0, "theta": 0.8, "mu": 0.2},
    "covtype": {"gamma": 0.25, "lam": 2048.0, "theta": 0.6, "mu": 0.2},
}
"""Chosen by cross-validation in the protocol of the paper."""


def table2() -> Values:
    """Accuracy of Table 2 of the CSVRG paper, by the paper's own algorithm and by the others."""
    from table2 import DIAMETERS, PAPER, rows_of, split

    ways: dict[str, tuple[Any, Any]] = {
        "cover, CSVRG": ("cover", "csvrg"),
        "drawn, CSVRG": ("drawn", "csvrg"),
        "drawn, Newton": ("drawn", "newton"),
        "cover, AVM": ("cover", "avm"),
    }
    found: Values = {}
    for name in common.loadable(PAPER):
        X, y = rows_of(name)
        for seed in range(4):
            train, labels, test, truth = split(X, y, seed)
            for way, parts in ways.items():
                given = {**PARAMETERS[name], "max_points": PAPER[name][4], "random_state": seed}
                given["diameter"] = DIAMETERS[name]
                model = calls.kernel_classifier(*parts, **given).fit(train, labels)
                accuracy = float(np.mean(model.predict(test) == truth))
                found.setdefault(f"{name}, {way}", []).append(accuracy)
    return found


def mixtures() -> Values:
    """Mean log-likelihood of all rows, by mixtures on coresets and on uniform rows."""
    from mixtures import MADE, REAL, rows_of

    found: Values = {}
    for name in common.loadable((*REAL, *MADE), *MADE):
        X = rows_of(name)[:100_000]
        k, kind = {**REAL, **MADE}[name]
        for method in ("mixture", "uniform"):
            scores = []
            for seed in range(6):
                model = calls.CoresetGaussianMixture(
                    k, covariance_type=kind, size=1000, method=method, reg_covar=1e-3,
                    random_state=seed,
                )  # fmt: skip
                scores.append(float(model.fit(X).score(X)))
            found.setdefault(name, {})[method] = scores
    return found


# --- answers, reads and bits -----------------------------------------------------------------


def _sequences(n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return rows, labels and numbers of sequences of five rows that scores of pairs separate."""
    rng = np.random.default_rng(7)
    y = rng.integers(3, size=5 * n)
    X = 4.0 * np.eye(3)[y] + 0.3 * rng.normal(size=(5 * n, 3))
    return X, y, np.arange(5 * n) // 5


def margin_cases() -> dict[str, tuple[Any, np.ndarray, np.ndarray, dict[str, Any]]]:
    """Return model, rows, labels and further arguments of `fit`, by the names of the cases."""
    from max_margin import made_separable, made_up
    from sklearn.datasets import load_digits

    cases: dict[str, tuple[Any, np.ndarray, np.ndarray, dict[str, Any]]] = {}
    base = {"n": 20_000, "d": 50, "gap": 0.1, "epsilon": 0.1}
    varied = ({}, {"epsilon": 0.01}, {"epsilon": 0.5}, {"n": 5000}, {"d": 10}, {"gap": 0.01},
              {"gap": 1.0})  # fmt: skip
    ways: tuple[Any, ...] = ("auto", 1)
    for change in varied:
        case = {**base, **change}
        X, y = made_up(int(case["n"]), int(case["d"]), float(case["gap"]))
        words = ", ".join(f"{name} = {value:g}" for name, value in change.items()) or "base"
        for way in ways if not change else ways[:1]:
            model = calls.MaxMarginClassifier(
                epsilon=case["epsilon"], fit_intercept=False, violators=way, max_passes=400
            )
            cases[f"made up, {words}, violators {way}"] = (model, X, y, {})
    digits, target = load_digits(return_X_y=True)
    for one, other in ((1, 8), (3, 5)):
        rows = (target == one) | (target == other)
        X, y = made_separable(digits[rows], np.where(target[rows] == one, 1, -1))
        for epsilon in (0.1, 1e-6):
            model = calls.MaxMarginClassifier(epsilon=epsilon)
            cases[f"digits {one} and {other}, epsilon = {epsilon:g}"] = (model, X, y, {})
        y = y.copy()
        y[[7, 70]] *= -1
        model = calls.OutlierMaxMarginClassifier(k=2, random_state=0)
        cases[f"digits {one} and {other}, two wrong labels"] = (model, X, y, {})
    few = target < 5
    for epsilon in (0.2, 0.05):
        model = calls.MaxMarginClassifier(epsilon=epsilon)
        cases[f"digits below 5, epsilon = {epsilon:g}"] = (model, digits[few], target[few], {})
        model = calls.StructuredMaxMargin(epsilon=epsilon)
        cases[f"structured, digits below 5, epsilon = {epsilon:g}"] = (
            model, digits[few], target[few], {},
        )  # fmt: skip
    X, y = made_up(5000, 10, 0.1)
    for error in (0.05, 0.02):
        model = calls.ActiveMaxMarginClassifier(error=error, random_state=0)
        cases[f"active, error = {error:g}"] = (model, X, y, {})
    X, y, groups = _sequences(400)
    model = calls.StructuredMaxMargin("sequence")
    cases["sequences"] = (model, X, y, {"groups": groups})
    return cases


def margin() -> Values:
    """Answers, certificates and reads of maximum-margin estimators."""
    found: Values = {}
    for name, (model, X, y, more) in margin_cases().items():
        rows = Counting(X)
        further = {key: lazy(value) for key, value in more.items()}
        model.fit(lazy(rows), y if "active" in name else lazy(y), **further)
        found[name] = {"answers": calls.margin_facts(model), "reads": rows.reads}
    return found


def _methods() -> dict[str, Any]:
    return {
        "uniform": calls.Uniform(),
        "lightweight": calls.Lightweight(),
        "StrongKMeans": calls.StrongKMeans(5),
        "LightweightBregman": calls.LightweightBregman("kl"),
        "StrongBregman": calls.StrongBregman(4, "kl"),
        "Mixture": calls.Mixture(3),
        "SVM": calls.SVM(),
        "Logistic": calls.Logistic(),
    }


def _rows(n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Return positive rows of three clusters, one with heavy tails, and labels."""
    rng = np.random.default_rng(seed)
    cluster = rng.choice(3, n, p=[0.7, 0.28, 0.02])
    X = np.array([[4.0, 8, 4, 4], [12, 4, 9, 6], [40, 30, 20, 50]])[cluster]
    X = X + rng.normal(size=(n, 4)) + (cluster == 1)[:, None] * rng.standard_t(3, size=(n, 4))
    y = (X[:, 0] + 2.0 * rng.normal(size=n) > 8.0).astype(np.int64)
    return np.abs(X) + 0.05, y


DRAWS: dict[str, Any] = {
    "one read": calls.Draw(),
    "two reads": calls.Draw(passes=2),
    "independent draws": INDEPENDENT,
    "merge and reduce": calls.MergeReduce(),
}


def unbiased() -> Values:
    """Return the z of mean estimated costs of fixed solutions, over many seeds."""
    X, y = _rows(2000)
    rng = np.random.default_rng(1)
    centers = [X[rng.choice(len(X), 5)] for _ in range(2)] + [X.mean(axis=0, keepdims=True)]
    planes = [(rng.normal(size=4) / 4, rng.normal()) for _ in range(3)]
    gaps = [((X[:, None] - c) ** 2).sum(axis=2).min(axis=1) for c in centers]
    signed = [(2 * y - 1) * ((X - X.mean(axis=0)) @ w + b) for w, b in planes]
    losses = [np.maximum(1 - z, 0) for z in signed] + [np.logaddexp(0, -z) for z in signed]
    weights = np.random.default_rng(2).uniform(0.2, 3.0, size=len(X))
    # The weights of calibrated coresets are those of few sums, and not unbiased for all others.
    plain = {name: one for name, one in _methods().items() if name not in ("SVM", "Logistic")}
    plain |= {f"SVM, {variant}": calls.SVM(variant=variant) for variant in ("paper",)}
    configurations = [
        (f"{name}, {way}", method, draw, None)
        for name, method in plain.items()
        for way, draw in DRAWS.items()
        if way != "two reads"
    ]
    configurations.append(("weighted rows", calls.Lightweight(), calls.Draw(), weights))
    found: Values = {}
    for name, method, draw, own in configurations:
        labelled = name.startswith("SVM")
        asked = np.array(losses if labelled else gaps)
        true = asked @ (np.ones(len(X)) if own is None else own)
        estimates = []
        for seed in range(100):
            coreset = calls.build(
                X, y if labelled else None, size=100, method=method, draw=draw, chunks=500,
                sample_weight=own, random_state=seed,
            )  # fmt: skip
            estimates.append(asked[:, coreset.indices] @ coreset.weights)
        gap, error = np.mean(estimates, axis=0) - true, np.std(estimates, axis=0, ddof=1)
        z = gap / np.maximum(error / np.sqrt(len(estimates)), 1e-9 * true)
        found[name] = z.tolist()
    return found


def audit() -> Values:
    """How often intervals of audits hold the true cost: see `audit_coverage.py`."""
    from audit_coverage import CASES, repeat

    found: Values = {}
    for name, make in CASES.items():
        if name in ("skin", "cod_rna") and not common.loadable([name]):
            continue
        runs = [
            run
            for several in repeat(make(10_000), 12, 300, 1000).values()
            for run in several
        ]  # fmt: skip
        true, low, high = np.array(runs).T[:3]
        slack = 1e-9 * np.abs(true)
        held = (low <= true + slack) & (true <= high + slack)
        width = float(np.median((high - low) / true))
        found[name] = {"held": int(held.sum()), "asked": len(held), "width": width}
    return found


def digests() -> Values:
    """Digests of coresets by each construction and draw."""
    from same_bits import of_coreset

    X, y = _rows(12_000)
    found: Values = {}
    for name, method in _methods().items():
        labels = y if name in ("SVM", "Logistic") else None
        for way, draw in DRAWS.items():
            coreset = calls.build(
                X, labels, size=300, method=method, draw=draw, chunks=1500, random_state=3
            )
            found[f"{name}, {way}"] = of_coreset(coreset)
        stream = calls.stream(method, 200, 2000, 1)
        for start in range(0, len(X), 1100):
            rows = slice(start, start + 1100)
            stream.partial_fit(X[rows], *([] if labels is None else [labels[rows]]))
        found[f"{name}, stream"] = of_coreset(stream.coreset())
    return found


def build_many() -> Values:
    """Return the reads of several coresets together, and of the dearest alone."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(100_000, 8)).astype(np.float32)
    y = (X[:, 0] + rng.normal(size=len(X)) > 0).astype(np.int64)
    methods = {
        "clusters": calls.StrongKMeans(20),
        "mixture": calls.Mixture(5),
        "svm": calls.SVM(),
        "churn": calls.Logistic(),
        "plain": calls.Uniform(),
    }

    def reads(chosen: dict[str, Any]) -> float:
        rows = Counting(X)
        calls.build_many(lazy(rows), lazy(y), methods=chosen, size=1000, random_state=0)
        return rows.reads

    alone = {name: reads({name: method}) for name, method in methods.items()}
    return {"all": {"together": reads(methods), "dearest": max(alone.values())}}


def refresh() -> Values:
    """Share of the bytes of a Zarr array that a refresh reads after an append of one per cent."""
    import zarr
    from zarr.storage import LocalStore

    class Store(LocalStore):
        """A store that counts the bytes that are read of it."""

        read = 0

        async def get(self, key: str, prototype: Any = None, byte_range: Any = None) -> Any:
            """Read, and count."""
            found = await super().get(key, prototype, byte_range)
            Store.read += 0 if found is None else len(found)
            return found

    rng = np.random.default_rng(0)
    with tempfile.TemporaryDirectory() as folder:
        store = Store(Path(folder) / "rows.zarr")
        array = zarr.create_array(store, shape=(100_000, 10), chunks=(1000, 10), dtype="f8")
        array[:] = rng.normal(size=array.shape)
        tree = calls.follow(store, Path(folder) / "tree", 200, 0)
        array.resize((101_000, 10))
        array[100_000:] = rng.normal(size=(1000, 10))
        Store.read = 0
        tree.refresh()
        stored = sum(file.stat().st_size for file in (Path(folder) / "rows.zarr").rglob("*"))
    return {"Zarr array": Store.read / stored}


# --- time and memory -------------------------------------------------------------------------


def _store(folder: Path, n_rows: int) -> str:
    path = folder / f"{n_rows}.zarr"
    if not path.exists():
        common.write_rows(path, n_rows, 20, 200_000, common.gaussian(20))
    return str(path)


def stored() -> Values:
    """Seconds of builds from 10 million rows on disk over those of a plain read, by processors."""
    import dask.array as da
    from throughput import by_both_clocks, each_turn

    with tempfile.TemporaryDirectory() as folder:
        path = _store(Path(folder), 10_000_000)
        jobs = {
            "plain": lambda: da.from_zarr(path).sum(axis=0).compute(),
            "one read": lambda: calls.build(path, size=10_000, random_state=0),
            "two reads": lambda: calls.build(
                path, size=10_000, random_state=0, draw=calls.Draw(passes=2)
            ),
        }
        found = each_turn(by_both_clocks(jobs, 9), "plain")
    return {name: found[name] for name in ("one read", "two reads")}


def in_memory() -> Values:
    """Seconds of builds in memory over those of two passes of NumPy, by processors."""
    from throughput import by_both_clocks, each_turn, numpy_lightweight

    found: Values = {}
    for n_rows in (10_000, 100_000, 1_000_000):
        X = np.random.default_rng(0).standard_normal((n_rows, 20), dtype=np.float32)
        size = min(10_000, n_rows // 10)
        jobs = {
            "NumPy": lambda X=X, size=size: numpy_lightweight(X, size, 0),
            "build": lambda X=X, size=size: calls.build(X, size=size, random_state=0),
        }
        turns = min(100, 20_000_000 // n_rows)
        found[f"{n_rows:,} rows"] = each_turn(by_both_clocks(jobs, turns), "NumPy")["build"]
    return found


def peak() -> Values:
    """Peak bytes of builds from 2 and from 8 million rows on disk, each in its own process."""
    with tempfile.TemporaryDirectory() as folder:
        sizes = (2_000_000, 8_000_000)
        paths = [_store(Path(folder), n_rows) for n_rows in sizes]
        low, high = (
            min(common.in_child(__file__, "--peak", path) for _ in range(3)) for path in paths
        )
    return {"build": {"2 million rows": low, "8 million rows": high}}


def peak_of(path: str) -> int:
    """Return the peak bytes of a build, beyond those of the process before it."""
    calls.build(np.ones((2000, 20), dtype=np.float32), size=10, random_state=0)
    before = common.reset_high_water()
    calls.build(path, size=10_000, random_state=0)
    return common.high_water() - before


ERRORS: dict[str, Callable[[], Values]] = {
    one.__name__: one
    for one in (
        digests, margin, build_many, refresh, unbiased, quality, kmeans, table1, svm_offline,
        logistic, never_worse, table2, mixtures, audit,
    )
}  # fmt: skip
"""The same on every run on one machine."""

TIMES: dict[str, Callable[[], Values]] = {one.__name__: one for one in (stored, in_memory, peak)}
"""Of a quiet machine."""

KINDS = ERRORS | TIMES


def write_seconds_data(folder: Path) -> None:
    """Write what the calls of `seconds_jobs` read."""
    _store(folder, 2_000_000)


def seconds_jobs(folder: Path) -> dict[str, Callable[[], object]]:
    """Return calls whose seconds are compared between commits, by name."""
    path = str(folder / "2000000.zarr")
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300_000, 20), dtype=np.float32)
    y = (X @ rng.normal(size=20) + rng.normal(size=len(X)) > 0).astype(np.int64)
    apart = X[:50_000] + 2.0 * np.where(y[:50_000, None] > 0, 1, -1)
    return {
        "build, 10,000 rows in memory": lambda: calls.build(X[:10_000], size=500, random_state=0),
        "build, 300,000 rows in memory": lambda: calls.build(X, size=5000, random_state=0),
        "build, 2 million rows on disk": lambda: calls.build(path, size=5000, random_state=0),
        "build, two reads on disk": lambda: calls.build(
            path, size=5000, random_state=0, draw=calls.Draw(passes=2)
        ),
        "StrongKMeans": lambda: calls.build(X, size=2000, n_clusters=50, random_state=0),
        "SVM": lambda: calls.build(X, y, size=2000, method="svm", random_state=0),
        "CoresetKMeans": lambda: calls.CoresetKMeans(20, random_state=0).fit(X),
        "CoresetSVC": lambda: calls.CoresetSVC(random_state=0).fit(X, y),
        "CoresetLogisticRegression": lambda: (
            calls.CoresetLogisticRegression(random_state=0).fit(X, y)
        ),
        "kernel classifier": lambda: calls.kernel_classifier(
            "drawn", "newton", gamma=0.05, lam=512.0, theta=0.4, mu=0.2, max_points=100,
            random_state=0,
        ).fit(X[:50_000], y[:50_000]),
        "MaxMarginClassifier": lambda: calls.MaxMarginClassifier(epsilon=0.1).fit(
            lazy(apart), lazy(y[:50_000])
        ),
    }  # fmt: skip


def take_turns(folder: Path) -> None:
    """Print the processor seconds of every call that is named on the input."""
    jobs = seconds_jobs(folder)
    for line in sys.stdin:
        with common.timed() as clock:
            jobs[line.strip()]()
        print(json.dumps(clock.cpu), flush=True)


def main() -> None:
    """Run in a process of `frozen.py`."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--turns", type=Path, help="folder of data for calls that are timed")
    parser.add_argument("--peak", help="store of a build whose peak is measured")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    if given.peak:
        print(json.dumps(peak_of(given.peak)))
    if given.turns:
        take_turns(given.turns)


if __name__ == "__main__":
    main()
