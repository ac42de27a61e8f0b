"""Options of the draw: `Draw` of samples, and `MergeReduce` of trees, which merge and reduce."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from daskcoreset.core.errors import InvalidInputError
from daskcoreset.core.typing import Sampling
from daskcoreset.core.validation import as_int, check_choice, check_flag, is_int, shown


@dataclass(frozen=True)
class Draw:
    """How rows are drawn from all rows, by scores of all the data.

    Parameters
    ----------
    sampling : {"systematic", "multinomial"}, default="systematic"
        "systematic" draws without replacement, and gives exactly `size` distinct rows. No order
        of the rows makes it worse than independent draws. "multinomial" draws independently,
        with ``passes=2``. It merges rows that it draws twice, so fewer than `size` rows may come
        back.
    passes : {1, 2}, default=1
        Passes over the data. With 1, blocks offer candidates by their own statistics, and the
        rows are drawn from these. With 2, the procedure is that of the paper. The error is the
        same. "svm" reads once more in either form, for a pilot.
    normalize : bool, default=False
        Whether to scale the weights to the total weight of the data. False keeps every weighted
        cost unbiased. True makes totals exact, with a bias of order 1 / size.
    split_every : int, default=16
        Results that one task of the reduction tree merges.

    Raises
    ------
    InvalidInputError, InvalidTypeError
        If an argument cannot be used.
    """

    sampling: Sampling = "systematic"
    passes: Literal[1, 2] = 1
    normalize: bool = False
    split_every: int = 16

    def __post_init__(self) -> None:
        _check(self.sampling, self.normalize, self.split_every)
        if not is_int(self.passes) or self.passes not in {1, 2}:
            raise InvalidInputError(
                f"passes must be 1 or 2, got {shown(self.passes)}",
                argument="passes",
                remedy="pass one of these",
            )
        if self.sampling == "multinomial" and self.passes == 1:
            raise InvalidInputError(
                'passes is 1, and sampling="multinomial" needs the scores of all rows',
                argument="passes",
                remedy="pass passes=2",
            )


@dataclass(frozen=True)
class MergeReduce:
    """How coresets of blocks are merged and reduced, in one pass over the data.

    Every block becomes a coreset. Above them, unions of coresets are reduced to coresets. Rows are
    drawn more than once, which adds to the variance. It is for any reducer, and for methods that
    would have to read several times.

    Parameters
    ----------
    inner_size : int or None, default=None
        Rows that nodes below the root keep, at least `size`. None keeps twice `size`.
    sampling : {"systematic", "multinomial"}, default="systematic"
        As in `Draw`.
    normalize : bool, default=False
        As in `Draw`.
    split_every : int, default=16
        Nodes that one task merges. Streams and stored trees merge by their own rules.

    Raises
    ------
    InvalidInputError, InvalidTypeError
        If an argument cannot be used.
    """

    inner_size: int | None = None
    sampling: Sampling = "systematic"
    normalize: bool = False
    split_every: int = 16

    def __post_init__(self) -> None:
        _check(self.sampling, self.normalize, self.split_every)
        if self.inner_size is not None:
            as_int("inner_size", self.inner_size, remedy="pass a larger int")


def _check(sampling: Any, normalize: Any, split_every: Any) -> None:
    check_choice("sampling", sampling, "systematic", "multinomial")
    check_flag("normalize", normalize)
    as_int("split_every", split_every, 2, "pass a larger int")
