r"""Fig. 1: a core set for the maximum margin, by a few reads of all rows.

Start from a row of each class. Solve the hard-margin problem on the core set; read the data
for the rows of least margin; add violators, rows below :math:`(1-\epsilon)\rho_C`; stop when
there are none. The margin on the core set is an upper bound of the largest margin on the
data, for it is the largest on fewer rows, so that the ratio of the two is a certificate that
rests on no constant of any proof.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from daskcoreset.core.validation import check_count, check_flag, check_share
from daskcoreset.inputs.blocks import row_blocks
from daskcoreset.constructions.margin.kernelised import Kernel, KernelLike
from daskcoreset.constructions.margin.loop import Run

if TYPE_CHECKING:
    from daskcoreset.execution.gathering import Gathered
    from daskcoreset.inputs.blocks import RowBlocks
    from daskcoreset.constructions.margin.classes import Found
    from daskcoreset.constructions.margin.result import MarginCoreset, Pass

__all__ = ["MaxMarginCoreset"]

Violators = int | Literal["auto", "block"]


@dataclass(frozen=True)
class MaxMarginCoreset:
    r"""Rows on which the largest margin is that of all the data, up to epsilon.

    Parameters
    ----------
    epsilon : float, default=0.1
        The separator reaches at least 1 - epsilon of the largest margin; between 0 and 1.
    intercept : bool, default=False
        False for hyperplanes through the origin, as in the paper. True for all hyperplanes:
        the largest margin is then half the distance between the hulls of the classes, which
        a column of ones would not give.
    kernel : {"linear", "rbf", "poly", "sigmoid"} or callable, default="linear"
        As in `sklearn.svm.SVC`; with others than "linear" the margin is that in the space of
        the kernel.
    gamma : float, default=1.0
    degree : int, default=3
    coef0 : float, default=0.0
    violators : {"auto", "block"} or int, default="auto"
        Rows added after a read, which are chosen to pull in different directions. "block"
        takes the worst row of every block; a number, so many of all rows, and 1 is Fig. 1.
        "auto" takes twice as many as there are columns, and at least 20: where reading is
        what costs, a larger core set is a good price for fewer reads.
    drop : bool, default=False
        Whether to drop rows without a coefficient after each pass, which keeps the core set
        at d + 1 rows and what is added. It ends as well (`daskcoreset.constructions.margin.bounds`), but
        may read more often.
    max_passes : int, default=200
        Where to stop with a warning. Fig. 1 ends by itself, but with a tiny margin late.
    positive : label or None, default=None
        The class on the positive side, against all others; None where there are two classes,
        of which it is the greater.
    chunks : int or "auto", default="auto"
        As in `daskcoreset.build`.
    on_invalid : {"raise", "drop"}, default="raise"
        As in `daskcoreset.build`.
    progress : bool or callable, default=False
        True writes a line to the error stream after each read; a callable is given each
        `Pass`.

    Raises
    ------
    InvalidInputError
        If a parameter is out of range.

    Notes
    -----
    A margin knows no weights: rows with a ``sample_weight`` of zero are left out, and all
    others count the same.

    Nothing is random. The same data, chunks and versions give the same bits.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[2.0, 1.0], [1.0, 3.0], [-1.0, -2.0], [-4.0, 1.0]])
    >>> found = MaxMarginCoreset(epsilon=0.01).run(X, [1, 1, 0, 0])
    >>> found.factor >= 0.99, found.converged
    (True, True)
    >>> found.predict(X)
    array([1, 1, 0, 0])

    References
    ----------
    Har-Peled, Roth and Zimak (2007), Fig. 1, Lemma 3.1 and Corollary 3.2.
    """

    epsilon: float = 0.1
    intercept: bool = False
    kernel: KernelLike = "linear"
    gamma: float = 1.0
    degree: int = 3
    coef0: float = 0.0
    violators: Violators = "auto"
    drop: bool = False
    max_passes: int = 200
    positive: Any = None
    chunks: int | Literal["auto"] = "auto"
    on_invalid: Literal["raise", "drop"] = "raise"
    progress: bool | Callable[[Pass], object] = False

    def __post_init__(self) -> None:
        check_share("epsilon", self.epsilon)
        if self.violators not in ("auto", "block"):
            check_count("violators", self.violators)
        check_flag("intercept", self.intercept)
        check_flag("drop", self.drop)
        check_count("max_passes", self.max_passes)

    def run(self, X: Any, y: Any, sample_weight: Any = None) -> MarginCoreset:
        """Build the core set, here and now.

        Parameters
        ----------
        X : array-like of shape (n, d), or path
            Any input of `daskcoreset.build`.
        y : array-like of shape (n,), or str
            Two labels of any kind, or more with `positive`.
        sample_weight : array-like of shape (n,), or str, optional
            Rows of weight zero are left out.

        Returns
        -------
        MarginCoreset

        Raises
        ------
        NotSeparableError
            With the evidence: a convex combination of a few rows that no hyperplane can have
            on one side.
        InvalidInputError
            If there are not two classes, or values or labels are missing.

        Warns
        -----
        CoresetWarning
            If it stops at `max_passes`, or at what double precision can tell.
        """
        blocks = row_blocks(X, y, sample_weight, chunks=self.chunks, on_invalid=self.on_invalid)
        return self.run_blocks(blocks)

    def run_blocks(self, blocks: RowBlocks, survey: Gathered[Found] | None = None) -> MarginCoreset:
        """Build the core set of rows that are opened already.

        Parameters
        ----------
        blocks : RowBlocks
            With labels.
        survey : Gathered of Found, optional
            What `daskcoreset.constructions.margin.classes.find_classes` found in them; saves a read.

        Returns
        -------
        MarginCoreset
        """
        if self.kernel != "linear" and not callable(self.kernel):
            blocks.refuse_zeros()
        kernel = Kernel(self.kernel, self.gamma, self.degree, self.coef0)
        return Run(self, blocks, kernel).result(survey)
