"""Modes and models that an agent offers, for people to choose from."""

from __future__ import annotations

from app.acp.offers import Offers
from app.model.agents import Choice, Choices

MODES = {
    "currentModeId": "plan",
    "availableModes": [{"id": "plan", "name": "Plan only"}, {"id": "act", "name": "Act"}],
}
MODEL = {
    "id": "model",
    "name": "Model",
    "category": "model",
    "type": "select",
    "currentValue": "large",
    "options": [
        {"group": "new", "name": "New", "options": [{"value": "large", "name": "Large 2"}]},
    ],
}


def test_modes_and_an_option_for_the_model_have_the_names_that_people_know() -> None:
    offers = Offers.of({"sessionId": "s", "modes": MODES, "configOptions": [MODEL]})

    assert offers.choices == Choices(
        (Choice("plan", "Plan only"), Choice("act", "Act")),
        (Choice("large", "Large 2"),),
        "plan",
        "large",
    )


def test_models_of_the_older_draft_are_offered_too() -> None:
    models = {
        "currentModelId": "small",
        "availableModels": [{"modelId": "small", "name": "Small"}, {"modelId": "bare"}],
    }

    offers = Offers.of({"sessionId": "s", "models": models})

    assert offers.choices.models == (Choice("small", "Small"), Choice("bare", "bare"))
    assert offers.choices.model == "small"


def test_an_agent_that_offers_nothing_leaves_nothing_to_choose() -> None:
    assert Offers.of({"sessionId": "s"}).choices == Choices()
