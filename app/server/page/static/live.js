// Keeps the page up to date: blocks of the thread, text as it is written, state.
// Text that has no row yet is removed when the stream breaks, so that a page that reconnects is
// right.
"use strict";
(() => {
  const body = document.body;
  const log = document.getElementById("log");
  const scroll = document.getElementById("scroll");
  const latest = document.getElementById("latest");
  const connection = document.getElementById("connection");
  const csrf = document.querySelector("meta[name=csrf]").content;
  const NEAR = 90;                       // pixels from the end that still count as the end
  const WAITS = [300, 600, 1200, 2500, 5000];
  const unsettled = new Map();           // id → the element as its last row left it, or null

  let after = Number(body.dataset.after);
  let failures = 0;
  let source = null;
  let following = true;

  const parsed = (html) => {
    const template = document.createElement("template");
    template.innerHTML = html;
    return template.content.firstElementChild;
  };

  // Times are written in UTC; people read them in their own zone.
  const clock = new Intl.DateTimeFormat(undefined, { hour: "numeric", minute: "2-digit" });
  const date = new Intl.DateTimeFormat(undefined, { day: "numeric", month: "short", hour: "numeric", minute: "2-digit" });
  const whole = new Intl.DateTimeFormat(undefined, { dateStyle: "short", timeStyle: "medium" });
  const localise = (root) => {
    const today = new Date().toDateString();
    for (const time of root.querySelectorAll("time[datetime]:not(.ago)")) {
      const moment = new Date(time.dateTime);
      time.textContent = (moment.toDateString() === today ? clock : date).format(moment);
      time.title = whole.format(moment);
    }
  };

  // How long something has been going on is counted here, by the clock of the bridge.
  let ahead = 0;
  const lasted = (from) => {
    const seconds = Math.max(0, Math.floor(Date.now() / 1000 + ahead - from));
    const [hours, minutes] = [Math.floor(seconds / 3600), Math.floor(seconds / 60) % 60];
    if (hours) return `${hours}h ${minutes}m`;
    return minutes ? `${minutes}m ${seconds % 60}s` : `${seconds}s`;
  };
  const tick = () => {
    if (!connection.hidden) return;
    for (const each of document.querySelectorAll("[data-from]")) each.textContent = lasted(each.dataset.from);
    const running = new Set();
    for (const line of document.querySelectorAll("#status [data-turn]")) running.add(`${line.dataset.turn}-head`);
    for (const took of log.querySelectorAll(".took.on")) {
      if (running.has(took.closest(".who").id)) continue;
      took.classList.remove("on");
      took.textContent = took.dataset.took;
    }
    for (const id of running) {
      const took = document.getElementById(id)?.querySelector(".took");
      took?.classList.add("on");
      if (took) took.textContent = ` · ${lasted(took.dataset.began)}`;
    }
  };
  setInterval(tick, 1000);

  // A block that a person opened or closed stays so when it is replaced.
  const keepFolds = (old, fresh) => {
    const pairs = [old, ...old.querySelectorAll("details[id]")];
    for (const each of pairs) {
      if (each.tagName !== "DETAILS" || each.dataset.touched === undefined) continue;
      const twin = fresh.id === each.id ? fresh : fresh.querySelector(`#${CSS.escape(each.id)}`);
      if (twin) { twin.open = each.open; twin.dataset.touched = ""; }
    }
  };
  document.addEventListener("click", (event) => {
    const summary = event.target.closest("summary");
    if (summary) summary.parentElement.dataset.touched = "";
  });

  const atEnd = () => scroll.scrollHeight - scroll.scrollTop - scroll.clientHeight < NEAR;
  const toEnd = () => { if (log.childElementCount) scroll.scrollTop = scroll.scrollHeight; };
  // Only a person scrolls up; what grows below, such as a picture that loads, is followed.
  let top = 0;
  scroll.addEventListener("scroll", () => {
    following = atEnd() || (following && scroll.scrollTop >= top);
    top = scroll.scrollTop;
    latest.hidden = following || !log.childElementCount;
  }, { passive: true });
  new ResizeObserver(() => { if (following) toEnd(); }).observe(log);
  latest.addEventListener("click", () => { toEnd(); latest.hidden = true; });

  const place = ({ id, home, html, before, away }) => {
    const old = document.getElementById(id);
    if (!html) { old?.remove(); return true; }
    const fresh = parsed(html);
    localise(fresh);
    if (old) {
      keepFolds(old, fresh);
      old.replaceWith(fresh);
      return true;
    }
    const parent = document.getElementById(home);
    if (!parent) return false;
    const next = before && document.getElementById(before);
    if (away || next) { if (next) next.before(fresh); else parent.prepend(fresh); return true; }
    const live = parent.querySelector(":scope > [id$='-live']");
    if (live && live.id !== id) live.before(fresh); else parent.append(fresh);
    return true;
  };

  // Steps that have become earlier ones go while the end is followed, never under a reader's eyes.
  const leaving = new Map();             // home → the link in their place, with their ids
  const opened = new Set();              // homes whose earlier steps a person wanted to see
  const leave = (link) => {
    if (opened.has(link.home)) return;
    leaving.set(link.home, { ...link, away: [...leaving.get(link.home)?.away || [], ...link.away] });
  };
  const putAway = () => {
    for (const [home, link] of leaving) {
      const going = link.away.map((id) => document.getElementById(id)).filter(Boolean);
      if (going.some((each) => each.contains(document.activeElement))) continue;
      for (const each of going) each.remove();
      place(link);
      leaving.delete(home);
    }
  };

  document.addEventListener("click", async (event) => {
    const link = event.target.closest("a[data-steps]");
    if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    if (link.ariaBusy) return;
    link.ariaBusy = "true";
    complain("");
    try {
      const answer = await fetch(link.dataset.steps);
      if (!answer.ok) throw new Error(`The bridge answered ${answer.status}.`);
      showSteps(link.parentElement, await answer.text());
    } catch (error) {
      link.ariaBusy = null;
      complain(error.message);
    }
  });

  // They open where the link was, as a fold does, and the focus goes to the first of them.
  const showSteps = (line, html) => {
    const fresh = document.createElement("template");
    fresh.innerHTML = html;
    localise(fresh.content);
    opened.add(line.parentElement.id);
    leaving.delete(line.parentElement.id);
    following = false;
    log.setAttribute("aria-busy", "true");
    const elements = [...fresh.content.children];
    for (const each of elements) if (each.id !== line.id) document.getElementById(each.id)?.remove();
    const top = line.getBoundingClientRect().top;
    line.replaceWith(...elements);
    scroll.scrollTop += elements[0].getBoundingClientRect().top - top;
    (elements.map((each) => each.querySelector("a, summary")).find(Boolean) || scroll).focus({ preventScroll: true });
    changed();
    showBusy();
  };

  const keepingView = (change) => {
    const stay = following;
    change();
    if (stay) putAway();
    if (stay) toEnd(); else latest.hidden = atEnd() || !log.childElementCount;
  };

  const takeBlocks = (patches) => keepingView(() => {
    for (const patch of patches) {
      // A block that was shown before it had a row moves to where its row puts it.
      if (unsettled.get(patch.id) === null) document.getElementById(patch.id)?.remove();
      unsettled.delete(patch.id);
      if (patch.away) { leave(patch); continue; }
      if (patch.before) for (const link of leaving.values()) link.away = link.away.filter((id) => id !== patch.id);
      if (!place(patch)) { reload(); return; }
    }
    changed();
    tick();
  });

  const takeLive = (patches) => keepingView(() => {
    for (const patch of patches) {
      if (!unsettled.has(patch.id)) unsettled.set(patch.id, document.getElementById(patch.id));
      place(patch);
    }
  });

  const takeBackLive = () => {
    for (const [id, before] of unsettled) {
      const now = document.getElementById(id);
      if (now && before && now !== before) now.replaceWith(before);
      else if (now && !before) now.remove();
    }
    unsettled.clear();
  };

  // A message that waits is shown once, below the thread.
  const hideWaiting = () => {
    const waiting = new Set();
    for (const each of document.querySelectorAll("[data-messages]")) {
      for (const id of each.dataset.messages.split(" ")) if (id) waiting.add(id);
    }
    for (const each of log.querySelectorAll(":scope > article[hidden]")) {
      if (!waiting.has(each.id)) each.hidden = false;
    }
    for (const id of waiting) {
      const element = document.getElementById(id);
      if (element) element.hidden = true;
    }
  };

  const fill = (element, html) => {
    if (element.innerHTML === html) return;
    const focused = element.contains(document.activeElement) ? document.activeElement.dataset.key : null;
    const chosen = element.tagName === "SELECT" ? element.value : null;
    const before = element.cloneNode(true);
    element.innerHTML = html;
    keepFolds(before, element);
    if (chosen !== null) element.value = chosen;
    if (element.tagName === "SELECT" && element.selectedIndex < 0) element.selectedIndex = 0;
    hint();
    localise(element);
    if (focused) element.querySelector(`[data-key="${CSS.escape(focused)}"]`)?.focus();
  };

  const changed = () => {
    hideWaiting();
    hint();
    document.dispatchEvent(new Event("bridge:changed"));
  };

  const hint = () => {
    const box = document.getElementById("text");
    const usual = document.querySelector("#to option[data-hint]")?.dataset;
    const ask = [...document.querySelectorAll(".ask[data-ask]")].find((each) => usual?.agents.split(" ").includes(each.dataset.agent));
    const words = ask ? `Answer ${ask.dataset.title}` : usual?.hint;
    if (box && words && box.placeholder !== words) box.placeholder = words;
  };

  const takeState = (panels) => keepingView(() => {
    for (const [name, html] of Object.entries(panels)) {
      const element = document.getElementById(name);
      if (element) fill(element, html);
    }
    changed();
    showBusy();
    tick();
  });

  const showBusy = () => {
    const dot = document.querySelector("#state > .dot");
    log.setAttribute("aria-busy", String(Boolean(dot?.classList.contains("work"))));
  };

  const reload = () => {
    const last = Number(sessionStorage.getItem("reloaded") || 0);
    if (Date.now() - last < 10000) return;
    sessionStorage.setItem("reloaded", String(Date.now()));
    location.reload();
  };

  let retry = null;
  const connectIn = (milliseconds) => {
    clearTimeout(retry);
    retry = setTimeout(connect, milliseconds);
  };

  const connect = () => {
    const address = body.dataset.events;
    if (!address) return;
    source?.close();
    source = new EventSource(`${address}&after=${after}`);
    source.addEventListener("open", () => {
      failures = 0;
      away(false);
    });
    source.addEventListener("now", (event) => {
      ahead = Number(event.data) - Date.now() / 1000;
      tick();
    });
    source.addEventListener("blocks", (event) => {
      takeBlocks(JSON.parse(event.data));
      after = Number(event.lastEventId) || after;
    });
    source.addEventListener("live", (event) => takeLive(JSON.parse(event.data)));
    source.addEventListener("state", (event) => {
      takeState(JSON.parse(event.data));
      if (resting) rest();
    });
    source.addEventListener("error", () => {
      source.close();
      takeBackLive();
      const wait = WAITS[Math.min(failures, WAITS.length - 1)];
      failures += 1;
      if (failures > 1) away(true);
      if (failures === 2 || failures % 5 === 0) askWhy();
      connectIn(wait * (0.8 + Math.random() * 0.4));
    });
  };

  const away = (gone) => {
    const came = body.classList.contains("away") && !gone;
    body.classList.toggle("away", gone);
    connection.textContent = "Connection lost. Reconnecting …";
    connection.hidden = !gone;
    if (came) complain("");
    if (!gone) document.dispatchEvent(new Event("bridge:back"));
  };

  // What was sent did not arrive: the stream may be cut off as well and not know it yet.
  const lost = () => {
    source?.close();
    takeBackLive();
    away(true);
    connectIn(WAITS[2]);
  };

  // A browser holds six connections per host. A hidden page closes its connection and only polls,
  // so that its title still shows when a person is needed.
  const REST_AFTER = 60000;
  const LOOK_EVERY = 20000;
  let resting = false;
  let nap = null;
  const rest = () => {
    resting = true;
    source?.close();
    takeBackLive();
    connectIn(LOOK_EVERY);
  };
  document.addEventListener("visibilitychange", () => {
    clearTimeout(nap);
    if (document.hidden) nap = setTimeout(rest, REST_AFTER);
    else if (resting) { resting = false; connectIn(0); }
  });

  // An event stream does not say why it was refused; an expired log-in needs a person.
  const askWhy = async () => {
    try {
      const answer = await fetch(location.href, { headers: { Accept: "text/html" } });
      if (answer.status === 401) location.reload();
    } catch { /* unreachable: the next attempt follows */ }
  };

  const post = async (address, fields) => {
    const answer = await fetch(address, {
      method: "POST",
      headers: { "X-CSRF-Token": csrf, Accept: "application/json" },
      body: fields,
    }).catch(() => { throw Object.assign(new Error("No connection to the bridge."), { away: true }); });
    if (!answer.ok) {
      const { detail } = await answer.json().catch(() => ({}));
      // A proxy answers in place of a bridge that is away, without the bridge's words.
      const gone = [502, 503, 504].includes(answer.status) && !detail;
      throw Object.assign(new Error(detail || `The bridge answered ${answer.status}.`), { away: gone, status: answer.status });
    }
    return answer;
  };

  const complain = (words) => {
    const problem = document.getElementById("problem");
    if (problem) problem.textContent = words;
  };

  document.addEventListener("click", async (event) => {
    const button = event.target.closest("button[data-post], button[data-all], button[data-say]");
    if (!button || button.disabled) return;
    button.disabled = true;
    complain("");
    try {
      if (button.dataset.all) {
        const answer = await fetch(button.dataset.all);
        if (!answer.ok) throw new Error(`The bridge answered ${answer.status}.`);
        document.getElementById(button.dataset.into).innerHTML = await answer.text();
        return;
      }
      const fields = new FormData();
      if (button.dataset.say) {
        fields.set("text", button.dataset.say);
        fields.set("thread", document.querySelector("#composer [name=thread]")?.value || "");
        await post("/send", fields);
        return;
      }
      for (const name of ["option", "session", "message", "turn", "turns"]) {
        if (button.dataset[name] !== undefined) fields.set(name, button.dataset[name]);
      }
      for (const name of button.dataset.to?.split(" ") || []) fields.append("to", name);
      await window.bridge.deliver(button.dataset.post, fields);
      button.dispatchEvent(new Event("bridge:posted", { bubbles: true }));
    } catch (error) {
      complain(error.message);
    } finally {
      button.disabled = false;
    }
  });

  window.bridge = { post, complain, lost, toEnd: () => { following = true; toEnd(); } };

  localise(document);
  hint();
  hideWaiting();
  showBusy();
  if (!location.hash) toEnd();
  following = atEnd();
  connect();
  window.addEventListener("pagehide", () => source?.close());
  window.addEventListener("pageshow", (event) => { if (event.persisted) connect(); });
})();
