"""Users, passwords, queries and fragments of URLs: never left in a name or a message."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from daskcoreset import CoresetTree, build, datasets
from daskcoreset.core.errors import CoresetError, CoresetWarning
from daskcoreset.core.secrets import without_secrets

MARK = "S3CRET"
TEXT = st.text(st.characters(codec="utf-8", exclude_characters="/?#@", exclude_categories=["Cc"]))
RAW = st.text(st.characters(codec="utf-8", exclude_categories=["Cc"]))


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("s3://bucket/a/b.parquet", "s3://bucket/a/b.parquet"),
        ("s3://key:secret@bucket/x", "s3://bucket/x"),
        ("https://host:90/x.npy?X-Amz-Signature=1#f", "https://host:90/x.npy"),
        ("https://me@host", "https://host"),
        ("https://[::1]:90/x", "https://[::1]:90/x"),
        ("ftp://me:pa@ss@host/x", "ftp://host/x"),
        ("https://me:pa/ss@host/x", "https://..."),
        ("simplecache::https://me:pw@host/x?y", "simplecache::https://host/x"),
        ("zip://a.npy::s3://k:s@b/x.zip", "zip://a.npy::s3://b/x.zip"),
        ("/data/me@home?/x.npy", "/data/me@home?/x.npy"),
        ("memory://a/b", "memory://a/b"),
    ],
)
def test_without_secrets__of_urls(url: str, expected: str) -> None:
    assert without_secrets(url, url) == expected
    assert without_secrets(f"no access to '{url}', try again") == (
        f"no access to '{expected}', try again"
    )


@given(user=TEXT, word=TEXT, token=RAW, name=st.sampled_from(["x.zarr", "a/b.npy", ""]))
@example(user="me", word="p w'\"<", token="a b'@\"#?/x", name="x.zarr")  # noqa: S106 - of no server
def test_without_secrets__nothing_of_them_is_left(
    user: str, word: str, token: str, name: str
) -> None:
    user, word, token = user + MARK, MARK + word, MARK + token
    for login in (f"{user}:{word}@", f"{user}@", f":{word}@"):
        url = f"https://{login}host/{name}?token={token}#{token}"
        assert without_secrets(url, url) == f"https://host/{name}"
        assert without_secrets(f"cannot read {url}: 403", url) == (
            f"cannot read https://host/{name}: 403"
        )


URL: Any = f"s3://me:{MARK}@host/x?token={MARK}"  # of a wrong type for most arguments


@pytest.mark.parametrize(
    "call",
    [
        lambda: build(np.ones((9, 2)), size=3, chunks=URL),
        lambda: build(np.ones((9, 2)), size=3, columns=URL),
        lambda: datasets.make_mixture(n=URL, d=2, n_clusters=3),
        lambda: CoresetTree.open(URL),
    ],
    ids=["number", "names", "count", "place"],
)
def test_errors__show_no_secret_whatever_the_argument(call: Callable[[], Any]) -> None:
    with pytest.raises(CoresetError) as caught:
        call()
    assert MARK not in str(caught.value)


def test_warnings__point_at_the_line_that_called() -> None:
    # Between it and the warning there are functions of contextlib, for the time limit.
    with pytest.warns(CoresetWarning, match="nothing was reduced") as caught:
        build(np.ones((3, 2)))
    assert caught[0].filename == __file__
