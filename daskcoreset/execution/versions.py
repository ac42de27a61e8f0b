"""Versions of packages: the workers of a cluster must have those of the client."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from typing import Any, TypeAlias
from weakref import WeakKeyDictionary

from daskcoreset.core.errors import WorkerMismatchError

Versions: TypeAlias = tuple[tuple[str, str | None], ...]

# The bits of results depend on these.
_PACKAGES = ("daskcoreset", "numpy", "numba", "scipy")

# Workers that were compared, by their client.
_compared: WeakKeyDictionary[Any, set[str]] = WeakKeyDictionary()


@cache
def own_versions() -> Versions:
    """Return the packages that decide bits, and their versions in this process."""
    versions: dict[str, str | None] = dict.fromkeys(_PACKAGES)
    for package in _PACKAGES:
        with suppress(PackageNotFoundError):
            versions[package] = version(package)
    return tuple(versions.items())


def check_workers(client: Any, ask: Callable[..., Any]) -> None:
    """Compare the workers of a client that were not compared before with this process.

    Parameters
    ----------
    client : distributed.Client
    ask : callable
        ``ask(client, method, *args, **kwargs)`` calls a method of the client, and waits.

    Raises
    ------
    WorkerMismatchError
        If a worker has another version of a package, or none.
    """
    compared = _compared.setdefault(client, set())
    if compared.issuperset(ask(client, client.nthreads)):
        return
    answer = ask(client, client.get_versions, packages=list(_PACKAGES))
    for worker, facts in answer["workers"].items():
        _compare(own_versions(), facts["packages"], f"worker {worker}")
        compared.add(worker)


def check_here(expected: Versions | None) -> None:
    """Compare this process with the client that defined a task.

    Raises
    ------
    WorkerMismatchError
        If this process has another version of a package, or none.
    """
    if expected is not None and expected != own_versions():
        process = f"process {os.getpid()} on host {socket.gethostname()!r}"
        _compare(expected, dict(own_versions()), process)


def _compare(expected: Versions, found: Mapping[str, str | None], name: str) -> None:
    for package, wanted in expected:
        if found.get(package) != wanted:
            raise WorkerMismatchError(
                f"{name} has {package} {found.get(package)}, and the client has {wanted}",
                argument=name,
                remedy="install the same versions for client and workers",
            )
