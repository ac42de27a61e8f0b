"""Methods by a pilot: a rough model of a sample, sums at it over all rows, and scores by it."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np

from daskcoreset.core.block import Block, class_codes
from daskcoreset.core.linalg import one_thread, product
from daskcoreset.core.moments import Scatter, merge_scatters
from daskcoreset.core.sampling import (
    StratifiedReservoir,
    StratifiedSample,
    merge_reservoirs,
    sample_strata,
    stratified_sample,
)
from daskcoreset.core.typing import AnyArray, FloatArray, IndexArray
from daskcoreset.sensitivities.base import Scored, Sensitivity
from daskcoreset.sensitivities.draw import Candidates, Drawn, strata
from daskcoreset.sensitivities.least_squares import gaps_of
from daskcoreset.sensitivities.pilot_draw import Judges, PilotDraws, judge_size

# Rows and numbers of a pilot at most. Its model costs a few per cent more than the best one.
_PILOT_ROWS, _PILOT_NUMBERS = 4096, 2**19

# Rows of a class in the pilot at least.
_MIN_OF_CLASS = 16


class Sampled(NamedTuple):
    """The first fold: a sample of every class, and moments if the method needs them."""

    strata: dict[Any, StratifiedReservoir]
    moments: Scatter | None


@dataclass(frozen=True, eq=False)
class Pilot:
    """A rough model, and what is known of all rows.

    Attributes
    ----------
    classes : ndarray of shape (K,)
        Sorted labels.
    origin : ndarray of shape (d,), float64
        Subtracted from rows before anything else is done with them. Zero without intercept.
    coef : ndarray of shape (p, d), float64
        Coefficients of every problem: one for two classes, one per class for more.
    intercept : ndarray of shape (p,), float64
        For rows without `origin`.
    owners : ndarray of shape (k,), int64
        Classes of the cells, which are parts of classes.
    bounds : object
        What the method bounds sensitivities by.
    sums : dict of str to ndarray
        Sums over all rows. ``"totals"`` of shape (3,): bounds, activities and bounds of at most
        one. ``"losses"`` of shape (p,). ``"slopes"`` of shape (p, d + 1): pulls times the row and
        one. ``"weights"`` of shape (k,) and ``"rows"`` of shape (k, d), by cell. They are sums over
        the sample alone until the second fold has summed up.
    judges : Judges
        A sample of every class, by which draws are compared.
    """

    classes: AnyArray
    origin: FloatArray
    coef: FloatArray
    intercept: FloatArray
    owners: IndexArray
    bounds: Any
    sums: dict[str, FloatArray] = field(default_factory=lambda: {"totals": np.ones(3)})
    judges: Judges = field(default_factory=dict)

    def decisions(self, points: FloatArray) -> FloatArray:
        """Return decision values of rows without `origin`, of shape (n, p)."""
        return product(points, np.ascontiguousarray(self.coef.T)) + self.intercept

    def class_sums(self) -> tuple[FloatArray, FloatArray]:
        """Return the weight of every class, and the weighted sum of its rows without `origin`."""
        weights, rows = np.zeros(len(self.classes)), np.zeros((len(self.classes), len(self.origin)))
        np.add.at(weights, self.owners, self.sums["weights"])
        np.add.at(rows, self.owners, self.sums["rows"])
        return weights, rows


class Summed(NamedTuple):
    """The second fold: sums over rows at a pilot, by their names, and rows that judge draws."""

    pilot: Pilot
    sums: dict[str, FloatArray]
    judges: Judges


class Terms(NamedTuple):
    """Terms of some rows at a pilot.

    Attributes
    ----------
    bounds : ndarray of shape (n,), float64
        Bounds of the sensitivities of rows of weight one, up to a factor.
    activity : ndarray of shape (n,), float64
        How far a row of weight one pulls at the model.
    cells : ndarray of shape (n,), int64
        Cells of the rows.
    """

    bounds: FloatArray
    activity: FloatArray
    cells: IndexArray


class PilotMethod(Sensitivity[Any]):
    """Base of methods that draw near a rough model of labelled rows.

    The first pass samples every class, and fits the model. The second pass sums up losses,
    gradients and scores at it. A score has two parts: a bound of the sensitivity, and how far the
    row pulls at the model, which has a share of `activity_share`.
    """

    lam: float
    intercept: bool

    labels: ClassVar[Literal["classes"]] = "classes"
    activity_share: ClassVar[float] = 0.5
    total_scores_exact: ClassVar[bool] = False

    # --- what a method writes ----------------------------------------------------------------

    def moments(self, block: Block) -> Scatter | None:
        """Return moments of a block, if bounds need them."""
        del block
        return None

    @abstractmethod
    def start(self, sample: StratifiedSample, moments: Any, rng: np.random.Generator) -> Pilot:
        """Fit the pilot."""

    @abstractmethod
    def fit(
        self,
        pilot: Pilot,
        points: FloatArray,
        codes: IndexArray,
        weights: FloatArray,
    ) -> Pilot:
        """Return a pilot with the model of rows less `origin`."""

    @abstractmethod
    def losses(self, codes: IndexArray, decisions: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return losses and pulls of shape (n, p). Pulls are minus the slopes of the loss."""

    @abstractmethod
    def terms(
        self, pilot: Pilot, points: FloatArray, codes: IndexArray, decisions: FloatArray
    ) -> Terms:
        """Return the terms of rows without `origin`."""

    def order(
        self,
        candidates: Candidates,
        second: FloatArray,
        codes: IndexArray,
        decisions: FloatArray,
    ) -> IndexArray:
        """Return the order of a draw: by class, and in space within every class."""
        del codes, decisions
        return strata(candidates, second)

    def settled(self, pilot: Pilot) -> Pilot:
        """Return the pilot with bounds by the sums over all rows."""
        return pilot

    # --- what the library calls --------------------------------------------------------------

    @property
    def n_folds(self) -> int:
        """One for the pilot and one for the sums."""
        return 2

    def block_summary(self, block: Block, previous: Any, rng: np.random.Generator) -> Any:
        """Sample the classes. In the second fold, sum terms over the rows, and score them."""
        if previous is None:
            size = _pilot_size(block.points.shape[1])
            return Sampled(sample_strata(block, size, rng), self.moments(block))
        judges = sample_strata(block, judge_size(previous), rng)
        sums, scores = self._sum_up(block, previous)
        total = self.total_scores(previous, previous)
        return Scored(Summed(previous, sums, judges), scores, total)

    def merge(self, first: Any, second: Any) -> Any:
        """Merge samples and moments, or sums."""
        if isinstance(first, Summed):
            size = judge_size(first.pilot)
            return Summed(
                first.pilot,
                {name: total + second.sums[name] for name, total in first.sums.items()},
                merge_reservoirs(first.judges, second.judges, size),
            )
        reservoirs = (*first.strata.values(), *second.strata.values())
        d = reservoirs[0].rows.points.shape[1] if reservoirs else 1
        moments = first.moments
        if moments is not None:
            moments = merge_scatters(moments, second.moments)
        return Sampled(merge_reservoirs(first.strata, second.strata, _pilot_size(d)), moments)

    def finalize(self, summary: Any, rng: np.random.Generator) -> Pilot:
        """Fit the pilot. Then replace its estimated sums by exact ones."""
        if isinstance(summary, Summed):
            return self.settled(replace(summary.pilot, sums=summary.sums, judges=summary.judges))
        d = next(iter(summary.strata.values())).rows.points.shape[1]
        affordable = max(_MIN_OF_CLASS, _PILOT_ROWS // len(summary.strata))
        sample = stratified_sample(summary.strata, min(_pilot_size(d), affordable))
        pilot = self.start(sample, summary.moments, rng)
        block = Block(sample.points, sample.weights, sample.classes[sample.codes])
        return replace(pilot, sums=self._sum_up(block, pilot)[0])

    def scores(self, block: Block, summary: Pilot) -> FloatArray:
        """Return u times the bound and the activity, each as a share of its sum."""
        scores = np.empty(len(block))
        for part, *_, terms in self._tiles(block, summary):
            scores[part] = self._mixed(block.weights[part], terms, summary)
        return scores

    def total_scores(self, local: Any, summary: Pilot) -> float:
        """Return the sum of `scores`, as the pilot estimates it."""
        return float(self.shares(summary.sums["totals"]) @ local.sums["totals"][:2])

    def draw(
        self, candidates: Candidates, summary: Pilot, size: int, rng: np.random.Generator
    ) -> Drawn:
        """Draw within the classes, calibrate, and keep the best of several draws."""
        return PilotDraws(self, candidates, summary, size).best(rng)[0]

    # --- sums --------------------------------------------------------------------------------

    def shares(self, totals: FloatArray) -> FloatArray:
        """Return factors of bounds and of activities in the scores."""
        shares = np.array([1.0 - self.activity_share, self.activity_share])
        return np.asarray(shares / np.maximum(totals[:2], np.finfo(np.float64).tiny))

    def _mixed(self, u: FloatArray, terms: Terms, pilot: Pilot) -> FloatArray:
        bound, activity = self.shares(pilot.sums["totals"])
        return np.asarray(u * (bound * terms.bounds + activity * terms.activity))

    def _tiles(
        self, block: Block, pilot: Pilot
    ) -> Iterator[tuple[slice, FloatArray, IndexArray, FloatArray, Terms]]:
        """Go through rows: their places, rows without `origin`, codes, decisions and terms."""
        codes = class_codes(block, pilot.classes)
        for part, points in gaps_of(block.points, block.weights, pilot.origin):
            decisions = pilot.decisions(points)
            terms = self.terms(pilot, points, codes[part], decisions)
            yield part, points, codes[part], decisions, terms

    @one_thread()
    def _sum_up(self, block: Block, pilot: Pilot) -> tuple[dict[str, FloatArray], FloatArray]:
        """Return sums over a block, and the scores of its rows."""
        import scipy.sparse as sp

        (p, d), k = pilot.coef.shape, len(pilot.owners)
        totals, losses, slopes = np.zeros(3), np.zeros(p), np.zeros((p, d + 1))
        weights, rows = np.zeros(k), np.zeros((k, d))
        scores = np.empty(len(block))
        for part, points, codes, decisions, terms in self._tiles(block, pilot):
            u = block.weights[part]
            scores[part] = self._mixed(u, terms, pilot)
            capped = float(np.minimum(u * terms.bounds, 1.0).sum())
            totals += np.array([u @ terms.bounds, u @ terms.activity, capped])
            loss, pulls = self.losses(codes, decisions)
            losses += u @ loss
            pulls *= u[:, np.newaxis]
            slopes[:, :d] += product(np.ascontiguousarray(pulls.T), points)
            slopes[:, d] += pulls.sum(axis=0)
            weights += np.bincount(terms.cells, u, k)
            ones = (u, (terms.cells, np.arange(len(u))))
            rows += sp.csr_array(ones, shape=(k, len(u))) @ points
        sums = {"totals": totals, "losses": losses, "slopes": slopes}
        return {**sums, "weights": weights, "rows": rows}, scores


def _pilot_size(d: int) -> int:
    """Return the rows of a class in the pilot at most."""
    return max(128, min(_PILOT_ROWS, _PILOT_NUMBERS // max(d, 1)) // 2)
