"""Files that the simulated Linear keeps: those of people, and those that apps announce and send."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from sim.linear.records import new_id
from sim.linear.rules import LinearRefusal

LARGEST_BYTES: Final = 50 * 1024 * 1024
NEEDED: Final = {"x-goog-content-length-range": "0,52428800"}
"""What the one who sends a file must say with it, beside what it is."""
CACHED: Final = "public, max-age=31536000"


@dataclass
class Announced:
    """A file that an app said it would send."""

    path: str
    media_type: str
    size: int


class Uploads:
    """The files of one organisation, by their path."""

    def __init__(self, organization: str, url: Callable[[], str]) -> None:
        self._organization = organization
        self._url = url
        self.files: dict[str, bytes] = {}
        self._announced: dict[str, Announced] = {}

    def keep(self, name: str, content: bytes) -> str:
        """Keep a file of a person; returns how it stands in a text."""
        path = self._path()
        self.files[path] = content
        return f"![{name}](https://uploads.linear.app/{path})"

    def announce(
        self,
        contentType: str,  # noqa: N803 - Linear's name
        filename: str,
        size: int,
        makePublic: bool = False,  # noqa: N803 - as above
    ) -> dict[str, Any]:
        """Say where an app may send a file.

        Raises:
            LinearRefusal: it is nothing, or too much.
        """
        if not filename or not 0 < size <= LARGEST_BYTES or makePublic:
            raise LinearRefusal("Argument Validation Error", "INVALID_INPUT")
        number, path = new_id(), self._path()
        self._announced[number] = Announced(path, contentType, size)
        file = {
            "assetUrl": f"https://uploads.linear.app/{path}",
            "uploadUrl": f"{self._url()}/upload/{number}",
            "contentType": contentType,
            "filename": filename,
            "size": size,
            "headers": [{"key": key, "value": value} for key, value in NEEDED.items()],
        }
        return {"success": True, "uploadFile": file}

    def take(self, number: str, headers: Mapping[str, str], content: bytes) -> int:
        """Take an announced file, once and exactly as announced; returns the status."""
        wanted = self._announced.get(number)
        said = {name.lower(): value for name, value in headers.items()}
        good = (
            wanted is not None
            and "authorization" not in said
            and said.get("content-type") == wanted.media_type
            and said.get("cache-control") == CACHED
            and NEEDED.items() <= said.items()
            and len(content) == wanted.size
        )
        if wanted is None or not good:
            return 403
        self.files[wanted.path] = content
        del self._announced[number]
        return 200

    def _path(self) -> str:
        return "/".join((self._organization, new_id(), new_id()))
