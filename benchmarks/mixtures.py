"""Gaussian mixtures fitted on coresets for mixtures against uniform rows of the same number.

`CoresetGaussianMixture` as it comes, but for `size` and `method`: mean log-likelihood of all rows,
in nats a row, and how far `lower_bound_`, by rows that the coreset did not take, and the objective
of EM on the coreset lie above it. Eight seeds; real sets, brought to one scale, sets with rare
components, and heavy tails in so many rows that few of them are held out. Beside them what is at
hand of as many uniform rows and nothing else, to our estimator and to `GaussianMixture` of
scikit-learn, and what there is to gain: the better of two of these on all rows, four starts each,
or of ours on all rows where that is better.

    python benchmarks/mixtures.py
    python benchmarks/mixtures.py --keep-all-rows
    python benchmarks/mixtures.py --only-alone
"""

from __future__ import annotations

import time
import warnings
from typing import Any

import common
import numpy as np
from scipy import stats
from sets import load
from sklearn.exceptions import ConvergenceWarning
from sklearn.mixture import GaussianMixture

from daskcoreset.estimators import CoresetGaussianMixture

NAME = "mixtures"

# Components, type of covariance.
REAL = {
    "cod_rna": (10, "full"),
    "htru2": (8, "full"),
    "magic04": (8, "full"),
    "skin": (8, "full"),
    "credit": (10, "diag"),
    "kdd_bio": (10, "diag"),
}
MADE = {
    "rare components": (5, "full"),
    "uneven components": (10, "full"),
    "heavy tails": (8, "full"),
}
METHODS = ("mixture", "uniform")
PEER, ALONE = "scikit-learn", "alone"
MAX_ROWS = 40_000


def rows_of(name: str) -> np.ndarray:
    """Return 40,000 rows of a set at most, 400,000 of heavy tails, on one scale."""
    rng = np.random.default_rng(0)
    if name == "rare components":
        parts = [(40_000, 0.0, 1.0), (200, 20.0, 1.0), (40, -30.0, 5.0)]
        X = np.vstack([at + s * rng.normal(size=(n, 6)) for n, at, s in parts])
    elif name == "uneven components":
        at = 8.0 * rng.normal(size=(10, 6))
        X = at[np.minimum(rng.zipf(2.0, 40_000) - 1, 9)] + rng.normal(size=(40_000, 6))
    elif name == "heavy tails":
        wide = rng.standard_t(2.5, size=(10 * MAX_ROWS, 6))
        return wide / wide.std(axis=0)
    else:
        X = common.dense(load(name).X, np.float64)
    X = X[np.sort(rng.permutation(len(X))[:MAX_ROWS])]
    spread = X.std(axis=0)
    return (X - X.mean(axis=0)) / np.where(spread > 0.0, spread, 1.0)


def compare(X: np.ndarray, k: int, kind: str, size: int, seeds: int) -> dict[str, Any]:
    """Fit by both methods and by scikit-learn in turns."""
    found: dict[str, Any] = {
        name: {"score": [], "above": [], "error": [], "objective": [], "seconds": []}
        for name in METHODS
    }
    peer: dict[str, Any] = {"score": [], "seconds": []}
    for seed in range(seeds):
        for name, each in found.items():
            model, seconds = _fitted(_ours(k, kind, size, name, seed), X)
            each["seconds"].append(seconds)
            score = model.score(X)
            each["score"].append(score)
            each["above"].append(model.lower_bound_ - score)
            each["error"].append(model.lower_bound_error_)
            each["objective"].append(model.lower_bounds_[-1] - score)
        model, seconds = _fitted(_theirs(k, kind, seed), _some(X, size, seed))
        peer["score"].append(float(model.score(X)))
        peer["seconds"].append(seconds)
    return found | {PEER: peer} | alone(X, k, kind, size, seeds)


def alone(X: np.ndarray, k: int, kind: str, size: int, seeds: int) -> dict[str, Any]:
    """Fit our estimator to uniform rows alone: none are left that judge."""
    scores = []
    for seed in range(seeds):
        model, _ = _fitted(_ours(k, kind, size, "uniform", seed), _some(X, size, seed))
        scores.append(model.score(X))
    return {ALONE: {"score": scores}}


def _some(X: np.ndarray, size: int, seed: int) -> np.ndarray:
    return X[np.random.default_rng(seed).permutation(len(X))[:size]]


def _ours(k: int, kind: str, size: int, method: str, seed: int) -> CoresetGaussianMixture:
    return CoresetGaussianMixture(
        k, covariance_type=kind, size=size, method=method, reg_covar=1e-3, random_state=seed
    )


def _theirs(k: int, kind: str, seed: int) -> GaussianMixture:
    return GaussianMixture(k, covariance_type=kind, reg_covar=1e-3, n_init=4, random_state=seed)


def _fitted(model: Any, X: np.ndarray) -> tuple[Any, float]:
    start = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(X)
    return model, time.process_time() - start


def scores_of_all(X: np.ndarray, k: int, kind: str, theirs: float | None) -> dict[str, float]:
    """Mean log-likelihood of all rows by mixtures fitted on all of them, of both libraries."""
    if theirs is None:
        models = (_theirs(k, kind, seed) for seed in range(2))
        theirs = max(float(_fitted(model, X)[0].score(X)) for model in models)
    model, _ = _fitted(_ours(k, kind, len(X), "uniform", 0), X)
    return {"all": theirs, "ours on all": float(model.score(X))}


def _mean(values: Any) -> str:
    values = np.asarray(values, dtype=float)
    width = float(stats.t.ppf(0.975, len(values) - 1)) * values.std(ddof=1) / np.sqrt(len(values))
    return f"{values.mean():.3f} ± {width:.3f}"


def _judged(found: dict[str, Any]) -> tuple[str, ...]:
    error = f"{np.mean(found['error']):.3f}"
    return _mean(found["objective"]), _mean(found["above"]), error


def to_gain(one: dict[str, Any]) -> tuple[float, float]:
    """Return how much likelier mixtures on all rows are than those on uniform ones.

    And half the width of an interval of 95 %, over the seeds of the uniform rows; both as shown.
    """
    gaps = max(one["all"], one["ours on all"]) - np.array(one["uniform"]["score"])
    return round(float(gaps.mean()), 3), round(common.interval(gaps), 3)


def without_gain(results: list[dict[str, Any]]) -> str:
    """Say where uniform rows miss nothing beyond chance, and what the coreset gains there."""
    parts = []
    for size in sorted({one["size"] for one in results}):
        names = []
        for one in (one for one in results if one["size"] == size):
            gap, width = to_gain(one)
            if gap <= width:
                gains = np.array(one["mixture"]["score"]) - np.array(one["uniform"]["score"])
                names.append(f"{one['set']} ({gap:.3f} ± {width:.3f}; gain {_mean(gains)})")
        parts.append(f"with {size:,} rows on {', '.join(names) or 'none'}")
    return (
        f"Nothing is to be gained where mixtures on uniform rows are as likely as those on all "
        f"rows, within chance, or likelier: {'; '.join(parts)}."
    )


HEADS = (
    "set",
    "components",
    "rows of the coreset",
    "coreset",
    "uniform",
    "uniform alone",
    "scikit-learn, uniform",
    "all rows",
    "scikit-learn, all rows",
    "to gain",
    "gain",
    "seeds won",
    "gain over uniform alone",
    "seeds won over uniform alone",
    "gain over scikit-learn",
    "seeds won over scikit-learn",
    "objective above, coreset",
    "`lower_bound_` above, coreset",
    "its error, coreset",
    "objective above, uniform",
    "`lower_bound_` above, uniform",
    "its error, uniform",
    "seconds",
)


def report(data: dict[str, Any]) -> str:
    """Write the table."""
    rows = []
    for one in data["results"]:
        first, other = (one[name] for name in METHODS)
        gains = np.array(first["score"]) - np.array(other["score"])
        over = {by: np.array(first["score"]) - np.array(one[by]["score"]) for by in (ALONE, PEER)}
        rows.append(
            (
                one["set"],
                f"{one['k']} {one['kind']}",
                f"{one['size']:,}",
                _mean(first["score"]),
                _mean(other["score"]),
                *(_mean(one[by]["score"]) for by in (ALONE, PEER)),
                f"{one['ours on all']:.3f}",
                f"{one['all']:.3f}",
                "{:.3f} ± {:.3f}".format(*to_gain(one)),
                _mean(gains),
                f"{(gains > 0).sum()} of {len(gains)}",
                *(
                    cell
                    for each in over.values()
                    for cell in (_mean(each), f"{(each > 0).sum()} of {len(each)}")
                ),
                *_judged(first),
                *_judged(other),
                ", ".join(f"{np.median(one[by]['seconds']):.2f}" for by in (*METHODS, PEER)),
            )
        )
    lines = [
        "# Mixtures on coresets and on uniform rows",
        "",
        "Mean log-likelihood of all rows in nats a row: of mixtures on the coreset, on as many",
        "uniform rows by the same estimator, which holds other rows out for both and chooses by",
        "them, by the same estimator on uniform rows alone, by scikit-learn on these, and on all",
        "rows by both. What there is to gain is that by which the better of the last two is above",
        "uniform rows; then the gain of the coreset over the three of uniform rows, how far what",
        "EM made large on the coreset and `lower_bound_` lie above the likelihood, the mean of",
        "`lower_bound_error_`, and median processor seconds of the three fits, more where other",
        "work shares the processors. Means with intervals of 95 % over seeds. Negative gains are",
        "losses.",
        "",
        *common.table(HEADS, rows),
        "",
        without_gain(data["results"]),
        "",
        common.stamped(data),
        *([f"Uniform rows alone: commit {data['alone']}."] if "alone" in data else []),
        "",
    ]
    return "\n".join(lines)


def main() -> None:
    """Run and write the results."""
    parser = common.arguments(__doc__, (*REAL, *MADE))
    parser.add_argument("--seeds", type=int, default=8)
    parser.add_argument("--sizes", nargs="+", type=int, default=[1000, 10_000])
    parser.add_argument(
        "--keep-all-rows",
        action="store_true",
        help="take fits of scikit-learn on all rows, on which nothing of ours bears, from results",
    )
    parser.add_argument(
        "--only-alone", action="store_true", help="fit uniform rows alone, for results at hand"
    )
    options = parser.parse_args()
    if options.only_alone:
        data = common.read(NAME, options.out)
        for one in data["results"]:
            X, shape = rows_of(one["set"]), (one["k"], one["kind"], one["size"])
            one.update(alone(X, *shape, data["stamp"]["seeds"]))
        data["alone"] = common.stamp()["commit"]
        common.write(NAME, data, options.out, report)
        return
    results = []
    known = {}
    if options.keep_all_rows:
        known = {one["set"]: one["all"] for one in common.read(NAME, options.out)["results"]}
    for name in common.loadable(options.sets, *MADE):
        X = rows_of(name)
        k, kind = {**REAL, **MADE}[name]
        scores = scores_of_all(X, k, kind, known.get(name))
        for size in options.sizes:
            one = {"set": name, "k": k, "kind": kind, "size": size} | scores
            results.append(one | compare(X, k, kind, size, options.seeds))
            data = {"stamp": common.stamp(seeds=options.seeds), "results": results}
            print(report(data).splitlines()[-3], flush=True)
            common.write(NAME, data, options.out, report)


if __name__ == "__main__":
    main()
