"""Attributes about all rows of a fit, which are lazy where these are out of core."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from daskcoreset.estimators.base import CoresetModel
from daskcoreset.estimators.scoring import weighted_values
from daskcoreset.execution.engine import map_rows
from daskcoreset.inputs.options import with_columns


class RowAttributes(CoresetModel):
    """Base of the estimators with `labels_` and `inertia_` of all rows."""

    # X and weights of the last fit, out of core, for attributes that read it when asked.
    _source: tuple[Any, Any] | None = None
    _labels: Any
    _inertia: Any

    def _row_costs(self) -> tuple[Any, Any]:
        """Cost of every row, as a function of points; what is wrong with a block, or None."""
        raise NotImplementedError

    @property
    def labels_(self) -> Any:
        """Cluster of every row; lazy where X was out of core."""
        check_is_fitted(self)
        if self._labels is not None:
            return self._labels
        X, _, sample_weight = self._rows_of_fit("labels_", "predict(X)")
        if isinstance(sample_weight, str):  # perhaps a column of X, which is no feature
            X = with_columns(X, getattr(self, "feature_names_in_", None))
        return self.predict(X)

    @labels_.setter
    def labels_(self, labels: Any) -> None:
        self._labels = labels

    @property
    def inertia_(self) -> Any:
        """Cost of the clustering over all rows; lazy where X was out of core."""
        check_is_fitted(self)
        if self._inertia is not None:
            return self._inertia
        costs = self._row_costs()
        blocks = self._open(*self._rows_of_fit("inertia_", "-score(X)"))
        return map_rows(blocks, partial(weighted_values, *costs), dtype=np.float64).sum()

    def _rows_of_fit(self, name: str, remedy: str) -> tuple[Any, None, Any]:
        """Return X and weights of `fit`, out of core, for an attribute that is lazy."""
        if self._source is None:
            reason = "was fitted out of core in another process, or on labels set by hand"
        elif self.coreset_.provenance["n_dropped"]:
            reason = "left out rows with NaN or infinity, which have no cluster"
            # Of a cube these cells are masked, and there is no need to leave them out.
            remedy += "" if self._cube is not None else " on the other rows"
        else:
            return self._source[0], None, self._source[1]
        raise AttributeError(f"{name} is not there: the model {reason}; call {remedy}.")

    def __getstate__(self) -> Any:
        # Data and graphs stay where they are: a saved model is as small as its centers and coreset.
        return {**super().__getstate__(), "_source": None}
