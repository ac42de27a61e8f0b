"""The size of a coreset, by theory and by search."""

from daskcoreset.metrics.sizing import *  # noqa: F403
from daskcoreset.metrics.sizing import __all__  # noqa: F401 - of this file, too
