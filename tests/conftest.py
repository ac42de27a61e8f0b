"""Settings of the whole test suite."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

# No deadline: the first call of a kernel compiles it, which takes seconds once.
settings.register_profile("default", deadline=None, max_examples=50)
# The same examples on every run, so that a red build can be repeated, and more of them.
settings.register_profile(
    "ci",
    deadline=None,
    derandomize=True,
    max_examples=200,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],  # a loaded machine is no fault of the code
)
settings.load_profile("ci" if os.environ.get("CI") else "default")
