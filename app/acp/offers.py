"""Reads which modes, models and options an agent offers, and how each is set.

Pure: maps the answer of `session/new`, `load` or `resume` and a wanted setting to the one call that
sets it, or to the reason why there is none.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from acp.schema import (
    LoadSessionResponse,
    SessionConfigOptionBoolean,
    SessionConfigOptionSelect,
    SessionConfigSelectGroup,
)
from pydantic import ValidationError

from app.acp.json_values import Json, mapping, objects, string
from app.model.agents import Choice, Choices, Option

ConfigOption = SessionConfigOptionSelect | SessionConfigOptionBoolean
Value = str | bool


@dataclass(frozen=True, slots=True)
class SetMode:
    """Set it by `session/set_mode`."""

    mode: str


@dataclass(frozen=True, slots=True)
class SetOption:
    """Set it by `session/set_config_option`."""

    option: str
    value: Value


@dataclass(frozen=True, slots=True)
class SetModel:
    """Set it by `session/set_model`, which only agents of an older draft know."""

    model: str


@dataclass(frozen=True, slots=True)
class NotOffered:
    """There is no way to set it."""

    reason: str


Way = SetMode | SetModel | SetOption | NotOffered


@dataclass(frozen=True, slots=True)
class Offers:
    """What a session can be set to; None: the agent did not say."""

    modes: tuple[str, ...] | None = None
    options: tuple[ConfigOption, ...] | None = None
    models: tuple[str, ...] | None = None
    names: Mapping[str, str] = field(default_factory=dict)
    """What people call a mode or model, by its id."""
    begins_with: tuple[str, str] = ("", "")
    """The mode and the model that the session has."""
    restored: bool = False
    """An agent may not repeat its offers for an old conversation: a setting has to be tried."""

    @classmethod
    def of(cls, answer: Json, *, restored: bool = False) -> Offers:
        """Read the offers out of the answer that began or restored a session."""
        try:
            known = LoadSessionResponse.model_validate(answer)
        except ValidationError:
            known = LoadSessionResponse()
        modes, options = known.modes, known.config_options
        offered = objects(mapping(answer.get("models")).get("availableModels"))
        return cls(
            None if modes is None else tuple(mode.id for mode in modes.available_modes),
            None if options is None else tuple(options),
            tuple(model for each in offered if (model := string(each.get("modelId")))) or None,
            _names(answer),
            (
                string(mapping(answer.get("modes")).get("currentModeId")) or "",
                string(mapping(answer.get("models")).get("currentModelId")) or "",
            ),
            restored,
        )

    @property
    def mode_names(self) -> tuple[str, ...]:
        """The ids of all modes, wherever the agent offers them."""
        option = self._of_category("mode")
        if self.modes or not isinstance(option, SessionConfigOptionSelect):
            return self.modes or ()
        return tuple(_values(option))

    @property
    def choices(self) -> Choices:
        """The modes, models and options for people to choose from."""
        mode, model = self.begins_with
        modes, models = self._of_category("mode"), self._of_category("model")
        return Choices(
            tuple(Choice(each, self.names.get(each, each)) for each in self.modes or ())
            or _choices(modes),
            _choices(models)
            or tuple(Choice(each, self.names.get(each, each)) for each in self.models or ()),
            mode or _value_of(modes),
            _value_of(models) or model,
            tuple(
                Option(each.id, each.name, _choices(each))
                for each in self.options or ()
                if each not in (modes, models)
            ),
        )

    def mode(self, mode: str) -> Way:
        """Find the way to a mode; some agents offer modes only as an option."""
        if self.modes is not None and mode in self.modes:
            return SetMode(mode)
        option = self._of_category("mode")
        if option is not None:
            return self._value(option, mode)
        if self.modes is None and self._may_have_more:
            return SetMode(mode)
        return NotOffered(_refusal("mode", mode, self.modes or ()))

    def model(self, model: str) -> Way:
        """Find the way to a model."""
        option = self._of_category("model")
        if option is not None:
            return self._value(option, model)
        if self.models is not None:
            offered = model in self.models
            return SetModel(model) if offered else NotOffered(_refusal("model", model, self.models))
        if self._may_have_more:
            return SetOption("model", model)
        return NotOffered("it does not offer a choice of models")

    def option(self, name: str, value: Value) -> Way:
        """Find the way to an option by its id."""
        option = next((option for option in self.options or () if option.id == name), None)
        if option is not None:
            return self._value(option, value)
        if self._may_have_more:
            return SetOption(name, value)
        return NotOffered(_refusal("option", name, [option.id for option in self.options or ()]))

    @property
    def _may_have_more(self) -> bool:
        return self.restored and self.options is None

    def _of_category(self, category: Literal["mode", "model"]) -> ConfigOption | None:
        options = self.options or ()
        named = (option for option in options if option.category == category)
        same_id = (option for option in options if option.id == category)
        return next(named, None) or next(same_id, None)

    def _value(self, option: ConfigOption, value: Value) -> Way:
        if isinstance(option, SessionConfigOptionBoolean):
            if isinstance(value, bool):
                return SetOption(option.id, value)
            return NotOffered(f"its option {option.id!r} is either true or false")
        values = _values(option)
        if value in values:
            return SetOption(option.id, value)
        return NotOffered(_refusal(option.id, value, values))


def _names(answer: Json) -> dict[str, str]:
    modes = objects(mapping(answer.get("modes")).get("availableModes"))
    models = objects(mapping(answer.get("models")).get("availableModels"))
    named = [(each.get("id") or each.get("modelId"), each.get("name")) for each in modes + models]
    return {key: name for key, name in named if isinstance(key, str) and isinstance(name, str)}


def _choices(option: ConfigOption | None) -> tuple[Choice, ...]:
    if not isinstance(option, SessionConfigOptionSelect):
        return ()
    return tuple(
        Choice(each.value, each.name)
        for listed in option.options
        for each in (listed.options if isinstance(listed, SessionConfigSelectGroup) else [listed])
    )


def _value_of(option: ConfigOption | None) -> str:
    return str(option.current_value) if isinstance(option, SessionConfigOptionSelect) else ""


def _values(option: SessionConfigOptionSelect) -> list[str]:
    return [choice.id for choice in _choices(option)]


def _refusal(what: str, wish: object, offered: Sequence[str]) -> str:
    choices = ", ".join(offered) or "none"
    return f"it has no {what} {wish!r}; offered: {choices}"
