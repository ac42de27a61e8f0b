"""The search for the rows to leave out: one by one where they matter, or by random subsets."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from daskcoreset.core.errors import InvalidInputError
from daskcoreset.constructions.margin.excluding import Pool, Problem, Shared, solve_problems
from daskcoreset.core.tiles import dense_rows
from daskcoreset.constructions.margin.kernelised import (Kernel, Separator)
from daskcoreset.constructions.margin.outlier_result import InseparableRestError, OutlierMargin
from daskcoreset.constructions.margin.picked import joined, row_numbers
from daskcoreset.constructions.margin.smallest import Draws
from daskcoreset.constructions.margin.subsets import try_all_subsets
from daskcoreset.core.random import resolve_seed
from daskcoreset.core.surroundings import warn_caller

if TYPE_CHECKING:
    from daskcoreset.execution.gathering import Gathered
    from daskcoreset.inputs.blocks import RowBlocks
    from daskcoreset.constructions.margin.classes import Found
    from daskcoreset.constructions.margin.outlier import OutlierMaxMargin
    from daskcoreset.core.typing import FloatArray

__all__ = ["Search", "n_draws"]


def n_draws(n_support: int, k: int, confidence: float) -> tuple[int, float, float]:
    r"""Draws that are lucky once with the probability wanted.

    Parameters
    ----------
    n_support : int
        Rows that must be in a subset, s.
    k : int
        Rows that must not.
    confidence : float

    Returns
    -------
    draws : int
    share : float
        Probability f with which a row is in a subset.
    luck : float
        Probability :math:`f^s (1-f)^k` of one draw.

    Examples
    --------
    >>> n_draws(3, 2, 0.99)
    (131, 0.6, 0.03456)
    """
    share = n_support / (n_support + k)
    luck = share**n_support * (1.0 - share) ** k
    if luck >= 1.0:
        return 1, share, 1.0
    wanted = math.log1p(-confidence) / math.log1p(-luck) if luck > 0 else math.inf
    return (math.ceil(wanted) if wanted < 2**62 else 2**62), share, luck


class Search:
    """One search."""

    def __init__(
        self, options: OutlierMaxMargin, blocks: RowBlocks, gathered: Gathered[Found]
    ) -> None:
        self.options = options
        found = gathered.value
        if options.k > found.n_used - 2:
            raise InvalidInputError(
                f"k is {options.k}, but X has {found.n_used} rows with a weight; pass a smaller k."
            )
        rows = joined(found.firsts)
        signs = np.repeat([-1.0, 1.0], [len(part) for part in found.firsts])
        points = dense_rows(rows.block.points).astype(np.float64)
        within: Any = rows.block.rows
        start = Pool(points, signs, row_numbers(gathered, rows.numbers, within))
        self.n_rows = gathered.n_rows
        self.n_used = found.n_used
        self.n_problems = 0
        self.shared = Shared(
            blocks, found.classes, options.k, options.intercept, options.epsilon, start, reads=1
        )
        # So that without any k rows something of each class is left.
        self.direction = _direction(start)
        answer = self.shared.ask(self.direction[None])
        more = Pool(answer.found.rows, answer.found.signs, answer.indices)
        self.shared.pool = start.with_rows(more)

    def result(self) -> OutlierMargin:
        """Search as the options say."""
        method, probability = self._find()
        self._improve()
        best = self.shared.best
        if best is None or best.margin <= 0:
            k = self.options.k
            raise InseparableRestError(
                f"X and y are not separable when {k} rows are left out"
                + ("" if probability == 1.0 else f" (found with probability {probability:.3g})")
                + "; pass a larger k, or fit a soft margin."
            )
        separator = Separator(Kernel(), best.w, intercept=best.intercept)
        return OutlierMargin(
            separator,
            best.margin,
            best.left_out,
            probability,
            self.shared.classes,
            method,
            self.n_problems,
            self.shared.reads,
            self.n_rows,
            self.options.epsilon,
        )

    def _find(self) -> tuple[str, float]:
        wanted = self.options.method
        if wanted == "subsets":
            self.n_problems = try_all_subsets(self.shared, self.n_used, self.options.max_problems)
            return "subsets", 1.0
        if wanted != "random" and self._remove():
            return "exact", 1.0
        if wanted == "exact":
            raise InvalidInputError(
                f"the exact search needs more than max_problems={self.options.max_problems} "
                f'problems or max_passes={self.options.max_passes}; pass more, or method="random".'
            )
        return "random", self._draw()

    def _remove(self) -> bool:
        """Leave rows out one by one, wherever they may matter; False if it is too much."""
        level, depth = [Problem()], 0
        while True:
            self._solve(level)
            if any(one.state == "open" for one in level):
                return False
            if depth == self.options.k:
                return True
            depth += 1
            children = {one.removed | {int(row)} for one in level for row in one.support}
            if self.n_problems + len(children) > self.options.max_problems:
                return False
            level = [Problem(removed) for removed in sorted(children, key=sorted)]

    def _solve(self, problems: list[Problem], draws: Draws | None = None) -> None:
        self.n_problems += len(problems)
        solve_problems(self.shared, problems, max_passes=self.options.max_passes, draws=draws)

    def _draw(self) -> float:
        """Solve on random subsets; the probability that one of them was lucky."""
        options, shared = self.options, self.shared
        # The nearest point of a hull is a combination of d points, of two hulls of d + 1.
        n_support = shared.blocks.rules.n_features + int(options.intercept)
        wanted, share, luck = n_draws(n_support, options.k, options.confidence)
        count = min(wanted, options.max_problems)
        seed = resolve_seed(options.random_state)
        self._improve()
        draws = Draws(seed, share, tuple(range(count)))
        pool = shared.pool
        first = shared.ask(np.tile(self.direction, (count, 1)), draws)
        shared.pool = Pool(first.found.rows, first.found.signs, first.indices, first.found.members)
        # Only exact solutions bear the promise: what a subset left out has a say as well.
        exact, shared.epsilon = shared.epsilon, 1e-9
        problems = [Problem(subset=number) for number in range(count)]
        self._solve(problems, draws)
        self._measure([one for one in problems if one.state in ("solved", "open")])
        shared.pool, shared.epsilon = replace(pool), exact
        done = sum(one.state != "open" for one in problems)
        probability = -math.expm1(done * math.log1p(-luck)) if luck < 1.0 else 1.0
        if probability < options.confidence:
            warn_caller(
                f"{done} of {wanted:,} draws were made, for a probability of {probability:.3g} "
                f"and not {options.confidence}; pass a larger max_problems."
            )
        return probability

    def _measure(self, problems: list[Problem]) -> None:
        normals = [one.w for one in problems if one.w is not None]
        if normals:
            self.shared.ask(np.array(normals))

    def _improve(self) -> None:
        """Leave out the worst rows of the best separator and solve again, while it helps.

        The margin never falls, for the separator itself has it on the rows that are left.
        """
        shared = self.shared
        while True:
            before = shared.best
            removed = frozenset() if before is None else frozenset(before.left_out.tolist())
            self._solve([Problem(removed)])
            after = shared.best
            if after is before or (before and after and after.margin <= before.margin * (1 + 1e-9)):
                return


def _direction(pool: Pool) -> FloatArray:
    """Of length one, from the mean of one class to that of the other."""
    means = [pool.rows[pool.signs == sign].mean(axis=0) for sign in (1.0, -1.0)]
    gap: FloatArray = means[0] - means[1]
    length = float(np.linalg.norm(gap))
    return gap / length if length else np.eye(len(gap))[0]
