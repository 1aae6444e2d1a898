"""Reads what was given: the environment, then `.env`, and secrets also from files.

Nothing here reads the process's environment itself: it is passed in, and stays as it was at start.
A file that other users can write is refused. What is wrong is worded by the name of the setting;
its value never gets into a message, an exception's context or a log.
"""

from __future__ import annotations

import difflib
import io
import os
import re
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Self

from dotenv.parser import parse_stream
from pydantic import SecretStr, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import PydanticCustomError
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict
from typing_extensions import override

from app.errors import ConfigurationError

_REFUSAL = "setting"

# How alike two names must be before one is suggested for the other.
_ALIKE = 0.75


def refusal(problem: str, remedy: str) -> PydanticCustomError:
    """Build the error that our validators raise to refuse a value."""
    words = {"problem": problem, "remedy": remedy}
    return PydanticCustomError(_REFUSAL, "{problem}. {remedy}", words)


def first_problem(error: ValidationError) -> tuple[tuple[int | str, ...], str, str]:
    """Return the location, text and remedy of the first problem, without any value."""
    details = error.errors(include_url=False, include_input=False)[0]
    context = details.get("ctx", {})
    kind = details["type"]
    if kind == _REFUSAL:
        return details["loc"], context["problem"], context["remedy"]
    problem, remedy = _WORDS.get(kind, _UNCLEAR)(context)
    return details["loc"], problem, remedy


def did_you_mean(name: str, known: Iterable[str], otherwise: str) -> str:
    """Return a remedy that suggests the known name closest to a misspelt one."""
    close = difflib.get_close_matches(name, list(known), n=1, cutoff=_ALIKE)
    return f"Did you mean {close[0]}?" if close else otherwise


def set_but_empty(name: str) -> ConfigurationError:
    """Refuse a setting that was meant to have a value."""
    return ConfigurationError(name, "is set but empty", "Give it a value, or remove it.")


_Words = Callable[[Mapping[str, Any]], tuple[str, str]]


def _always(problem: str, remedy: str) -> _Words:
    return lambda _context: (problem, remedy)


_UNCLEAR = _always("is not valid", "See .env.example for its format.")
_WHOLE = _always("must be a whole number", "Write digits only, such as 20.")
_NUMBER = _always("is not a number", "Write a number.")
_TRUTH = _always("is neither true nor false", "Write true or false.")
_LIST = _always("is not a list", "Write a list: [...].")
_OBJECT = _always("is not an object", "Write an object: {...}.")

_WORDS: dict[str, _Words] = {
    "missing": _always("is missing", "Add it."),
    "int_parsing": _WHOLE,
    "int_type": _WHOLE,
    "int_from_float": _WHOLE,
    "float_parsing": _NUMBER,
    "float_type": _NUMBER,
    "finite_number": _NUMBER,
    "bool_parsing": _TRUTH,
    "bool_type": _TRUTH,
    "string_type": _always("is not a string", "Write a string in quotes."),
    "tuple_type": _LIST,
    "list_type": _LIST,
    "dict_type": _OBJECT,
    "mapping_type": _OBJECT,
    "model_type": _OBJECT,
    "string_too_short": _always("is empty", "Give it a value, or remove it."),
    "string_too_long": lambda context: (
        "is too long",
        f"Write at most {context['max_length']} characters.",
    ),
    "literal_error": lambda context: (
        "is not one of the allowed values",
        f"Write {context['expected']}.",
    ),
    "greater_than": lambda context: (
        "is too small",
        f"Write a number greater than {context['gt']:g}.",
    ),
    "greater_than_equal": lambda context: (
        "is too small",
        f"Write a number of at least {context['ge']:g}.",
    ),
    "less_than_equal": lambda context: (
        "is too large",
        f"Write a number of at most {context['le']:g}.",
    ),
}


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


class GivenSource(PydanticBaseSettingsSource):
    """Gives each field what was given under its name, by itself or as `<NAME>_FILE`.

    Names may end in an agent's suffix. pydantic-settings has sources of its own for the environment
    and `.env`: they read the process each time, replace `$` in the file and skip wrong lines of it.
    """

    def __init__(
        self, kind: type[GivenSettings], sources: Sources, endings: Sequence[str] = ("",)
    ) -> None:
        super().__init__(kind)
        self._sources, self._endings = sources, endings
        self._names, self._secret = kind.names(), kind.secret_names()
        self.origin: dict[str, str] = {}
        """The name of each field for people: where it was given, else where it could be."""

    @override
    def get_field_value(self, field: FieldInfo, field_name: str) -> tuple[Any, str, bool]:
        """Return what was given for a field, under the first name that has something."""
        key, plain = field.alias or field_name, self._names[field_name]
        read = self._sources.secret if plain in self._secret else self._sources.text
        value = None
        for ending in self._endings:
            self.origin[key] = plain + ending
            if (value := read(plain + ending)) is not None:
                break
        return value, key, False

    @override
    def __call__(self) -> dict[str, Any]:
        fields = self.settings_cls.model_fields.items()
        found = [self.get_field_value(about, name) for name, about in fields]
        return {key: value for value, key, _ in found if value is not None}


class GivenSettings(BaseSettings):
    """Settings that are read from what was given, and from nothing else."""

    model_config = SettingsConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)

    @classmethod
    @override
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Leave out the sources that read the process."""
        return (init_settings,)

    @classmethod
    def names(cls) -> dict[str, str]:
        """Return the plain name of the setting for each field."""
        return {field: about.alias or field.upper() for field, about in cls.model_fields.items()}

    @classmethod
    def secret_names(cls) -> frozenset[str]:
        """Return the plain names of those settings that are secret."""
        names = cls.names()
        return frozenset(
            names[field]
            for field, about in cls.model_fields.items()
            if "SecretStr" in str(about.annotation)
        )

    @classmethod
    def read(cls, sources: Sources) -> Self:
        """Read and check every field.

        Raises:
            ConfigurationError: for the first one that is wrong.
        """
        source = GivenSource(cls, sources)
        return cls.check(source, source.origin)

    @classmethod
    def check(cls, source: PydanticBaseSettingsSource, origin: Mapping[str, str]) -> Self:
        """Check what a source gives; `origin` names each field for people.

        Raises:
            ConfigurationError: for the first one that is wrong.
        """
        try:
            return cls(_build_sources=((source,), {}))
        except ValidationError as error:
            where, problem, remedy = first_problem(error)
        raise ConfigurationError(origin[str(where[0])], problem, remedy)

    def secrets(self) -> Iterator[SecretStr]:
        """Yield the secret values."""
        return (value for _, value in self if isinstance(value, SecretStr))


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


def is_others(about: os.stat_result, user: int) -> bool:
    """Tell whether it belongs to another user; root does not count."""
    return about.st_uid not in (user, 0)


def others_can_write(about: os.stat_result) -> bool:
    """Tell whether users other than the owner can change it."""
    return bool(about.st_mode & _bits(about, stat.S_IWGRP, stat.S_IWOTH))


def others_can_read(about: os.stat_result) -> bool:
    """Tell whether users other than the owner can read it."""
    return bool(about.st_mode & _bits(about, stat.S_IRGRP, stat.S_IROTH))


def everyone_can_write(about: os.stat_result) -> bool:
    """Tell whether every user of the machine can change it."""
    return bool(about.st_mode & stat.S_IWOTH)


def find_open_folder(path: Path) -> Path | None:
    """Return a folder above a path in which every user can replace what is there; None if none.

    In one with the sticky bit, such as /tmp, only its owner replaces a file.
    """
    above = dict.fromkeys((*path.absolute().parents, *path.resolve().parents))
    for folder in above:
        with suppress(OSError):  # it does not exist yet
            about = folder.stat()
            if everyone_can_write(about) and not about.st_mode & stat.S_ISVTX:
                return folder
    return None


def find_writers(path: Path) -> tuple[str, str] | None:
    """Say how other users can change a file that decides what runs, and the remedy; None if not."""
    about = path.stat()
    if stat.S_ISREG(about.st_mode) and others_can_write(about):
        return "is writable by other users", "Check its content, then run chmod 600 on it."
    folder = find_open_folder(path)
    if folder is None:
        return None
    remedy = f"Check its content, then run chmod o-w {folder}, or move it to a folder of your own."
    return f"is in {folder}, which is writable by other users", remedy


def _bits(about: os.stat_result, group: int, others: int) -> int:
    """Ignore the group if it is the owner's own: most systems create one for every user."""
    return others if about.st_gid == about.st_uid else group | others
