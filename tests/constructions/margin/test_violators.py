"""The choice of diverse violators, step by step."""

from __future__ import annotations

import numpy as np

from daskcoreset.constructions.margin.violators import choose_diverse


def test_diverse__equals_steps_of_explicit_vectors() -> None:
    rng = np.random.default_rng(3)
    for _ in range(20):
        z, x = rng.normal(size=(30, 4)), rng.normal(size=4) * 3
        found = choose_diverse(z @ x, z @ z.T, float(x @ x), 0.9, 8)
        expected: list[int] = []
        while len(expected) < 8:
            products = z @ x
            products[expected] = np.inf
            worst = int(products.argmin())
            if expected and products[worst] >= 0.9 * float(x @ x):
                break
            expected.append(worst)
            step = float(np.clip((x @ (x - z[worst])) / np.square(x - z[worst]).sum(), 0, 1))
            x = x + step * (z[worst] - x)  # the shortest on the segment
        assert found.tolist() == sorted(expected)
