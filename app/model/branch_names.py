"""Names the branches of sessions, and checks names of branches; pure.

Names that come from people, titles or remotes never reach git unchecked: what is not a plain branch
name is not a branch.
"""

from __future__ import annotations

import re
import unicodedata

from app.model.keys import PlaceKey, SessionKey
from app.model.workspaces import HEADS

SLUG_CHARACTERS = 40
"""Part of a title: about seven words, so that branch names stay readable in lists."""

_BRANCH = re.compile(r"(?!-)[^\x00-\x20\x7f~^:?*\[\\]{1,200}")


def branch_name(session: SessionKey, place: PlaceKey, title: str) -> str:
    """Name the new branch of a session: `agent/<name>/<place>-<slug>`."""
    where = slug(f"{place.service} {place.name}", SLUG_CHARACTERS)
    what = slug(title, SLUG_CHARACTERS)
    return f"{own_branches(session.agent)}{where}{'-' if what else ''}{what}"


def own_branches(agent: str) -> str:
    """Return the prefix of an agent's new branches."""
    return f"agent/{agent}/"


def branch_ref(branch: str) -> str:
    """Write the full ref name of a branch."""
    return f"{HEADS}{branch}"


def slug(text: str, limit: int) -> str:
    """Turn any text into a part of a branch name."""
    plain = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode().lower()
    words = re.findall(r"[a-z0-9]+", plain)
    return "-".join(words)[:limit].strip("-")


def is_branch(name: str) -> bool:
    """Tell whether a name may be a branch, by the rules of git and a little stricter."""
    return bool(
        _BRANCH.fullmatch(name)
        and not name.startswith(("/", "refs/"))
        and not name.endswith(("/", ".", ".lock"))
        and not any(odd in name for odd in ("..", "//", "@{", "/.", ".lock/"))
        and not name.startswith(".")
        and name not in {"@", "HEAD"}
    )
