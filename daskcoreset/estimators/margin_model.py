"""What the estimators of the largest margin share: opening data, and answers for all rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.multiclass import check_classification_targets

from daskcoreset.estimators.machine_model import Machine, MachineModel
from daskcoreset.inputs.blocks import row_blocks

if TYPE_CHECKING:
    from daskcoreset.inputs.blocks import RowBlocks
    from daskcoreset.constructions.margin.kernelised import Separator
    from daskcoreset.core.typing import AnyArray, FloatArray, IndexArray, Points

__all__ = ["MarginModel", "Sides"]


@dataclass(frozen=True, eq=False)
class Sides(Machine):
    """Separators with a kernel: one for two classes, one for each of more.

    Attributes
    ----------
    separators : tuple of Separator
    classes : ndarray of shape (n_classes,)
    """

    separators: tuple[Separator, ...]
    classes: AnyArray

    @property
    def columns(self) -> int | None:
        """Decision values of a row; None for one."""
        return None if len(self.separators) == 1 else len(self.separators)

    def decide(self, points: Points) -> FloatArray:
        """Decision values, of shape (n,) for two classes and (n, n_classes) for more."""
        values = np.stack([separator(points) for separator in self.separators], axis=1)
        return values[:, 0] if len(self.separators) == 1 else values


class MarginModel(MachineModel):
    """Base of the estimators of the largest margin.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    """

    _numbers: IndexArray | None

    def _in_data(self, indices: IndexArray) -> IndexArray:
        """Row numbers in the data as given: rows in memory without a weight were left out."""
        return indices if self._numbers is None else self._numbers[indices]

    def _labelled_blocks(
        self, X: Any, y: Any, sample_weight: Any
    ) -> tuple[RowBlocks, AnyArray | None]:
        """Open the data; those in memory have codes for labels, whose names come along."""
        held = self._hold(X, y, sample_weight)
        self._numbers = None
        if held is not None:
            check_classification_targets(held.y)
            names, codes = np.unique(np.asarray(held.y), return_inverse=True)
            if held.sample_weight is None or held.sample_weight.all():
                return row_blocks(held.X, codes, held.sample_weight), names
            used = np.flatnonzero(held.sample_weight)
            self._numbers = used
            return row_blocks(held.X[used], codes[used], held.sample_weight[used]), names
        blocks = row_blocks(X, y, sample_weight)
        self._note_columns(X, blocks)
        return blocks, None
