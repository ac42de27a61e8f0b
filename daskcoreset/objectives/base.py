"""A cost that adds up over rows: what a coreset promises to keep."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy as np

    from daskcoreset.blocks import Block, Problem
    from daskcoreset.typing import FloatArray

__all__ = ["Objective"]

Q = TypeVar("Q")


class Objective(ABC, Generic[Q]):
    r"""A cost :math:`\mathrm{cost}_X(Q) = g(Q) + \sum_x u(x) f_Q(x)` of solutions Q.

    With :math:`f_Q, g \ge 0`, so that a coreset C is right where :math:`\mathrm{cost}_C(Q)` is
    close to :math:`\mathrm{cost}_X(Q)`, relative to it. Subclasses are frozen dataclasses;
    they travel to the blocks, and so do solutions.

    Attributes
    ----------
    name : str
        What the cost is called in reports.
    """

    name: ClassVar[str]

    @property
    @abstractmethod
    def n_parts(self) -> int:
        """Parts that a solution has: centers, components."""

    @abstractmethod
    def losses(self, block: Block, solution: Q) -> FloatArray:
        """Return f of every row, float64 of shape (n,), not negative."""

    @abstractmethod
    def solve(self, block: Block, rng: np.random.Generator) -> Q:
        """Return a solution fitted to weighted rows in memory."""

    @abstractmethod
    def seed(self, block: Block, rng: np.random.Generator) -> Q:
        """Return a plausible solution that is fitted to no row in particular."""

    @abstractmethod
    def candidates(self, block: Block, rng: np.random.Generator) -> Iterator[tuple[str, Q]]:
        """Solutions where a coreset is most likely to be wrong, and some where it is not."""

    @abstractmethod
    def read(self, solution: Any, n_features: int, name: str) -> Q:
        """Bring a solution that was passed as the argument `name` to form, or refuse it."""

    def several(self, solutions: Any) -> list[Any]:
        """Return the solutions in a sequence of them, or the only one in a list."""
        return list(solutions) if isinstance(solutions, (list, tuple)) else [solutions]

    def constant(self, solution: Q) -> float:
        """Part of the cost that does not depend on the rows, such as a penalty."""
        del solution
        return 0.0

    def problem(self, block: Block) -> Problem | None:
        """Return what is wrong with the first row that no cost can be given to, or None."""
        del block
        return None

    def total(self, block: Block, solution: Q) -> float:
        """Weighted sum of the losses of rows in memory."""
        return float((block.weights * self.losses(block, solution)).sum())

    def cost(self, block: Block, solution: Q) -> float:
        """Cost of a solution on rows in memory that stand for all."""
        return self.constant(solution) + self.total(block, solution)
