"""The table of rights, played route by route against a running bridge."""

from __future__ import annotations

import re
from collections.abc import Iterator

import httpx
import pytest

from app.server.rights import COMMANDS, TABLE, Needs
from tests.support.bridge import ADMIN_TOKEN, BridgeProcess
from tests.support.platform import Platform
from tests.support.terminal import run

pytestmark = pytest.mark.one_database

ROLES = ("viewer", "member", "admin")
RANKS = {Needs.NOTHING: -1, Needs.VIEWER: 0, Needs.MEMBER: 1, Needs.ADMIN: 2, Needs.TOKEN: 3}
ROUTES = [(needs, route) for needs, routes in TABLE.items() for route in routes]
FILLED = {
    "service": "web",
    "name": "nobody",
    "agent": "nobody",
    "kind": "mode",
    "what": "now",
    "change": "pause",
    "key": "prompt",
    "day": "2026-01-01",
    "provider": "nobody",
}
NUMBER = "999999"


class Caller:
    """One who sends requests to a bridge, with a token or without."""

    def __init__(self, bridge: BridgeProcess, token: str = "") -> None:
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        self._http = httpx.Client(base_url=bridge.http.base_url, headers=headers, trust_env=False)

    def call(self, route: str) -> tuple[int, str]:
        """Use a route on things that do not exist; returns status and words of the answer.

        A stream goes on for ever: of what is granted only the beginning is read.
        """
        method, _, path = route.partition(" ")
        filled = re.sub(r"{(\w+)(:\w+)?}", lambda found: FILLED.get(found[1], NUMBER), path)
        with self._http.stream(method, filled) as answer:
            if answer.status_code not in {401, 403}:
                return answer.status_code, ""
            return answer.status_code, answer.read().decode()

    def may(self, route: str) -> bool:
        """Tell whether a route is granted; what else may be wrong there is of no concern."""
        status, words = self.call(route)
        return status != 401 and "this needs the role" not in words

    def close(self) -> None:
        self._http.close()


@pytest.fixture(scope="module")
def bridge(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BridgeProcess]:
    with Platform() as platform:
        made = BridgeProcess(tmp_path_factory.mktemp("bridge"), platform, page=True)
        with made:
            yield made


def make_token(bridge: BridgeProcess, role: str, name: str = "") -> tuple[int, str]:
    body = {"name": "test", "as": name or role, "role": role}
    made = bridge.http.post("/api/v1/tokens", json=body)
    assert made.status_code == 201, made.text
    return made.json()["id"], made.json()["token"]


@pytest.mark.parametrize("role", ROLES)
def test_a_role_may_do_what_the_table_says_and_no_more(bridge: BridgeProcess, role: str) -> None:
    caller = Caller(bridge, make_token(bridge, role)[1])

    granted = {route for _, route in ROUTES if caller.may(route)}
    caller.close()

    rank = ROLES.index(role)
    public = set(TABLE[Needs.NOTHING])
    assert granted | public == {route for needs, route in ROUTES if RANKS[needs] <= rank} | public


def test_without_a_log_in_only_what_is_public_is_granted(bridge: BridgeProcess) -> None:
    stranger = Caller(bridge)

    refused = {route for _, route in ROUTES if stranger.call(route)[0] == 401}
    stranger.close()

    assert refused == {route for needs, route in ROUTES if needs is not Needs.NOTHING}


def revoke(bridge: BridgeProcess, number: int) -> None:
    bridge.http.delete(f"/api/v1/tokens/{number}").raise_for_status()


def expire(bridge: BridgeProcess, number: int) -> None:
    bridge.write("update token set expires_at = 1 where id = ?", number)


def disable(bridge: BridgeProcess, number: int) -> None:
    ((person,),) = bridge.rows("select person from token where id = ?", number)
    answer = bridge.http.patch(f"/api/v1/users/{person}", json={"disabled": True})
    answer.raise_for_status()


ENDS = {"revoked": revoke, "expired": expire, "disabled": disable}


@pytest.mark.parametrize("end", ENDS)
def test_a_token_that_has_ended_opens_nothing(bridge: BridgeProcess, end: str) -> None:
    number, token = make_token(bridge, "admin", f"{end} person")
    caller = Caller(bridge, token)
    assert caller.may("GET /api/v1/users")

    ENDS[end](bridge, number)

    guarded = [route for needs, route in ROUTES if needs is not Needs.NOTHING]
    answers = {caller.call(route)[0] for route in guarded}
    caller.close()
    assert answers <= {401, 429}, "after some wrong tokens an address is slowed down"


def test_a_refusal_names_the_role_and_who_can_give_it(bridge: BridgeProcess) -> None:
    make_token(bridge, "admin", "Ada")
    viewer = Caller(bridge, make_token(bridge, "viewer")[1])

    status, words = viewer.call("POST /api/v1/sessions")
    viewer.close()

    assert status == 403
    assert "this needs the role member, and your role is viewer" in words
    assert "Ada" in words


def test_a_token_may_do_no_more_than_its_person_may_now(bridge: BridgeProcess) -> None:
    caller = Caller(bridge, make_token(bridge, "member", "Max")[1])
    assert caller.may("POST /api/v1/sessions")

    number = person_of(bridge, "Max")
    bridge.http.patch(f"/api/v1/users/{number}", json={"role": "viewer"}).raise_for_status()

    assert not caller.may("POST /api/v1/sessions")
    assert caller.may("GET /api/v1/sessions")
    caller.close()


def test_a_token_makes_no_tokens_and_decides_on_no_program(bridge: BridgeProcess) -> None:
    token = make_token(bridge, "admin", "Eve")[1]
    headers = {"Authorization": f"Bearer {token}"}

    more = bridge.http.post("/api/v1/tokens", json={"name": "more"}, headers=headers)
    agent = {"name": "evil", "command": "sh -c id"}
    program = bridge.http.post("/api/v1/agents", json=agent, headers=headers)

    assert (more.status_code, program.status_code) == (409, 403)
    assert "a token cannot make tokens" in more.json()["detail"]
    assert "which program runs" in program.json()["detail"]


def test_a_message_and_a_decision_carry_the_name_of_who_sent_them(bridge: BridgeProcess) -> None:
    headers = {"Authorization": f"Bearer {make_token(bridge, 'member', 'Nora')[1]}"}
    body = {"agent": "demo", "text": "run true"}
    began = bridge.http.post("/api/v1/sessions", json=body, headers=headers).json()

    def asked() -> list[dict[str, str]]:
        found = bridge.http.get("/api/v1/asks?state=open").json()["items"]
        return [each for each in found if each["session"] == began["id"]]

    bridge.wait(lambda: bool(asked()), "an ask")
    option = asked()[0]["options"][0]["id"]  # type: ignore[index]  # JSON
    answered = bridge.http.post(
        f"/api/v1/asks/{asked()[0]['id']}/answer", json={"option": option}, headers=headers
    )

    transcript = bridge.http.get(f"/api/v1/sessions/{began['id']}/transcript").json()["items"]
    said = next(each for each in transcript if each["kind"] == "message")
    assert said["speaker"] == "Nora"
    assert answered.json()["answered_by"] == "Nora"


def test_the_last_use_of_a_token_is_shown_and_its_secret_is_not(bridge: BridgeProcess) -> None:
    number, token = make_token(bridge, "viewer", "Uma")
    caller = Caller(bridge, token)
    caller.call("GET /api/v1/me")
    caller.close()

    listed = bridge.http.get("/api/v1/tokens")
    found = next(each for each in listed.json()["items"] if each["id"] == number)

    assert found["used_at"] is not None
    assert token not in listed.text
    assert bridge.rows("select count(*) from token where hash = ?", token) == [(0,)]
    assert ADMIN_TOKEN not in listed.text


def person_of(bridge: BridgeProcess, name: str) -> int:
    """Find the number of a person."""
    people = bridge.http.get("/api/v1/users").json()["items"]
    return next(int(each["id"]) for each in people if each["name"] == name)


ARGUMENTS = {
    "agents add": ("x", "--driver", "codex"),
    "agents files": ("x",),
    "agents memory": ("x",),
    "agents rename": ("x", "y"),
    "agents set": ("x", "model=y"),
    "agents unset": ("x", "model"),
    "ask": ("demo", "hello"),
    "why": ("https://example.com/none",),
    "conversations fork": (NUMBER,),
    "conversations latest": ("demo",),
    "conversations rename": (NUMBER, "x"),
    "conversations search": ("x",),
    "pause": ("demo",),
    "people role": (NUMBER, "viewer"),
    "resume": ("demo",),
    "schedules add": ("demo", "0 9 * * *", "x"),
    "agents remove": ("demo", "--yes"),
    **dict.fromkeys(("agents default", "agents show"), ("x",)),
    **dict.fromkeys(("people disable", "people enable"), (NUMBER,)),
    **{f"schedules {each}": (NUMBER,) for each in ("pause", "remove", "resume", "run")},
    **{f"{each} revoke": (NUMBER,) for each in ("grants", "tokens")},
    **{
        f"conversations {each}": (NUMBER,)
        for each in ("archive", "export", "pin", "show", "unarchive", "unpin")
    },
    "sessions show": (NUMBER,),
}


def test_a_command_with_a_persons_token_may_do_what_the_table_says(bridge: BridgeProcess) -> None:
    token = make_token(bridge, "viewer")[1]
    bridge.http.post("/api/v1/sessions", json={"agent": "demo", "text": "hello"})
    number = str(bridge.http.get("/api/v1/conversations").json()["items"][0]["id"])
    entries = bridge.folder / "agents.json"
    entries.write_text('{"x": {"driver": "codex"}}')
    given = {
        **ARGUMENTS,
        "agents import": (str(entries),),
        "audit export": (str(bridge.folder / "record.jsonl"),),
        **{f"conversations {each}": (number, "--yes") for each in ("clear", "delete")},
    }

    def is_refused(command: str) -> bool:
        words = [*command.split(), *given.get(command, ())]
        done = run(bridge, *words, BRIDGE_ADMIN_TOKEN=token)
        assert "Usage:" not in done.stderr, done.stderr
        return "this needs the role" in done.stderr

    played = [*COMMANDS[Needs.VIEWER], *COMMANDS[Needs.MEMBER], *COMMANDS[Needs.ADMIN]]
    refused = {command for command in played if is_refused(command)}

    assert refused == {*COMMANDS[Needs.MEMBER], *COMMANDS[Needs.ADMIN]}


def test_the_pages_show_people_and_tokens_and_hide_what_a_role_may_not_do(
    bridge: BridgeProcess,
) -> None:
    make_token(bridge, "member", "Pia")
    headers = {"Authorization": f"Bearer {make_token(bridge, 'viewer', 'Vera')[1]}"}

    people, admin = bridge.http.get("/people"), bridge.http.get("/me")
    me, start = (bridge.http.get(path, headers=headers) for path in ("/me", "/"))

    assert [each.status_code for each in (people, admin, me, start)] == [200] * 4
    assert "Pia" in people.text
    assert "Vera" in me.text
    assert 'data-role="viewer"' in start.text
