"""GraphQL as far as one platform needs it: documents are read strictly, then answered.

Whatever the schema does not name is refused before anything happens, as the real server does.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

_TOKEN = re.compile(
    r'\s+|,|#[^\n]*|(\.\.\.|[{}()\[\]:=!$@|]|"(?:[^"\\\n]|\\.)*"|-?\d+(?:\.\d+)?|\w+)'
)
_WORDS = {"true": True, "false": False, "null": None}
_SCALARS: Mapping[str, tuple[type, ...]] = {
    "String": (str,),
    "ID": (str,),
    "Int": (int,),
    "Float": (int, float),
    "Boolean": (bool,),
    "DateTime": (str,),
    "DateTimeOrDuration": (str,),
    "JSON": (object,),
    "JSONObject": (object,),
}


class GraphqlInvalid(Exception):
    """A document or its variables break the schema."""


@dataclass(frozen=True, slots=True)
class Variable:
    """A value that comes with the request."""

    name: str


@dataclass(frozen=True, slots=True)
class Selection:
    """One field that is asked for; with `on`, what is asked of one type of a union."""

    name: str
    arguments: Mapping[str, Any]
    inside: tuple[Selection, ...]
    on: str = ""


@dataclass(frozen=True, slots=True)
class Operation:
    """One document: a query or a mutation."""

    kind: str
    variables: Mapping[str, str]
    selections: tuple[Selection, ...]


@dataclass(frozen=True, slots=True)
class FieldType:
    """What a field takes and gives."""

    arguments: Mapping[str, str]
    gives: str


@dataclass(slots=True)
class Schema:
    """The types of a platform, by name."""

    types: dict[str, dict[str, FieldType]] = field(default_factory=dict)
    inputs: dict[str, dict[str, str]] = field(default_factory=dict)
    enums: dict[str, frozenset[str]] = field(default_factory=dict)
    unions: dict[str, frozenset[str]] = field(default_factory=dict)


class _Reader:
    """Takes a text apart, one token after another."""

    def __init__(self, text: str) -> None:
        self._tokens = list(_tokens(text))
        self._at = 0

    @property
    def next(self) -> str:
        return self._tokens[self._at] if self._at < len(self._tokens) else ""

    def take(self, expected: str = "") -> str:
        token = self.next
        if not token or (expected and token != expected):
            raise GraphqlInvalid(f"expected {expected or 'more'!r}, found {token!r}")
        self._at += 1
        return token

    def skip(self, token: str) -> bool:
        found = self.next == token
        self._at += found
        return found

    def until(self, end: str) -> Iterator[None]:
        while not self.skip(end):
            yield

    def name_then(self, sign: str) -> str:
        name = self.take()
        self.take(sign)
        return name

    def type(self) -> str:
        name = f"[{self.type()}" if self.skip("[") else self.take()
        if name.startswith("["):
            name += self.take("]")
        return name + "!" * self.skip("!")

    def value(self) -> Any:
        match self.take():
            case "$":
                return Variable(self.take())
            case "[":
                return [self.value() for _ in self.until("]")]
            case "{":
                return {self.name_then(":"): self.value() for _ in self.until("}")}
            case token if token[0] in '"-0123456789':
                return json.loads(token)
            case word:
                return _WORDS.get(word, word)

    def selections(self) -> tuple[Selection, ...]:
        self.take("{")
        return tuple(self._selection() for _ in self.until("}"))

    def _selection(self) -> Selection:
        if self.skip("..."):
            self.take("on")
            return Selection("", {}, on=self.take(), inside=self.selections())
        name = self.take()
        arguments = {}
        if self.skip("("):
            arguments = {self.name_then(":"): self.value() for _ in self.until(")")}
        return Selection(name, arguments, self.selections() if self.next == "{" else ())

    def fields(self) -> dict[str, FieldType]:
        self.take("{")
        return {self.take(): self._field() for _ in self.until("}")}

    def _field(self) -> FieldType:
        arguments = {}
        if self.skip("("):
            arguments = {self.name_then(":"): self.type() for _ in self.until(")")}
        self.take(":")
        return FieldType(arguments, self.type())

    def names(self) -> frozenset[str]:
        self.take("{")
        return frozenset(self.take() for _ in self.until("}"))

    def members(self) -> frozenset[str]:
        self.take("=")
        found = {self.take()}
        while self.skip("|"):
            found.add(self.take())
        return frozenset(found)


def read_schema(text: str) -> Schema:
    """Read types, inputs, enums and unions."""
    reader, schema = _Reader(text), Schema()
    while reader.next:
        kind, name = reader.take(), reader.take()
        match kind:
            case "type":
                schema.types[name] = reader.fields()
            case "input":
                schema.inputs[name] = {key: of.gives for key, of in reader.fields().items()}
            case "enum":
                schema.enums[name] = reader.names()
            case _:
                schema.unions[name] = reader.members()
    return schema


def read_operation(document: str) -> Operation:
    """Read a document that holds one operation.

    Raises:
        GraphqlInvalid: it holds anything else.
    """
    reader = _Reader(document)
    kind = reader.take()
    if kind not in {"query", "mutation"}:
        raise GraphqlInvalid(f"{kind!r} is no operation")
    reader.take()
    variables: dict[str, str] = {}
    if reader.skip("("):
        for _ in reader.until(")"):
            reader.take("$")
            name = reader.name_then(":")
            variables[name] = reader.type()
    operation = Operation(kind, variables, reader.selections())
    if reader.next:
        raise GraphqlInvalid("a document holds one operation")
    return operation


class Execution:
    """One operation with its variables, checked against a schema and then answered."""

    def __init__(self, schema: Schema, document: str, variables: Mapping[str, Any]) -> None:
        """Check everything that can be wrong before anything happens.

        Raises:
            GraphqlInvalid: something is.
        """
        self._schema = schema
        self._operation = read_operation(document)
        self._variables = variables
        self._used: set[str] = set()
        if unknown := set(variables) - set(self._operation.variables):
            raise GraphqlInvalid(f"variables nobody declared: {sorted(unknown)}")
        for name, kind in self._operation.variables.items():
            self._coerce(kind, variables.get(name), name)
        self._root = "Query" if self._operation.kind == "query" else "Mutation"
        self._check(self._root, self._operation.selections)
        if unused := set(self._operation.variables) - self._used:
            raise GraphqlInvalid(f"variables nobody uses: {sorted(unused)}")

    @property
    def fields(self) -> tuple[str, ...]:
        """What is asked for or done, at the top."""
        return tuple(chosen.name for chosen in self._operation.selections)

    @property
    def writes(self) -> bool:
        """Whether it changes something."""
        return self._root == "Mutation"

    def answer(self, root: Mapping[str, Any]) -> dict[str, Any]:
        """Answer from a tree whose values are plain, or functions of a field's arguments."""
        return self._select(self._root, self._operation.selections, root)

    def _check(self, on: str, selections: tuple[Selection, ...]) -> None:
        for chosen in selections:
            if chosen.on:
                if chosen.on not in self._schema.unions.get(on, ()):
                    raise GraphqlInvalid(f"{on} is never a {chosen.on}")
                self._check(chosen.on, chosen.inside)
                continue
            known = self._schema.types.get(on, {}).get(chosen.name)
            if known is None:
                raise GraphqlInvalid(f'Cannot query field "{chosen.name}" on type "{on}".')
            self._check_arguments(chosen, known)
            inner = known.gives.strip("[]!")
            is_leaf = inner in _SCALARS or inner in self._schema.enums
            if is_leaf == bool(chosen.inside):
                raise GraphqlInvalid(f'Field "{chosen.name}" of type "{inner}" is wrongly selected')
            self._check(inner, chosen.inside)

    def _check_arguments(self, chosen: Selection, known: FieldType) -> None:
        if unknown := set(chosen.arguments) - set(known.arguments):
            raise GraphqlInvalid(f'Unknown arguments {sorted(unknown)} on field "{chosen.name}".')
        for name, kind in known.arguments.items():
            given = chosen.arguments.get(name)
            if isinstance(given, Variable):
                self._used.add(given.name)
                declared = self._operation.variables.get(given.name, "")
                if declared not in {kind, f"{kind}!"}:
                    raise GraphqlInvalid(f'"${given.name}" is {declared!r} where {kind} is wanted')
            else:
                self._coerce(kind, given, name)

    def _coerce(self, kind: str, value: Any, where: str) -> None:
        """Refuse a value that is not of its type."""
        inner = kind.removesuffix("!")
        if value is None:
            if kind != inner:
                raise GraphqlInvalid(f"{where} of type {kind} is missing")
        elif inner.startswith("["):
            if not isinstance(value, list):
                raise GraphqlInvalid(f"{where} is no list")
            for item in value:
                self._coerce(inner[1:-1], item, where)
        elif inner in self._schema.inputs:
            self._coerce_input(inner, value, where)
        elif inner in self._schema.enums:
            if value not in self._schema.enums[inner]:
                raise GraphqlInvalid(f"{where}: {value!r} is no {inner}")
        elif not isinstance(value, _SCALARS[inner]):
            raise GraphqlInvalid(f"{where}: {value!r} is no {inner}")

    def _coerce_input(self, kind: str, value: Any, where: str) -> None:
        fields = self._schema.inputs[kind]
        if not isinstance(value, dict) or set(value) - set(fields):
            raise GraphqlInvalid(f"{where} has fields that {kind} does not have")
        for name, inner in fields.items():
            self._coerce(inner, value.get(name), f"{where}.{name}")

    def _select(
        self, on: str, selections: tuple[Selection, ...], value: Mapping[str, Any]
    ) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for chosen in selections:
            if chosen.on:
                if value["__typename"] == chosen.on:
                    found |= self._select(chosen.on, chosen.inside, value)
                continue
            inner = self._schema.types[on][chosen.name].gives.strip("[]!")
            given = value[chosen.name]
            if callable(given):
                given = given(**{name: self._filled(v) for name, v in chosen.arguments.items()})
            found[chosen.name] = self._inside(inner, chosen, given)
        return found

    def _inside(self, inner: str, chosen: Selection, given: Any) -> Any:
        if not chosen.inside or given is None:
            return given
        if isinstance(given, list):
            return [self._select(inner, chosen.inside, item) for item in given]
        return self._select(inner, chosen.inside, given)

    def _filled(self, value: Any) -> Any:
        return self._variables.get(value.name) if isinstance(value, Variable) else value


def _tokens(text: str) -> Iterator[str]:
    at = 0
    while at < len(text):
        found = _TOKEN.match(text, at)
        if found is None:
            raise GraphqlInvalid(f"{text[at]!r} is out of place")
        if found[1]:
            yield found[1]
        at = found.end()
