// The picker of a new thread: where it works. A choice is checked before anything is sent.
"use strict";
(() => {
  const root = document.getElementById("repository");
  if (!root) return;
  const panel = document.getElementById("repo-panel");
  const [button, name, value] = ["button", ".repo-name", "input"].map((each) => root.querySelector(each));
  const [find, list, problem] = ["input", "ul", ".problem"].map((each) => panel.querySelector(each));
  const to = document.getElementById("to");
  const FOLDER = "folder:";
  let offered = { recent: [], listed: [] };
  let loaded = null;                     // the agent whose list it is
  let shown = [];
  let at = 0;

  const isFolder = (choice) => choice.startsWith(FOLDER);
  const label = (choice) => choice === "none" ? "No repository" : choice.replace(FOLDER, "");
  // What people paste: an address of a repository, or a path.
  const read = (text) => {
    if (/^(~?\/|folder:)/.test(text)) return FOLDER + text.replace(FOLDER, "").replace(/(.)\/+$/, "$1");
    return text.replace(/^(https?:\/\/[^/]+\/|git@[^:]+:)/, "").replace(/(\.git)?\/?$/, "");
  };

  const matching = () => {
    const typed = read(find.value.trim());
    const like = typed.toLowerCase();
    const found = [...new Set([...offered.recent, ...offered.listed])]
      .filter((choice) => choice.toLowerCase().includes(like))
      .map((choice) => [choice, offered.recent.includes(choice) ? "recent" : ""]);
    if (!typed) found.push(["none", "an empty folder"]);
    else if (!found.some(([choice]) => choice.toLowerCase() === like)) {
      if (isFolder(typed)) found.unshift([typed, "use this folder"]);
      else if (/^[\w-]+\/[\w.-]+$/.test(typed)) found.push([typed, "use this repository"]);
    }
    return found.slice(0, 100);
  };
  const draw = () => {
    list.replaceChildren(...shown.map(([choice, note], index) => {
      const item = document.createElement("li");
      item.id = `repo-${index}`;
      item.setAttribute("role", "option");
      item.setAttribute("aria-selected", String(index === at));
      const title = document.createElement("bdi");
      title.textContent = label(choice);
      const small = document.createElement("small");
      small.textContent = note;
      item.append(title, small);
      item.addEventListener("mousedown", (event) => { event.preventDefault(); choose(choice); });
      return item;
    }));
    find.setAttribute("aria-activedescendant", shown.length ? `repo-${at}` : "");
    list.children[at]?.scrollIntoView({ block: "nearest" });
  };
  const filter = () => { shown = matching(); at = 0; draw(); };

  const load = async () => {
    const agent = to.value;
    if (loaded === agent) return;
    loaded = agent;
    const answer = await fetch(`/repositories?agent=${encodeURIComponent(agent)}`).catch(() => null);
    if (agent !== loaded) return;
    if (!answer?.ok) { loaded = null; return; }
    offered = await answer.json();
    problem.textContent = offered.problem;
    filter();
  };
  const show = (open) => {
    panel.hidden = !open;
    button.setAttribute("aria-expanded", String(open));
    if (!open) return;
    find.value = problem.textContent = "";
    filter();
    find.focus();
    load();
  };
  const take = (choice) => {
    value.value = choice;
    name.textContent = isFolder(choice) ? choice.split("/").pop() : label(choice);
    button.title = label(choice);
    button.toggleAttribute("data-chosen", choice !== "none");
    show(false);
    document.getElementById("text").focus();
  };
  const choose = async (choice) => {
    problem.textContent = "";
    if (choice === "none") { take(choice); return; }
    const query = new URLSearchParams({ agent: to.value, name: choice });
    try {
      const said = await (await fetch(`/repositories/check?${query}`)).json();
      if (said.name) take(said.name);
      else problem.textContent = said.problem || said.detail;
    } catch {
      problem.textContent = "The bridge is not responding. Try again in a moment.";
    }
  };

  button.addEventListener("click", () => show(panel.hidden));
  find.addEventListener("input", filter);
  find.addEventListener("keydown", (event) => {
    const step = { ArrowDown: 1, ArrowUp: shown.length - 1 }[event.key];
    if (step === undefined && !["Enter", "Escape"].includes(event.key)) return;
    event.preventDefault();
    event.stopPropagation();
    if (step !== undefined) { at = (at + step) % (shown.length || 1); draw(); }
    else if (event.key === "Escape") { show(false); button.focus(); }
    else if (shown[at]) choose(shown[at][0]);
    else problem.textContent = "Write owner/name, or the path of a folder.";
  });
  panel.addEventListener("focusout", (event) => {
    if (!panel.contains(event.relatedTarget) && event.relatedTarget !== button) show(false);
  });
})();
