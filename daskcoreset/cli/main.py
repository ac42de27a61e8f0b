"""The program ``daskcoreset``: its start, errors and exit codes.

Exit codes are 0 for success, 1 for a failure or a closed pipe, 2 for wrong usage and 130 for an
interruption. An error is one line on the error stream. With ``--debug`` it is the traceback.
"""

from __future__ import annotations

import os
import sys
import traceback
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from typing import Any

from daskcoreset.errors import CoresetError, CoresetWarning, MissingDependencyError

FAILURE = 1
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
    all_arguments = list(sys.argv[1:] if argv is None else argv)
    # It says how errors look, whatever the command, so it may stand anywhere.
    arguments = [argument for argument in all_arguments if argument != _DEBUG]
    try:
        with _warnings_in_one_line():
            code = _run(arguments)
            if sys.stdout is not None:
                sys.stdout.flush()  # here, where a reader that went away can be handled
    except BrokenPipeError:
        _forget_output()
        return FAILURE
    # Nothing but these two may leave a program as a traceback that nobody asked for.
    except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001
        return _report(error, arguments, debug=_DEBUG in all_arguments)
    return code


def _run(arguments: list[str]) -> int:
    for package in ("typer", "rich"):
        if find_spec(package) is None:
            raise MissingDependencyError(
                f"the command line needs {package}",
                remedy='pip install "daskcoreset[cli]" brings it',
            )
    import typer

    from daskcoreset.cli.commands import app

    command = typer.main.get_command(app)
    if "_DASKCORESET_COMPLETE" in os.environ:  # a shell asks what may come next
        command(args=arguments, prog_name="daskcoreset")
    try:
        # Not `app()`: it would print errors and end the process in its own way.
        with command.make_context("daskcoreset", arguments) as context:
            command.invoke(context)
    except typer.Exit as end:
        return int(end.exit_code)
    return 0


def _report(error: BaseException, arguments: Sequence[str], *, debug: bool) -> int:
    if debug:
        traceback.print_exception(error)
    elif _typers_message(error) != "":  # which it is where no command was given: that was the help
        _say(f"error: {_message(error, arguments)}")
    if isinstance(error, KeyboardInterrupt):
        return INTERRUPTED
    # Typer's own errors carry their code: 2 for wrong usage.
    return FAILURE if _typers_message(error) is None else int(getattr(error, "exit_code", FAILURE))


def _message(error: BaseException, arguments: Sequence[str]) -> str:
    if isinstance(error, KeyboardInterrupt):
        return "interrupted"
    if (typers_message := _typers_message(error)) is not None:
        context = getattr(error, "ctx", None)
        where = "daskcoreset" if context is None else context.command_path
        return f"{typers_message.rstrip('.')}; see: {where} --help"
    if isinstance(error, CoresetError):
        flag = f"--{error.argument or ''}".replace("_", "-")
        if error.argument and flag in _flags_of(arguments):
            remedy = f"; {error.remedy}" if error.remedy else ""
            return f"{flag}: {error.problem}{remedy}"
        return str(error)
    # An error from elsewhere may say little without its name: KeyError('X') is "'X'".
    return f"{type(error).__name__}: {error} (--debug shows the traceback)"


def _flags_of(arguments: Sequence[str]) -> set[str]:
    """Return the flags of the command that is called."""
    if find_spec("typer") is None:
        return set()
    import typer

    from daskcoreset.cli.commands import app

    command: Any = typer.main.get_command(app)
    for argument in arguments:
        if (below := getattr(command, "commands", {}).get(argument)) is None:
            break
        command = below
    return {flag for parameter in command.params for flag in parameter.opts}


def _typers_message(error: BaseException) -> str | None:
    # By what it can do: the class is click's or, in newer versions of typer, its own.
    message = getattr(error, "format_message", None)
    return None if message is None else str(message())


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
    def show(message: Warning | str, *_: Any, **__: Any) -> None:
        _say(f"warning: {message}")

    with warnings.catch_warnings():
        warnings.simplefilter("always", CoresetWarning)
        warnings.showwarning = show
        yield
