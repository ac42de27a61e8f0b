"""What coresets for quantile regression are worth, beside uniform rows and leverage scores.

Models are trained on the rows, and their excess cost over all the data is shown: quantile
regression of the median and of the 0.9 quantile. `leverage` are the rows of `LeastSquares`, and
`calibrated` those of `QuantileRegression`. `CoresetRidge` and `CoresetElasticNet` are exact and
not here: they take the moments of the same read.

    DASKCORESET_DATA=... python benchmarks/regression.py --trials 4

A column of the real sets is the target. The last three sets are made: heavy tails, one row in a
thousand far off, and columns of unlike units far from the origin, one of them there twice.
"""

from __future__ import annotations

import warnings
from typing import Any

import common
import dask.array as da
import numpy as np
from threadpoolctl import threadpool_limits

import daskcoreset
from daskcoreset import LeastSquares, QuantileRegression
from daskcoreset.datasets import load
from daskcoreset.solvers import quantile as solver

NAME = "regression"
TARGETS = {"htru2": 0, "credit": 11, "cod_rna": 0, "magic04": 0, "skin": 0, "ijcnn1": 11}
MADE = ("heavy tails", "outliers", "units")
SIZE = 2000
QUANTILES = {"median": 0.5, "quantile 0.9": 0.9}
MODELS = tuple(QUANTILES)
METHODS = ("uniform", "leverage", "calibrated")


def data_of(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Return rows and targets; real columns are standardised."""
    rng = np.random.default_rng(0)
    if name in MADE:
        n, d = 40_000, 10
        X = rng.normal(size=(n, d))
        if name == "heavy tails":
            X *= np.clip(rng.standard_t(1.5, size=(n, 1)), -1e3, 1e3)
        y = X @ np.linspace(2.0, -1.0, d) + rng.standard_t(2, size=n)
        if name == "outliers":
            far = rng.choice(n, n // 1000, replace=False)
            y[far] += 1000.0 * rng.normal(size=len(far))
        if name == "units":
            X = X * 10.0 ** np.linspace(-3, 3, d) + 1e4
            X = np.column_stack([X, X[:, 0]])
        return X, y
    X = common.dense(load(name).X, np.float64)
    spread = X.std(axis=0)
    X = (X - X.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
    target = TARGETS[name]
    return np.delete(X, target, axis=1), X[:, target]


def fitted(model: str, X: np.ndarray, y: np.ndarray, u: np.ndarray) -> Any:
    """Return coefficients and intercept."""
    return solver.solve_quantile(X, y, u, QUANTILES[model])


def cost(model: str, X: np.ndarray, y: np.ndarray, solution: Any) -> float:
    """Return the cost over all the data."""
    coef, shift = solution
    residuals, q = y - X @ coef - shift, QUANTILES[model]
    return float(np.maximum(q * residuals, (q - 1) * residuals).sum())


def method_of(method: str, model: str) -> Any:
    """Return the construction."""
    if method == "uniform":
        return "uniform"
    return LeastSquares() if method == "leverage" else QuantileRegression(QUANTILES[model])


def run(name: str, trials: int) -> dict[str, Any]:
    """Measure one set."""
    X, y = data_of(name)
    n = len(y)
    rows = -(-n // 8)
    data = da.from_array(X, chunks=(rows, X.shape[1])), da.from_array(y, chunks=rows)
    errors: dict[str, list[float]] = {}
    seconds: dict[str, list[float]] = {}
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        rough = solver.ROUNDINGS, solver.MAX_STEPS
        solver.ROUNDINGS, solver.MAX_STEPS = (1.0, 0.1, 1e-2, 1e-3, 1e-4, 1e-5), 240
        best = {model: cost(model, X, y, fitted(model, X, y, np.ones(n))) for model in MODELS}
        for seed in range(trials):
            for method in METHODS:
                made: dict[str, Any] = {}
                for model in MODELS:
                    construction = method_of(method, model)
                    key = str(construction)
                    if key not in made:
                        solver.ROUNDINGS, solver.MAX_STEPS = rough
                        with common.timed() as clock:
                            made[key] = daskcoreset.build(
                                *data, size=SIZE, method=construction, random_state=seed,
                                progress=False,
                            )  # fmt: skip
                        seconds.setdefault(f"{model}|{method}", []).append(clock.cpu)
                        solver.ROUNDINGS = (1.0, 0.1, 1e-2, 1e-3, 1e-4, 1e-5)
                        solver.MAX_STEPS = 240
                    few = made[key]
                    points = np.asarray(few.points)
                    solution = fitted(model, points, few.labels, few.weights)
                    found = cost(model, X, y, solution) / best[model] - 1
                    errors.setdefault(f"{model}|{method}", []).append(found)
        solver.ROUNDINGS, solver.MAX_STEPS = rough
    return {
        "set": name, "shape": X.shape, "trials": trials, "errors": errors,
        "seconds": seconds,
    }  # fmt: skip


def seconds_of(result: dict[str, Any], model: str, method: str) -> float:
    """Return median seconds of a build; that of the first model serves those it is the same for."""
    found = result["seconds"]
    return float(np.median(found.get(f"{model}|{method}", found[f"{MODELS[0]}|{method}"])))


def report(data: dict[str, Any]) -> str:
    """Return the table as Markdown."""
    trials = common.counted([result["trials"] for result in data["results"]], "trial")
    lines = [
        "# Excess costs of quantile regressions on coresets",
        "",
        *(__doc__ or "").splitlines()[2:6],
        "",
        f"Means in % of the least cost over {trials}, with intervals of 95 %, size {SIZE:,}; the",
        "least one of a row is bold. Uniform rows and leverage scores take one read, and",
        "`QuantileRegression` takes two. Median seconds of the processor to draw, in the order of",
        f"the columns. {common.stamped(data)}",
        "",
    ]
    rows, behind = [], []
    for result in data["results"]:
        n, d = result["shape"]
        for model in MODELS:
            means = {m: float(np.mean(result["errors"][f"{model}|{m}"])) for m in METHODS}
            least = min(means, key=lambda method: means[method])
            texts = {m: common.mean_cell(result["errors"][f"{model}|{m}"]) for m in METHODS}
            cells = [f"**{text}**" if m == least else text for m, text in texts.items()]
            cells.append(" / ".join(f"{seconds_of(result, model, m):.2f}" for m in METHODS))
            share = means["calibrated"] / max(means["leverage"], 1e-12)
            if share > 0.5:
                behind.append(f"{result['set']}, {model} ({share:.2f})")
            rows.append([f"{result['set']}, {n:,} x {d}", model, *cells])
    lines += [
        f"More than half of the excess of leverage scores in {len(behind)} of {len(rows)} cells. "
        + "; ".join(behind),
        "",
        *common.table(["set", "model", *METHODS, "seconds"], rows),
    ]
    return "\n".join(lines) + "\n"


def main() -> None:
    """Run the benchmark."""
    parser = common.arguments(__doc__, (*TARGETS, *MADE))
    parser.add_argument("--trials", type=int, default=4)
    args = parser.parse_args()
    data: dict[str, Any] = {"stamp": common.stamp(), "results": []}
    for name in common.loadable(args.sets, *MADE):
        data["results"].append(run(name, args.trials))
        common.write(NAME, data, args.out, report)
        print(name, flush=True)
    print(report(data))


if __name__ == "__main__":
    main()
