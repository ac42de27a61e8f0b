import numpy as np
import scipy.sparse as sp

from daskcoreset.solvers.kmeans import unit_centers

RNG = np.random.default_rng(0)


def test_unit_centers__are_the_best_of_their_cells() -> None:
    rows = RNG.normal(size=(500, 3)) + np.array([4.0, 0.0, 0.0])
    rows[250:] *= [-1.0, 1.0, 1.0]
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    weights = RNG.uniform(0.5, 2.0, 500)
    start = np.array([[0.5, 0.1, 0.0], [-0.5, 0.0, 0.1]])
    found = unit_centers(rows, weights, start)
    sums = [
        (weights[part, np.newaxis] * rows[part]).sum(axis=0) for part in np.split(np.r_[:500], 2)
    ]
    np.testing.assert_allclose(found, [s / np.linalg.norm(s) for s in sums])
    np.testing.assert_allclose(unit_centers(sp.csr_array(rows), weights, start), found)
    np.testing.assert_allclose(unit_centers(rows, weights, start, 0)[0], [5, 1, 0] / np.sqrt(26))


def test_unit_centers__of_opposite_rows_and_of_no_row() -> None:
    rows = np.array([[0.0, 1.0], [0.0, -1.0]])
    np.testing.assert_array_equal(unit_centers(rows, np.ones(2), np.zeros((1, 2))), [[1.0, 0.0]])
    three = unit_centers(rows, np.ones(2), np.array([[0.0, 2.0], [0.1, -2.0], [3.0, 0.0]]))
    np.testing.assert_allclose(three, [[0.0, 1.0], [0.0, -1.0], [1.0, 0.0]])
