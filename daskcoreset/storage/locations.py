"""Places that a user names: a path on a local disk, or a URL."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from daskcoreset.core.errors import InvalidInputError, InvalidTypeError
from daskcoreset.core.validation import a_type

# One letter is a drive of Windows; one slash is what `pathlib.Path` leaves of the two of a URL.
_SCHEME = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]+):/")

# Of a file or folder, in bytes, on all usual disks.
_LONGEST = 255

_CHAINED = re.compile(r"[^/\\]*::")

_FILE = re.compile(r"(?:file|local):(?://(?P<host>[^/]*))?(?P<path>/.*)", re.DOTALL | re.IGNORECASE)


def locate(name: str, location: Any) -> Path | str:
    """Return the absolute path of a place on a local disk, or a URL of another kind unchanged.

    "~" is expanded, and a ``file://`` URL becomes its path. Links on the way to the place are
    followed, so that a store may lie on another disk.

    Parameters
    ----------
    name : str
        The argument, for errors.
    location : str or path-like

    Raises
    ------
    InvalidInputError
        If it is empty, or no place can have this name.
    InvalidTypeError
        If it is neither text nor a path.

    Examples
    --------
    >>> locate("store", "file:///data/days.zarr").as_posix()[-15:]
    '/data/days.zarr'
    >>> locate("store", "s3://bucket/days.zarr")
    's3://bucket/days.zarr'
    """
    if not isinstance(location, (str, os.PathLike)):
        raise InvalidTypeError(
            f"{name} is {a_type(location)}",
            argument=name,
            remedy="pass the path of a folder, as text or as a pathlib.Path",
        )
    text = os.fspath(location)
    if not isinstance(text, str):
        raise InvalidTypeError(
            f"{name} is a path of bytes", argument=name, remedy="pass text, as os.fsdecode gives it"
        )
    if scheme := scheme_of(text):
        if scheme not in {"file", "local"}:
            if not isinstance(location, str):
                raise InvalidInputError(
                    f"{name} is a URL ({scheme}) in a path object, which drops one of its slashes",
                    argument=name,
                    remedy="pass it as text",
                )
            return text
        if set("?#") & set(text):  # of a query or a fragment, which some programs leave out
            raise InvalidInputError(
                f"{name} is a file URL with one of the characters ? and #",
                argument=name,
                remedy="pass the path itself",
            )
        text = path_of_file_url(name, text)
    if not text:
        raise InvalidInputError(
            f"{name} is empty", argument=name, remedy="pass the path of a folder"
        )
    try:
        place = Path(text).expanduser().resolve()
        longest = max(len(os.fsencode(part)) for part in place.parts)
    except (OSError, RuntimeError, ValueError) as error:  # no such user, a circle of links, "\0"
        raise InvalidInputError(
            f"{name} is not a path ({error})", argument=name, remedy="correct it"
        ) from error
    if longest > _LONGEST:
        raise InvalidInputError(
            f"{name} contains a name of {longest} bytes, which is too long",
            argument=name,
            remedy="shorten it",
        )
    return place


def local_path(name: str, location: Any) -> Path:
    """Return the absolute path of a place on a local disk. A URL of another kind is refused.

    Raises
    ------
    InvalidInputError, InvalidTypeError
        As `locate`. Also for URLs.

    Examples
    --------
    >>> local_path("path", "s3://bucket/days.zarr")
    Traceback (most recent call last):
    ...
    daskcoreset.errors.InvalidInputError: path is a URL (s3); pass a path on a local disk.
    """
    place = locate(name, location)
    if isinstance(place, str):
        scheme = scheme_of(place)
        raise InvalidInputError(
            f"{name} is a URL ({scheme})", argument=name, remedy="pass a path on a local disk"
        )
    return place


def scheme_of(text: str) -> str | None:
    """Return the scheme of a URL, in small letters. None for a path.

    Examples
    --------
    >>> scheme_of("S3://bucket"), scheme_of("simplecache::s3://bucket"), scheme_of("C:/data")
    ('s3', 'simplecache', None)
    >>> scheme_of("/data/s3://"), scheme_of("./s3://bucket")
    (None, None)
    """
    if match := _SCHEME.match(text):
        return match["scheme"].lower()
    if "://" in text and (chained := _CHAINED.match(text)):
        return chained[0].partition("::")[0].lower()
    return None


def clean_url(url: str) -> str:
    """Return a URL without user, password, query and fragment. A path is returned unchanged.

    Examples
    --------
    >>> clean_url("https://me:word@host:9000/days.zarr?token=x#y")
    'https://host:9000/days.zarr'
    >>> clean_url("simplecache::s3://key:secret@bucket/x"), clean_url("/data/me@home?")
    ('simplecache::s3://bucket/x', '/data/me@home?')
    """
    if "://" not in url:
        return url
    parts = (re.sub(r"(?s)(://)[^/?#]*@|[?#].*", r"\1", part) for part in url.split("::"))
    return "::".join(parts)


def is_file_url(text: str) -> bool:
    """Return whether a text is the URL of a file on this machine.

    Examples
    --------
    >>> is_file_url("file:///data/x.npy"), is_file_url("/data/x.npy"), is_file_url("s3://data")
    (True, False, False)
    """
    return scheme_of(text) in {"file", "local"}


def path_of_file_url(name: str, url: str) -> str:
    """Return the path of a file URL; with percent signs decoded, unless they are a part of a name.

    Parameters
    ----------
    name : str
        The argument, for errors.
    url : str
        As `pathlib.Path.as_uri` makes it, or with the path as it stands.

    Raises
    ------
    InvalidInputError
        It is of another machine, or of a relative path.

    Examples
    --------
    >>> path_of_file_url("X", "file://localhost/data/all%20days.npy")
    '/data/all days.npy'
    """
    match = _FILE.fullmatch(url)
    if match is None or (match["host"] or "localhost") != "localhost":
        raise InvalidInputError(
            f"{name} is a file URL of another machine, or of a relative path",
            argument=name,
            remedy="pass the path itself",
        )
    path: str = match["path"]
    path = path[1:] if re.match(r"/[A-Za-z]:", path) else path
    return path if os.path.lexists(path) else unquote(path)
