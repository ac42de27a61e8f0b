"""Fixtures of the acceptance tests."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.acceptance.tools.trees import Recorder


@pytest.fixture
def calls() -> Iterator[list[Any]]:
    """The calls of a `Recorder`."""
    Recorder.calls.clear()
    yield Recorder.calls
    Recorder.calls.clear()
