"""The base of objectives: costs that add up over rows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Self, TypeVar

from daskcoreset.core.blocks import Block, InvalidRow
from daskcoreset.core.errors import InvalidInputError
from daskcoreset.core.typing import FloatArray
from daskcoreset.core.validation import as_int
from daskcoreset.objectives.cells import Bracket, Cells, cells_by_distance
from daskcoreset.solvers.divergences import plain_fields

if TYPE_CHECKING:
    import numpy as np

Q = TypeVar("Q")


class Objective(ABC, Generic[Q]):
    r"""A cost :math:`\mathrm{cost}_X(Q) = g(Q) + \sum_x u(x) f_Q(x)` of solutions Q.

    With :math:`f_Q, g \ge 0`, so that a coreset C is right where :math:`\mathrm{cost}_C(Q)` is
    close to :math:`\mathrm{cost}_X(Q)`, relative to it. Subclasses are frozen dataclasses;
    they travel to the blocks, and so do solutions. Every sensitivity names one.

    Attributes
    ----------
    name : str
        What the cost is called in reports and in the provenance.
    """

    name: ClassVar[str]

    @property
    def n_parts(self) -> int | None:
        """Parts of the solutions that are made here: centers, components.

        None where that is unknown; 1, the default, for solutions that have no parts.
        """
        return 1

    def with_parts(self, n_parts: int) -> Self:
        """Return the objective for solutions of `n_parts` parts, where they have any."""
        del n_parts
        return self

    def fitted(self, block: Block) -> Self:
        """Return the objective with open parameters estimated from the rows of a coreset."""
        del block
        return self

    def record(self) -> dict[str, Any]:
        """Return the name and the parameters in plain JSON values, for the provenance."""
        return {"name": self.name, **plain_fields(self)}

    @abstractmethod
    def losses(self, block: Block, solution: Q) -> FloatArray:
        """Return f of every row, float64 of shape (n,), not negative."""

    @abstractmethod
    def solve(self, block: Block, rng: np.random.Generator) -> Q:
        """Return a solution fitted to weighted rows in memory."""

    @abstractmethod
    def seed(self, block: Block, rng: np.random.Generator) -> Q:
        """Return a plausible solution that is fitted to no row in particular."""

    def poor(self, block: Block) -> Q | None:
        """Return a solution of one part, at which far rows cost most, or None."""
        del block
        return None

    @abstractmethod
    def candidates(self, block: Block, rng: np.random.Generator) -> Iterator[tuple[str, Q]]:
        """Solutions where a coreset is most likely to be wrong, and some where it is not."""

    @abstractmethod
    def read(self, solution: Any, n_features: int, name: str) -> Q:
        """Return the solution that was passed as the argument `name`, after checks."""

    def several(self, solutions: Any) -> list[Any]:
        """Return the solutions in a sequence of them, or the only one in a list."""
        return list(solutions) if isinstance(solutions, (list, tuple)) else [solutions]

    def cells(self, block: Block, n_parts: int, rng: np.random.Generator) -> Cells:
        """Return the cells about which `brackets` are given, found on the rows of a coreset."""
        return cells_by_distance(block, n_parts, rng)

    def brackets(
        self, cells: Cells, solution: Q, others: Sequence[Q]
    ) -> Iterator[tuple[Bracket, int | None]]:
        """Yield bounds of the losses of all rows there may be, by where they lie.

        Without any, as by default, nothing is known of rows that were not seen, and the intervals
        of `Coreset.audit` have no upper end.

        Parameters
        ----------
        cells : Cells
        solution : object
        others : sequence of object
            Solutions whose costs are known.

        Yields
        ------
        bracket : Bracket
        known : int or None
            Which of `others` belongs to the known part.
        """
        del cells, solution, others
        return iter(())

    def constant(self, solution: Q) -> float:
        """Part of the cost that does not depend on the rows, such as a penalty."""
        del solution
        return 0.0

    def find_invalid_row(self, block: Block) -> InvalidRow | None:
        """Return the first row without a defined cost, or None."""
        del block
        return None

    def labelled(self, solution: Q, block: Block, name: str) -> Q:
        """Return a solution in the labels of a block; other labels are an error.

        Parameters
        ----------
        solution : object
            As returned by `read`.
        block : Block
            Rows of the coreset.
        name : str
            Of the argument, for the error.
        """
        del block, name
        return solution

    def total(self, block: Block, solution: Q) -> float:
        """Weighted sum of the losses of rows in memory."""
        return float((block.weights * self.losses(block, solution)).sum())

    def cost(self, block: Block, solution: Q) -> float:
        """Cost of a solution on rows in memory that stand for all."""
        return self.constant(solution) + self.total(block, solution)


# Labels of rows are int32.
_MAX_PARTS = 2**31 - 1


def check_parts(n_parts: Any, name: str) -> None:
    """Check a number of centers or components; None is unknown."""
    if n_parts is None:
        return
    if as_int(name, n_parts) > _MAX_PARTS:
        raise InvalidInputError(
            f"{name} is {n_parts}", argument=name, remedy=f"pass {_MAX_PARTS} at most"
        )


def require_parts(objective: Objective[Any]) -> int:
    """Return the number of parts of solutions; an unknown one is an error."""
    if objective.n_parts is None:
        raise InvalidInputError(
            "n_clusters is needed, as the coreset's construction does not say of how many "
            "centers solutions are",
            argument="n_clusters",
            remedy="pass it, or pass solutions",
        )
    return objective.n_parts
