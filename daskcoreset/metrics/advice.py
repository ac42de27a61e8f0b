"""Which construction and size: compared on a pilot, before anything is built."""

from __future__ import annotations

import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Unpack

import numpy as np

from daskcoreset.build import build, default_size
from daskcoreset.core.coreset import Coreset
from daskcoreset.core.deadline import time_limit
from daskcoreset.core.errors import CoresetWarning, InvalidInputError, overflow_error, warn_user
from daskcoreset.core.random import RandomState, resolve_seed
from daskcoreset.core.tables import counted, html_table, size_in_bytes, text_table
from daskcoreset.core.typing import Metric
from daskcoreset.core.validation import as_float, as_int, check_choice
from daskcoreset.execution.plan import BuildPlan
from daskcoreset.inputs.blocks import row_blocks
from daskcoreset.inputs.options import ReadKeywords, takes_reading
from daskcoreset.metrics.advice_compiling import compile_loops
from daskcoreset.metrics.advice_intervals import (
    interval_of_build,
    missed_by_starts,
    quantiles,
)
from daskcoreset.metrics.advice_tasks import TASKS, Candidate, Task, block_of
from daskcoreset.metrics.advice_trials import Trials
from daskcoreset.solvers.mixture.model import count_parameters

# Rows of the pilot at least, and as a multiple of the rows advised about; of fewer rows than these
# the pilot is all of them.
_PILOT, _PILOT_MULTIPLE, _PILOT_MOST = 50_000, 8, 400_000

# Products in a look at all rows of the pilot, of which there are some eighty; about two seconds.
_PILOT_PRODUCTS = 10**10

# Of EM by default, in nats a row.
_TOLERANCE = 1e-3

# Trials of every candidate at first, and of those that are close and of the one that is chosen. The
# spread of six is at times half the true one, by chance, and a mean that was chosen for being
# small is small by luck.
_TRIALS, _MOST_TRIALS = 6, 12

# Errors that differ by no more are taken as equal.
_CLOSE = 1.05

# A row that would have this share of the cost of a uniform sample makes it no choice.
_HEAVY = 0.5

# Of data with fewer rows than there may be.
_ALL = "all rows"

# Of constructions that err alike, as far as the trials can tell.
_CHOSEN, _EQUAL = "as good as others, and safer", "as good, within chance"

# Columns up to which moments are gathered beside the pilot.
_MOST_COLUMNS = 1024

_UNMET = "sums met in part: builds differ"


@dataclass(frozen=True)
class Compared:
    """One construction of an `Advice`.

    Attributes
    ----------
    name : str
    error : float
        Mean error of the trials: what the solution of a coreset costs more, on all rows, than the
        best one known, as a share of what that costs. Of mixtures how much less likely the rows
        are, in nats a row.
    low, high : float
        Between which the error of one build is expected to lie.
    coreset_error : float
        The part of the error that is the coreset's: that of solvers which start at the best
        solution known. The same as `error` where any start ends in one solution.
    reads : int
        Of a build.
    remark : str
    """

    name: str
    error: float
    low: float
    high: float
    coreset_error: float
    reads: int
    remark: str = ""


@dataclass(frozen=True, eq=False, repr=False)
class Advice:
    """Which construction and size, and what speaks for it.

    Attributes
    ----------
    task : str
    method : str, Sensitivity or other
        For ``build(X, method=advice.method, size=advice.size)``; with other options in `options`.
    name : str
        Of the construction in `compared`.
    size : int
    n_clusters : int or None
    error, low, high : float
        Expected error of a solution, as in `Compared`, and the interval in which that of one build
        lies.
    uniform_is_enough : bool
        Whether a uniform sample of this size is as good as any of these constructions; false where
        no error is finite.
    reads, seconds, bytes_read : int, float, int or None
        Of a build. Seconds are those of the read of the pilot, for each read, or of a build from
        it, without those in which this process compiles loops. Bytes are those of all reads
        together, decoded; None where the number of rows is unknown.
    compared : tuple of Compared
    pilot_rows, n_rows : int
        Rows on which constructions were tried, and of the data.
    plan : BuildPlan
        Of a build.
    confidence : float
        Of the intervals.
    seed : int
    """

    task: str
    method: Any
    name: str
    size: int
    n_clusters: int | None
    error: float
    low: float
    high: float
    uniform_is_enough: bool
    reads: int
    seconds: float
    bytes_read: int | None
    compared: tuple[Compared, ...]
    pilot_rows: int
    n_rows: int
    plan: BuildPlan = field(repr=False)
    confidence: float
    seed: int
    options: dict[str, Any] = field(default_factory=dict)

    def record(self) -> dict[str, Any]:
        """Return what `daskcoreset.build` keeps in the provenance, in plain JSON values."""
        errors = {one.name: one.error if np.isfinite(one.error) else None for one in self.compared}
        return {
            "task": self.task,
            "chosen": self.name,
            "errors": errors,
            "interval": [self.low, self.high],
            "confidence": self.confidence,
            "pilot_rows": self.pilot_rows,
            "seed": self.seed,
        }

    def _shown(self, error: float) -> str:
        return f"{error:.3g} nats" if TASKS[self.task].in_nats else f"{100 * error:.3g} %"

    def _sentence(self) -> str:
        uniform = "; a uniform sample of this size is enough" if self.uniform_is_enough else ""
        read = f"{counted(self.plan.reads, 'read')} of {size_in_bytes(self.bytes_read)} in all"
        cost = f"{read}, about {self.seconds:.2g} s"
        some = f"{self.size:,} of" if self.size < self.n_rows else "all of"
        return (
            f"{self.task}: {self.name}, {some} {counted(self.n_rows, 'row')}, expected error "
            f"{self._shown(self.error)} ({self._shown(self.low)} to {self._shown(self.high)}), "
            f"{cost}{uniform}"
        )

    def _table(self) -> list[tuple[str, ...]]:
        return [
            (
                one.name + " *" * (one.name == self.name),
                self._shown(one.error),
                f"{self._shown(one.low)} to {self._shown(one.high)}",
                self._shown(one.coreset_error),
                str(one.reads),
                one.remark,
            )
            for one in self.compared
        ]

    def __repr__(self) -> str:
        lines = [line.rstrip() for line in text_table([_HEAD, *self._table()], (0, 5))]
        return "\n".join([f"Advice({self._sentence()})", *lines])

    def _repr_html_(self) -> str:
        return html_table(self._table(), _HEAD, f"Advice: {self._sentence()}")


_HEAD = ("construction", "error", "of one build", "of the coreset", "reads", "remark")


@takes_reading
def advise(
    X: Any,
    y: Any = None,
    *,
    task: Literal["clustering", "mixture", "classification", "svm", "regression"] = "clustering",
    n_clusters: int | None = None,
    budget: int | None = None,
    epsilon: float | None = None,
    sample_weight: Any = None,
    random_state: RandomState = None,
    confidence: float = 0.95,
    chunks: int | Literal["auto"] = "auto",
    on_invalid: Literal["raise", "drop"] | None = None,
    metric: Metric = "euclidean",
    representatives: Literal["auto", "rows"] = "auto",
    progress: bool | None = None,
    timeout: float | None = None,
    **_reading: Unpack[ReadKeywords],
) -> Advice:
    r"""Say which construction to build by, how many rows, and what error to expect.

    One read gathers a pilot: of up to 50,000 rows all of them, of more a coreset by the safest
    construction for the task, in which rare rows that cost much are present, and the exact moments
    of all rows. Coresets by each construction are drawn from the pilot and solved, k-means as by
    `daskcoreset.CoresetKMeans` and mixtures as by `daskcoreset.CoresetGaussianMixture`, both with
    their defaults, and the solutions evaluated on the pilot: errors and intervals are over the best
    solution known, and hold what the solver misses by its starts. Mixtures are told apart by the
    negative log-likelihood; what it is above the least one, in nats a row, is the error, for a
    likelihood has no zero of which it could be a share. Fits with other settings err differently,
    and advice about mixtures takes as long as the dozens of fits that it compares.
    The least error is chosen. Among several, apart by 5 % or a standard error at most, that of the
    coreset decides, for which solvers start at the best solution known, and then the order of the
    table, in which the safest come first; remarks say so. A uniform sample is never chosen where a
    single row would have half of its cost. Where the budget takes all rows, errors are what starts
    miss, and alike for all constructions. What starts miss in the trials of any construction is in
    the intervals of all, and their high ends allow for a solution that is better than the best one
    known: as much as is likely from how far the two best of all trials lie apart. Fits of mixtures
    go on with all rows of the pilot from the three best, and where these end counts. For mixtures
    low ends allow for a best solution that is no better than those on coresets. Intervals of linear
    models are at least as wide as if errors were quadratic forms in all parameters, and wider where
    weights met a part only of the sums that they are calibrated to, as with many rare columns:
    remarks say so.

    Parameters
    ----------
    X : array-like of shape (n, d), or path
        As for `daskcoreset.build`.
    y : array-like of shape (n,), or str, optional
        Labels, for the tasks that have them.
    task : str, default="clustering"
        "clustering" by k-means, "mixture" of Gaussians, "classification" by logistic regression,
        "svm" with the hinge loss, or "regression" by least squares. More than two classes have
        one model of all of them, by softmax, and by the hinge one against the rest each. For
        trees and any other model a uniform sample is the recommendation
        (``docs/guide/recipes.md``).
    n_clusters : int or None, default=None
        Centers or components; needed for "clustering" and "mixture".
    budget : int or None, default=None
        Rows at most; None takes the default size of `build`.
    epsilon : float or None, default=None
        Error that is to be met, for mixtures in nats a row: the smallest of the budget, its half,
        its quarter and its eighth is advised at which the upper end of the interval is below. None
        advises the budget.
    sample_weight, chunks, on_invalid, progress, timeout
        As for `daskcoreset.build`.
    random_state : int, Generator, RandomState or None, default=None
        The same number gives the same advice, but for the seconds.
    metric : {"euclidean", "cosine"}, default="euclidean"
        As in `daskcoreset.build`, which takes it from ``advice.options``. By "cosine" the centers
        of "clustering" have length one, as those of `daskcoreset.CoresetKMeans`.
    representatives : {"auto", "rows"}, default="auto"
        Whether only constructions are compared whose coresets are rows of the data, which have
        labels and can be reduced further. "auto" compares weighted centroids too, see
        `daskcoreset.StrongKMeans`, where rows are dense and `y` is not given.
    confidence : float, default=0.95
        Of the intervals.
    storage_options, columns, missing_chunks, sample_dims, feature_dims
        As for `daskcoreset.build`.

    Returns
    -------
    Advice
        It prints as a table.

    Warns
    -----
    CoresetWarning
        If a mixture, or a linear model, has more parameters than the budget has rows.

    Raises
    ------
    InvalidInputError, InvalidTypeError
        As `build`; also if the task needs labels or a number of clusters that are missing.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(5000, 3))
    >>> advice = advise(X, n_clusters=3, budget=500, random_state=0)
    >>> advice.size, advice.low <= advice.error <= advice.high
    (500, True)
    >>> coreset = build(X, method=advice.method, size=advice.size, n_clusters=3, random_state=0)
    """
    check_choice("task", task, *TASKS)
    check_choice("metric", metric, "euclidean", "cosine")
    check_choice("representatives", representatives, "auto", "rows")
    plan_of = TASKS[task]
    _check_task(task, plan_of, y, n_clusters)
    size = default_size(n_clusters or 0) if budget is None else as_int("budget", budget)
    level = as_float("confidence", confidence, "0.95")
    if epsilon is not None:
        epsilon = as_float("epsilon", epsilon)
    seed = resolve_seed(random_state)
    parts = n_clusters if plan_of.clusters else None
    data: dict[str, Any] = {
        "sample_weight": sample_weight, "chunks": chunks, "on_invalid": on_invalid,
        "metric": metric,
    }  # fmt: skip
    with time_limit(timeout):
        trials, heavy, seconds = _piloted(
            X, y, plan_of, parts, size=size, seed=seed, progress=progress,
            rows_only=representatives == "rows" or y is not None, **data,
        )  # fmt: skip
        _warn_of_parameters(plan_of, parts or 1, trials.pilot.n_features, size, trials.n_rows)
        sizes = [size] if epsilon is None else [max(1, size // part) for part in (8, 4, 2, 1)]
        for rows in sizes:
            trials = Trials(trials.pilot, trials.task, parts, rows, trials.n_rows, seed)
            found, chosen, enough = _compared(trials, heavy, level)
            if epsilon is not None and found[chosen.name].high <= epsilon:
                break
        # Reads are those of the plans; nothing is read for them.
        plans = {
            one.name: one.build(X, y, n_clusters=parts, size=rows, dry_run=True, **data)
            for one in trials.task.candidates
        }
    is_part = len(trials.pilot) < trials.n_rows
    best, plan = found[chosen.name], plans[chosen.name]
    table = tuple(replace(one, reads=plans[one.name].reads) for one in found.values())
    options = chosen.options_for(parts)
    method = options.pop("method")
    if metric != "euclidean":
        options["metric"] = metric
    return Advice(
        task=task,
        method=method,
        name=chosen.name,
        size=rows,
        n_clusters=parts,
        error=best.error,
        low=best.low,
        high=best.high,
        uniform_is_enough=enough,
        reads=plan.reads,
        # A pilot of all rows is read without scores; a build from it is the build. Of fewer rows
        # than the budget there may be no trials.
        seconds=max(trials.seconds.get(chosen.name, seconds), seconds * plan.reads * is_part),
        bytes_read=plan.bytes_read,
        compared=table,
        pilot_rows=len(trials.pilot),
        n_rows=trials.n_rows,
        plan=plan,
        confidence=level,
        seed=seed,
        options=options,
    )


def _check_task(task: str, needs: Task, y: Any, n_clusters: Any) -> None:
    if needs.clusters and n_clusters is None:
        raise InvalidInputError(
            f"n_clusters is needed for task={task!r}; pass the number of clusters, or another task."
        )
    if needs.labels and y is None:
        raise InvalidInputError(f"y is missing, and task={task!r} needs labels; pass them.")
    if n_clusters is not None:
        as_int("n_clusters", n_clusters)


def _warn_of_parameters(
    task: Task, n_components: int, n_features: int, size: int, n_rows: int
) -> None:
    if task.in_nats:
        what = f"a mixture of {counted(n_components, 'component')} with full covariances"
        count = count_parameters("full", n_components, n_features)
        others = (
            ' CoresetGaussianMixture with covariance_type="diag" needs fewer rows, and is not what '
            "is compared here."
        )
    elif task.labels and size < n_rows:  # of all rows the solution is that of the data
        what, count, others = "a linear model", n_features + 1, ""
    else:
        return
    if count > (drawn := min(size, n_rows)):
        warn_user(
            f"{what} in {counted(n_features, 'column')} has {count:,} parameters, more than "
            f"{counted(drawn, 'row')}: it learns them by heart, by whatever construction, and "
            f"errors are large; pass a larger budget, or fewer columns.{others}"
        )


def _piloted(
    X: Any,
    y: Any,
    task: Task,
    parts: int | None,
    *,
    size: int,
    seed: int,
    progress: bool | None,
    rows_only: bool,
    **data: Any,
) -> tuple[Trials, str, float]:
    """Read once; return trials on the pilot, why not to sample uniformly, and seconds."""
    labels = y if task.labels else None
    blocks = row_blocks(X, labels, **{name: one for name, one in data.items() if name != "metric"})
    summaries = ("moments",) if blocks.schema.n_features <= _MOST_COLUMNS else ()
    rows = min(max(_PILOT, _PILOT_MULTIPLE * size), _PILOT_MOST)
    if task.in_nats:  # with full covariances
        affordable = _PILOT_PRODUCTS // ((parts or 1) * blocks.schema.n_features**2)
        rows = max(min(rows, affordable), _PILOT_MULTIPLE * size)
    options: dict[str, Any] = {
        "size": rows, "random_state": seed, "progress": progress, "summaries": summaries, **data,
    }  # fmt: skip
    made = {"summaries": summaries, "progress": progress, "metric": data["metric"]}
    compile_loops(blocks, task, parts, **made)
    if parts is not None:
        options["n_clusters"] = parts
    began = time.perf_counter()
    with warnings.catch_warnings():  # of a pilot of all rows
        warnings.filterwarnings("ignore", "member 'pilot': size=", CoresetWarning)
        portfolio = build(X, labels, method={"pilot": task.pilot}, **options)
    seconds = time.perf_counter() - began
    pilot = portfolio["pilot"]
    if rows_only or blocks.sparse:
        task = replace(task, candidates=tuple(one for one in task.candidates if one.of_rows))
    trials = Trials(pilot, task, parts, size, int(pilot.provenance["n"]), seed)
    heavy = ""
    if portfolio.summary is not None and task.clusters:
        heavy = _beyond(portfolio.summary, pilot, trials)
    return trials, heavy, seconds


def _beyond(summary: Any, pilot: Coreset, trials: Trials) -> str:
    """Say that a column has values outside of the pilot's that could hold the cost."""
    points = np.asarray(block_of(pilot).points) if isinstance(pilot.points, np.ndarray) else None
    if points is None:
        return ""
    low, high = points.min(axis=0), points.max(axis=0)
    gaps = np.maximum(np.maximum(low - summary.low, summary.high - high), 0.0)
    cost = trials.scale * trials.size / max(float(pilot.weights.sum()), 1e-300)
    if trials.task.in_nats:  # half the square of deviations, where rows have half a nat a column
        gaps = gaps / np.maximum(summary.std, 1e-300)
        cost = float(trials.size * len(gaps))
    if cost > 0.0 and float(gaps.max()) ** 2 > _HEAVY * cost:
        return f"values of column {int(gaps.argmax())} are outside of the pilot's"
    return ""


def _compared(
    trials: Trials, heavy: str, confidence: float
) -> tuple[dict[str, Compared], Candidate, bool]:
    """Try all candidates, those that are close more often; return what was found, and choose.

    Last comes whether a uniform sample is enough.
    """
    candidates = trials.task.candidates
    if trials.size >= trials.n_rows:
        return _of_all_rows(trials, confidence), candidates[-1], True
    trials.run(candidates, _TRIALS)
    if few := _tried_less(trials, _close(trials, candidates)):
        trials.run(few, _MOST_TRIALS - _TRIALS)
    if not heavy and (share := trials.largest_share()) > _HEAVY:
        heavy = f"one row would have {share:.0%} of the cost"
    while True:
        chosen, equals = _safest(
            trials, [one for one in candidates if one.name != "uniform" or not heavy]
        )
        if not (few := _tried_less(trials, (chosen,))):
            break
        trials.run(few, _MOST_TRIALS - _TRIALS)
    found = {}
    missed = missed_by_starts(trials, candidates)
    for one in candidates:
        remark = heavy if one.name == "uniform" else ""
        if one in equals:
            remark = _CHOSEN if one is chosen else _EQUAL
        if one.name in trials.unmet:
            remark = f"{remark}; {_UNMET}" if remark else _UNMET
        low, high = interval_of_build(trials, one, missed, confidence)
        mean = float(trials.errors(one.name).mean())
        own = float(trials.errors(one.name, of_coreset=True).mean())
        found[one.name] = Compared(one.name, mean, low, high, own, 0, remark)
    uniform = candidates[-1]
    own_error = found[chosen.name].coreset_error
    enough = (
        uniform in (chosen, *equals)
        and np.isfinite(own_error)  # else no sample of this size is
        and found["uniform"].coreset_error <= _CLOSE * own_error
    )
    return found, chosen, enough


def _of_all_rows(trials: Trials, confidence: float) -> dict[str, Compared]:
    """Tell what is left where all rows are taken: what solvers miss by their starts."""
    candidates = trials.task.candidates
    error = low = high = 0.0
    if trials.task.clusters:
        uniform = candidates[-1]
        # Quantiles, for the best of these solutions is mostly the best one known, of error zero.
        trials.run((uniform,), 2 * _MOST_TRIALS)
        errors = trials.errors(uniform.name)
        error = float(errors.mean())
        if not np.isfinite(error):  # shares of squares that are no numbers
            raise overflow_error()
        low, high = quantiles(errors, confidence)
        low, high = min(low, error), max(high, error)
        if trials.task.in_nats:  # EM stops where a step gains less
            low, high = max(0.0, low - _TOLERANCE), high + _TOLERANCE
    return {one.name: Compared(one.name, error, low, high, 0.0, 1, _ALL) for one in candidates}


def _tried_less(trials: Trials, candidates: Sequence[Candidate]) -> list[Candidate]:
    """Return those that were not tried as often as what is chosen has to be."""
    return [one for one in candidates if len(trials.costs[one.name]) < _MOST_TRIALS]


def _close(trials: Trials, candidates: Sequence[Candidate]) -> list[Candidate]:
    """Return those that more trials may tell from the best one."""
    errors = {one.name: trials.errors(one.name) for one in candidates}
    best = min(errors.values(), key=lambda values: float(values.mean()))
    return [one for one in candidates if _gap(errors[one.name], best) <= 2.0]


def _gap(errors: Any, best: Any) -> float:
    """Difference of means, in standard errors."""
    if errors is best:
        return 0.0
    with np.errstate(invalid="ignore"):
        gap = float(errors.mean() - best.mean())
        noise = float(np.sqrt(sum(each.var(ddof=1) / len(each) for each in (errors, best))))
    if not np.isfinite(gap) or np.isnan(noise):
        return np.inf
    return 0.0 if gap <= 0.0 else gap / max(noise, 1e-300)


def _safest(trials: Trials, candidates: Sequence[Candidate]) -> tuple[Candidate, list[Candidate]]:
    """Choose; return also all those that err no more by what the trials tell, where several do.

    Of these, the first one whose coresets err no more where solvers start at the best solution: it
    has the lower worst case.
    """
    equals = _least(candidates, [trials.errors(one.name) for one in candidates], 1.0)
    own = [trials.errors(one.name, of_coreset=True) for one in equals]
    chosen = _least(equals, own, 0.5)[0]
    return chosen, equals if len(equals) > 1 else []


def _least(candidates: Sequence[Candidate], errors: Sequence[Any], most: float) -> list[Candidate]:
    """Return candidates of the least error, and those above by 5 %, or so many standard errors."""
    best = min(errors, key=lambda values: float(values.mean()))
    least = _CLOSE * float(best.mean())
    return [
        one
        for one, values in zip(candidates, errors, strict=True)
        if float(values.mean()) <= least or _gap(values, best) <= most
    ]
