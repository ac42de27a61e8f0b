"""numba with all that it imports when its first loop is called; imported by `import_whole`."""

from __future__ import annotations

from contextlib import suppress

import numba

# What these import, an interrupt in the first call would leave in halves, of which a second import
# says that they are registered already. The names are numba's own: nothing else needs them.
with suppress(ImportError, AttributeError):
    from numba.core.registry import cpu_target

    cpu_target.typing_context.refresh()
    cpu_target.target_context.refresh()

__all__ = ["numba"]
