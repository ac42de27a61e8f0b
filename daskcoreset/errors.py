"""Errors and warnings of the library."""

from daskcoreset.core.errors import *  # noqa: F403
from daskcoreset.core.errors import OvertakenError, __all__  # noqa: F401 - of this file, too
