"""Linear: one agent session per issue or mention."""

from __future__ import annotations

from app.config import IdForm
from app.model.keys import PlaceKey
from app.services.linear.settings import NAME, LinearCredentials, LinearSettings
from app.services.service import Service, later


def area(place: PlaceKey) -> PlaceKey | None:
    """Return the team of an issue; a place without an issue is named by a UUID."""
    team, _, number = place.name.partition("-")
    return PlaceKey(NAME, team) if number.isdecimal() else None


SERVICE = Service(
    name=NAME,
    label="Linear",
    credentials=LinearCredentials,
    settings=LinearSettings,
    people=IdForm(r"[A-Za-z0-9-]+", "<user id>"),
    bots=IdForm(r"[A-Za-z0-9-]+", "<app user id>"),
    area=area,
    build=later(f"{__name__}.adapter:build"),
    checks=later(f"{__name__}.doctor:checks"),
    manifest=later(f"{__name__}.manifest:show"),
    set_up=later(f"{__name__}.manifest:set_up"),
    live=later(f"{__name__}.doctor:live"),
)
