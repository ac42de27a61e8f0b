"""Options of the draw: `Draw` for samples, `MergeReduce` for trees."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from daskcoreset.core.messages import warn_user
from daskcoreset.core.typing import Sampling
from daskcoreset.core.validation import as_int, check_choice, check_flag, is_int, shown
from daskcoreset.errors import InvalidInputError


@dataclass(frozen=True)
class Draw:
    """Draw rows from all rows at once, in proportion to their scores.

    This is the default of `daskcoreset.build`. :doc:`/how_it_works` shows the steps.

    Parameters
    ----------
    sampling : {"systematic", "multinomial"}, default="systematic"
        "systematic" draws exactly `size` distinct rows. It is never worse than independent draws,
        in whatever order the rows are. "multinomial" draws independently and needs ``passes=2``.
        It merges rows that it draws twice, so you may get fewer than `size` rows.
    passes : {1, 2}, default=1
        Passes over the data. With 1, each block offers candidates by its own statistics. With 2,
        rows are scored by the statistics of all rows, as in the papers. Both have the same error.
        "svm" and "logistic" make 2 passes with 1, 3 with 2, and 4 if draws are "multinomial" too.
        "kmeans", "mixture" and "strong_bregman" make 1, 2 and 3. The others make 1, 2 and 2.
    normalize : bool, default=False
        Whether to scale the weights to the total weight of the data. False keeps every weighted
        cost unbiased. True makes totals exact and adds a bias of order 1 / size.
    split_every : int, default=16
        Number of results that one task merges.

    Raises
    ------
    InvalidInputError, InvalidTypeError
        If an argument cannot be used.

    Examples
    --------
    >>> import numpy as np, daskcoreset
    >>> X = np.random.default_rng(0).normal(size=(10_000, 3))
    >>> exact = daskcoreset.Draw(normalize=True)
    >>> round(daskcoreset.build(X, size=100, draw=exact, random_state=0).total_weight, 6)
    10000.0

    References
    ----------
    Bachem, Lucic and Krause (2018), Algorithm 1.
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
                remedy="pass 1 or 2",
            )
        if self.sampling == "multinomial" and self.passes == 1:
            raise InvalidInputError(
                'passes is 1, and sampling="multinomial" needs the scores of all rows',
                argument="passes",
                remedy="pass passes=2",
            )


@dataclass(frozen=True)
class MergeReduce:
    """Build a coreset by merging and reducing coresets of blocks, in one pass.

    Each block becomes a coreset. Unions of coresets are reduced again until one is left. It works
    with any `Reducer`, and with methods that otherwise need several passes. The repeated draws add
    to the variance. Streams and trees use it: see :doc:`/guides/streams`.

    Parameters
    ----------
    inner_size : int, optional
        Rows of the nodes below the root, at least `size`. Default: twice `size`.
    sampling : {"systematic", "multinomial"}, default="systematic"
        As in `Draw`.
    normalize : bool, default=False
        As in `Draw`.
    split_every : int, default=16
        Number of nodes that one task merges. Streams and stored trees merge by their own rules.

    Raises
    ------
    InvalidInputError, InvalidTypeError
        If an argument cannot be used.

    Examples
    --------
    >>> import dask.array as da, daskcoreset
    >>> X = da.random.default_rng(0).normal(size=(40_000, 3), chunks=(10_000, 3))
    >>> daskcoreset.build(X, size=200, draw=daskcoreset.MergeReduce(), random_state=0)
    Coreset(lightweight: 200 of 40,000 rows, 3 features, no labels, seed 0)

    References
    ----------
    Tukan, Baykal, Feldman and Rus (2020), Algorithm 2.
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


def warn_complete(size: int, rows: int) -> None:
    """Warn that all rows come back, because `size` is at least the number of rows."""
    warn_user(
        f"nothing was reduced: size={size} is not below the number of rows, {rows}. All rows come "
        "back with their own weights. Pass a smaller size to reduce them."
    )


def warn_few(size: int, rows: int) -> None:
    """Warn that fewer than `size` rows come back."""
    warn_user(
        f"size={size}, but the coreset has {rows} rows: all other rows have "
        "a score of zero, or one too small to be drawn. Check "
        "sample_weight and the scale of the columns. If a few rows have "
        "nearly all of the cost, these are enough."
    )
