"""Turns an agent's form into one question per field, and answers into the form's values.

Pure. Patterns and formats are left to the agent: a hostile pattern could keep the bridge busy
forever.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from acp.schema import (
    ElicitationBooleanPropertySchema,
    ElicitationIntegerPropertySchema,
    ElicitationMultiSelectPropertySchema,
    ElicitationNumberPropertySchema,
    ElicitationSchema,
    ElicitationStringPropertySchema,
    EnumOption,
    TitledMultiSelectItems,
)

from app.acp.json_values import amount
from app.model.updates import AskFact, AskOption, AskRequest

MAX_FIELDS = 20  # questions one after another; more is too much for a person
MAX_TRIES = 3  # invalid answers before the form is cancelled

URL_CHARACTERS = 2_000
"""What browsers and platforms accept as an address; a longer one is shown as text only."""

DECLINE = AskOption("decline", "Decline", "reject_once")
SKIP = AskOption("skip", "Skip", "skip")
DONE = AskOption("done", "Done", "answer")

Value = str | int | float | bool | list[str]
Kind = Literal["text", "number", "integer", "boolean", "choice", "choices"]


@dataclass(frozen=True, slots=True)
class FieldChoice:
    """One value that a field may have, and its name."""

    value: str
    name: str
    description: str = ""


@dataclass(frozen=True, slots=True)
class FormField:
    """One field of a form."""

    name: str
    kind: Kind
    title: str = ""
    description: str = ""
    required: bool = False
    choices: tuple[FieldChoice, ...] = ()
    least: float | None = None
    """The smallest number, the shortest text or the fewest choices."""
    most: float | None = None
    other: str | None = None
    """The field for free text, where no offered choice fits."""

    @property
    def options(self) -> tuple[AskOption, ...]:
        """What can be chosen with one click."""
        offered = tuple(
            AskOption(f"option-{number}", choice.name, "answer")
            for number, choice in enumerate(self.choices, start=1)
        )
        return (*offered, DECLINE if self.required else SKIP)

    @property
    def free_text(self) -> bool:
        """Whether free text may be an answer."""
        return self.kind not in ("boolean", "choice") or self.other is not None


class Unfit(ValueError):
    """An answer that does not fit its field; says why."""


def fields_of(form: ElicitationSchema) -> tuple[FormField, ...] | None:
    """Read the fields of a form; None if a field has a type that people cannot fill in."""
    properties = form.properties or {}
    required = set(form.required or ())
    fields: list[FormField] = []
    for name, schema in properties.items():
        before = fields[-1] if fields else None
        if before is not None and before.choices and name == f"{before.name}_custom":
            # How Claude lets people answer in their own words: a second field for free text.
            fields[-1] = replace(before, other=name)
            continue
        field = _field(name, schema, required=name in required)
        if field is not None:
            fields.append(field)
        elif name in required:
            return None
    return tuple(fields) if len(fields) <= MAX_FIELDS else None


def question(
    message: str, field: FormField, *, call: str = "", alone: bool = True, note: str = ""
) -> AskRequest:
    """Make the ask for one field; `note` says what was wrong with the last answer."""
    heading = "" if alone and (message or field.description) else field.title or field.name
    label = ": ".join(filter(None, (heading, field.description)))
    described = [f"- {each.name}: {each.description}" for each in field.choices if each.description]
    several = "(You can name several, separated by commas.)" if field.kind == "choices" else ""
    title = "\n".join(filter(None, (note, message, label, *described, several)))
    names = [choice.name for choice in field.choices]
    return AskRequest(
        call=call,
        title=title,
        options=field.options,
        arguments_hash=_hash([message, field.name, field.title, field.description, names]),
        kind="question",
        free_text=field.free_text,
    )


def consent(message: str, *, url: str = "", call: str = "") -> AskRequest:
    """Make the ask that needs no text: an address to open, or a plain yes."""
    return AskRequest(
        call=call,
        title="\n".join(filter(None, (message, url))),
        facts=(AskFact("address", url),) if url else (),
        options=(DONE, DECLINE),
        arguments_hash=_hash([message, url]),
        kind="question",
        url=url if len(url) <= URL_CHARACTERS else "",
    )


def value_of(field: FormField, answer: str) -> dict[str, Value]:
    """Convert an answer to the form's values for this field; empty if it was skipped.

    Raises:
        Unfit: it does not fit.
    """
    if answer == SKIP.id and not field.required:
        return {}
    ids = [option.id for option in field.options[: len(field.choices)]]
    if answer in ids:
        chosen = field.choices[ids.index(answer)].value
        return {field.name: _chosen(field, [chosen])}
    words = answer.strip()
    match field.kind:
        case "text":
            return {field.name: _fitting_text(field, words)}
        case "number" | "integer":
            return {field.name: _number(field, words)}
        case _:
            return _named(field, words)


def _named(field: FormField, words: str) -> dict[str, Value]:
    """Find choices by their values or names."""
    known = {
        word.casefold(): choice.value
        for choice in reversed(field.choices)
        for word in (choice.value, choice.name)
    }
    whole = known.get(words.casefold())
    parts = [part.strip() for part in words.split(",")] if field.kind == "choices" else [words]
    found = [whole] if whole is not None else [known.get(part.casefold()) for part in parts]
    values = list(dict.fromkeys(value for value in found if value is not None))
    if len(values) == len(set(found)):
        return {field.name: _chosen(field, values)}
    if field.other is not None and words:
        return {field.other: words}
    names = ", ".join(choice.name for choice in field.choices)
    raise Unfit(f"That is not one of the answers: {names}.")


def _chosen(field: FormField, values: list[str]) -> Value:
    if field.kind == "boolean":
        return values[0] == "true"
    if field.kind == "choice":
        return values[0]
    if field.least is not None and len(values) < field.least:
        raise Unfit(f"Name at least {field.least:g}.")
    if field.most is not None and len(values) > field.most:
        raise Unfit(f"Name at most {field.most:g}.")
    return values


def _fitting_text(field: FormField, words: str) -> str:
    if field.least is not None and len(words) < field.least:
        raise Unfit(f"That is too short: use at least {field.least:g} characters.")
    if field.most is not None and len(words) > field.most:
        raise Unfit(f"That is too long: use at most {field.most:g} characters.")
    return words


def _number(field: FormField, words: str) -> int | float:
    try:
        number = amount(int(words) if field.kind == "integer" else float(words))
    except ValueError:
        number = None
    if number is None:
        raise Unfit(
            "That is not a whole number." if field.kind == "integer" else "That is not a number."
        )
    if field.least is not None and number < field.least:
        raise Unfit(f"That is too small: the minimum is {field.least:g}.")
    if field.most is not None and number > field.most:
        raise Unfit(f"That is too large: the maximum is {field.most:g}.")
    return int(words) if field.kind == "integer" else number


def _field(name: str, schema: object, *, required: bool) -> FormField | None:
    least: float | None
    most: float | None
    match schema:
        case ElicitationStringPropertySchema():
            choices = tuple(map(_choice, schema.one_of or schema.enum or ()))
            kind: Kind = "choice" if choices else "text"
            least, most = (None, None) if choices else (schema.min_length, schema.max_length)
        case ElicitationNumberPropertySchema() | ElicitationIntegerPropertySchema():
            kind = "integer" if isinstance(schema, ElicitationIntegerPropertySchema) else "number"
            choices = ()
            least, most = schema.minimum, schema.maximum
        case ElicitationBooleanPropertySchema():
            kind, choices = "boolean", (FieldChoice("true", "Yes"), FieldChoice("false", "No"))
            least = most = None
        case ElicitationMultiSelectPropertySchema():
            kind, choices = "choices", _items(schema.items)
            least, most = schema.min_items, schema.max_items
            if not choices:
                return None
        case _:
            return None
    return FormField(
        name=name,
        kind=kind,
        title=schema.title or "",
        description=schema.description or "",
        required=required,
        choices=choices,
        least=least,
        most=most,
    )


def _items(items: object) -> tuple[FieldChoice, ...]:
    values = items.any_of if isinstance(items, TitledMultiSelectItems) else ()
    return tuple(map(_choice, values or getattr(items, "enum", None) or ()))


def _choice(value: EnumOption | str) -> FieldChoice:
    if isinstance(value, str):
        return FieldChoice(value, value)
    return FieldChoice(value.const, value.title or value.const, value.description or "")


def _hash(facts: Sequence[object]) -> str:
    return hashlib.sha256(json.dumps(facts).encode()).hexdigest()
