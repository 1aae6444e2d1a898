// Commands after / and files after # or @/ in the message box; modes and models by a choice.
"use strict";
(() => {
  document.addEventListener("change", async (event) => {
    const { set } = event.target.dataset;
    if (!set) return;
    const fields = new FormData();
    fields.set("value", event.target.value);
    await window.bridge.post(set, fields).catch((error) => window.bridge.complain(error.message));
  });

  const text = document.getElementById("text");
  const list = document.getElementById("commands");
  if (!list) return;
  let all = null;
  let shown = [];
  let chosen = 0;
  let range = null;
  // A number after # is an issue, and a # alone begins a heading.
  const file = () => text.value.slice(0, text.selectionStart).match(/(?<=^|\s)(?:#(?!\d*$)|@\/)(\S*)$/);
  const load = async () => {
    all ??= await fetch(`/commands${location.pathname}`).then((answer) => (answer.ok ? answer.json() : [])).catch(() => null);
    return all || [];
  };
  const hide = () => {
    list.hidden = true;
    text.removeAttribute("aria-activedescendant");
    text.setAttribute("aria-controls", "names");
  };
  const draw = () => {
    list.replaceChildren(...shown.map((item, index) => {
      const line = document.createElement("li");
      line.id = `command-${index}`;
      line.setAttribute("role", "option");
      line.setAttribute("aria-selected", String(index === chosen));
      const name = document.createElement("b");
      name.textContent = item.name;
      const words = document.createElement("small");
      words.textContent = item.words;
      line.append(name, words);
      line.addEventListener("mousedown", (event) => { event.preventDefault(); choose(index); });
      return line;
    }));
    list.children[chosen]?.scrollIntoView({ block: "nearest" });
    text.setAttribute("aria-controls", "commands");
    text.setAttribute("aria-activedescendant", `command-${chosen}`);
  };
  const choose = (index, send) => {
    const { text: words, whole } = shown[index];
    text.setRangeText(words, range.from, range.to(), "end");
    hide();
    text.focus();
    if (send && whole) text.form.requestSubmit();
  };
  const show = (items, within) => {
    [shown, chosen, range] = [items, 0, within];
    list.hidden = !shown.length;
    if (shown.length) draw(); else hide();
  };
  text.addEventListener("input", async () => {
    const part = text.value.match(/^\/(.*)$/)?.[1].toLowerCase();
    const named = file();
    if (part !== undefined) {
      const found = (await load()).filter(({ name }) => name.toLowerCase().startsWith(`/${part}`));
      if (text.value.startsWith("/")) show(found, { from: 0, to: () => text.value.length });
    } else if (named) {
      const found = await fetch(`/names${location.pathname}?q=${encodeURIComponent(named[1])}`).then((answer) => (answer.ok ? answer.json() : [])).catch(() => []);
      if (file()?.[0] === named[0]) show(found, { from: named.index, to: () => text.selectionStart });
    } else if (!list.hidden) hide();
  });
  text.addEventListener("blur", hide);
  // Before the box itself sees the key.
  text.addEventListener("keydown", (event) => {
    if (list.hidden || event.isComposing) return;
    const step = { ArrowDown: 1, ArrowUp: shown.length - 1 }[event.key];
    if (step) { chosen = (chosen + step) % shown.length; draw(); }
    else if (event.key === "Enter" || event.key === "Tab") choose(chosen, event.key === "Enter");
    else if (event.key === "Escape") hide();
    else return;
    event.preventDefault();
    event.stopImmediatePropagation();
  }, { capture: true });
})();
