"""Hard and soft clustering by Kullback-Leibler on counts and by Itakura-Saito on spectra.

Centers found on a coreset of `StrongBregman`, on one of `LightweightBregman` and on as many uniform
rows, by the same solver, are judged on all rows: the excess of the divergence over the best known
centers, and, for mixtures, of the negative log likelihood a row. Beside them stand the solver on
all rows, and k-means of scikit-learn on all rows transformed (square roots of counts, logarithms
of spectra), whose cells are judged by their means in the original coordinates. Prints a Markdown
table, and writes it with a figure and the raw numbers into the folder given.

    DASKCORESET_DATA=... python benchmarks/bregman.py --seeds 4
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import common
import numpy as np
from looks import look_of
from sets import load
from sklearn.cluster import KMeans
from sklearn.datasets import load_digits

import daskcoreset
from daskcoreset.sensitivities import LightweightBregman, StrongBregman, Uniform
from daskcoreset.solvers.bregman import bregman_hard
from daskcoreset.solvers.bregman_soft import bregman_soft

if TYPE_CHECKING:
    from matplotlib.figure import Figure

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


def excess(result: dict[str, Any], kind: str, method: str, size: int) -> np.ndarray:
    """Return excess costs: a share of the best of hard clustering, nats a row of mixtures."""
    own = {key: values for key, values in result["costs"].items() if key.startswith(kind)}
    best = min(min(values) for values in own.values())
    gap = np.array(own[f"{kind}|{method}|{size}"]) - best
    return np.asarray(gap / best if kind == "hard" else gap)


def shown(values: np.ndarray, kind: str) -> str:
    """Return a mean and the half width of its interval."""
    if kind == "hard":
        return f"{100 * values.mean():.1f} ± {100 * common.interval(values):.1f}"
    return f"{values.mean():.2f} ± {common.interval(values):.2f}"


def report(data: dict[str, Any]) -> str:
    """Return the Markdown tables."""
    intro = (
        f"{K} clusters; means of {data['stamp']['seeds']} seeds with 95 % intervals (peers: "
        f"{min(data['stamp']['seeds'], 3)} seeds). Every coreset takes one read; the peers hold "
        f"all rows. {common.stamped(data)}"
    )
    lines = [intro]
    titles = {
        "hard": "Hard clustering: excess divergence over the best known centers, %",
        "soft": "Mixtures: excess negative log likelihood over the best known, nats a row",
    }
    for kind, title in titles.items():
        rows = []
        for result in data["results"]:
            name = {"kl": "Kullback-Leibler", "itakura_saito": "Itakura-Saito"}
            peers = [shown(excess(result, kind, peer, 0), kind) for peer in PEERS]
            for size in SIZES:
                own = [shown(excess(result, kind, method, size), kind) for method in METHODS]
                shape = " x ".join(map(str, result["shape"]))
                rows.append([result["set"], name[result["divergence"]], shape, size, *own, *peers])
        heads = ["set", "divergence", "rows", "size", *METHODS, *PEERS]
        lines += ["", f"{title}:", "", *common.table(heads, rows)]
    if all("seconds" in result for result in data["results"]):
        lines += _seconds(data["results"])
    notes = (
        "Counts have a small constant added, for the divergences are of positive data. No package "
        "that was found ships MiniBooNE, webspam or the song features (YearPredictionMSD), and "
        "scikit-learn downloads its newsgroups; the word counts and the autoregressive spectra "
        "are made."
    )
    lines += ["", notes]
    return "\n".join(lines) + "\n"


def _seconds(results: list[dict[str, Any]]) -> list[str]:
    """Return the lines of the table of seconds."""
    rows = []
    for result in results:
        for kind in ("hard", "soft"):
            for size in SIZES:
                keys = [f"{method}|{size}" for method in METHODS] + [f"{peer}|0" for peer in PEERS]
                took = [common.median_cell(result["seconds"][f"{kind}|{key}"]) for key in keys]
                rows.append([result["set"], kind, f"{size:,} rows", *took])
    heads = ["clustering of", "kind", "size", *METHODS, *PEERS]
    words = (
        "Seconds of the processor to build and to solve, medians, the least and the most (what is "
        "first of its kind compiles its loops, too):"
    )
    return ["", words, "", *common.table(heads, rows)]


def figure(data: dict[str, Any]) -> Figure:
    """Draw excess against the size, a panel a set, hard clustering above mixtures."""
    results = data["results"]
    drawing = common.figure(3 * len(results), 6)
    axes = drawing.subplots(2, len(results), squeeze=False)
    names = ("strong_bregman", "lightweight_bregman", "uniform")
    for row, kind in enumerate(("hard", "soft")):
        for ax, result in zip(axes[row], results, strict=True):
            for i, (method, name) in enumerate(zip(METHODS, names, strict=True)):
                cells = [excess(result, kind, method, size) for size in SIZES]
                scale = 100 if kind == "hard" else 1
                means = [scale * c.mean() for c in cells]
                wide = [scale * common.interval(c) for c in cells]
                # Side by side, so that the bars of one method do not hide those of another.
                places = np.array(SIZES) * 1.06 ** (i - 1)
                line = look_of(name).line
                ax.errorbar(places, means, wide, label=method, ms=5, capsize=3, **line)
            other = scale * excess(result, kind, PEERS[1], 0).mean()
            ax.axhline(other, color="0.5", lw=2.5, alpha=0.7, label=PEERS[1])
            ax.set_xscale("log")
            ax.margins(x=0.15)
            common.plain_ticks(ax.xaxis, SIZES)
            ax.grid(visible=True, alpha=0.3)
            if row == 0:
                ax.set_title(result["set"], fontsize="small")
        axes[row, 0].set_ylabel("excess, %" if row == 0 else "excess, nats a row")
    drawing.supxlabel("rows of the coreset")
    common.legend(drawing)
    return drawing


def figures(data: dict[str, Any]) -> dict[str, Figure]:
    """Return the figure."""
    return {NAME: figure(data)}


def main() -> None:
    """Run the command line."""
    parser = common.arguments(__doc__, tuple(SETS))
    parser.add_argument("--seeds", type=int, default=4)
    args = parser.parse_args()
    warnings.simplefilter("ignore", daskcoreset.core.errors.CoresetWarning)
    results = [run(name, args.seeds) for name in args.sets]
    data = {"stamp": common.stamp(seeds=args.seeds), "results": results}
    print(report(data))
    common.write(NAME, data, args.out, report, figures)


if __name__ == "__main__":
    main()
