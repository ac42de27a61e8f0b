"""The chain of the versions of a stream or tree: what each says of those before it, and the checks.

A version carries a *link*: the digests of the settings and of the version before it; that of the
first version is the digest of the settings. A manifest has the digests of its nodes, too. So a
version stands for all that led to it, and nothing of another store can take a place in it.

The last link cannot miss what came after it. Therefore the newest version is recorded a second
time, beside the versions, as a `Head`. It is written after its version: a writer that is killed
between the two leaves a head that is one version behind, which is no fault, and which the next
writer mends before it goes on. A head that is ahead of the versions says that some were lost.

Nothing here reads or writes: `versions` does, on a local disk.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from daskcoreset.core.errors import StoreError

_REMEDY = "restore it from a copy"


@dataclass(frozen=True)
class Head:
    """A version, and what tells it from any other.

    Attributes
    ----------
    settings : str
        Digest of the settings.
    version : int
        0 before the first.
    digest : str
        Of the version; of the settings before the first.
    """

    settings: str
    version: int
    digest: str

    @classmethod
    def before_first(cls, settings: str) -> Head:
        """Return the head of a store without versions.

        Examples
        --------
        >>> Head.before_first("sha256:0").followed_by("sha256:1")
        Head(settings='sha256:0', version=1, digest='sha256:1')
        """
        return cls(settings, 0, settings)

    @property
    def link(self) -> dict[str, str]:
        """What the version after it says of those before."""
        return {"settings": self.settings, "previous": self.digest}

    def followed_by(self, digest: str) -> Head:
        """Return the version after it."""
        return Head(self.settings, self.version + 1, digest)

    def may_follow(self, recorded: Head | None) -> bool:
        """Whether a version after this one goes on from what was recorded.

        Examples
        --------
        >>> first = Head.before_first("sha256:0").followed_by("sha256:1")
        >>> first.may_follow(None), first.may_follow(first), first.may_follow(first.followed_by(""))
        (True, True, False)
        """
        return (
            recorded is None
            or recorded == self
            or (recorded.settings == self.settings and recorded.version < self.version)
        )

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON values."""
        return asdict(self)

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Head:
        """Return the head of the values of `to_json`.

        Raises
        ------
        KeyError, TypeError, ValueError
            They are of another form.
        """
        head = cls(str(values["settings"]), values["version"], str(values["digest"]))
        if type(head.version) is not int or head.version < 0:
            raise ValueError(f"version {head.version!r}")
        return head


class OvertakenError(StoreError):
    """Another writer was first: nothing was written, and what it wrote is there."""


class UnansweredError(StoreError):
    """No answer came to a change, which was made as a whole or not at all."""


def check_newest(
    where: str,
    found: Head,
    link: Mapping[str, str] | None,
    recorded: Head | None,
    *,
    chained: bool,
) -> None:
    """Check that the newest version that is there is the newest one that was written.

    Parameters
    ----------
    where : str
        The store, for errors.
    found : Head
        The newest version that is there, by what it holds.
    link : mapping or None
        Its link; None for a version of before there was a chain, and for none at all.
    recorded : Head or None
        What lies beside the versions; read before they were looked for.
    chained : bool
        Whether the store was made with a chain, so that it must have a record.

    Raises
    ------
    StoreError
        Something is missing, or belongs to another store.
    """
    if link is not None and link.get("settings") != found.settings:
        raise StoreError(
            f"{where}: version {found.version} belongs to another store, or the settings were "
            f"replaced; {_REMEDY}"
        )
    if recorded is None:
        if chained or link is not None:
            raise StoreError(
                f"{where}: the record of its newest version is missing, so that versions may be "
                f"missing as well; {_REMEDY}"
            )
        return
    if recorded.settings != found.settings:
        raise StoreError(f"{where}: its head belongs to another store; {_REMEDY}")
    if found.version < recorded.version:
        there = f"the newest one there is {found.version}" if found.version else "there is none"
        first, last = found.version + 1, recorded.version
        lost = f"version {last} is" if first == last else f"versions {first} to {last} are"
        raise StoreError(f"{where}: {lost} missing, and {there}; {_REMEDY}")
    expected = found.digest
    if found.version == recorded.version + 1:  # its writer was killed before it recorded it
        expected = str(link.get("previous")) if link is not None else ""
    # Further behind are only heads of writers without locks that overtook one another.
    if found.version <= recorded.version + 1 and recorded.digest != expected:
        raise StoreError(
            f"{where}: version {found.version} is not the one that followed; {_REMEDY}"
        )


def overtaken_error(where: str, version: int, based_on: Head) -> OvertakenError:
    """Return the error of a change of a version that is not the newest one any more."""
    there = f"{'another ' * (version == based_on.version)}version {version} is there"
    return OvertakenError(
        f"{where}: another writer has changed it since it was opened ({there}, this change is "
        f"based on {based_on.version}); nothing was written; open it again, a view by "
        f"CoresetTree.follow, and repeat the change"
    )
