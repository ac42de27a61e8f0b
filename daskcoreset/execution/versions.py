"""Versions of packages: the workers of a cluster must have those of the client."""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from typing import Any, TypeAlias
from weakref import WeakKeyDictionary

from daskcoreset.core.deadline import in_time
from daskcoreset.errors import WorkerMismatchError

Versions: TypeAlias = Mapping[str, str | None]

# Workers that were compared, by their client.
_compared: WeakKeyDictionary[Any, set[str]] = WeakKeyDictionary()


@cache
def own_versions() -> Versions:
    """Return the packages that decide bits, and their versions in this process."""
    versions: dict[str, str | None] = dict.fromkeys(("daskcoreset", "numpy", "numba", "dask"))
    for package in versions:
        with suppress(PackageNotFoundError):
            versions[package] = version(package)
    return versions


def check_workers(client: Any) -> None:
    """Compare the workers of a client that were not compared before with this process."""
    compared = _compared.setdefault(client, set())

    def ask() -> Any:
        known = compared.issuperset(client.nthreads())
        return {} if known else client.get_versions(packages=list(own_versions()))["workers"]

    for worker, facts in in_time(ask, lambda: "the scheduler has not answered").items():
        _compare(own_versions(), facts["packages"], f"worker {worker}")
        compared.add(worker)


def check_here(expected: Versions | None) -> None:
    """Compare this process with the client that defined a task: it may have joined later."""
    if expected is not None:
        _compare(
            expected, own_versions(), f"process {os.getpid()} on host {socket.gethostname()!r}"
        )


def _compare(expected: Versions, found: Versions, name: str) -> None:
    for package, wanted in expected.items():
        if found.get(package) != wanted:
            raise WorkerMismatchError(
                f"{name} has {package} {found.get(package)}, and the client has {wanted}",
                remedy="install the same versions for client and workers",
            )
