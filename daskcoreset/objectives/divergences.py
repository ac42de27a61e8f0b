"""Bregman divergences, by the name under which users import them."""

from daskcoreset.solvers.divergences import *  # noqa: F403
from daskcoreset.solvers.divergences import __all__  # noqa: F401 - of this file, too
