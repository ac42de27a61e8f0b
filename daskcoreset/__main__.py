"""``python -m daskcoreset``: the command line."""

from __future__ import annotations

import sys

from daskcoreset.cli.main import main

# Worker processes import this module again and must not start the program again.
if __name__ == "__main__":
    sys.exit(main())
