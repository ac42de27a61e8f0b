"""Pictures of coresets, over the density of their data."""

from daskcoreset.metrics.plot import *  # noqa: F403
from daskcoreset.metrics.plot import __all__  # noqa: F401 - of this file, too
