"""The inner loops of stochastic gradient methods on core points, compiled by numba.

`solvers` and `odm` beside this file import it when a loop is first needed: importing numba
takes half a second.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from daskcoreset.core.jit_numba import jit
from daskcoreset.core.typing import FloatArray, IndexArray


@partial(jit, forceinline=True)  # else its machine code may differ when it comes from a cache
def _slope(z: float, shape: FloatArray) -> Any:  # pragma: no cover - runs compiled
    """Return the derivative of a loss; `shape` is (low, high, scale, mu, linear)."""
    if shape[4] > 0.0:
        return -1.0 if z <= 1.0 else 0.0
    if z < shape[0]:
        return 2.0 * shape[2] * (z - shape[0])
    if z > shape[1]:
        return 2.0 * shape[2] * shape[3] * (z - shape[1])
    return 0.0


@jit
def descend(  # noqa: C901, PLR0917 - numba takes arguments by position; one loop an array
    values: FloatArray,
    cells: IndexArray,
    signs: FloatArray,
    anchor: FloatArray,
    shift: FloatArray,
    order: IndexArray,
    lengths: FloatArray,
    gram: FloatArray,
    numbers: FloatArray,
    shape: FloatArray,
    beta: FloatArray,
    total: FloatArray,
) -> None:  # pragma: no cover - runs compiled
    """Take gradient steps; `beta` ends as the last iterate, and iterates are added to `total`.

    A step of length eta at a row of cell c goes from w to the projection of ``w - eta (w + lambda
    (a - anchor) phi(c) + shift)``. `numbers` are lambda, the radius of the ball, and the number of
    steps whose iterates are not added.
    """
    lam, radius, skipped = numbers[0], numbers[1], numbers[2]
    r = beta.shape[0]
    image, drift = np.zeros(r), np.zeros(r)  # K beta, K shift
    for i in range(r):
        for j in range(r):
            image[i] += gram[i, j] * beta[j]
            drift[i] += gram[i, j] * shift[j]
    for step in range(order.shape[0]):
        i, eta = order[step], lengths[step]
        c = cells[i]
        z = 0.0
        for j in range(r):
            z += values[i, j] * beta[j]
        push = eta * lam * (signs[i] * _slope(signs[i] * z, shape) - anchor[i])
        for j in range(r):
            beta[j] = (1.0 - eta) * beta[j] - eta * shift[j]
            image[j] = (1.0 - eta) * image[j] - eta * drift[j] - push * gram[c, j]
        beta[c] -= push
        norm = 0.0
        for j in range(r):
            norm += beta[j] * image[j]
        if norm > radius * radius:
            factor = radius / np.sqrt(norm)
            for j in range(r):
                beta[j] *= factor
                image[j] *= factor
        if step >= skipped:
            for j in range(r):
                total[j] += beta[j]


@jit
def sweep_dual(  # noqa: PLR0917 - numba takes arguments by position
    gram: FloatArray,
    signs: FloatArray,
    down: FloatArray,
    up: FloatArray,
    band: FloatArray,
    order: IndexArray,
    alpha: FloatArray,
    image: FloatArray,
) -> None:  # pragma: no cover - runs compiled
    """Minimise the dual objective over one coefficient after another; see `odm`."""
    for step in range(order.shape[0]):
        i = order[step]
        from_others = signs[i] * image[i] - gram[i, i] * alpha[i]
        new = 0.0
        if from_others < band[0]:
            new = (band[0] - from_others) / (gram[i, i] + down[i])
        elif from_others > band[1]:
            new = (band[1] - from_others) / (gram[i, i] + up[i])
        if new != alpha[i]:
            move = (new - alpha[i]) * signs[i]
            for j in range(image.shape[0]):
                image[j] += move * gram[i, j]
            alpha[i] = new
