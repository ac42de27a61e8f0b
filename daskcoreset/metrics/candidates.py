"""Candidate solutions on which a coreset is held against its data."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from daskcoreset.core.errors import InvalidInputError
from daskcoreset.core.random import Stage, stream

if TYPE_CHECKING:
    from daskcoreset.core.blocks import Block
    from daskcoreset.objectives import Objective

__all__ = ["solutions_for"]


def solutions_for(
    objective: Objective[Any], block: Block, solutions: Any, seed: int
) -> tuple[tuple[str, ...], tuple[Any, ...]]:
    """Name and return the solutions given, or those that the objective proposes.

    Parameters
    ----------
    objective : Objective
    block : Block
        Rows of the coreset.
    solutions : object, sequence or mapping of such, or None
        As the objective reads them.
    seed : int

    Returns
    -------
    names : tuple of str
    solutions : tuple

    Raises
    ------
    InvalidInputError, InvalidTypeError
        If a solution does not fit.

    Examples
    --------
    >>> import numpy as np
    >>> from daskcoreset.core.blocks import Block
    >>> from daskcoreset.objectives import QuantizationError
    >>> rows = Block(np.eye(2), np.ones(2))
    >>> solutions_for(QuantizationError(1), rows, {"origin": [[0, 0]]}, 0)[0]
    ('origin',)
    """
    if solutions is None:
        found = dict(objective.candidates(block, stream(seed, Stage.AUDIT, 0, 1)))
        return tuple(found), tuple(found.values())
    if isinstance(solutions, Mapping):
        names, several = [str(name) for name in solutions], list(solutions.values())
    else:
        several = objective.several(solutions)
        names = [f"solution {i}" for i in range(len(several))]
    if not several:
        raise InvalidInputError("solutions is empty; pass at least one solution.")
    d = int(block.points.shape[1])
    read = (objective.read(one, d, "solutions") for one in several)
    return tuple(names), tuple(objective.labelled(one, block, "solutions") for one in read)
