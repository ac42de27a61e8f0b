"""What the compiled loops do, in NumPy: the reading of the formulas that tests compare with."""

from __future__ import annotations

from typing import Any

import numpy as np

from daskcoreset.core.rowwise_numba import WHOLE_UNIT
from daskcoreset.core.typing import AnyArray, FloatArray, IndexArray, MaskArray


def column_moments(
    points: AnyArray, weights: FloatArray, tile_rows: int, mean: FloatArray, m2: FloatArray
) -> float:
    total = 0.0
    tile_rows *= 64  # a loop turn costs far more here
    for start in range(0, len(points), tile_rows):
        tile = points[start : start + tile_rows].astype(np.float64)
        u = weights[start : start + tile_rows]
        weight = float(u.sum())
        if weight == 0.0:
            continue
        # A row without weight may hold anything, such as 1e20 for a missing value, and a light one
        # lie far away.
        reference = tile[int(u.argmax())].copy()
        tile -= reference
        shift = np.einsum("i,ij->j", u, tile) / weight
        tile -= shift
        spread = np.einsum("i,ij,ij->j", u, tile, tile)
        share = weight / (total + weight)
        delta = reference + shift - mean
        near, rest = (reference + shift, share - 1.0) if weight > total else (mean, share)
        mean[:] = near + delta * rest
        m2 += spread + delta * delta * (total * share)
        total += weight
    return total


def squared_distances(points: AnyArray, center: FloatArray, out: FloatArray) -> None:
    tile_rows = 2**19 // points.shape[1]
    for start in range(0, len(points), tile_rows):
        gap = points[start : start + tile_rows] - center
        np.einsum("ij,ij->i", gap, gap, out=out[start : start + tile_rows])


def first_beyond(values: AnyArray, most: Any) -> int:
    for start in range(0, len(values), 64 * 8192):
        bad = ~(abs(values[start : start + 64 * 8192]) <= most)
        if bad.any():
            return start + int(bad.argmax())
    return -1


def walk(inclusion: FloatArray, uniforms: FloatArray, rows: IndexArray) -> int:
    found = _walked(inclusion, uniforms)
    rows[: len(found)] = found
    return len(found)


def _walked(inclusion: FloatArray, uniforms: FloatArray) -> list[int]:
    # The loop is sequential, whoever runs it: without numba it is the same loop, interpreted.
    rows: list[int] = []
    before, unit, position, target, taken = 0, 0, 0.0, float(uniforms[0]), False
    positive = np.flatnonzero(inclusion > 0.0)
    for i, share in zip(positive.tolist(), inclusion[positive].tolist(), strict=True):
        position += share
        if not taken and (position > target or position >= 1.0):
            rows.append(i)
            taken = True
        if position < 1.0:
            continue
        position, unit = position - 1.0, unit + 1
        if unit == len(uniforms):
            return rows
        crossed, before, taken = taken and rows[-1] == i, len(rows), False
        uniform = float(uniforms[unit])
        chance = 0.0 if crossed else position / (1.0 - share + position)
        if uniform < chance:
            rows.append(i)
            taken = True
        elif chance > 0.0:
            uniform = (uniform - chance) / (1.0 - chance)
        target = position + uniform * (1.0 - position)
    if position < WHOLE_UNIT:
        del rows[before:]
    elif position > 1.0 - WHOLE_UNIT and not taken and rows[-1:] != [int(positive[-1])]:
        rows.append(int(positive[-1]))
    return rows


def bisection_order(points: AnyArray, mass: FloatArray, max_aligned: float) -> IndexArray:
    """Bisect rows that are not certain down to one draw."""
    last = np.zeros(points.shape[1])
    order: list[IndexArray] = [np.flatnonzero(mass >= 1.0)]
    stack, placed = [np.flatnonzero(mass < 1.0)], 0.0
    while stack:
        rows = stack.pop()
        halves = _halves(points, mass, placed, rows, last, max_aligned)
        if halves is None:
            order.append(rows)
            placed += float(mass[rows].sum())
            last = points[rows[0]].astype(np.float64) if len(rows) else last
            continue
        stack += halves[::-1]
    return np.concatenate(order)


def _halves(  # noqa: PLR0917 - as the compiled loop
    points: AnyArray,
    mass: FloatArray,
    placed: float,
    rows: IndexArray,
    last: FloatArray,
    max_aligned: float,
) -> list[IndexArray] | None:
    if len(rows) <= 1 or mass[rows].sum() <= 1.3:
        return None
    sample = rows
    if len(rows) > 128:
        golden_ratio = 0.6180339887498949
        sample = rows[((0.5 + golden_ratio * np.arange(64)) % 1 * len(rows)).astype(int)]
    u = mass[sample] / mass[sample].sum()
    reference = points[rows[0]].astype(np.float64)
    gaps = points[sample] - reference
    mean = np.einsum("i,ij->j", u, gaps)
    squares = np.einsum("i,ij,ij->j", u, gaps, gaps)
    variances = np.where(squares - mean**2 > 1e-12 * squares, squares - mean**2, 0.0)
    widest = int(variances.argmax())
    if variances[widest] <= 0:
        return None
    axis = np.einsum("i,i,ij->j", u, gaps[:, widest] - mean[widest], gaps - mean)
    axis /= np.abs(axis).max()
    if np.einsum("j,j->", axis, last - reference - mean) > 0:
        axis = -axis
    value = np.einsum("ij,j->i", points[rows] - reference - mean, axis)
    if len(rows) <= 24:
        by_value = np.argsort(value, kind="stable")
        rows, value = rows[by_value], value[by_value]
    low, high = value.min(), value.max()
    cut = 0.0 if low <= 0.0 < high else low
    near = value <= _cut(mass[rows], placed, value, cut, max_aligned)
    return None if near.all() else [rows[near], rows[~near]]


def _cut(
    mass: FloatArray, placed: float, value: FloatArray, cut: float, max_aligned: float
) -> float:
    total = float(mass.sum())
    target = np.floor(placed + mass[value <= cut].sum() + 0.5)
    if total > max_aligned or not placed + WHOLE_UNIT < target < placed + total - WHOLE_UNIT:
        return cut
    by_value = np.argsort(value, kind="stable")
    gaps = np.abs(placed + np.cumsum(mass[by_value])[:-1] - target)
    gaps[value[by_value[:-1]] >= value[by_value[1:]]] = np.inf
    return float(value[by_value[gaps.argmin()]])


def kmeans_plus_plus(  # noqa: PLR0917 - as the compiled loop takes them
    points: AnyArray,
    weights: FloatArray,
    coins: FloatArray,
    known: int,
    labels: IndexArray,
    distances: FloatArray,
) -> IndexArray:
    chosen: list[int] = []
    for label, coin in enumerate(coins, start=known):
        shares = weights.copy()
        if label:  # a row without weight may lie at any distance
            np.multiply(weights, distances, out=shares, where=weights > 0.0)
        running = np.cumsum(shares)
        if running[-1] == 0:
            break
        target = min(coin * running[-1], np.nextafter(running[-1], 0.0))
        row = int(np.searchsorted(running, target, side="right"))
        chosen.append(row)
        nearest_center(points, points[[row]].astype(np.float64), label, labels, distances)
    return np.array(chosen, dtype=np.int64)


def nearest_center(
    points: AnyArray, centers: AnyArray, first: int, labels: IndexArray, distances: FloatArray
) -> None:
    for label, center in enumerate(centers, start=first):
        gaps = points - center
        squares = np.einsum("ij,ij->i", gaps, gaps)
        nearer = squares < distances
        labels[nearer] = label
        distances[nearer] = squares[nearer]


def cell_means(  # noqa: PLR0917 - as the compiled loop takes them
    points: AnyArray,
    weights: FloatArray,
    labels: IndexArray,
    centers: FloatArray,
    mass: FloatArray,
    shift: FloatArray,
) -> None:
    k = len(centers)
    mass += np.bincount(labels, weights=weights, minlength=k)
    for j in range(centers.shape[1]):
        moved = weights * (points[:, j] - centers[labels, j])
        shift[:, j] += np.bincount(labels, weights=moved, minlength=k)


def own_distances(
    points: AnyArray, labels: IndexArray, centers: FloatArray, distances: FloatArray
) -> None:
    gaps = points - centers[labels]
    np.einsum("ij,ij->i", gaps, gaps, out=distances)


def cell_costs(
    weights: FloatArray, labels: IndexArray, distances: FloatArray, costs: FloatArray
) -> None:
    inner = np.where(weights > 0.0, weights, 0.0) * np.where(weights > 0.0, distances, 0.0)
    costs += np.bincount(labels, weights=inner, minlength=len(costs))


def transfer_gains(  # noqa: PLR0917 - as the compiled loops have it
    points: AnyArray,
    weights: FloatArray,
    labels: IndexArray,
    centers: FloatArray,
    mass: FloatArray,
    counts: IndexArray,
) -> FloatArray:
    """Return what the move of every row to every cell would gain, of shape (n, k)."""
    u, own = weights[:, np.newaxis], labels[:, np.newaxis]
    gaps = points[:, np.newaxis] - centers
    squares = np.einsum("ikj,ikj->ik", gaps, gaps)
    rest = mass[labels] - weights
    stays = (counts[labels] < 2) | (rest <= 1e-6 * mass[labels])
    factor = np.where(stays, 0.0, mass[labels] / np.where(stays, 1.0, rest))
    saved = factor[:, np.newaxis] * u * np.take_along_axis(squares, own, 1)
    gains = saved - mass / (mass + u) * u * squares
    gains[gains <= 1e-9 * saved] = 0.0
    np.put_along_axis(gains, own, 0.0, 1)
    return np.asarray(gains)


def movable_rows(  # noqa: PLR0917 - as the compiled loop takes them
    points: AnyArray,
    weights: FloatArray,
    labels: IndexArray,
    centers: FloatArray,
    mass: FloatArray,
    counts: IndexArray,
    live: MaskArray,
) -> IndexArray:
    gains = transfer_gains(points, weights, labels, centers, mass, counts)
    gains[:, ~live] *= live[labels][:, np.newaxis]
    return np.flatnonzero((gains > 0.0).any(axis=1))


def move_rows(  # noqa: PLR0917 - as the compiled loop takes them
    points: AnyArray,
    weights: FloatArray,
    rows: IndexArray,
    labels: IndexArray,
    centers: FloatArray,
    mass: FloatArray,
    counts: IndexArray,
    live: MaskArray,
) -> tuple[int, float]:
    live[:] = False
    moved, total = 0, 0.0
    for i in rows:
        one = slice(i, i + 1)
        gains = transfer_gains(points[one], weights[one], labels[one], centers, mass, counts)[0]
        to, cell = int(gains.argmax()), labels[i]
        if gains[to] > 0.0:
            both = np.array([cell, to])
            change = weights[i] * np.array([-1.0, 1.0])
            mass[both] += change
            counts[both] += -1, 1
            centers[both] += (change / mass[both])[:, np.newaxis] * (points[i] - centers[both])
            labels[i], live[both] = to, True
            moved, total = moved + 1, total + float(gains[to])
    return moved, total


def _measures(points: AnyArray, center: FloatArray, boxes: bool) -> FloatArray:
    gaps = np.abs(points.astype(np.float64) - center)
    return np.asarray(gaps.max(axis=1) if boxes else np.einsum("ij,ij->i", gaps, gaps))


def open_cells(  # noqa: PLR0917 - as the compiled loop takes them
    points: AnyArray,
    start: int,
    limit: float,
    boxes: bool,
    centers: FloatArray,
    count: int,
    rows: IndexArray,
) -> tuple[int, int]:
    left = np.arange(start, len(points))
    for center in centers[:count]:
        left = left[_measures(points[left], center, boxes) > limit]
    while len(left):
        first = int(left[0])
        if count == len(centers):
            return count, first
        centers[count] = points[first]
        rows[count] = first
        count += 1
        left = left[_measures(points[left], centers[count - 1], boxes) > limit]
    return count, len(points)


def approach(points: AnyArray, center: FloatArray, boxes: bool, measures: FloatArray) -> None:
    np.minimum(measures, _measures(points, center, boxes), out=measures)


def _slope_of(z: float, shape: FloatArray) -> float:
    low, high, scale, mu, linear = shape
    if linear:
        return -1.0 if z <= 1.0 else 0.0
    return float(2.0 * scale * (min(z - low, 0.0) + mu * max(z - high, 0.0)))


def reduce_variance(  # noqa: PLR0917 - as the compiled loop takes them
    values: FloatArray,
    cells: IndexArray,
    signs: FloatArray,
    known: FloatArray,
    order: IndexArray,
    shift: FloatArray,
    gram: FloatArray,
    numbers: FloatArray,
    shape: FloatArray,
    beta: FloatArray,
) -> None:
    lam, eta, radius = numbers
    image, drift = gram @ beta, gram @ shift
    for i in order:
        a = signs[i] * _slope_of(signs[i] * float(values[i] @ beta), shape)
        push = eta * lam * (a - known[i])
        beta *= 1.0 - eta
        beta -= eta * shift
        beta[cells[i]] -= push
        image *= 1.0 - eta
        image -= eta * drift + push * gram[cells[i]]
        _project(beta, image, radius)


def reduce_variance_in_span(  # noqa: PLR0917 - as the compiled loop takes them
    values: FloatArray,
    signs: FloatArray,
    known: FloatArray,
    order: IndexArray,
    shift: FloatArray,
    numbers: FloatArray,
    shape: FloatArray,
    gamma: FloatArray,
) -> None:
    lam, eta, radius = numbers
    for i in order:
        a = signs[i] * _slope_of(signs[i] * float(values[i] @ gamma), shape)
        gamma *= 1.0 - eta
        gamma -= eta * shift + eta * lam * (a - known[i]) * values[i]
        _project(gamma, gamma.copy(), radius)


def average(  # noqa: PLR0917 - as the compiled loop takes them
    values: FloatArray,
    cells: IndexArray,
    signs: FloatArray,
    order: IndexArray,
    gram: FloatArray,
    numbers: FloatArray,
    shape: FloatArray,
    beta: FloatArray,
    total: FloatArray,
) -> None:
    lam, radius, taken, burn_in = numbers
    image = gram @ beta
    for step, i in enumerate(order):
        t = taken + step + 1.0
        push = lam / t * signs[i] * _slope_of(signs[i] * float(values[i] @ beta), shape)
        beta *= 1.0 - 1.0 / t
        beta[cells[i]] -= push
        image *= 1.0 - 1.0 / t
        image -= push * gram[cells[i]]
        _project(beta, image, radius)
        if t > burn_in:
            total += beta


def _project(beta: FloatArray, image: FloatArray, radius: float) -> None:
    norm = float(beta @ image)
    if norm > radius * radius:
        beta *= radius / np.sqrt(norm)
        image *= radius / np.sqrt(norm)


def sweep_dual(  # noqa: PLR0917 - as the compiled loop takes them
    gram: FloatArray,
    signs: FloatArray,
    down: FloatArray,
    up: FloatArray,
    band: FloatArray,
    order: IndexArray,
    alpha: FloatArray,
    image: FloatArray,
) -> None:
    for i in order:
        rest = signs[i] * image[i] - gram[i, i] * alpha[i]
        if rest < band[0]:
            new = (band[0] - rest) / (gram[i, i] + down[i])
        elif rest > band[1]:
            new = (band[1] - rest) / (gram[i, i] + up[i])
        else:
            new = 0.0
        if new != alpha[i]:
            image += ((new - alpha[i]) * signs[i]) * gram[i]
            alpha[i] = new


def nearest(  # noqa: PLR0917 - as the compiled loop takes them
    points: AnyArray,
    columns: FloatArray,
    order: IndexArray,
    axis: int,
    radius: float,
    limit: float,
    boxes: bool,
    labels: IndexArray,
    measures: FloatArray,
) -> None:
    """Go through all core points, in the order in which they were opened."""
    del axis, radius, limit
    gaps = np.abs(points[:, :, np.newaxis].astype(np.float64) - columns)
    found = gaps.max(axis=1) if boxes else np.einsum("ijk,ijk->ik", gaps, gaps)
    opened = np.argsort(order)
    first = found[:, opened].argmin(axis=1)
    labels[:] = first
    measures[:] = found[np.arange(len(points)), opened[first]]


def inner_products(points: AnyArray, vectors: FloatArray, out: FloatArray) -> None:
    """Sum products of rows in float64."""
    np.einsum("ij,kj->ik", points.astype(np.float64), vectors, out=out)


LOOPS: dict[str, tuple[str, ...]] = {
    "daskcoreset.core.rowwise_numba": (
        "column_moments", "squared_distances", "first_beyond", "walk", "inner_products",
    ),
    "daskcoreset.core.ordering_numba": ("bisection_order",),
    "daskcoreset.solvers.kmeans_numba": (
        "kmeans_plus_plus", "nearest_center", "cell_means", "own_distances",
        "cell_costs",
    ),
    "daskcoreset.solvers.hartigan_numba": ("movable_rows", "move_rows"),
    "daskcoreset.constructions.coverage.metric_numba": (
        "open_cells", "approach", "nearest",
    ),
    "daskcoreset.estimators.kernel.sgd_numba": (
        "reduce_variance", "reduce_variance_in_span", "average", "sweep_dual",
    ),
}  # fmt: skip


def use_plain_loops(monkeypatch: Any) -> None:
    """Let the package run these loops in place of the compiled ones."""
    for module, names in LOOPS.items():
        for name in names:
            monkeypatch.setattr(f"{module}.{name}", globals()[name])
