"""What a refusal says: the argument at fault, what was found, and what to do."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tests.acceptance.face import CoresetError


@contextmanager
def refused(
    argument: str | None, *said: str, kind: type[Exception] = CoresetError
) -> Iterator[pytest.ExceptionInfo[Any]]:
    """Check that the block ends in an error of the library that has the three fields.

    Parameters
    ----------
    argument : str or None
        Of the error; None if it is not compared.
    *said : str
        Parts of the message.
    kind : type
        A built-in class that it is an instance of as well.
    """
    with pytest.raises(CoresetError) as caught:
        yield caught
    error = caught.value
    assert isinstance(error, kind)
    assert argument is None or error.argument == argument, f"{error.argument}: {error}"
    assert str(error) == f"{error.problem}; {error.remedy}."
    missing = [part for part in said if part not in str(error)]
    assert not missing, str(error)
