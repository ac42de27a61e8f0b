"""Names of sources without what must not be seen: users, passwords, and tokens in URLs."""

from __future__ import annotations

import re
from collections.abc import Iterator

# Between chained URLs; a password may hold two colons as well.
_CHAIN = r"::(?=[A-Za-z][A-Za-z0-9+.-]*://)"

# A URL in a text ends at a blank, a quotation mark or a bracket, or where the next one begins.
# Of a scheme the end is enough: without a bound, a long word takes the square of its length.
_URL = re.compile(rf"(?P<scheme>[A-Za-z0-9+.-]{{1,64}}://)(?P<rest>(?:(?!{_CHAIN})[^\s'\"<>])*)")

_PORT = re.compile(r"[^:]*|\[[0-9A-Fa-f:.]*\]|(?:[^:]*|\[[0-9A-Fa-f:.]*\]):\d*")

# A URL that has lost one of its slashes, or both, with a sign of what must not be seen.
_SLASHLESS = re.compile(
    r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]+:)(?!//|:)(?P<rest>.*[@?;#].*)", re.DOTALL
)

# Parameters of a part of a path, which servers of the web take for tokens; in other stores the sign
# is one of a name.
_WEB = re.compile(r"https?://", re.IGNORECASE)
_PARAMETERS = re.compile(r";[^/]*")

_HIDDEN = "..."

# Shorter ones are parts of other words as well.
_WORD = 4


def without_secrets(text: str, *urls: str) -> str:
    """Return a text whose URLs have no user, password, parameters, query or fragment.

    Parameters
    ----------
    text : str
        A URL, or a message with some.
    *urls : str
        URLs that `text` may hold; for those that do not end where a text shows it, at a blank
        for example.

    Returns
    -------
    str
        The same for a text without secrets. Where it cannot be told what is a password, nothing
        is left of the URL but its scheme.

    Examples
    --------
    >>> without_secrets("https://me:word@host:9000/days.zarr?token=x#y")
    'https://host:9000/days.zarr'
    >>> without_secrets("no access to 's3://key:secret@bucket/x.parquet'")
    "no access to 's3://bucket/x.parquet'"
    >>> without_secrets("s3:/key:secret@bucket/x", "s3:/key:secret@bucket/x")
    's3:...'
    """
    named = text in urls
    for url in sorted(urls, key=len, reverse=True):
        if "://" in url or _SLASHLESS.match(url):
            clean = "::".join(_whole(part) for part in re.split(_CHAIN, url))
            text = clean if text == url else text.replace(url, clean)
    text = _URL.sub(lambda found: found["scheme"] + _cleaned(found["rest"], found["scheme"]), text)
    if named:
        return text
    # Programs quote parts of a URL by themselves, such as "key:secret@bucket".
    for secret in sorted({part for url in urls for part in _secrets(url)}, key=len, reverse=True):
        text = text.replace(secret, _HIDDEN)
    return text


def _secrets(url: str) -> Iterator[str]:
    """Yield the parts of a URL that must not be seen, where they can be told from other words."""
    for part in re.split(_CHAIN, url):
        match = _SLASHLESS.match(part)
        rest = match["rest"].lstrip("/") if match else part.partition("://")[2]
        user = re.split(r"[/?#]", rest, maxsplit=1)[0].rpartition("@")[0]
        if user:
            yield f"{user}@"
        words = re.split(r"[?#]", rest)
        parameters = _PARAMETERS.findall(words[0]) if _WEB.match(part) else []
        for word in (user, user.partition(":")[2], *words[1:], *parameters):
            if len(word) >= _WORD:
                yield word


def _whole(part: str) -> str:
    if match := _SLASHLESS.match(part):
        return match["scheme"] + _HIDDEN
    scheme, separator, rest = part.partition("://")
    return f"{scheme}://{_cleaned(rest, f'{scheme}://')}" if separator else part


def _cleaned(rest: str, scheme: str) -> str:
    """Return what follows the scheme of a URL, without secrets."""
    authority = re.split(r"[/?#]", rest, maxsplit=1)[0]
    host = authority.rpartition("@")[2]
    if host == authority and not _PORT.fullmatch(authority):
        return _HIDDEN  # a password with a slash in it, which should have been quoted
    path = re.split(r"[?#]", rest[len(authority) :], maxsplit=1)[0]
    return host + (_PARAMETERS.sub("", path) if _WEB.match(scheme) else path)
