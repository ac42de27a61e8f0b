"""Answers with the labels of what was asked: series of frames, arrays with named dimensions."""

from __future__ import annotations

from typing import Any


def as_series(X: Any, values: Any, name: str = "prediction") -> Any:
    """Return a prediction for every row of a data frame as a series with its index.

    Parameters
    ----------
    X : object
        What the prediction is for.
    values : ndarray or dask.array.Array
    name : str, default="prediction"

    Returns
    -------
    pandas.Series, or dask.dataframe.Series with the partitions of X
        The values as they are where X is no data frame of pandas or Dask, or they have columns.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> as_series(pd.DataFrame({"a": [1.0, 2.0]}, index=[5, 7]), np.array([0, 1])).index.tolist()
    [5, 7]
    """
    # The class is asked, for a Delayed object claims to have every attribute.
    if not (hasattr(type(X), "columns") and hasattr(type(X), "iloc")) or values.ndim != 1:
        return values
    if hasattr(X, "__dask_graph__"):
        import dask.dataframe as dd

        return dd.from_dask_array(values, columns=name, index=X.index)
    import pandas as pd

    return pd.Series(values, index=X.index, name=name)
