"""Mixtures: parameters, densities, and rows drawn from them."""

from __future__ import annotations

import tracemalloc
from functools import partial
from typing import Any, get_args

import dask.array as da
import numpy as np
import pytest
import scipy.sparse as sp
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

from daskcoreset.core.errors import InvalidInputError
from daskcoreset.core.typing import FloatArray
from daskcoreset.solvers.mixture import model as mixture_model
from daskcoreset.solvers.mixture.em import fit_mixture
from daskcoreset.solvers.mixture.model import (
    CovarianceType,
    Mixture,
    as_covariance_type,
    assign,
    log_likelihood,
    mixture_from_covariances,
    mixture_from_precisions,
    responsibilities,
    sample,
    score_samples,
)
from tests.tools.gaussian_mixtures import (
    assert_same_mixture,
    blobs,
    dense_covariances,
    mixture_of,
    precisions_of,
)

KINDS: tuple[CovarianceType, ...] = get_args(CovarianceType)
kinds = pytest.mark.parametrize("kind", KINDS)


def plain_log_densities(mixture: Mixture, X: FloatArray) -> FloatArray:
    """The same by SciPy, which knows nothing of Cholesky factors of precisions."""
    normals = zip(mixture.means, dense_covariances(mixture), strict=True)
    return np.stack([scipy.stats.multivariate_normal(m, c).logpdf(X) for m, c in normals], axis=1)


@kinds
def test_score_samples__is_that_of_scipy(kind: CovarianceType) -> None:
    X, mixture = blobs(d=2), mixture_of(kind)
    plain = plain_log_densities(mixture, X)
    joint = plain + np.log(mixture.weights)

    np.testing.assert_allclose(
        score_samples(mixture, X), np.logaddexp.reduce(joint, axis=1), rtol=1e-10
    )
    np.testing.assert_allclose(responsibilities(mixture, X), scipy.special.softmax(joint, axis=1))
    np.testing.assert_array_equal(assign(mixture, X), joint.argmax(axis=1))


@kinds
def test_mixture__precisions_are_inverse_covariances(kind: CovarianceType) -> None:
    mixture = mixture_of(kind)
    again = mixture_from_covariances(kind, mixture.weights, mixture.means, mixture.covariances)

    np.testing.assert_allclose(mixture.precisions, precisions_of(kind, 3, 2), rtol=1e-10)
    assert_same_mixture(again, mixture, 1e-9)


@kinds
def test_score_samples__does_not_depend_on_tiles_and_blocks(
    kind: CovarianceType, monkeypatch: pytest.MonkeyPatch
) -> None:
    X, mixture = blobs(d=2, n=3000), mixture_of(kind)
    outputs = [f(mixture, X) for f in (score_samples, responsibilities, assign)]
    monkeypatch.setattr(mixture_model, "_TILE_NUMBERS", 600)  # tiles of 300, components singly
    blocks = da.from_array(X, chunks=(700, 2))
    for f, expected in zip((score_samples, responsibilities, assign), outputs, strict=True):
        np.testing.assert_allclose(f(mixture, X), expected, rtol=1e-11, atol=1e-14)
        np.testing.assert_allclose(f(mixture, sp.csr_array(X)), expected, rtol=1e-11, atol=1e-14)
        axes = {"drop_axis": 1} if expected.ndim == 1 else {"chunks": (blocks.chunks[0], (3,))}
        lazy = blocks.map_blocks(
            partial(f, mixture), dtype=expected.dtype, meta=expected[:0], **axes
        )
        np.testing.assert_allclose(lazy.compute(scheduler="sync"), expected, rtol=1e-11, atol=1e-14)


@pytest.mark.usefixtures("quiet")
def test_score_samples__and_fit_hold_tiles_only() -> None:
    n, d, k = 20_000, 5, 200  # n k d numbers are 160 MB, n k are 32 MB, X is 0.8 MB
    X = np.random.default_rng(0).normal(size=(n, d))
    fit = partial(fit_mixture, n_components=k, covariance_type="diag", max_iter=1)
    start = fit(X[:500], init_params="random_from_data")

    def peak(f: Any) -> float:
        tracemalloc.start()
        try:
            f()
            return tracemalloc.get_traced_memory()[1] / 2**20
        finally:
            tracemalloc.stop()

    assert peak(lambda: score_samples(start.mixture, X)) < 12
    assert peak(lambda: assign(start.mixture, X)) < 12
    assert peak(lambda: fit(X, warm_start=start)) < 16


@kinds
def test_score_samples__empty_blocks_and_single_rows(kind: CovarianceType) -> None:
    mixture = mixture_of(kind)
    empty = np.empty((0, 2), dtype=np.float32)

    assert score_samples(mixture, empty).shape == assign(mixture, empty).shape == (0,)
    assert responsibilities(mixture, empty).shape == (0, 3)
    assert log_likelihood(mixture, empty) == 0.0
    assert score_samples(mixture, np.zeros((1, 2))).dtype == np.float64


@kinds
def test_responsibilities__of_rows_beyond_float64_are_the_weights(kind: CovarianceType) -> None:
    mixture = mixture_of(kind)
    X = np.array([[0.0, 0.0], [1e200, -1e200], [1e308, 1e308], [1e140, 0.0]])

    shares = responsibilities(mixture, X)
    np.testing.assert_array_equal(shares[1:3], np.tile(mixture.weights, (2, 1)))
    np.testing.assert_allclose(shares.sum(axis=1), 1.0)
    assert np.isneginf(score_samples(mixture, X)).tolist() == [False, True, True, False]


def test_score_samples__overflow_of_either_sign_is_no_nan() -> None:
    precisions = np.array([[[100.0, -99.0], [-99.0, 100.0]]])
    mixture = mixture_from_precisions("full", np.ones(1), np.zeros((1, 2)), precisions)
    X = np.full((1, 2), 1e308)  # its product with the factor is inf - inf

    assert score_samples(mixture, X) == -np.inf
    assert responsibilities(mixture, X) == 1.0


@given(x=st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=2), kind=st.sampled_from(KINDS))
def test_responsibilities__sum_to_one(x: list[float], kind: CovarianceType) -> None:
    shares = responsibilities(mixture_of(kind), np.array([x]))

    assert (shares >= 0.0).all()
    np.testing.assert_allclose(shares.sum(), 1.0, rtol=1e-12)


@kinds
def test_sample__has_the_moments_of_the_mixture(kind: CovarianceType) -> None:
    mixture, n = mixture_of(kind), 60_000
    X, labels = sample(mixture, n, random_state=1)

    assert X.shape == (n, 2)
    assert labels.dtype == np.int64
    np.testing.assert_allclose(np.bincount(labels) / n, mixture.weights, atol=5 * 0.5 / n**0.5)
    for k, covariance in enumerate(dense_covariances(mixture)):
        rows = X[labels == k]
        error = 6 * np.trace(covariance) / len(rows) ** 0.5
        np.testing.assert_allclose(np.cov(rows.T), covariance, atol=error)
        error = 6 * (np.trace(covariance) / len(rows)) ** 0.5
        np.testing.assert_allclose(rows.mean(axis=0), mixture.means[k], atol=error)


def test_sample__repeats_with_a_seed() -> None:
    mixture = mixture_of("full")
    np.testing.assert_array_equal(
        sample(mixture, 9, random_state=3)[0], sample(mixture, 9, random_state=3)[0]
    )
    assert not np.array_equal(sample(mixture)[0], sample(mixture)[0])
    with pytest.raises(InvalidInputError, match="n_samples must be at least 1"):
        sample(mixture, 0)


def test_as_covariance_type__returns_what_it_knows() -> None:
    assert [as_covariance_type(kind) for kind in KINDS] == list(KINDS)
