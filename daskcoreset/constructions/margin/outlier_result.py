"""What a search for the largest margin without k rows returns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from daskcoreset.core.errors import InvalidInputError

if TYPE_CHECKING:
    from daskcoreset.constructions.margin.kernelised import Separator
    from daskcoreset.core.typing import AnyArray, FloatArray, IndexArray

__all__ = ["InseparableRestError", "OutlierMargin"]


class InseparableRestError(InvalidInputError):
    """No separator was found even with the rows that may be left out."""


@dataclass(frozen=True, eq=False, repr=False)
class OutlierMargin:
    r"""The separator found, and what is certain of it.

    Attributes
    ----------
    separator : Separator
        Signed distance of a row from the hyperplane; its normal has length one.
    margin : float
        :math:`\rho_k` on all the data, measured by a read: that of the best hyperplane with
        this normal when the k rows are left out.
    outliers : ndarray of shape (k,), int64
        Numbers of the rows left out, those of least margin, in increasing order.
    probability : float
        With which `margin` is at least 1 - epsilon of the largest there is; one for "exact"
        and "subsets".
    classes : ndarray of shape (2,)
    method : {"exact", "random", "subsets"}
    n_problems : int
        Hard-margin problems that were looked into.
    reads : int
    n_rows : int
    epsilon : float
    """

    separator: Separator
    margin: float
    outliers: IndexArray
    probability: float
    classes: AnyArray
    method: str
    n_problems: int
    reads: int
    n_rows: int
    epsilon: float

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}({self.method}: margin {self.margin:.6g} without "
            f"{len(self.outliers)} of {self.n_rows:,} rows, probability {self.probability:.4g}, "
            f"{self.n_problems:,} problems, {self.reads} reads)"
        )

    @property
    def w(self) -> FloatArray:
        """Normal of length one, of shape (d,)."""
        assert self.separator.w is not None  # noqa: S101 - no kernels here
        return self.separator.w

    @property
    def b(self) -> float:
        """Intercept; zero through the origin."""
        return self.separator.intercept
