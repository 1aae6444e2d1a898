// Sends forms without leaving the page, and shows what was done or what is wrong; every form also works without this.
"use strict";
(() => {
  const TOLD_MS = 8000;   // long enough to read a sentence
  const told = document.getElementById("told");
  const parse = (text) => new DOMParser().parseFromString(text, "text/html");
  const dirty = new WeakSet();
  let looked = 0;
  let fading = null;

  document.body.classList.add("live");

  const tell = (words) => {
    told.textContent = words;
    clearTimeout(fading);
    fading = setTimeout(() => { told.textContent = ""; }, TOLD_MS);
  };
  // A reload does not repeat what was said.
  if (told.textContent) {
    tell(told.textContent);
    history.replaceState(null, "", location.pathname + location.hash);
  }
  const mark = (form, on) => {
    if (on) dirty.add(form); else dirty.delete(form);
    form.classList.toggle("dirty", on);
  };

  // Puts the parts of a newer page in place; a part in which something is being written stays.
  const take = (fresh, sent) => {
    const at = document.activeElement;
    const focus = at?.id || (at?.closest("[data-part]")?.id ?? "");
    for (const part of document.querySelectorAll("[data-part]")) {
      const next = fresh.getElementById(part.id);
      const forms = part.matches("form") ? [part] : [...part.querySelectorAll("form")];
      if (!next || part.isEqualNode(next) || forms.some((form) => form !== sent && dirty.has(form))) continue;
      const was = [...part.querySelectorAll("details")].map((each) => each.open && !each.contains(sent));
      part.replaceWith(next);
      [...next.querySelectorAll("details")].forEach((each, number) => { each.open ||= was[number]; });
    }
    if (focus && document.activeElement === document.body) {
      const home = document.getElementById(focus);
      (home?.matches("[data-part]") ? home.querySelector("input:not([type=hidden]), select, textarea, button, summary") : home)?.focus();
    }
  };

  // Shows what is wrong at its field, else at the form or on top; what was written stays.
  const complain = (form, fresh, words) => {
    let first = null;
    const say = (place, said) => {
      place.textContent = said;
      const input = document.getElementById(place.id.replace(/^p-/, "v-"));
      input?.toggleAttribute("aria-invalid", Boolean(said));
      if (!said) return;
      place.closest("details")?.setAttribute("open", "");
      first ||= input || place;
    };
    told.textContent = "";
    for (const place of document.querySelectorAll("[data-problem]")) {
      say(place, fresh?.getElementById(place.id)?.textContent.trim() ?? "");
    }
    if (!first) say(form.querySelector("[data-problem]") || document.getElementById("p-page"), words);
    if (first.matches("[data-problem]")) first.scrollIntoView({ block: "center" });
    else first.focus();
  };

  const send = async (form, submitter) => {
    const body = new FormData(form, submitter);
    const action = submitter?.hasAttribute("formaction") ? submitter.formAction : form.action;
    form.classList.add("sending");
    let answer;
    let text;
    try {
      answer = await fetch(action, { method: "POST", body });
      text = await answer.text();
    } catch {
      complain(form, null, "The bridge does not answer. Try again.");
      return;
    } finally {
      form.classList.remove("sending");
    }
    if (answer.redirected && (form.hasAttribute("data-whole") || new URL(answer.url).pathname !== location.pathname)) {
      location.assign(answer.url);
      return;
    }
    if (answer.status === 401) {
      location.reload();
      return;
    }
    const fresh = answer.headers.get("Content-Type")?.startsWith("text/html") ? parse(text) : null;
    if (answer.ok && fresh) {
      mark(form, false);
      form.reset();
      for (const place of [document.getElementById("p-page"), ...form.querySelectorAll("[data-problem]")]) place.textContent = "";
      take(fresh, form);
      tell(fresh.getElementById("told")?.textContent ?? "");
      return;
    }
    let detail = "";
    try { detail = JSON.parse(text).detail; } catch { /* a page, or a proxy's words */ }
    complain(form, fresh, detail ? `Nothing was changed: ${detail.replace(/\.$/, "")}.` : `The bridge answered ${answer.status}.`);
  };

  document.addEventListener("submit", (event) => {
    const form = event.target;
    if (form.method !== "post") return;
    event.preventDefault();
    if (!form.classList.contains("sending")) send(form, event.submitter);
  });
  document.addEventListener("input", (event) => {
    const form = event.target.form;
    if (form) mark(form, true);
  });
  // A choice is saved when it is made; own rules are written first.
  document.addEventListener("change", (event) => {
    const input = event.target;
    const saves = input.matches("form.field[data-part] select, form.field[data-part] [type=checkbox]");
    if (saves && input.value !== "rules") input.form.requestSubmit();
  });

  // Availability changes by itself: look again when the bridge says that something did.
  const look = async () => {
    const now = Date.now();
    if (document.hidden || now - looked < 1500 || document.querySelector(".sending")) return;
    looked = now;
    try {
      const answer = await fetch(location.pathname + location.search);
      if (answer.ok) take(parse(await answer.text()), null);
      else if ([404, 410].includes(answer.status)) location.reload();   // it has another name, or is gone
    } catch { /* the next one may succeed */ }
  };
  if (document.getElementById("list") && document.querySelector("#cards, #status")) {
    new EventSource("/events?threads=1").addEventListener("state", look);
  }
})();
