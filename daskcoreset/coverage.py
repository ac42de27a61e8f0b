"""Coverage coresets: core points such that every row is near one."""

from daskcoreset.constructions.coverage import *  # noqa: F403
from daskcoreset.constructions.coverage import __all__  # noqa: F401 - of this file, too
