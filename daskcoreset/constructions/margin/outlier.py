r"""Fig. 4 and Lemma 5.2: the largest margin when k rows are left out.

Which k rows to leave out is what makes it hard. Three ways, all of which read the data a few
times whatever the number of candidates is, for a read measures hundreds of separators:

"subsets"
    Fig. 4 as it stands: the hard margin of every subset of c rows, c = 1, 2, 4, ... and of
    these the one with the largest :math:`\rho_k`. For a few dozen rows.
"exact"
    Rows left out are looked for where they must be. Solve the problem without the rows S left
    out so far, S within the best choice O. If no row of its support (of the evidence, if it
    is not separable) is in O, the support bounds what O leaves, so that the separator is as
    good as the best up to epsilon; else one of them is in O, and each is tried. Supports have
    at most d + 1 rows, so that :math:`(d+1)^k` problems are enough whatever n is.
"random"
    Subsets drawn at random, each row on its own with probability f. A draw is lucky if it
    holds the support of the best separator, s rows at most, and none of the k left out:
    then its hard margin is the best one. This has probability :math:`f^s (1-f)^k` at least,
    greatest at f = s/(s + k), and :math:`\ln\delta / \ln(1 - f^s(1-f)^k)` draws are lucky once
    with probability :math:`1-\delta`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from daskcoreset.core.validation import check_count, check_flag, check_share
from daskcoreset.core.errors import InvalidInputError
from daskcoreset.inputs.blocks import row_blocks
from daskcoreset.constructions.margin.classes import find_classes
from daskcoreset.constructions.margin.outlier_search import Search
from daskcoreset.core.random import RandomState

if TYPE_CHECKING:
    from daskcoreset.execution.gathering import Gathered
    from daskcoreset.inputs.blocks import RowBlocks
    from daskcoreset.constructions.margin.classes import Found
    from daskcoreset.constructions.margin.outlier_result import OutlierMargin

__all__ = ["METHODS", "Method", "OutlierMaxMargin"]

Method = Literal["auto", "exact", "random", "subsets"]

METHODS = ("auto", "exact", "random", "subsets")
"""Names of the methods."""

_STARTS = 16
"""Rows of each class to start from."""


@dataclass(frozen=True)
class OutlierMaxMargin:
    r"""The largest margin that is left when at most k rows are left out.

    Parameters
    ----------
    k : int, default=1
        Rows left out.
    epsilon : float, default=0.1
        As in `MaxMarginCoreset`, against the best choice of k rows.
    intercept : bool, default=False
        As in `MaxMarginCoreset`.
    method : {"auto", "exact", "random", "subsets"}, default="auto"
        "auto" takes "exact" where it gets by with `max_problems`, else "random".
    confidence : float, default=0.99
        Probability wanted of "random".
    max_problems : int, default=2000
        Hard-margin problems at most. Where "random" needs more draws, it makes these, warns,
        and the result tells the probability that is left.
    max_passes : int, default=100
        Reads for each batch of problems, at most.
    random_state : int, Generator, RandomState or None, default=None
        For "random".
    chunks : int or "auto", default="auto"
    on_invalid : {"raise", "drop"}, default="raise"
        As in `daskcoreset.build`.

    Raises
    ------
    InvalidInputError
        If a parameter is out of range.

    Notes
    -----
    What is promised for "random" is the probability that some draw is lucky. Besides, the
    best separator is improved by leaving out its k worst rows and solving again until nothing
    changes, which can only help.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[1.0, 0.0], [2.0, 1.0], [-1.0, 0.0], [-2.0, 1.0], [-3.0, 0.0]])
    >>> found = OutlierMaxMargin(k=1).run(X, [1, 1, 0, 0, 1])
    >>> found.outliers, round(found.margin, 6)
    (array([4]), 1.0)

    References
    ----------
    Har-Peled, Roth and Zimak (2007), Fig. 4 and Lemma 5.2; for "exact", Matousek (1995), On
    geometric optimization with few violated constraints.
    """

    k: int = 1
    epsilon: float = 0.1
    intercept: bool = False
    method: Method = "auto"
    confidence: float = 0.99
    max_problems: int = 2000
    max_passes: int = 100
    random_state: RandomState = None
    chunks: int | Literal["auto"] = "auto"
    on_invalid: Literal["raise", "drop"] = "raise"

    def __post_init__(self) -> None:
        check_count("k", self.k, 0)
        check_share("epsilon", self.epsilon)
        check_share("confidence", self.confidence)
        check_flag("intercept", self.intercept)
        check_count("max_problems", self.max_problems)
        check_count("max_passes", self.max_passes)
        if self.method not in METHODS:
            raise InvalidInputError(f"method is {self.method!r}; pass one of {', '.join(METHODS)}.")

    def run(self, X: Any, y: Any, sample_weight: Any = None) -> OutlierMargin:
        """Find the separator, here and now.

        Parameters
        ----------
        X : array-like of shape (n, d), or path
            Any input of `daskcoreset.build`.
        y : array-like of shape (n,), or str
            Two labels of any kind; the greater one is on the positive side.
        sample_weight : array-like of shape (n,), or str, optional
            Rows of weight zero are left out, and do not count among the k.

        Returns
        -------
        OutlierMargin

        Raises
        ------
        InvalidInputError
            If there are not two classes, if k rows would leave nothing of a class, or if no
            separator was found without k rows.

        Warns
        -----
        CoresetWarning
            If the probability wanted is not reached.
        """
        blocks = row_blocks(X, y, sample_weight, chunks=self.chunks, on_invalid=self.on_invalid)
        return self.run_blocks(blocks)

    def run_blocks(self, blocks: RowBlocks, survey: Gathered[Found] | None = None) -> OutlierMargin:
        """Find the separator for rows that are opened already.

        Parameters
        ----------
        blocks : RowBlocks
            With labels.
        survey : Gathered of Found, optional
            What `daskcoreset.constructions.margin.classes.find_classes` found in them; saves a read.

        Returns
        -------
        OutlierMargin
        """
        return Search(self, blocks, survey or find_classes(blocks, keep=_STARTS)).result()
