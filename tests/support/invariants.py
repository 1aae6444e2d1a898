"""What must be true after any number of crashes: read off the platform, the store and the agent.

Each check returns what is wrong in words; a test wants the whole list to be empty.
"""

from __future__ import annotations

import hashlib
import itertools
import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sqlalchemy import select

from app.model.record import RecordRow, verify, write_header, write_row
from app.store.database import Database, sqlite_url
from app.store.dialects import transaction
from app.store.record import follow
from app.store.record.chain import row_of
from app.store.tables import record
from tests.support.bridge import BridgeProcess
from tests.support.platform import FINAL, RemotePost
from tests.support.world import Said, World

SHOWN_AS = {"done": "done", "failed": "failed", "cancelled": "stopped"}
TOLD_OF_THE_CUT = ("picking up where it left off", "restarted twice", "Stopped.")
CONTINUATION = ": continuation."


def violations(world: World) -> list[str]:
    """Check everything; the bridge must have been ended politely."""
    return [
        *outcomes(world),
        *repetitions(world),
        *disorder(world),
        *posts(world),
        *silences(world),
        *gaps(world),
        *leftovers(world),
        *unrecorded(world),
    ]


def outcomes(world: World) -> Iterator[str]:
    """Check that every event led to one turn per agent, which ended, and that nothing waits."""
    for said in world.said:
        decisions = world.bridge.rows(
            "select count(*) from decision where message_id = ?", said.event["message_id"]
        )
        if decisions != [(1,)]:
            yield f"{_name(said)} was decided on {decisions[0][0]} times"
        states = [state for _, state in _turns_of(world, said)]
        if len(states) != len(said.agents) or not set(states) <= set(SHOWN_AS):
            yield f"{_name(said)} led to turns {states}"
    turns = world.bridge.rows("select count(*) from turn")[0][0]
    used = world.bridge.rows("select count(distinct turn) from heard")[0][0]
    if turns != used:
        yield f"{turns} turns, but messages in {used} only"
    unsettled = {
        "deliveries": "select count(*) from delivery where state in ('new', 'failed')",
        "asks": "select count(*) from ask where state = 'open'",
        "posts": "select count(*) from post where state in ('new', 'closing', 'failed')",
        "processes": "select count(*) from process",
    }
    for what, query in unsettled.items():
        if (found := world.bridge.rows(query)) != [(0,)]:
            yield f"{found[0][0]} {what} are unsettled"


def unrecorded(world: World) -> Iterator[str]:
    """Check that what was decided, ran and was posted is in the record, once, and it is whole."""
    rows = read_record(world.bridge)
    found = Counter(row.source for row in rows)
    yield from (
        f"{source} is recorded {count} times" for source, count in found.items() if count > 1
    )
    verdict = verify([write_header(len(rows), rows[-1].hash), *map(write_row, rows)])
    if verdict.flaw is not None:
        yield f"row {verdict.number} of the record: {verdict.flaw}"
    asks = world.bridge.rows("select 'ask:' || id from ask where state != 'open'")
    posts = world.bridge.rows("select 'post:' || id from post where state in ('done', 'failed')")
    yield from (f"{name} is not recorded" for (name,) in (*asks, *posts) if name not in found)
    calls = world.bridge.rows("select turn, data from transcript where kind = 'tool'")
    facts = [(turn, json.loads(data) if isinstance(data, str) else data) for turn, data in calls]
    ran = {(turn, data["call"]) for turn, data in facts if data["status"] == "completed"}
    told_of = Counter(row.outcome for row in rows if row.kind == "call")
    if told_of["completed"] != len(ran):
        yield f"{len(ran)} calls were completed, and {told_of} recorded"


def read_record(bridge: BridgeProcess) -> list[RecordRow]:
    """Read the record of a bridge that has ended, after what is left for its next start."""
    database = Database(bridge.database or sqlite_url(bridge.data_dir))
    try:
        with database.engine.connect() as connection, transaction(connection):
            while follow(connection, 1.0):
                pass
            rows = connection.execute(select(record).order_by(record.c.number)).all()
            return [row_of(row) for row in rows]
    finally:
        database.engine.dispose()


def told(world: World, word: str) -> list[str]:
    """List the prompts with which an agent was told a message."""
    return [p for history in _histories(world) for p in history if _holds(p, word)]


def repetitions(world: World) -> Iterator[str]:
    """Check that no words reached an agent twice as if they were new, or a third time."""
    for said in world.said:
        for_this = told(world, said.word)
        fresh = [prompt for prompt in for_this if CONTINUATION not in prompt.partition("\n")[0]]
        if len(fresh) > len(said.agents):
            yield f"{_name(said)} was told {len(fresh)} times as if it were new"
        if len(for_this) > 2 * len(said.agents) + world.polite_ends:
            yield f"{_name(said)} was told {len(for_this)} times"
    cuts = world.bridge.rows("select id, cuts from turn where cuts > 1")
    yield from (f"turn {turn} was tried after {count} cuts" for turn, count in cuts)


def disorder(world: World) -> Iterator[str]:
    """Check that turns took the messages in order and ran one after another."""
    for place in {said.place for said in world.said}:
        here = [said for said in world.said if said.place == place]
        taken = [turn for said in here for turn, _ in _turns_of(world, said)[:1]]
        if taken != sorted(taken):
            yield f"{place}: messages became part of turns {taken}"
    rows = world.bridge.rows(
        "select session, turn, min(id), max(id) from transcript where turn is not null "
        "group by session, turn order by session, turn"
    )
    for earlier, later in itertools.pairwise(rows):
        if earlier[0] == later[0] and earlier[3] > later[2]:
            yield f"turn {later[1]} began before turn {earlier[1]} ended"
    for history in _histories(world):
        heard = [
            next(number for number, prompt in enumerate(history) if _holds(prompt, said.word))
            for said in world.said
            if any(_holds(prompt, said.word) for prompt in history)
        ]
        if heard != sorted(heard):
            yield f"an agent heard the messages in the order {heard}"


def posts(world: World) -> Iterator[str]:
    """Check that the place shows each turn and ask once, final, and left alone then."""
    kept = world.bridge.rows(
        "select post.marker, turn.state from post join turn on post.key = 'turn:' || turn.id"
    )
    remote = {post.marker: post for post in world.platform.turns()}
    if len(kept) != len(world.platform.turns()) or {marker for marker, _ in kept} != set(remote):
        yield f"{len(kept)} turns are shown in {len(world.platform.turns())} posts"
    for marker, state in kept:
        post = remote.get(marker)
        if post is not None and post.state != SHOWN_AS.get(state):
            yield f"a turn that is {state} is shown as {post.state}"
    everything = [*world.platform.turns(), *world.platform.shown("ask")]
    for post in everything:
        if post.finished > 1 + world.deaths + world.polite_ends:
            yield f"{_shown(post)} was finished {post.finished} times"
        if post.reopened or (post.content["kind"] == "turn" and post.state not in FINAL):
            yield f"{_shown(post)} went on after its end, or never ended"
    for what, count in Counter((p.target, p.text) for p in world.platform.turns()).items():
        if count > 1 and what[1]:
            yield f"{what} is shown {count} times"
    asks = world.bridge.rows("select count(*) from ask")[0][0]
    shown = len({post.marker for post in world.platform.shown("ask")})
    if (asks, asks) != (shown, len(world.platform.shown("ask"))):
        yield f"{asks} asks are shown in {len(world.platform.shown('ask'))} posts"


def silences(world: World) -> Iterator[str]:
    """Check that a turn that was cut off says so in the place, and no other turn does."""
    turns = world.bridge.rows(
        "select turn.id, turn.continued, post.marker from turn "
        "join post on post.key = 'turn:' || turn.id"
    )
    remote = {post.marker: post for post in world.platform.turns()}
    for turn, continued, marker in turns:
        note = remote[marker].note if marker in remote else ""
        told = any(words in note for words in TOLD_OF_THE_CUT)
        if continued and not told:
            yield f"turn {turn} was cut off and its post only says {note!r}"
        if not continued and TOLD_OF_THE_CUT[0] in note:
            yield f"turn {turn} was not cut off, but its post says {note!r}"


def gaps(world: World) -> Iterator[str]:
    """Check that the history has every message once, and every word that a place shows."""
    for said in world.said:
        found = world.bridge.rows(
            "select speaker from transcript where kind = 'message' and text = ?",
            said.event["text"],
        )
        if said.agents and found != [(said.event["speaker"]["name"],)]:
            yield f"{_name(said)} stands in the transcript {len(found)} times"
    for turn, state, content in world.bridge.rows(
        "select turn.id, turn.state, post.content from turn "
        "join post on post.key = 'turn:' || turn.id"
    ):
        rows = world.bridge.rows(
            "select text from transcript where turn = ? and kind = 'text' order by id", turn
        )
        words, shown = "".join(text for (text,) in rows), json.loads(content)["text"]
        if not words.endswith(shown) or (state == "done" and not shown):
            yield f"turn {turn} shows {shown!r}, its transcript says {words!r}"


def leftovers(world: World) -> Iterator[str]:
    """Check that nothing that the bridge started is still there."""
    for folder in world.data_dirs:
        for pid, marker in agent_processes(folder):
            yield f"process {pid} ({marker}) is left"


def agent_processes(data_dir: Path) -> list[tuple[int, str]]:
    """List the processes that carry a marker of this DATA_DIR's bridge."""
    bridge = hashlib.sha256(str(data_dir.resolve()).encode()).hexdigest()[:16]
    mark = f"AGENT_BRIDGE_PROCESS={bridge}.".encode()
    found = []
    for environment in Path("/proc").glob("[0-9]*/environ"):
        try:
            variables = environment.read_bytes().split(b"\0")
        except OSError:
            continue
        found += [
            (int(environment.parent.name), variable.decode())
            for variable in variables
            if variable.startswith(mark)
        ]
    return found


def _histories(world: World) -> list[list[str]]:
    """Read what the agent itself says it was told, conversation by conversation."""
    return [
        [record["text"] for record in _records(path) if record["role"] == "user"]
        for folder in world.data_dirs
        for path in sorted(folder.glob("session-homes/*/.agent-bridge-demo/*.jsonl"))
    ]


def _records(path: Path) -> Iterator[dict[str, Any]]:
    for line in path.read_text().splitlines():
        try:
            yield json.loads(line)
        except ValueError:
            continue  # a kill tore it


def _holds(prompt: str, word: str) -> bool:
    """Whether a prompt tells a message, not merely quotes it as an earlier one."""
    _, data, rest = prompt.partition("\n</data>\n")
    # The first of a thousand words begins a later one.
    after = (rest if data else prompt).split(word)[1:] if word else []
    return any(not each[:1].isdigit() for each in after)


def _turns_of(world: World, said: Said) -> list[tuple[int, str]]:
    rows = world.bridge.rows(
        "select turn.id, turn.state from message join heard on heard.message = message.id "
        "join turn on turn.id = heard.turn where message.message_id = ?",
        said.event["message_id"],
    )
    return [(turn, state) for turn, state in rows]


def _name(said: Said) -> str:
    return f"{said.word or said.event['text']} in {said.place}"


def _shown(post: RemotePost) -> str:
    return f"{post.content['kind']} {post.marker} ({post.state}: {post.note or post.text!r})"
