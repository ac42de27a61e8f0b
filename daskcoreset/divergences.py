"""Bregman divergences, and the table of their names."""

from daskcoreset.solvers.divergences import *  # noqa: F403
from daskcoreset.solvers.divergences import __all__  # noqa: F401 - of this file, too
