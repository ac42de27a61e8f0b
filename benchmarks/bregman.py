"""Hard and soft clustering by Kullback-Leibler on counts and by Itakura-Saito on spectra.

Centers found on a coreset of `StrongBregman`, on one of `LightweightBregman` and on as many uniform
rows, by the same solver, are judged on all rows: the excess of the divergence over the best known
centers, and, for mixtures, of the negative log likelihood a row. Beside them stand the solver on
all rows, and k-means of scikit-learn on all rows transformed (square roots of counts, logarithms
of spectra), whose cells are judged by their means in the original coordinates.

    DASKCORESET_DATA=... python benchmarks/bregman.py --seeds 4
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import common
import numpy as np
from sets import load
from sklearn.cluster import KMeans
from sklearn.datasets import load_digits

import daskcoreset
from daskcoreset.sensitivities import LightweightBregman, StrongBregman, Uniform
from daskcoreset.solvers.bregman import bregman_hard
from daskcoreset.solvers.bregman_soft import bregman_soft

NAME = "bregman"
K = 10
SIZES = (300, 1000)
METHODS = ("strong", "lightweight", "uniform")
PEERS = ("all rows", "k-means, transformed")


def topics(n: int = 4000, words: int = 100) -> np.ndarray:
    """Return word counts of documents: a main topic of unequal share, others mixed in."""
    rng = np.random.default_rng(0)
    n_topics = 20
    shares = 1.0 / np.arange(1, n_topics + 1) ** 1.5
    base = 1.0 / np.arange(1, words + 1)
    table = rng.dirichlet(20.0 * base / base.sum(), n_topics)
    main = rng.choice(n_topics, n, p=shares / shares.sum())
    mixed = 0.8 * table[main] + 0.2 * rng.dirichlet(np.full(n_topics, 0.1), n) @ table
    lengths = rng.lognormal(5.0, 0.5, n)
    return rng.poisson(mixed * lengths[:, None]) + 0.1


def word_presence() -> np.ndarray:
    """Return words of web pages (w8a), which are there or not."""
    return common.dense(load("w8a").X, np.float64)[::12] + 0.1


def digits() -> np.ndarray:
    """Return grey levels of digits, which are counts of pixels."""
    return np.asarray(load_digits().data + 0.5)


def periodograms(series: np.ndarray) -> np.ndarray:
    """Return power spectra of rows of series, averaged over their two halves."""
    halves = series.reshape(len(series), 2, -1)
    halves = halves - halves.mean(axis=2, keepdims=True)
    power = np.square(np.abs(np.fft.rfft(halves, axis=2)[:, :, 1:])).mean(axis=1)
    return np.asarray(power / halves.shape[2])


def autoregressive(n: int = 4000, length: int = 128) -> np.ndarray:
    """Return spectra of autoregressive series of 20 kinds, of unequal share and power."""
    rng = np.random.default_rng(0)
    kinds = 20
    shares = 1.0 / np.arange(1, kinds + 1) ** 1.5
    kind = rng.choice(kinds, n, p=shares / shares.sum())
    radius, angle = rng.uniform(0.6, 0.95, kinds)[kind], rng.uniform(0.2, 2.9, kinds)[kind]
    first, second = 2 * radius * np.cos(angle), -np.square(radius)
    noise = rng.normal(size=(n, length + 64)) * np.exp(rng.normal(0, 0.3, n))[:, None]
    series = np.zeros((n, length + 64))
    for t in range(2, length + 64):
        series[:, t] = first * series[:, t - 1] + second * series[:, t - 2] + noise[:, t]
    return periodograms(series[:, 64:])


def delays() -> np.ndarray:
    """Return spectra of delays of flights in the order of their departure, 64 at a time."""
    late = common.dense(load("flights3m").X[:256_000, 2], np.float64)
    spectra = periodograms(late.reshape(-1, 64))
    return spectra + 1e-3 * np.median(spectra)


SETS: dict[str, tuple[str, Callable[[], np.ndarray]]] = {
    "topics (made)": ("kl", topics),
    "w8a words": ("kl", word_presence),
    "digits": ("kl", digits),
    "AR spectra (made)": ("itakura_saito", autoregressive),
    "spectra of flight delays": ("itakura_saito", delays),
}


def construction(method: str, divergence: str) -> Any:
    """Return a construction by its short name."""
    if method == "strong":
        return StrongBregman(K, divergence)
    return LightweightBregman(divergence) if method == "lightweight" else Uniform()


def transformed(X: np.ndarray, divergence: str, seed: int) -> np.ndarray:
    """Return the means of the cells that k-means has on transformed rows."""
    rows = np.sqrt(X) if divergence == "kl" else np.log(X)
    labels = KMeans(K, n_init=3, random_state=seed).fit(rows).labels_
    return np.array([X[labels == j].mean(axis=0) for j in range(K)])


def solved(
    X: np.ndarray, weights: np.ndarray | None, divergence: str, seed: int, *, soft: bool
) -> Any:
    """Solve on weighted rows."""
    fit = bregman_soft if soft else bregman_hard
    options: dict[str, Any] = {"max_iter": 20} if soft else {}
    return fit(
        X, K, divergence=divergence, sample_weight=weights, n_init=3, random_state=seed, **options
    )


def run(name: str, seeds: int) -> dict[str, Any]:
    """Measure one set; a cost is the mean of a row."""
    divergence, make = SETS[name]
    X = make()
    costs: dict[str, list[float]] = {}
    seconds: dict[str, list[float]] = {}

    def note(key: str, value: float, clock: common.Clock) -> None:
        costs.setdefault(key, []).append(value)
        seconds.setdefault(key, []).append(clock.cpu)

    for soft in (False, True):
        kind = "soft" if soft else "hard"
        for seed in range(min(seeds, 3)):
            with common.timed() as clock:
                found = solved(X, None, divergence, seed, soft=soft)
            note(f"{kind}|all rows|0", float(found.costs(X).mean()), clock)
            solver = bregman_soft if soft else bregman_hard
            with common.timed() as clock:
                start = transformed(X, divergence, seed)
                # No step moves hard centers; of a mixture one sets the shares of the components.
                only = solver(X, K, divergence=divergence, init=start, max_iter=1)
            if soft:
                value = float(only.costs(X).mean())
            else:
                value = float(only.divergence.nearest(X, start)[1].mean())
            note(f"{kind}|k-means, transformed|0", value, clock)
        for method in METHODS:
            for size in SIZES:
                for seed in range(seeds):
                    with common.timed() as clock:
                        coreset = daskcoreset.build(
                            X, size=size, method=construction(method, divergence), random_state=seed
                        )
                        points = np.asarray(coreset.points)
                        found = solved(points, coreset.weights, divergence, seed, soft=soft)
                    note(f"{kind}|{method}|{size}", float(found.costs(X).mean()), clock)
        known = {key: np.mean(v) for key, v in costs.items() if key.startswith(kind)}
        print(name, {key: round(float(value), 4) for key, value in known.items()}, flush=True)
    return {
        "set": name,
        "divergence": divergence,
        "shape": list(X.shape),
        "costs": costs,
        "seconds": seconds,
    }


def main() -> None:
    """Run the command line."""
    parser = common.arguments(__doc__, tuple(SETS))
    parser.add_argument("--seeds", type=int, default=4)
    args = parser.parse_args()
    warnings.simplefilter("ignore", daskcoreset.errors.CoresetWarning)
    results = [run(name, args.seeds) for name in args.sets]
    data = {"stamp": common.stamp(seeds=args.seeds), "results": results}
    common.write(NAME, data, args.out)


if __name__ == "__main__":
    main()
