"""The base of objectives: costs that add up over rows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Generic, Self, TypeVar

import numpy as np

from daskcoreset.core.block import Block
from daskcoreset.core.invalid import InvalidRow
from daskcoreset.core.typing import FloatArray
from daskcoreset.core.validation import as_int
from daskcoreset.errors import InvalidInputError
from daskcoreset.objectives.cells import Bracket, Cells, cells_by_distance
from daskcoreset.solvers.divergences import plain_fields

Q = TypeVar("Q")


class Objective(ABC, Generic[Q]):
    r"""Base class of costs :math:`\mathrm{cost}_X(Q) = g(Q) + \sum_x u(x) f_Q(x)` of solutions Q.

    Losses f and the constant g are non-negative. A coreset C is good if :math:`\mathrm{cost}_C(Q)`
    has a small relative difference to :math:`\mathrm{cost}_X(Q)`. Subclasses are frozen
    dataclasses, which are sent to the workers together with solutions. Each
    `daskcoreset.Sensitivity` names one. :doc:`/reference/extending` shows how to write one.

    Attributes
    ----------
    name : str
        Name of the cost in reports and in the provenance.
    """

    name: ClassVar[str]

    @property
    def n_parts(self) -> int | None:
        """Number of parts of a solution, such as centers or components.

        None if it is unknown. Solutions without parts have 1, the default.
        """
        return 1

    def with_parts(self, n_parts: int) -> Self:
        """Return the objective for solutions of `n_parts` parts, if they have parts."""
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
        """Return the losses f of the rows, float64 of shape (n,), non-negative."""

    @abstractmethod
    def solve(self, block: Block, rng: np.random.Generator) -> Q:
        """Return a solution fitted to weighted rows in memory."""

    @abstractmethod
    def seed(self, block: Block, rng: np.random.Generator) -> Q:
        """Return a plausible solution that is not fitted to particular rows."""

    def poor(self, block: Block) -> Q | None:
        """Return a solution of one part that makes far rows expensive, or None."""
        del block
        return None

    @abstractmethod
    def candidates(self, block: Block, rng: np.random.Generator) -> Iterator[tuple[str, Q]]:
        """Return solutions for an audit, with those that a coreset most easily gets wrong."""

    @abstractmethod
    def read(self, solution: Any, n_features: int, name: str) -> Q:
        """Return the solution that was passed as the argument `name`, after checks."""

    def several(self, solutions: Any) -> list[Any]:
        """Return the solutions of a sequence as a list, or a list of the only solution."""
        return list(solutions) if isinstance(solutions, (list, tuple)) else [solutions]

    def cells(self, block: Block, n_parts: int, rng: np.random.Generator) -> Cells:
        """Return the cells for `brackets`, made from the rows of a coreset."""
        return cells_by_distance(block, n_parts, rng)

    def brackets(
        self, cells: Cells, solution: Q, others: Sequence[Q]
    ) -> Iterator[tuple[Bracket, int | None]]:
        """Yield bounds of the losses of any row in a cell, also of rows that were not drawn.

        The default yields nothing, and the intervals of `Coreset.audit` have no upper end.

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
            Number of the solution in `others` that belongs to the known part.
        """
        del cells, solution, others
        return iter(())

    def constant(self, solution: Q) -> float:
        """Return the part of the cost that does not depend on the rows, such as a penalty."""
        del solution
        return 0.0

    def find_invalid_row(self, block: Block) -> InvalidRow | None:
        """Return the first row without a defined cost, or None."""
        del block
        return None

    def labelled(self, solution: Q, block: Block, name: str) -> Q:
        """Return a solution in the labels of a block. Other labels raise an error.

        Parameters
        ----------
        solution : object
            As returned by `read`.
        block : Block
            Rows of the coreset.
        name : str
            The argument, for the error.
        """
        del block, name
        return solution

    def total(self, block: Block, solution: Q) -> float:
        """Return the weighted sum of the losses of rows in memory."""
        return float((block.weights * self.losses(block, solution)).sum())

    def cost(self, block: Block, solution: Q) -> float:
        """Return the cost of a solution on weighted rows in memory."""
        return self.constant(solution) + self.total(block, solution)


def total_costs(
    block: Block, _index: int, broadcast: tuple[Objective[Any], Sequence[Any]]
) -> FloatArray:
    """Return the weighted sums of the losses of solutions over the rows of a block."""
    objective, solutions = broadcast
    return np.array([objective.total(block, solution) for solution in solutions])


class ObjectiveOfParts(Objective[Q]):
    """Base of costs whose solutions have parts, such as centers. Subclasses are dataclasses.

    Attributes
    ----------
    parts : str
        Name of the field with the number of parts. None in this field means that it is unknown.
    """

    parts: ClassVar[str]

    def __post_init__(self) -> None:
        if self.n_parts is not None:
            as_int(self.parts, self.n_parts)

    @property
    def n_parts(self) -> int | None:
        """Number of parts of a solution."""
        n_parts: int | None = getattr(self, self.parts)
        return n_parts

    def with_parts(self, n_parts: int) -> Self:
        """Return the same cost for solutions of `n_parts` parts."""
        fields: dict[str, Any] = {self.parts: n_parts}
        return replace(self, **fields)  # type: ignore[type-var]

    def parts_in(self, block: Block) -> int:
        """Return the number of parts of a solution for these rows: no more than count."""
        if self.n_parts is None:
            raise InvalidInputError(
                "n_clusters is missing, and the method of the coreset is for any number of centers",
                argument="n_clusters",
                remedy="pass n_clusters or solutions",
            )
        return min(self.n_parts, int((block.weights > 0).sum()))
