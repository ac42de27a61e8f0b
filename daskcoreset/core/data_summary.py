"""Exact moments of all rows, as a read leaves them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from daskcoreset.core.errors import InvalidInputError, InvalidTypeError
from daskcoreset.core.linalg import flat_directions, ridge_coefficients, scatter_root
from daskcoreset.core.typing import AnyArray, FloatArray
from daskcoreset.core.validation import check_penalty

if TYPE_CHECKING:
    from sklearn.linear_model import ElasticNet, Ridge

# Above this a covariance matrix (8 MiB) is not gathered from the blocks.
MAX_COLUMNS = 1024

# Arrays that are saved, and their dimensions.
_STORED = {
    "mean": ("feature",),
    "scatter": ("variable", "other_variable"),
}


@dataclass(frozen=True, eq=False, repr=False)
class DataSummary:
    r"""Moments of all rows, exact but for rounding.

    Attributes
    ----------
    count : int
        Rows of positive weight, without those that were dropped.
    weight : float
        Their total weight, W.
    mean : ndarray of shape (d,), float64
        Weighted means.
    scatter : ndarray of shape (d, d) or (d + 1, d + 1), float64
        :math:`\sum_i u_i (x_i - \mu)(x_i - \mu)^T`. With numbers as labels, y is the last column.
    y_mean : float or None
        Mean of the labels, where there is a number for every row.
    columns : tuple of str or None

    Examples
    --------
    >>> import numpy as np, daskcoreset
    >>> X = np.random.default_rng(0).normal(size=(20_000, 3))
    >>> portfolio = daskcoreset.build_many(X, methods=["uniform"], sizes=500)
    >>> bool(np.allclose(portfolio.moments.covariance, np.cov(X.T)))
    True
    """

    count: int
    weight: float
    mean: FloatArray
    scatter: FloatArray
    y_mean: float | None = None
    columns: tuple[str, ...] | None = None

    @property
    def covariance(self) -> FloatArray:
        """Covariance of the columns, as ``numpy.cov`` of rows of equal weight: (d, d)."""
        d = len(self.mean)
        return self.scatter[:d, :d] / self._degrees

    @property
    def _degrees(self) -> float:
        # n - 1 for weights of one, whatever their unit is.
        return self.weight * (1.0 - 1.0 / self.count) if self.count > 1 else np.nan

    def ridge(
        self,
        alpha: float = 1.0,
        *,
        fit_intercept: bool = True,
        positive: bool = False,
        **options: Any,
    ) -> Ridge:
        r"""Return the exact ridge regression of y on X over all rows, as a fitted estimator.

        Parameters
        ----------
        alpha : float, default=1.0
            Penalty in :math:`\sum_i u_i (y_i - x_i^T b - c)^2 + \alpha |b|^2`. Any number of values
            from one read. Zero is least squares.
        fit_intercept : bool, default=True
            Whether there is a c.
        positive : bool, default=False
            Whether no coefficient may be negative.
        **options
            Options of scikit-learn's estimator, such as ``tol`` and ``max_iter``, for the steps
            that this takes.

        Returns
        -------
        sklearn.linear_model.Ridge
            As if fitted to all rows.

        Raises
        ------
        InvalidInputError
            The build had no y, or labels that are not numbers, or alpha is negative.

        Examples
        --------
        >>> import numpy as np, daskcoreset
        >>> X = np.random.default_rng(0).normal(size=(20_000, 2))
        >>> portfolio = daskcoreset.build_many(X, X @ [2.0, -1.0] + 3.0, methods=["uniform"])
        >>> model = portfolio.moments.ridge(1e-6)
        >>> model.coef_.round(3).tolist(), round(model.intercept_, 3)
        ([2.0, -1.0], 3.0)
        """
        from sklearn.linear_model import Ridge

        check_penalty("alpha", alpha)
        penalty = float(alpha)
        matrix = self._with_y("ridge regression", fit_intercept=fit_intercept)
        if positive:
            model = Ridge(alpha=penalty, fit_intercept=False, positive=True, **options)
            return self._named(self._fitted(model, matrix, 1.0, fit_intercept=fit_intercept))
        d = len(self.mean)
        coefficients = ridge_coefficients(matrix, penalty)
        if not penalty:
            # Columns that say the same have one solution of least length, as in scikit-learn.
            flat = flat_directions(matrix[:d, :d])
            coefficients = coefficients - flat @ (flat.T @ coefficients)
        model = Ridge(alpha=penalty, fit_intercept=fit_intercept)
        model.coef_ = coefficients
        model.intercept_ = self._intercept(coefficients) if fit_intercept else 0.0
        model.n_features_in_, model.n_iter_, model.solver_ = d, None, "cholesky"
        return self._named(model)

    def elastic_net(
        self,
        alpha: float = 1.0,
        *,
        l1_ratio: float = 0.5,
        fit_intercept: bool = True,
        **options: Any,
    ) -> ElasticNet:
        r"""Return the elastic net of y on X over all rows, as a fitted estimator.

        The cost of any coefficients is known from the moments, so that as many rows as there are
        columns, and one, stand for all of them: those of a root of the scatter matrix.

        Parameters
        ----------
        alpha : float, default=1.0
            Penalty in :math:`\frac{1}{2 W} \sum_i u_i (y_i - x_i^T b - c)^2 + \alpha (\rho |b|_1 +
            \frac{1 - \rho}{2} |b|^2)`, W the total weight, as in scikit-learn.
        l1_ratio : float, default=0.5
            :math:`\rho`. One for the lasso.
        fit_intercept : bool, default=True
            Whether there is a c.
        **options
            Options of scikit-learn's estimator, such as ``tol`` and ``max_iter``.

        Returns
        -------
        sklearn.linear_model.ElasticNet
            As if fitted to all rows, up to its ``tol``.

        Raises
        ------
        InvalidInputError
            The build had no y, or labels that are not numbers, or alpha is negative.

        Examples
        --------
        >>> import numpy as np, daskcoreset
        >>> X = np.random.default_rng(0).normal(size=(20_000, 2))
        >>> portfolio = daskcoreset.build_many(X, 2.0 * X[:, 0] + 3.0, methods=["uniform"])
        >>> model = portfolio.moments.elastic_net(0.1, l1_ratio=1.0)
        >>> (model.coef_.round(1) + 0.0).tolist(), round(model.intercept_, 1)
        ([1.9, 0.0], 3.0)
        """
        from sklearn.linear_model import ElasticNet

        check_penalty("alpha", alpha)
        matrix = self._with_y("an elastic net", fit_intercept=fit_intercept)
        model = ElasticNet(alpha=float(alpha), l1_ratio=l1_ratio, fit_intercept=False, **options)
        # Its cost is a mean over the rows, and these are as many as there are columns.
        scale, matrix = len(matrix), matrix / self.weight
        return self._named(self._fitted(model, matrix, scale, fit_intercept=fit_intercept))

    def _fitted(self, model: Any, matrix: FloatArray, scale: float, *, fit_intercept: bool) -> Any:
        """Fit a linear model to the rows of a root of a scatter matrix, times the scale."""
        rows = np.sqrt(scale) * scatter_root(matrix)
        model.fit(np.asfortranarray(rows[:, :-1]), rows[:, -1])
        model.fit_intercept = fit_intercept
        if fit_intercept:
            model.intercept_ = self._intercept(model.coef_)
        return model

    def _with_y(self, what: str, *, fit_intercept: bool) -> FloatArray:
        """Scatter of the columns and y, about their means or about the origin."""
        if self.y_mean is None:
            raise InvalidInputError(
                f"{what} needs y, and the build had none, or not a number for every row",
                remedy="pass numbers as y to daskcoreset.build",
            )
        self._check_rows()
        if fit_intercept:
            return self.scatter
        mean = np.append(self.mean, self.y_mean)
        return np.asarray(self.scatter + self.weight * np.outer(mean, mean))

    def _intercept(self, coefficients: FloatArray) -> float:
        assert self.y_mean is not None  # noqa: S101 - `_with_y` has checked it
        return float(self.y_mean - self.mean @ coefficients)

    def _check_rows(self) -> None:
        if self.count < 2:
            raise InvalidInputError(
                f"the data have {self.count} row", remedy="pass at least two rows"
            )

    def _named(self, model: Any) -> Any:
        if self.columns is not None:
            model.feature_names_in_ = np.array(self.columns, dtype=object)
        return model

    def __repr__(self) -> str:
        return f"DataSummary({self.count:,} rows, {len(self.mean):,} columns)"

    def equals(self, other: object) -> bool:
        """Return whether all is the same, bit for bit."""
        if not isinstance(other, DataSummary):
            return False
        first, second = self.to_stored(), other.to_stored()
        return (
            first[1] == second[1]
            and first[0].keys() == second[0].keys()
            and all(np.array_equal(value, second[0][name]) for name, value in first[0].items())
        )

    def to_stored(self) -> tuple[dict[str, AnyArray], dict[str, Any]]:
        """Return the arrays, and all that is none."""
        arrays = {name: getattr(self, name) for name in _STORED if getattr(self, name) is not None}
        columns = None if self.columns is None else list(self.columns)
        record = {"count": self.count, "weight": self.weight, "columns": columns}
        return arrays, record | {"y_mean": self.y_mean}

    @staticmethod
    def dimensions(name: str) -> tuple[str, ...]:
        """Return the names of the dimensions of an array of `to_stored`."""
        return _STORED[name]

    @classmethod
    def from_stored(cls, arrays: Mapping[str, AnyArray], record: Mapping[str, Any]) -> DataSummary:
        """Return the summary of what `to_stored` returned.

        Raises
        ------
        InvalidInputError, InvalidTypeError, TypeError
            Arrays do not fit together.
        """
        columns = record["columns"]
        made = cls(**{**record, **arrays, "columns": None if columns is None else tuple(columns)})
        d = len(made.mean)
        wide = d + (made.y_mean is not None)
        shapes = {"mean": (d,), "scatter": (wide, wide)}
        if any(getattr(made, name).shape != shape for name, shape in shapes.items()):
            raise InvalidInputError("arrays of a summary have other shapes")
        if columns is not None and len(columns) != d:
            raise InvalidTypeError("columns of a summary have other names")
        return made
