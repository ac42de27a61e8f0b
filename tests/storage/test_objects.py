"""Object stores: names without secrets, options by two names, coresets at URLs."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from daskcoreset import CoresetTree
from daskcoreset.errors import InvalidInputError, MissingDependencyError, StoreError
from daskcoreset.storage.disk import find_folder
from daskcoreset.storage.locations import clear_errors, object_store, store_name
from tests.acceptance.tools.object_stores import KEY, SECRET, ObjectServer

pytest.importorskip("obstore", reason="obstore is not installed")


def test_connect__by_the_names_of_fsspec_and_of_obstore(objects: ObjectServer) -> None:
    url = objects.bucket() + "/a"
    by_obstore = {
        "access_key_id": KEY, "secret_access_key": SECRET, "endpoint": objects.endpoint,
        "region": "eu-west-1",
    }  # fmt: skip
    by_fsspec = {
        "key": KEY, "secret": SECRET, "endpoint_url": objects.endpoint,
        "client_kwargs": {"region_name": "eu-west-1"}, "use_listings_cache": False, "token": None,
    }  # fmt: skip
    one, two = object_store(url, by_obstore), object_store(url, by_fsspec)
    config: Any = [store.config for store in (one, two)]  # type: ignore[union-attr]
    assert config[0] == config[1]
    assert store_name(one) == url
    assert store_name(object_store("gs://bucket/a", {"anon": True})) == "gs://bucket/a"
    account = {"account_name": "me", "account_key": "a2V5"}
    assert store_name(object_store("az://box/a", account)) == "az://box/a"
    assert store_name(object_store("abfss://box@account.dfs.core.windows.net/a")) == "az://box/a"
    assert store_name(object_store("https://host:9000/a")) == "https://host:9000/a"


def test_connect__errors() -> None:
    with pytest.raises(InvalidInputError, match=r"cannot be used as it is .*account_name") as found:
        object_store("az://box/a", {"sas_token": SECRET})
    assert SECRET not in str(found.value)
    with pytest.raises(InvalidInputError, match="cannot be used as it is") as found:
        object_store("s3://bucket/a", {"region": [SECRET]})
    assert SECRET not in str(found.value)
    for url in (
        f"s3://{SECRET}@bucket/a", f"https://host/a?token={SECRET}", f"s3://bucket/a#{SECRET}",
        "s3://bucket/a%20b",
        f"abfss://me:{SECRET}@account.dfs.core.windows.net/a",
    ):  # fmt: skip
        with pytest.raises(InvalidInputError, match="pass secrets as storage_options") as found:
            find_folder("path", url)
        assert SECRET not in str(found.value)
    signed = OSError(f"GET https://host/a?sig={SECRET} failed")

    with pytest.raises(StoreError) as told, clear_errors("az://box", "read"):
        raise signed
    assert SECRET not in f"{told.value}{told.value.__cause__}"
    assert told.value.__context__ is None


def test_connect__without_obstore(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "obstore", None)
    with pytest.raises(MissingDependencyError, match=r'pip install "daskcoreset\[remote\]"'):
        CoresetTree.open("s3://bucket/a")
