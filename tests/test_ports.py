"""Nothing needs a port that another program may have."""

from __future__ import annotations

import socket

import pytest

from tests.conftest import USUAL_PORTS


@pytest.mark.parametrize("port", USUAL_PORTS)
def test_usual_ports__are_taken_while_the_suite_runs(port: int) -> None:
    """So that a scheduler or dashboard which asks for them warns, which is an error here."""
    with socket.socket() as second, pytest.raises(OSError, match="in use"):
        second.bind(("", port))
