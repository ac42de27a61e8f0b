"""The program ``daskcoreset``: its start, errors and exit codes.

Exit codes are 0 for success, 1 for a failure or a closed pipe, 2 for wrong usage and 130 for an
interruption. An error is one line on the error stream. With ``--debug`` it is the traceback.
"""

from __future__ import annotations

import os
import sys
import traceback
import warnings
from argparse import Namespace
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress

from daskcoreset.cli.commands import parser
from daskcoreset.cli.options import UsageError
from daskcoreset.errors import CoresetError, CoresetWarning

FAILURE = 1
WRONG_USAGE = 2
INTERRUPTED = 130  # 128 + SIGINT, as shells say it

_DEBUG = "--debug"


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line.

    Parameters
    ----------
    argv : sequence of str, optional
        Arguments without the name of the program. Default: those of the process.

    Returns
    -------
    int
        The exit code.
    """
    arguments = list(sys.argv[1:] if argv is None else argv)
    given = Namespace()
    try:
        with _warnings_in_one_line():
            # It says how errors look, whatever the command, so it may stand anywhere.
            parser().parse_args([one for one in arguments if one != _DEBUG], given)
            given.run(given)
            if sys.stdout is not None:
                sys.stdout.flush()  # here, where a reader that went away can be handled
    except BrokenPipeError:
        _forget_output()
        return FAILURE
    except SystemExit:  # the help or the version was printed
        return 0
    # Nothing but these two may leave a program as a traceback that nobody asked for.
    except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001
        if _DEBUG in arguments:
            traceback.print_exception(error)
        else:
            _say(f"error: {_message(error, given)}")
        codes = {KeyboardInterrupt: INTERRUPTED, UsageError: WRONG_USAGE}
        return codes.get(type(error), FAILURE)
    return 0


def _message(error: BaseException, given: Namespace) -> str:
    if isinstance(error, KeyboardInterrupt):
        return "interrupted"
    if isinstance(error, UsageError):
        return str(error)
    if isinstance(error, CoresetError):
        if error.argument not in vars(given):
            return str(error)
        remedy = f"; {error.remedy}" if error.remedy else ""
        return f"--{error.argument.replace('_', '-')}: {error.problem}{remedy}"
    # An error from elsewhere may say little without its name: KeyError('X') is "'X'".
    return f"{type(error).__name__}: {error} (--debug shows the traceback)"


def _say(text: str) -> None:
    # Without an error stream there is nobody to tell.
    with suppress(OSError, AttributeError):
        sys.stderr.write(" ".join(text.split()) + "\n")
        sys.stderr.flush()


def _forget_output() -> None:
    """Keep Python from flushing into a closed pipe when it exits, which would print an error."""
    with suppress(OSError, ValueError, AttributeError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)


@contextmanager
def _warnings_in_one_line() -> Iterator[None]:
    def show(message: Warning | str, *_: object, **__: object) -> None:
        _say(f"warning: {message}")

    with warnings.catch_warnings():
        warnings.simplefilter("always", CoresetWarning)
        warnings.showwarning = show
        yield
