// The picker of a new thread: where it works. A choice is checked before anything is sent.
"use strict";
(() => {
  const root = document.getElementById("repository");
  if (!root) return;
  const panel = document.getElementById("repo-panel");
  const button = root.querySelector("button");
  const name = root.querySelector(".repo-name");
  const value = root.querySelector("input");
  const find = panel.querySelector("input");
  const list = panel.querySelector("ul");
  const problem = panel.querySelector(".problem");
  const to = document.getElementById("to");
  const NAME = /^[\w-]+\/[\w.-]+$/;
  let offered = { recent: [], listed: [], problem: "" };
  let loaded = null;                     // the agent whose list it is
  let shown = [];
  let at = 0;

  const isFolder = (choice) => choice.startsWith("folder:");
  const path = (choice) => choice.slice("folder:".length);
  const short = (choice) => isFolder(choice) ? path(choice).split("/").filter(Boolean).pop() : choice;
  const label = (choice) => choice === "none" ? "No repository" : short(choice);
  // What people paste: an address of a repository, or a path.
  const read = (text) => {
    const plain = text.trim().replace(/^(https?:\/\/[^/]+\/|git@[^:]+:)/, "").replace(/(\.git)?\/?$/, "");
    if (/^(\/|~\/)/.test(text.trim())) return `folder:${text.trim().replace(/(.)\/+$/, "$1")}`;
    return isFolder(text.trim()) ? text.trim() : plain;
  };

  const matching = () => {
    const typed = read(find.value);
    const has = (choice) => choice.toLowerCase().includes(typed.toLowerCase());
    const found = [
      ...offered.recent.filter(has).map((choice) => [choice, "recent"]),
      ...offered.listed.filter((choice) => has(choice) && !offered.recent.includes(choice)).map((choice) => [choice, ""]),
    ];
    const exact = found.some(([choice]) => choice.toLowerCase() === typed.toLowerCase());
    if (!exact && isFolder(typed) && path(typed).length > 1) found.unshift([typed, "use this folder"]);
    if (!exact && NAME.test(typed)) found.push([typed, "use this repository"]);
    if (!typed) found.push(["none", "a scratch folder"]);
    return found.slice(0, 100);
  };

  const draw = () => {
    list.replaceChildren(...shown.map(([choice, note], index) => {
      const item = document.createElement("li");
      item.id = `repo-${index}`;
      item.setAttribute("role", "option");
      item.setAttribute("aria-selected", String(index === at));
      const title = document.createElement("bdi");
      title.textContent = isFolder(choice) ? path(choice) : label(choice);
      const small = document.createElement("small");
      small.textContent = note;
      item.append(title, small);
      item.addEventListener("mousedown", (event) => { event.preventDefault(); choose(choice); });
      return item;
    }));
    if (shown.length) find.setAttribute("aria-activedescendant", `repo-${at}`);
    else find.removeAttribute("aria-activedescendant");
    list.children[at]?.scrollIntoView({ block: "nearest" });
  };
  const filter = () => { shown = matching(); at = 0; draw(); };

  const load = async () => {
    if (loaded === to.value) return;
    const agent = loaded = to.value;
    try {
      const answer = await fetch(`/repositories?agent=${encodeURIComponent(agent)}`);
      if (!answer.ok || agent !== loaded) return;
      offered = await answer.json();
      problem.textContent = offered.problem;
      filter();
    } catch { loaded = null; }
  };

  const show = () => {
    panel.hidden = false;
    button.setAttribute("aria-expanded", "true");
    find.value = problem.textContent = "";
    filter();
    find.focus();
    load();
  };
  const hide = () => {
    panel.hidden = true;
    button.setAttribute("aria-expanded", "false");
  };
  const take = (choice) => {
    value.value = choice;
    name.textContent = label(choice);
    button.title = isFolder(choice) ? path(choice) : "";
    button.toggleAttribute("data-chosen", choice !== "none");
    hide();
    document.getElementById("text").focus();
  };
  const choose = async (choice) => {
    problem.textContent = "";
    if (choice === "none") { take(choice); return; }
    panel.setAttribute("aria-busy", "true");
    const query = new URLSearchParams({ agent: to.value, name: choice });
    try {
      const answer = await fetch(`/repositories/check?${query}`);
      const said = await answer.json();
      if (said.name) take(said.name);
      else problem.textContent = said.problem || said.detail;
    } catch {
      problem.textContent = "The bridge is not responding. Try again in a moment.";
    } finally {
      panel.removeAttribute("aria-busy");
    }
  };

  button.addEventListener("click", () => { if (panel.hidden) show(); else hide(); });
  find.addEventListener("input", filter);
  find.addEventListener("keydown", (event) => {
    if (["ArrowDown", "ArrowUp"].includes(event.key) && shown.length) {
      event.preventDefault();
      at = (at + (event.key === "ArrowDown" ? 1 : shown.length - 1)) % shown.length;
      draw();
    } else if (event.key === "Enter") {
      event.preventDefault();
      if (shown[at]) choose(shown[at][0]);
      else problem.textContent = "Write owner/name, or the path of a folder.";
    } else if (event.key === "Escape") {
      event.stopPropagation();
      hide();
      button.focus();
    }
  });
  panel.addEventListener("focusout", (event) => {
    if (!panel.contains(event.relatedTarget) && event.relatedTarget !== button) hide();
  });
})();
