"""The size of a coreset if none is given: all of few rows, or a default."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

# At most 80 MB, which a solver holds twice.
_FEW_ROWS, _FEW_VALUES = 100_000, 10**7

# Multiplications of a step of k-means. A run of some ten steps takes about a second.
_SHORT_STEP = 10**8


@dataclass(frozen=True)
class SizeRule:
    """The rule for the rows that are taken if no size is given.

    All of n rows with d columns are taken if drawing saves no time:

    - n is at most `size`, or
    - n is at most 100,000, n d at most 10 million, and k-means on all rows is short: n d k is at
      most 100 million, or k-means has several runs on rows that are drawn.

    Attributes
    ----------
    size : int
        Rows that are drawn of many.
    n_clusters : int, default=0
        The clusters k that the coreset is for. 0 if they are unknown.
    several_runs : bool, default=False
        Whether k-means has several runs on rows that are drawn, where all rows get one. With
        `size` of 20,000, or 200 per cluster, these cost as much as one on 100,000 rows.
    """

    size: int
    n_clusters: int = 0
    several_runs: bool = False

    def rows(self, n_rows: int | None, n_features: int) -> int:
        """Return the rows to take. The number of all rows may be unknown before reading.

        Examples
        --------
        >>> rule = SizeRule(10_000, n_clusters=8)
        >>> rule.rows(100_000, 20), rule.rows(100_001, 20), rule.rows(None, 20)
        (100000, 10000, 10000)
        """
        if n_rows is None or n_rows > _FEW_ROWS or n_rows * n_features > _FEW_VALUES:
            return self.size
        step = n_rows * n_features * self.n_clusters
        short = self.several_runs or 0 < step <= _SHORT_STEP
        return max(n_rows, self.size) if short else self.size

    def record(self, n_rows: int, n_features: int, *, all_rows: bool) -> dict[str, Any]:
        """Return the entry of the provenance, of the numbers in the rule and of what it gave."""
        return {
            "rule": "default",
            "n": n_rows,
            "d": n_features,
            "n_clusters": self.n_clusters or None,
            "all_rows": all_rows,
        }
