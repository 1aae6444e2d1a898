"""Reads settings from the environment, then `.env`; secrets also from files.

Nothing here reads the process's environment itself: it is passed in.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from dotenv.parser import parse_stream

from app.config.ownership import find_writers
from app.config.problems import set_but_empty
from app.errors import ConfigurationError

FILE = "_FILE"

# No key is longer; a file that is was given by mistake.
_LONGEST_SECRET = 64 * 1024

# An empty placeholder counts as absent, except where an empty value would weaken security or
# where the operator clearly meant to give one.
_NEVER_EMPTY = re.compile(
    r"(AGENTS_JSON|REPOSITORIES_JSON|ACP_AGENT_COMMAND|BRIDGE_ADMIN_TOKEN|BRIDGE_SECRET_KEY|\w+_WEBHOOK_SECRET(__\w+)?)"
)


@dataclass(frozen=True, slots=True)
class Sources:
    """Everything that was given, by name."""

    environ: Mapping[str, str] = field(repr=False)
    """The environment of the process."""
    dotenv: Mapping[str, str] = field(default_factory=dict, repr=False)
    """What `.env` says."""
    lines: Mapping[str, int] = field(default_factory=dict, repr=False)
    """The line of `.env` on which each name is."""
    files: dict[str, str] = field(default_factory=dict, repr=False)
    """What the files that were read said: they are read once."""

    @classmethod
    def read(cls, environ: Mapping[str, str], dotenv: Path | None) -> Sources:
        """Read both; the environment wins over the file.

        Raises:
            ConfigurationError: the file cannot be read or understood.
        """
        given = list(_bindings(_read(dotenv))) if dotenv else []
        return cls(
            environ,
            {name: value for name, value, _ in given},
            {name: line for name, _, line in given},
        )

    def text(self, name: str) -> str | None:
        """Return what a name was given, or None."""
        value = self.environ.get(name, self.dotenv.get(name))
        if value is not None and "\0" in value:
            raise ConfigurationError(name, "contains a null character", "Remove it.")
        if value is None or value.strip():
            return value
        if _NEVER_EMPTY.fullmatch(name):
            raise set_but_empty(name)
        return None

    def secret(self, name: str) -> str | None:
        """Return what a name was given, by itself or in the file that `<NAME>_FILE` names.

        Raises:
            ConfigurationError: both are given, or the file is unusable.
        """
        value, file = self.text(name), self.text(name + FILE)
        if file is None:
            return value
        if value is not None:
            raise ConfigurationError(name, f"is also set as {name}{FILE}", "Remove one of the two.")
        if name not in self.files:
            self.files[name] = _file_content(name + FILE, Path(file))
        return self.files[name]

    def reread(self, *names: str) -> Sources:
        """Return the same sources, with the files of these names to be read again."""
        kept = {name: text for name, text in self.files.items() if name not in names}
        return replace(self, files=kept)


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError:
        problem = "cannot be read"
    except UnicodeDecodeError:
        problem = "is not UTF-8"
    raise ConfigurationError(str(path), problem, "Make it a text file that the bridge can read.")


def _bindings(text: str) -> Iterator[tuple[str, str, int]]:
    for binding in parse_stream(io.StringIO(text)):
        blank = binding.original.string
        blank = blank[: len(blank) - len(blank.lstrip())]
        line = binding.original.line + blank.count("\n")
        if binding.error or (binding.key is not None and binding.value is None):
            # Do not repeat the line: it may be a pasted secret.
            raise ConfigurationError(
                ".env", f"line {line} is not a setting", "Write it as NAME=value."
            )
        if binding.key is not None and binding.value is not None:
            yield binding.key, binding.value, line


def _file_content(name: str, path: Path) -> str:
    try:
        exposed = find_writers(path)
        with path.open("rb") as file:
            content = file.read(_LONGEST_SECRET + 1)
        text = content.decode()
    except (OSError, ValueError):
        problem = "names a file that is not readable text"
    else:
        if exposed:
            raise ConfigurationError(name, f"names a file that {exposed[0]}", exposed[1])
        text = text.removesuffix("\n").removesuffix("\r")
        if not text.strip():
            problem = "names an empty file"
        elif len(content) > _LONGEST_SECRET:
            problem = "names a file that is too large for a secret"
        else:
            return text
    raise ConfigurationError(name, problem, "Name a readable file with only the secret in it.")
