"""The accessor ``.coreset`` of xarray objects, which ``import daskcoreset.xarray`` adds.

Cells are rows, and variables are columns. Results have dimensions, coordinates and units. The
guide is :doc:`/guides/cubes`.

>>> import daskcoreset.xarray
>>> import numpy as np, xarray as xr
>>> rng = np.random.default_rng(0)
>>> lat = xr.Variable("lat", np.linspace(-80, 80, 9), {"units": "degrees_north"})
>>> cube = (("time", "lat"), rng.normal(280, 10, (50, 9)), {"units": "K"})
>>> weather = xr.Dataset({"t2m": cube, "d2m": cube}, {"lat": lat})
>>> model = weather.coreset.kmeans(3, weights=np.cos(np.deg2rad(weather.lat)), random_state=0)
>>> model.predict(weather).dims
('time', 'lat')
>>> model.centers_to_xarray().t2m.attrs["units"]
'K'
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from daskcoreset._build import build
from daskcoreset.core.coreset import Coreset
from daskcoreset.core.messages import import_optional
from daskcoreset.core.typing import MissingChunks
from daskcoreset.core.validation import shown
from daskcoreset.errors import InvalidTypeError
from daskcoreset.estimators import CoresetKMeans
from daskcoreset.estimators.base import CoresetModel
from daskcoreset.inputs.options import Rows, open_rows

if TYPE_CHECKING:
    import xarray as xr
else:
    xr = import_optional("xarray")

__all__ = ["CoresetAccessor"]

Dims: TypeAlias = str | Sequence[str] | None


@xr.register_dataarray_accessor("coreset")  # type: ignore[no-untyped-call] # of xarray
@xr.register_dataset_accessor("coreset")  # type: ignore[no-untyped-call]
class CoresetAccessor:
    """Coresets and clusterings of a DataArray or Dataset, as its attribute ``coreset``.

    The guide is :doc:`/guides/cubes`.

    Parameters
    ----------
    data : xarray.DataArray or Dataset
        The object that has the accessor.
    """

    def __init__(self, data: xr.DataArray | xr.Dataset) -> None:
        self._data = data

    def __repr__(self) -> str:
        kind, sizes = type(self._data).__name__, dict(self._data.sizes)
        return f"coreset of a {kind} {sizes}: build(size), fit(estimator), kmeans(n_clusters)"

    def build(
        self,
        size: int | None = None,
        *,
        weights: Any = None,
        sample_dims: Dims = None,
        feature_dims: Dims = None,
        missing_chunks: MissingChunks = "raise",
        **options: Any,
    ) -> Coreset:
        """Build a coreset of the cells, as `daskcoreset.build` does. Masked cells are left out.

        Parameters
        ----------
        size : int, optional
            Number of rows. Default: as in `daskcoreset.build`.
        weights : str, xarray.DataArray or array, optional
            The name of a variable or coordinate, or an array with some of the sample dimensions.
        sample_dims, feature_dims : str or sequence of str, optional
            Dimensions whose cells are rows, and those whose cells are columns. Default: all
            dimensions are sample dimensions.
        missing_chunks : {"raise", "fill"}, default="raise"
            As in `daskcoreset.open_rows`. Pass "fill" if chunks of masked cells are not stored.
        **options
            Options of `daskcoreset.build`, including ``y``.

        Returns
        -------
        Coreset
            ``coordinates`` has the coordinates of each row.

        Examples
        --------
        >>> import daskcoreset.xarray, numpy as np, xarray as xr
        >>> values = np.random.default_rng(0).random((100, 50))
        >>> cells = xr.DataArray(values, {"y": np.arange(100.0)}, dims=("y", "x"))
        >>> coreset = cells.coreset.build(100, random_state=0)
        >>> len(coreset.coordinates["y"])
        100
        """
        rows = self._rows(
            sample_dims=sample_dims, feature_dims=feature_dims, missing_chunks=missing_chunks
        )
        return build(rows, size=size, sample_weight=weights, **{"on_invalid": "drop", **options})

    def fit(self, estimator: Any, y: Any = None, *, weights: Any = None, **reading: Any) -> Any:
        """Fit an estimator of `daskcoreset.estimators` to the cells, and return it.

        Parameters
        ----------
        estimator : estimator object
            For example ``CoresetGaussianMixture(5)``.
        y : str, xarray.DataArray or array, optional
            Labels of the cells.
        weights
            As in `build`.
        **reading
            Options of `daskcoreset.open_rows`: ``sample_dims``, ``feature_dims``, ``columns`` and
            ``missing_chunks``.

        Returns
        -------
        estimator object
            Its ``predict`` and ``transform`` take xarray objects and return them.

        Raises
        ------
        InvalidTypeError
            If the estimator is not one of this library, or is a class.
        """
        if not isinstance(estimator, CoresetModel):
            raise InvalidTypeError(
                f"estimator is {shown(estimator)}",
                argument="estimator",
                remedy="pass one of daskcoreset.estimators, such as CoresetKMeans(8), or "
                "CoresetEstimator(...) around another one that takes weights",
            )
        return estimator.fit(self._rows(**reading), y, sample_weight=weights)

    def kmeans(
        self,
        n_clusters: int = 8,
        *,
        weights: Any = None,
        sample_dims: Dims = None,
        feature_dims: Dims = None,
        columns: Sequence[str] | None = None,
        missing_chunks: MissingChunks = "raise",
        **parameters: Any,
    ) -> CoresetKMeans:
        """Fit a `daskcoreset.estimators.CoresetKMeans` to the cells, and return it.

        Parameters
        ----------
        n_clusters : int, default=8
            Number of clusters.
        weights, sample_dims, feature_dims, columns, missing_chunks
            As in `fit`.
        **parameters
            Parameters of `CoresetKMeans`.

        Returns
        -------
        CoresetKMeans
            ``predict(X)`` returns a lazy DataArray with the dimensions, chunks and coordinates of
            X. It is NaN if a feature is missing. ``centers_to_xarray()`` returns a Dataset with
            units.
        """
        rows = self._rows(
            sample_dims=sample_dims,
            feature_dims=feature_dims,
            columns=columns,
            missing_chunks=missing_chunks,
        )
        return CoresetKMeans(n_clusters, **parameters).fit(rows, sample_weight=weights)

    def _rows(self, **reading: Any) -> Rows:
        if reading.get("sample_dims") is None and reading.get("feature_dims") is None:
            reading["feature_dims"] = ()
        return open_rows(self._data, **reading)
