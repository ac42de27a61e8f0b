"""Maximum-margin separators with a certificate, from rows larger than memory."""

from daskcoreset.constructions.margin import *  # noqa: F403
from daskcoreset.constructions.margin import __all__  # noqa: F401 - of this file, too
