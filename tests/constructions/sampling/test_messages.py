"""Reports of blocks merge in the order of the blocks."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from daskcoreset.constructions.sampling.messages import BlockReport, merge_reports


def test_combine__merges_in_the_order_of_the_blocks() -> None:
    # Summaries that do not commute, such as lists, and parts without one.
    concatenating: Any = SimpleNamespace(merge=lambda first, second: first + second)
    parts = [BlockReport({i: 1.0}, text) for i, text in enumerate(["a", None, "b", "c"])]

    assert merge_reports(concatenating, parts).summary == "abc"
    assert merge_reports(concatenating, parts[1:2]).summary is None
