"""When drawn rows are so few that a plane separates them, whatever they are."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple


class SeparableRows(NamedTuple):
    r"""Rows for every column, an intercept among them, below which a plane is likely to be found.

    Of two for every column half of all labellings are those of a plane, and a model on such rows
    follows the penalty alone. Rows near the plane of a pilot, and among them those that it has
    wrong, then make a plane of their own, worse than that of uniform rows. So do more rows where a
    class is rare.

    Attributes
    ----------
    balanced : float
        Without a rare class.
    rare : float
        With a class that is all but absent; between both in proportion to the share of the rarest.
    share : float
        Share of the weight up to which a class counts as rare.

    Examples
    --------
    >>> few = SeparableRows(2.0, 3.0, 0.1)
    >>> few.number([50.0, 50.0], 9), few.number([95.0, 5.0], 9)
    (20.0, 25.0)

    References
    ----------
    Cover (1965), Geometrical and statistical properties of systems of linear inequalities.
    """

    balanced: float
    rare: float
    share: float

    def number(self, masses: Iterable[float], n_features: int) -> float:
        """Return the rows, by the weights of the classes."""
        masses = list(masses)
        rarity = max(0.0, 1.0 - min(masses) / (self.share * sum(masses)))
        rows = self.balanced + (self.rare - self.balanced) * rarity
        return float(rows * (n_features + 1))
