"""Peak memory of a benchmark, as Linux counts it."""

from __future__ import annotations

from pathlib import Path

__all__ = ["high_water", "reset_high_water"]


def high_water() -> int:
    """Peak resident bytes of this process since the mark was last reset."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * int(next(line for line in lines if line.startswith("VmHWM")).split()[1])


def reset_high_water() -> int:
    """Set the mark to the present size, and return it in bytes."""
    Path("/proc/self/clear_refs").write_text("5")
    return high_water()
