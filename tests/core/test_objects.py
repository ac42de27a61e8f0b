"""Object stores: names without secrets, options by two names, coresets at URLs."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from zarr.storage import ObjectStore

from daskcoreset import Coreset, CoresetTree, build
from daskcoreset.core.errors import InvalidInputError, MissingDependencyError, StoreError
from daskcoreset.core.objects import clear_errors, connect, find_folder, name_of
from tests.acceptance.tools.object_stores import KEY, SECRET, ObjectServer
from tests.acceptance.tools.trees import day

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
    one, two = connect(url, by_obstore), connect(url, by_fsspec)
    config: Any = [store.config for store in (one, two)]  # type: ignore[union-attr]
    assert config[0] == config[1]
    assert name_of(one) == url
    assert name_of(connect("gs://bucket/a", {"anon": True})) == "gs://bucket/a"
    account = {"account_name": "me", "account_key": "a2V5"}
    assert name_of(connect("az://box/a", account)) == "az://box/a"
    assert name_of(connect("abfss://box@account.dfs.core.windows.net/a")) == "az://box/a"
    assert name_of(connect("https://host:9000/a")) == "https://host:9000/a"


def test_connect__errors(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InvalidInputError, match=r"cannot be used as it is .*account_name") as found:
        connect("az://box/a", {"sas_token": SECRET})
    assert SECRET not in str(found.value)
    with pytest.raises(InvalidInputError, match="cannot be used as it is") as found:
        connect("s3://bucket/a", {"region": [SECRET]})
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

    class SignedError(Exception):
        pass

    monkeypatch.setattr("obstore.exceptions.BaseError", SignedError)
    with pytest.raises(StoreError) as told, clear_errors("az://box", "read"):
        raise SignedError(str(signed))
    assert SECRET not in f"{told.value}{told.value.__cause__}"
    assert told.value.__suppress_context__


def test_coreset__at_a_url(objects: ObjectServer, tmp_path: Path) -> None:
    url, options = objects.bucket() + "/one", objects.options
    coreset, other = (build(day(n, 500), size=20, random_state=n) for n in range(2))
    coreset.to_zarr(url, storage_options=options)
    assert Coreset.from_zarr(url, storage_options=options).equals(coreset)
    with pytest.raises(StoreError, match="exists; pass overwrite=True"):
        other.to_zarr(url, storage_options=options)
    other.to_zarr(url, storage_options=options, overwrite=True)
    store = ObjectStore(connect(url, options))
    assert Coreset.from_zarr(store).equals(other)
    coreset.to_zarr(store, overwrite=True)
    assert Coreset.from_zarr(url, storage_options=options).equals(coreset)
    with pytest.raises(StoreError, match="no Zarr version 3 group; check the path"):
        Coreset.from_zarr(url + "-none", storage_options=options)
    # Interrupted while it is replaced, it is known to be incomplete, and written again.
    with objects.faults("403", methods="PUT DELETE POST", skip=3):
        with pytest.raises(StoreError, match="access was refused; pass storage_options") as found:
            other.to_zarr(url, storage_options=options, overwrite=True)
        assert SECRET not in str(found.value)
        with pytest.raises(StoreError):
            Coreset.from_zarr(url, storage_options=options)
    other.to_zarr(url, storage_options=options, overwrite=True)
    assert Coreset.from_zarr(url, storage_options=options).equals(other)
    with objects.faults("403"), pytest.raises(StoreError, match="access was refused; pass"):
        Coreset.from_zarr(url, storage_options=options)
    # Of the store that is read, an object that is far too long is not read.
    folder = objects.folder(url)
    content = folder.read("weights/c/0")
    folder.write("weights/c/0", content + bytes(2**20))
    with pytest.raises(StoreError, match=r"c/0 has .* bytes, and can have"):
        Coreset.from_zarr(url, storage_options=options)
    folder.write("weights/c/0", content)
    for use in (coreset.to_zarr, Coreset.from_zarr):
        with pytest.raises(StoreError, match="there is no such bucket; make it first"):
            use("s3://no-such-bucket/one", storage_options=options)
        with pytest.raises(InvalidInputError, match="the URL s3:// names no bucket"):
            use("s3://", storage_options=options)
        with pytest.raises(InvalidInputError, match="storage_options belong to a URL"):
            use(tmp_path / "c", storage_options=options)
    with pytest.raises(InvalidInputError, match="is read-only or cannot delete"):
        coreset.to_zarr("http://127.0.0.1/one")


def test_places__whose_names_are_unusual(objects: ObjectServer) -> None:
    bucket = objects.bucket()
    for name in ("", "/", "/a b", "/ä", "/a=1/b+c"):
        folder = objects.folder(bucket + name)
        folder.write("x", name.encode())
    for name in ("/", "/a b", "/ä", "/a=1/b+c/"):
        content = objects.folder(bucket + name).read("x")
        assert content.decode() == name.rstrip("/") or name == "/"


def test_connect__without_obstore(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "obstore", None)
    with pytest.raises(MissingDependencyError, match=r'pip install "daskcoreset\[remote\]"'):
        CoresetTree.open("s3://bucket/a")
