"""Words what the bridge itself says about turns and work, the same in every place; pure.

Agents are called by their name for people. A sentence says what happened, then what to do.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime

from app.errors import AgentDied, AgentError, AgentLoginNeeded, AgentRefused
from app.markdown.writing import span
from app.model.inbound import Reason
from app.model.posts import DelegatedLine, Note, NoteCode, Outcome, PostContent, Pushed
from app.model.remedies import remedy
from app.model.text import count, duration, reveal_line

MINUS = "\N{MINUS SIGN}"

PICKS_REPOSITORY = "Waiting for someone to pick a repository."
PICKS_UP = "The bridge restarted; {agent} is picking up where it left off."
FOUND_LATE = "Sent {at}, {why}."
AWAY = {
    "bridge": "while the bridge was away",
    "socket": "while the bridge was not connected",
    "hook": "and not delivered to the bridge",
    "access": "where the agent had no access then",
    "": "and not delivered to the bridge",
}
STILL_WANTED = "{late} Still wanted?"
COMMAND_TOO_LATE = "{late} The command was not carried out. Send it again if it is still wanted."
FOLDER_IN_USE = "Waiting for another session that is working in this folder."
FORK_TITLE = "{title} (fork)"
FROM_TRANSCRIPT = "{agent} could not restore its conversation, so it got the transcript instead."
PARKED = "Waiting for an answer to the question above."
RAN_UNASKED = "Ran without asking: {what}."
STOPPED_UNASKED = (
    "Stopped, because {agent} did this without asking. Its work so far is in its workspace; "
    "nothing was pushed."
)
TOOK_TOO_LONG = "Stopped after {minutes:g} minutes, the limit for one turn."
STOPPED = "Stopped."
ON_HOLD = "Stopped. {waiting} on hold."
CUT_OFF = "The request was cut off."
INTERRUPTED = "Interrupted by your next message."
BROKE = "Something went wrong in the bridge: {cause}"
ODD_ENDS = {
    "max_tokens": "{agent} reached its token limit for one answer.",
    "max_turn_requests": "{agent} reached its request limit for one turn.",
    "refusal": "{agent} refused to go on.",
    "cancelled": "{agent} ended its turn early.",
}
BUDGET_LOW = "${spent:.2f} of the ${budget:.2f} budget is spent."
BUDGET_SPENT = (
    "{agent} has spent ${spent:.2f} here; the budget of this session is ${budget:.2f}. "
    "Continue with the same amount again?"
)
DAY_SPENT = {
    "person": "The person who asked has spent ${spent:.2f} today; the budget is ${budget:.2f}.",
    "place": "${spent:.2f} was spent here today; the budget is ${budget:.2f}.",
    "agent": "{agent} has spent ${spent:.2f} today; its budget is ${budget:.2f}.",
    "day": "All agents together have spent ${spent:.2f} today; the budget is ${budget:.2f}.",
}
NOT_SIGNED_IN = (
    "{agent} isn't signed in. On the machine that runs the bridge, run "
    "`agent-bridge agents login {name}`. Then continue."
)
LIMITED = "{agent} hit its usage limit. {until}"
RESETS = "It resets at {at}."
RESUMES = "It resets at {at} and continues then."
RESET_UNKNOWN = "When it resets is not known."
FAILED = "{agent} failed: {problem}"
CRASHED = "{agent} crashed."
LAST_WORDS = "Its last words: {words}"
SIGN_IN_FIRST = (
    "{agent} isn't signed in. Run `agent-bridge agents login {name}` on the machine that runs the "
    "bridge, or give it its key."
)
NOT_LOGGED_IN = "Not logged in."
LOG_IN = "Run `agent-bridge agents login {agent}`, or give it its key."
LOG_IN_OR_SET = "Run `agent-bridge agents login {agent}`, or set {key}."
HIT_LIMIT = "Hit its usage limit."
WORKED_AT = "Worked at {time}."
FAILED_AT = "Failed at {time}: {words}"
AVAILABILITY = {
    "ready": "ready",
    "unavailable": "unavailable",
    "login_needed": "not logged in",
    "limited": "rate-limited",
}
"""The state of an agent in a list."""
LISTENS = {
    "mention": "From now on agents answer only messages that mention them.",
    "latest": "From now on the agent you spoke to last answers.",
    "all": "From now on every agent here answers.",
}
SHOWS = {
    "quiet": "From now on progress is shown briefly.",
    "normal": "From now on the usual progress is shown.",
    "full": "From now on every step is shown.",
}
NOTHING_RUNS = "Nothing is running here."
WHICH_AGENT = "Which agent? Mention it."
STARTS_OVER = "The next message starts over."
STATES = {
    "idle": "ready",
    "queued": "queued",
    "working": "working",
    "waiting": "waiting for an answer",
    "limited": "rate-limited",
    "parked": "asleep",
    "removed": "removed",
}
SILENCES: dict[str, str] = {
    Reason.NOT_MENTIONED: "no agent was mentioned",
    Reason.NONE_HERE: "no agent was mentioned and none is here yet",
    Reason.SEVERAL_HERE: "several agents are here and none was mentioned",
}
NOT_HERE = "{agent} is not available here: {why}."
NOT_CONNECTED = (
    "it is not connected to {service} yet. Connect it on the page under Agents, or see "
    "`agent-bridge manifest {service} {name}`"
)
NOT_KNOWN = "there is no such agent"
WHO_TAKES_OVER = "Send `agent NAME` to hand this conversation over, or `agent NAME your words`."
NO_SUCH_AGENT = "No agent is called {name}. Send `agent NAME` with one of these:"
TAKES_OVER = "• {agent} (`{name}`): {state}"
HAS_THE_PLACE = "{state}, answers here"
NOT_HERE_BECAUSE = "not here: {why}"
TOOK_OVER = "{agent} takes over. It answers messages here that mention no agent."
DID_NOT_ACT = "{agent} did not act: {why}."
AGENT_REMOVED = "{agent} was removed, so it does not answer. Mention another agent."
REMOVED_AT_WORK = (
    "{agent} was removed, and its work here is stopped. Mention another agent to go on."
)
TOO_MANY_ATTRIBUTES = "a session has at most {most} attributes. Remove one by setting it to null."
ATTRIBUTES_TOO_LARGE = "the attributes of a session take at most {most} bytes together. Keep less."
NO_LONGER_HERE = "{agent} is no longer here"
NOT_DONE = "Not done: {why}."
DOES_NOT_COUNT = "This does not count: {why}."
SEND_AGAIN = "This message could not be processed ({cause}). Please send it again."
THANKS = "Thanks. This is kept with the answer."
TOO_LATE = "Too late: the agent is already working on your original message."
EDIT_UNREAD = (
    "Couldn't read your edit, so your original message counts. Please send the change again."
)
EXPOSED = (
    "Your message contains a secret that this bridge knows. It is hidden everywhere except in what "
    "the agent reads. If others can see your message here, rotate the secret."
)
PICK_REPOSITORY = "Which repository should {agent} use? It becomes the default here."
PICK_OTHER = " These are the {shown} that changed last; for any other, say `repo OWNER/NAME`."
WORKS_IN_NAMED = "Working in {name}, which the message names. To switch, say `repo OWNER/NAME`."
WORKS_IN_LIKELY = "Working in {name}, the most likely match. To switch, say `repo OWNER/NAME`."

REPOSITORY = "Repository: {where}."
REPOSITORY_HERE = "Repository for this conversation: {where}."
REPOSITORY_ALWAYS = "Repository for this conversation and new ones: {where}."
NO_REPOSITORY = "No repository"
PULL_REQUEST = "Pull request"
CONFIGURED = "{agent}: {kind} {name}."
UNCHECKED = "the bridge could not check whether you may use this agent here; try again later"
USERS_LISTED = "you are not on its list of users; ask the operator of this bridge to add you"
BOTS_LISTED = "this bot is not on the list of bots that may use it"
SAID_CHARACTERS = 400
ASKED_CHARACTERS = 100
"""What a notice repeats of an answer and of what was asked: the page has both."""
ASKED_AGENT = "Asked {agent}"
SUBAGENT = "Sub-agent {agent}"
NOT_STOPPED_ALONE = "{name} is over, or cannot be stopped alone; Stop ends the whole turn"
SUBAGENT_LOST = "Its agent's process ended before it was done."
DELEGATED = {
    "queued": "queued",
    "working": "working",
    "waiting": "waiting for an answer",
    "done": "done",
    "failed": "failed",
    "stopped": "stopped",
}
"""What an agent that another one asked is doing."""
STILL_WORKING = "still working"
DELEGATED_ENDS = {
    "done": "{agent} is done with what {caller} asked ({task}){words}",
    "failed": "{agent} could not do what {caller} asked ({task}){words}",
    "stopped": "{agent} was stopped before it did what {caller} asked ({task})",
}
"""How an agent ended that another one asked, after the turn that asked was over."""
MORE_AGENTS = "and {number} more"
OPEN = "Open"
CUT_ANSWER = "[… {left} more characters in the transcript]"
CUT_OFF = "[cut off]"
HELP = """\
Send a command as its own message, after a mention or with `!` in front.
`stop` stops the turn and holds the queue · `stop all` drops the queue too · `new` starts over
`status` · `queue` shows the queue · `queue now` runs it · `queue drop` drops it
`!queue TEXT` keeps TEXT for the next turn · `!now TEXT` stops this turn and begins with TEXT
`agent` shows who can take over · `agent NAME` hands over · `agent NAME words` also sends them
`mode NAME` · `model NAME` · `listen mention|latest|all` · `quiet` `normal` `full` · `help`
`repo OWNER/NAME|none` for this conversation · add `always` for new ones in this channel or team"""
NOTES = {
    NoteCode.STOPPED: "Stopped.",
    NoteCode.DROPPED: "Dropped before it began.",
    NoteCode.CUT_OFF: "The bridge restarted; the agent is picking up where it left off.",
    NoteCode.CUT_OFF_TWICE: (
        "The bridge restarted twice while the agent worked on this. "
        "Send the message again to continue."
    ),
    NoteCode.NOT_NEEDED: "No longer needed.",
    NoteCode.EXPIRED: "Nobody answered in time, so this was not done.",
    NoteCode.EXPIRED_ASK: "Nobody answered: {about}",
    NoteCode.ASK_WAITS: "This has been waiting for an answer for {about}.",
    NoteCode.ASK_LOST: (
        "The bridge restarted before this was answered. The agent asks again if it still matters."
    ),
    NoteCode.ASKED_AGAIN: "Asked again in a later turn.",
    NoteCode.ANSWERED: "{by}: {about}",
    NoteCode.CONTINUED: "{by}: {about}. Continued below.",
    NoteCode.HANDED_OVER: "Handed over to {about}.",
    NoteCode.OFFER_HANDED_ON: "Superseded by a newer request; the agent sees both.",
    NoteCode.OFFER_OVERTAKEN: "Superseded by newer events.",
    NoteCode.NOBODY_ANSWERS: "No agent answers: {about}.",
    NoteCode.MESSAGE_CHANGED: "{by} edited a message: {about}",
    NoteCode.MESSAGE_TAKEN_BACK: "{by} deleted a message.",
    NoteCode.RATED_GOOD: "👍 {by} found this answer helpful.",
    NoteCode.RATED_BAD: "👎 {by} did not find this answer helpful.",
    NoteCode.SCHEDULE_FAILED: (
        "Schedule {about} is paused because it failed three times in a row. Once the cause is "
        "gone, send `schedule resume {about}`."
    ),
    NoteCode.RENAMED: "{by} renamed this conversation to “{about}”.",
    NoteCode.CLEARED: (
        "{by} cleared this conversation: what was said before is deleted, and the agents here "
        "start over. The files they work on stay."
    ),
    NoteCode.FORKED: (
        "Forked from “{about}”. {by} continues from the transcript above, in its own folder."
    ),
    NoteCode.FORKED_WHOLE: (
        "Forked from “{about}”, with what the agents remember of it. "
        "They work in folders of their own."
    ),
    NoteCode.DELEGATION_LIMIT: "The agents reached a limit of asking each other: {about}",
    NoteCode.WOKEN: "{by}{about}",
    NoteCode.OWN_TURN_CUT: (
        "The bridge restarted while the agent worked by itself. What it did until then is kept. "
        "Write to it to go on."
    ),
    NoteCode.OWN_TURNS_LIMIT: (
        "The agent began {about} by itself, as many as it may, and was told to stop. "
        "Your next message lets it go on."
    ),
    NoteCode.WORK_LOST: (
        "The bridge restarted, so this no longer runs in the background: {about}. "
        "The agent is told with your next message."
    ),
    NoteCode.WORK_ENDED: "Ended in the background: {about}",
    NoteCode.STEERED: "Taken into the running turn: “{about}”",
    NoteCode.WITHDRAWN: "The agent took this back before it was answered.",
    NoteCode.SUSPENDED: (
        "The operator has paused the work here. Messages are kept, and answered when it goes on."
    ),
}
PAUSED = {
    "all": "Everything is paused since {since}. `agent-bridge resume --all` ends it.",
    "agent": "{name} is paused since {since}. `agent-bridge resume {name}` ends it.",
    "place": "{name} is paused since {since}. `agent-bridge resume {name}` ends it.",
}
"""Says what the operator paused."""
RESTORED = (
    "Restored from a backup at {since}: nothing is read, begun or sent before "
    "`agent-bridge resume --all`."
)
DELEGATION_LIMITS = {
    "cycle": "an agent must not ask one that waits for it. It can only answer.",
    "depth": "an agent that was asked must not ask another one.",
    "turn": "one turn asked as often as it may.",
    "tree": ("one message led to as many turns as it may. Your next message lets them go on."),
    "hour": (
        "they began as many turns here within an hour as they may. Your "
        "next message lets them go on."
    ),
    "time": (
        "they worked on one message for as long as they may. Your next message lets them go on."
    ),
    "budget": ("one message cost as much as it may. Your next message lets them go on."),
}
"""Says which limit agents reached among themselves."""

DISK_LOW = (
    "{free} MiB are free on the disk of DATA_DIR; below {least} MiB no turn begins. Delete what is "
    "not needed, or give DATA_DIR a larger disk"
)


WOKEN = {
    "command": "A background command ended",
    "child": "A sub-agent is done",
    "timer": "A timer went off",
    "goal": "Working on a goal that it set itself",
    "agent": "Not asked by a message: the agent went on by itself",
}
"""Says why an agent began a turn by itself."""


def woken(by: str, about: str) -> str:
    """Say why an agent began a turn by itself."""
    what = f": {span(reveal_line(about))}" if about else "."
    return f"{WOKEN.get(by, WOKEN['agent'])}{what}"


OWN_TURNS = {"hour": "{many} turns within an hour", "session": "{many} turns one after another"}
"""Says how many turns an agent began, by the limit that it reached."""


BEGAN_HERE = "Began here"
"""Names the link to the turn that began what woke an agent."""


def own_turns(limit: str) -> str:
    """Say which limit of turns of its own an agent reached, from its code and its number."""
    which, _, many = limit.partition(" ")
    return OWN_TURNS.get(which, limit).format(many=many)


def note(note: Note) -> str:
    """Say what happened to a turn, an ask or a message."""
    if note.code is NoteCode.OWN_TURNS_LIMIT:
        note = replace(note, about=own_turns(note.about))
    if note.code is NoteCode.WOKEN:
        return woken(note.by, note.about)
    is_quoted = note.code is NoteCode.EXPIRED_ASK
    known = DELEGATION_LIMITS if note.code is NoteCode.DELEGATION_LIMIT else SILENCES
    about = span(reveal_line(note.about)) if is_quoted else known.get(note.about, note.about)
    return NOTES[note.code].format(by=note.by, about=about)


def state(name: str, state: str, waiting: int) -> str:
    """Say what an agent is doing, and how much waits for it."""
    behind = f", {count(waiting, 'message')} waiting" if waiting else ""
    return f"{name}: {STATES.get(state, state)}{behind}"


def failure(error: AgentError, agent: str, name: str) -> str:
    """Say why an agent failed, without codes; `name` is what its settings call it."""
    match error:
        case AgentLoginNeeded():
            return SIGN_IN_FIRST.format(agent=agent, name=name)
        case AgentRefused():
            words = FAILED.format(agent=agent, problem=error.message)
            facts = error.data if isinstance(error.data, dict) else {}
            return " ".join(filter(None, (words, remedy(facts.get("errorKind")))))
        case AgentDied():
            last = LAST_WORDS.format(words=error.last_words) if error.last_words else ""
            return " ".join(filter(None, (CRASHED.format(agent=agent), last)))
    words = str(error)
    return f"{agent}{words.removeprefix(name)}" if words.startswith(name) else words


def limit_reset(until: float | None, now: float, *, resumes: bool) -> str:
    """Say when a provider's limit resets."""
    if until is None:
        return RESET_UNKNOWN
    minutes = max(1, round((until - now) / 60))
    span = f"{minutes} min" if minutes < 120 else f"{minutes / 60:.0f} h"
    moment = datetime.fromtimestamp(until, UTC)
    is_near = until - now < 20 * 3600
    day = "" if is_near else f"{moment:%b} {moment.day}, "
    return (RESUMES if resumes else RESETS).format(at=f"{day}{moment:%H:%M} UTC (in {span})")


def found_late(sent_at: float, now: float, cause: str) -> str:
    """Say when something was sent that was found late, and why it did not arrive."""
    moment = datetime.fromtimestamp(sent_at, UTC)
    day = "" if now - sent_at < 20 * 3600 else f"on {moment:%b} {moment.day} "
    return FOUND_LATE.format(at=f"{day}at {moment:%H:%M} UTC", why=AWAY[cause])


def on_hold(waiting: int) -> str:
    """Say that a stop left messages on hold."""
    return ON_HOLD.format(waiting=count(waiting, "message"))


def ended(commands: Sequence[str]) -> str:
    """Say which commands a stop ended."""
    shown = [span(reveal_line(each.strip("`").removeprefix("Run `"))) for each in commands[:3]]
    more = f" and {len(commands) - 3} more" if len(commands) > 3 else ""
    return f"Ended {', '.join(shown)}{more}."


def unread(said: int) -> str:
    """Say that an agent may not have read what was said into its turn."""
    again = "it" if said == 1 else "them"
    return f"{count(said, 'message')} may not have been read: send {again} again if needed."


def pushed_words(pushed: Pushed) -> str:
    """Say what was pushed, in a sentence."""
    where = f"`{pushed.branch}` of {pushed.repository}"
    return f"Pushed to {where}: {pushed.link}" if pushed.link else f"Pushed to {where}."


def stat(pushed: Pushed) -> str:
    """Write how much was changed; empty if that is not known."""
    if not pushed.files:
        return ""
    return f"+{pushed.added} {MINUS}{pushed.removed} in {count(pushed.files, 'file')}"


def headline(content: PostContent) -> tuple[str, ...]:
    """List what the first line of a turn's last post says after where the work went.

    Empty if nothing was pushed: then the answer is all there is.
    """
    outcome = content.outcome
    if outcome is None or outcome.pushed is None or content.state != "done":
        return ()
    checks = f"checks {outcome.pushed.checks}" if outcome.pushed.checks else ""
    took = duration(outcome.seconds) if outcome.seconds >= 1 else ""
    return tuple(filter(None, (stat(outcome.pushed), took, checks)))


def asked(line: DelegatedLine) -> str:
    """Say which agent was asked; what it was asked goes on after a colon."""
    words = SUBAGENT if line.is_subagent else ASKED_AGENT
    return words.format(agent=reveal_line(line.agent))


def progress(line: DelegatedLine, content: PostContent) -> str:
    """Say how far an agent is that another one asked, in the post of the turn that asked."""
    took = f" in {duration(line.seconds)}" if line.seconds >= 1 and line.state == "done" else ""
    if line.state == "working" and content.state in {"done", "failed", "stopped"}:
        return STILL_WORKING
    return f"{DELEGATED[line.state]}{took}"


def delegated_end(line: DelegatedLine, *, caller: str) -> str:
    """Say how an agent ended that another one asked, with the beginning of its answer."""
    said = reveal_line(line.words)
    cut = said if len(said) <= SAID_CHARACTERS else f"{said[:SAID_CHARACTERS]} …"
    words = DELEGATED_ENDS[line.state].format(
        agent=reveal_line(line.agent),
        caller=reveal_line(caller),
        task=reveal_line(line.task)[:ASKED_CHARACTERS],
        words=f": {cut}" if cut else ".",
    )
    return " ".join(filter(None, (words, line.link)))


def record(content: PostContent) -> tuple[str, ...]:
    """List what a turn did, for the line below its answer: plan, calls, approvals."""
    outcome, plan = content.outcome or Outcome(), content.plan
    done = sum(step.status == "completed" for step in plan)
    people = ", ".join(dict.fromkeys(filter(None, outcome.approvers)))
    by = f" ({people})" if people else ""
    return tuple(
        filter(
            None,
            (
                f"Plan {done}/{len(plan)}" if plan else "",
                count(outcome.calls, "step") if outcome.calls else "",
                f"{count(len(outcome.approvers), 'approval')}{by}" if outcome.approvers else "",
            ),
        )
    )
