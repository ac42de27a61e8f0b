"""Random streams, determined by the seed and the place of use.

Every random number of the library comes from `stream`, addressed by the root seed, the
stage of the algorithm and the number of the block. Which worker runs a block, in which
order, and how often it is repeated after a crash therefore cannot change a bit.
"""

from __future__ import annotations

import enum
import secrets
from typing import Any, TypeAlias

import numpy as np

from daskcoreset.core.validation import is_int
from daskcoreset.errors import InvalidInputError, InvalidTypeError

# What a ``random_state`` argument may be.
RandomState: TypeAlias = int | np.integer[Any] | np.random.Generator | np.random.RandomState | None

_SEED_BITS = 128


class Stage(enum.IntEnum):
    """The places where random numbers are drawn. The values determine the bits."""

    CANDIDATES = 0
    QUOTAS = 1
    DRAWS = 2
    ROOT = 3
    TOP_UP = 4
    SUMMARIES = 5
    SETTLING = 7
    SIZING = 8
    AUDIT = 9
    LABELS = 10
    TREE = 11
    TREE_ROOT = 12
    TREE_LEAVES = 13
    DESCENT = 14
    SUBSETS = 15
    HELD_OUT = 19


def resolve_seed(random_state: RandomState) -> int:
    """Return the root seed for a ``random_state`` argument.

    Parameters
    ----------
    random_state : int, numpy.random.Generator, numpy.random.RandomState or None
        An integer in ``[0, 2**128)`` is the seed itself. A generator is asked for one
        seed, which advances it. ``None`` takes fresh entropy of the operating system.

    Returns
    -------
    int
        The seed, below ``2**128``. It is recorded in the provenance of a coreset, so
        that a build with ``random_state=None`` can be repeated as well.

    Raises
    ------
    InvalidInputError
        If an integer lies outside ``[0, 2**128)``.
    InvalidTypeError
        If `random_state` is of another type.

    Examples
    --------
    >>> resolve_seed(7)
    7
    >>> resolve_seed(np.random.default_rng(0)) == resolve_seed(np.random.default_rng(0))
    True
    """
    if random_state is None:
        return secrets.randbits(_SEED_BITS)
    if is_int(random_state):
        seed = int(random_state)
        if not 0 <= seed < 2**_SEED_BITS:
            raise InvalidInputError(
                f"random_state must lie in [0, 2**128), got {seed}",
                argument="random_state",
                remedy="pass a seed in this range",
            )
        return seed
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(2**63))
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(2**31))
    raise InvalidTypeError(
        "random_state must be None, an int, a Generator or a RandomState, got "
        f"{type(random_state).__name__}",
        argument="random_state",
        remedy="pass an int for a reproducible build",
    )


def stream(seed: int, stage: Stage, block: int = 0, fold: int = 0) -> np.random.Generator:
    """Return the generator of one stage on one block.

    Parameters
    ----------
    seed : int
        Root seed, as returned by `resolve_seed`.
    stage : Stage
        Purpose of the numbers.
    block : int, default=0
        Number of the row block; 0 for work done at the root.
    fold : int, default=0
        Number of the read, where a stage is repeated.

    Returns
    -------
    numpy.random.Generator
        PCG64 seeded by ``SeedSequence(seed, spawn_key=(stage, block, fold))``. Streams with
        different addresses are independent.

    Examples
    --------
    >>> a = stream(1, Stage.DRAWS, 5).random(3)
    >>> bool((a == stream(1, Stage.DRAWS, 5).random(3)).all())
    True
    """
    sequence = np.random.SeedSequence(seed, spawn_key=(int(stage), block, fold))
    return np.random.Generator(np.random.PCG64(sequence))
