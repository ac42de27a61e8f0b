"""What a soft margin costs, by which the rows that it was fitted to are compared with all."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from daskcoreset.constructions.margin.separators import Kernel
from daskcoreset.core.blocks import Block, InvalidRow, find_bad_label, labels_of, plain_labels
from daskcoreset.core.errors import InvalidTypeError
from daskcoreset.core.typing import AnyArray, FloatArray
from daskcoreset.core.validation import a_type
from daskcoreset.estimators.classifier import DecisionFunction, LinearDecision, SeparatorDecision
from daskcoreset.estimators.kernel.losses import LOSSES
from daskcoreset.estimators.kernel.objective import signs_of
from daskcoreset.estimators.margin.soft import soft_planes, soft_separators
from daskcoreset.objectives.base import Objective
from daskcoreset.objectives.cells import Cells, cells_by_class

# Rows that a rival of the model is fitted to, at most: it is to differ from the model.
_FEW = 500


@dataclass(frozen=True, eq=False)
class SoftMarginCost(Objective[DecisionFunction]):
    r"""The losses of a soft margin, :math:`\sum_k \sum_i u_i\, \ell(y_{ik} f_k(x_i))`.

    Over the problems, one class against the rest each; squares of the hinge for hyperplanes, the
    hinge for separators with a kernel, as they are fitted. The penalty is left out, which is the
    same on any rows.

    Parameters
    ----------
    model : DecisionFunction
        That of the estimator that is audited.
    kernel : Kernel or None
        None for hyperplanes.
    C : float
    intercept : bool
    """

    model: DecisionFunction
    kernel: Kernel | None
    C: float
    intercept: bool

    name: ClassVar[str] = "losses of a soft margin"

    @property
    def classes(self) -> AnyArray:
        """Labels, as blocks have them."""
        return plain_labels(self.model.classes)

    def find_invalid_row(self, block: Block) -> InvalidRow | None:
        """Return the first row without a label."""
        return find_bad_label(block)

    def cells(self, block: Block, n_parts: int, rng: np.random.Generator) -> Cells:
        """One cell for every class."""
        del n_parts, rng
        return cells_by_class(block)

    def losses(self, block: Block, solution: DecisionFunction) -> FloatArray:
        """Losses of the rows, over all problems."""
        loss = LOSSES["squared_hinge" if self.kernel is None else "hinge"]
        margins = signs_of(labels_of(block), self.classes) * solution.values(block.points)
        return np.asarray(loss.value(margins).sum(axis=1))

    def solve(self, block: Block, rng: np.random.Generator) -> DecisionFunction:
        """Fit a soft margin to the rows."""
        del rng
        if self.kernel is None:
            planes = soft_planes(block, self.classes, self.C, intercept=self.intercept)
            return LinearDecision(*planes, self.model.classes)
        separators = soft_separators(block, self.classes, self.C, self.kernel)
        return SeparatorDecision(separators, self.model.classes)

    def seed(self, block: Block, rng: np.random.Generator) -> DecisionFunction:
        """Fit a soft margin to some of the rows, drawn by weight, of every class one at least."""
        share = block.weights / block.weights.sum()
        few = rng.choice(len(block), min(_FEW, max(10, len(block) // 10)), p=share)
        first = np.unique(labels_of(block), return_index=True)[1]
        rows = block.take(np.union1d(few, first))
        return self.solve(replace(rows, weights=np.ones(len(rows))), rng)

    def candidates(
        self, block: Block, rng: np.random.Generator
    ) -> Iterator[tuple[str, DecisionFunction]]:
        """Yield the model, three that are fitted to few rows, and three with shuffled labels."""
        yield "the model", self.model
        for i in range(1, 4):
            yield f"fitted to few rows {i}", self.seed(block, rng)
        for i in range(1, 4):
            shuffled = replace(block, labels=rng.permutation(labels_of(block)))
            yield f"fitted to shuffled labels {i}", self.seed(shuffled, rng)

    def read(self, solution: Any, n_features: int, name: str) -> DecisionFunction:
        """Return a decision function, or that of a fitted classifier of the same classes."""
        found = getattr(solution, "_decision", solution)
        parts = [getattr(solution, part, None) for part in ("coef_", "intercept_", "classes_")]
        if not isinstance(found, DecisionFunction) and all(part is not None for part in parts):
            coef, intercept = (np.asarray(part, dtype=np.float64) for part in parts[:2])
            found = LinearDecision(np.atleast_2d(coef), np.ravel(intercept), np.asarray(parts[2]))
        known = isinstance(found, DecisionFunction) and np.array_equal(
            found.classes, self.model.classes
        )
        if not known or (isinstance(found, LinearDecision) and found.coef.shape[1] != n_features):
            raise InvalidTypeError(
                f"{name} must be a classifier of the {n_features} columns of X, fitted to the "
                f"classes {self.model.classes.tolist()[:5]}, got {a_type(solution)}; pass a fitted "
                f"linear classifier, or another MaxMarginClassifier."
            )
        return found  # type: ignore[no-any-return]
