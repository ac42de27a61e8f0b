"""Settings of tests of sensitivities, which factorise thousands of small matrices."""

from __future__ import annotations

from tests.tools.threads import one_thread

__all__ = ["one_thread"]
