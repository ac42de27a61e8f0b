"""The core set of the largest margin in the form that all coresets of the library have."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from daskcoreset.core.coreset import Coreset
from daskcoreset.inputs.blocks import row_blocks
from daskcoreset.constructions.margin.batch import MaxMarginCoreset
from daskcoreset.core.surroundings import package_versions

if TYPE_CHECKING:
    from daskcoreset.constructions.margin.result import MarginCoreset

__all__ = ["build_margin", "margin_as_coreset"]


def build_margin(X: Any, y: Any, sample_weight: Any = None, **options: Any) -> Coreset:
    """Build a core set for the largest margin, as a `Coreset`.

    Parameters
    ----------
    X : array-like of shape (n, d), or path
    y : array-like of shape (n,), or str
    sample_weight : array-like of shape (n,), or str, optional
        Rows of weight zero are left out.
    **options
        Parameters of `daskcoreset.constructions.margin.batch.MaxMarginCoreset`.

    Returns
    -------
    Coreset
        Of weights one, for a margin knows none: any solver of the hard-margin problem finds on
        it a separator of 1 - epsilon of the largest margin on the data. Margins, certificate
        and reads are in the provenance.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).uniform(-1, 1, size=(1000, 2))
    >>> coreset = build_margin(X, X[:, 0] > 0, intercept=True)
    >>> coreset.provenance["factor"] >= 0.9, len(coreset) < 100
    (True, True)
    """
    construction = MaxMarginCoreset(**options)
    blocks = row_blocks(
        X, y, sample_weight, chunks=construction.chunks, on_invalid=construction.on_invalid
    )
    found = construction.run_blocks(blocks)
    return margin_as_coreset(found, construction, source=blocks.name, columns=blocks.columns)


def margin_as_coreset(
    found: MarginCoreset,
    construction: MaxMarginCoreset,
    *,
    source: str | None = None,
    columns: tuple[str, ...] | None = None,
) -> Coreset:
    """Bring what was found to the form of a `Coreset`.

    Parameters
    ----------
    found : MarginCoreset
    construction : MaxMarginCoreset
        What found it.
    source : str or None, default=None
    columns : tuple of str or None, default=None

    Returns
    -------
    Coreset
    """
    core = found.core
    kernel = construction.kernel
    parameters = {
        "epsilon": float(construction.epsilon),
        "intercept": construction.intercept,
        "kernel": kernel if isinstance(kernel, str) else getattr(kernel, "__name__", repr(kernel)),
        "gamma": float(construction.gamma),
        "degree": int(construction.degree),
        "coef0": float(construction.coef0),
        "violators": construction.violators,
        "drop": construction.drop,
    }
    record = {
        "method": "max_margin",
        "parameters": parameters,
        "m": len(core),
        "n": found.n_rows,
        "d": core.n_features,
        "source": source,
        "columns": None if columns is None else list(columns),
        "versions": package_versions(),
        **found.describe(),
    }
    return Coreset(core.points, core.weights, core.indices, core.labels, record)
