// The message box: sending, names after @, files, drafts.
"use strict";
(() => {
  const form = document.getElementById("composer");
  const text = document.getElementById("text");
  if (!form) return;
  const thread = form.querySelector("[name=thread]")?.value || "";
  const to = document.getElementById("to");
  const picker = document.getElementById("files");
  const list = document.getElementById("chosen");
  const names = document.getElementById("names");
  const box = form.querySelector(".box");
  const agents = [...document.querySelectorAll("#agents option")].map((option) => ({
    name: option.value, title: option.textContent, letters: option.dataset.letters, colour: option.dataset.colour, mark: option.dataset.mark,
  }));
  const FILES = 10;
  const FILE_BYTES = 20 * 1024 * 1024;
  let files = [];

  const grow = () => {
    if (CSS.supports("field-sizing", "content")) return;
    text.style.height = "auto";
    text.style.height = `${text.scrollHeight}px`;
  };

  // A draft outlives a reload.
  const draft = `draft:${thread}`;
  text.value ||= sessionStorage.getItem(draft) || "";
  const keepDraft = () => {
    if (text.value) sessionStorage.setItem(draft, text.value); else sessionStorage.removeItem(draft);
  };

  // Names after @.
  let found = [];
  let chosen = 0;
  const before = () => text.value.slice(0, text.selectionStart);
  const wanted = () => before().match(/(?:^|[\s(])@([\w-]*)$/)?.[1];
  const hideNames = () => {
    names.hidden = true;
    text.removeAttribute("aria-activedescendant");
  };
  const drawNames = () => {
    names.replaceChildren(...found.map((agent, index) => {
      const item = document.createElement("li");
      item.id = `name-${index}`;
      item.setAttribute("role", "option");
      item.setAttribute("aria-selected", String(index === chosen));
      const face = document.createElement("div");
      face.className = `face c${agent.colour}`;
      face.textContent = agent.letters;
      face.setAttribute("aria-hidden", "true");
      const title = document.createElement("span");
      title.textContent = agent.title;
      const name = document.createElement("small");
      name.textContent = [`@${agent.name}`, agent.mark].filter(Boolean).join(" · ");
      item.append(face, title, name);
      item.addEventListener("mousedown", (event) => { event.preventDefault(); choose(index); });
      return item;
    }));
    text.setAttribute("aria-activedescendant", `name-${chosen}`);
  };
  const suggest = () => {
    const part = wanted()?.toLowerCase();
    found = part === undefined ? [] : agents.filter(({ name, title }) =>
      name.startsWith(part) || title.toLowerCase().startsWith(part));
    chosen = 0;
    names.hidden = !found.length;
    if (found.length) drawNames(); else hideNames();
  };
  const choose = (index) => {
    const start = before().length - wanted().length;
    text.setRangeText(`${found[index].name} `, start, text.selectionStart, "end");
    hideNames();
    text.focus();
    keepDraft();
  };
  const mention = (name) => {
    const space = text.value && !/\s$/.test(text.value) ? " " : "";
    text.setRangeText(`${space}@${name} `, text.value.length, text.value.length, "end");
    text.focus();
    keepDraft();
  };

  text.addEventListener("input", () => { grow(); suggest(); keepDraft(); });
  text.addEventListener("blur", hideNames);
  text.addEventListener("keydown", (event) => {
    if (!names.hidden && ["ArrowDown", "ArrowUp"].includes(event.key)) {
      event.preventDefault();
      chosen = (chosen + (event.key === "ArrowDown" ? 1 : found.length - 1)) % found.length;
      drawNames();
    } else if (!names.hidden && ["Enter", "Tab"].includes(event.key)) {
      event.preventDefault();
      choose(chosen);
    } else if (event.key === "Escape") {
      if (names.hidden) document.getElementById("scroll").focus(); else hideNames();
    } else if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
      event.preventDefault();
      form.requestSubmit();
    }
  });

  // Files: picked, pasted or dropped.
  const drawFiles = () => {
    list.replaceChildren(...files.map((file, index) => {
      const item = document.createElement("li");
      item.className = "file";
      const name = document.createElement("bdi");
      name.textContent = file.name;
      const remove = document.createElement("button");
      remove.type = "button";
      remove.textContent = "×";
      remove.setAttribute("aria-label", `Remove ${file.name}`);
      remove.addEventListener("click", () => { files.splice(index, 1); drawFiles(); text.focus(); });
      item.append(name, remove);
      return item;
    }));
  };
  const add = (more) => {
    window.bridge.complain("");
    for (const file of more) {
      if (files.length >= FILES) window.bridge.complain(`At most ${FILES} files at once.`);
      else if (file.size > FILE_BYTES) window.bridge.complain(`${file.name} is larger than 20 MB.`);
      else files.push(file);
    }
    drawFiles();
  };
  document.getElementById("attach").addEventListener("click", () => picker.click());
  picker.addEventListener("change", () => { add(picker.files); picker.value = ""; text.focus(); });
  text.addEventListener("paste", (event) => {
    if (!event.clipboardData.files.length) return;
    event.preventDefault();
    add(event.clipboardData.files);
  });
  const main = document.querySelector("main");
  main.addEventListener("dragover", (event) => {
    if (![...event.dataTransfer.types].includes("Files")) return;
    event.preventDefault();
    box.classList.add("over");
  });
  main.addEventListener("dragleave", (event) => { if (!main.contains(event.relatedTarget)) box.classList.remove("over"); });
  main.addEventListener("drop", (event) => {
    box.classList.remove("over");
    if (!event.dataTransfer.files.length) return;
    event.preventDefault();
    add(event.dataTransfer.files);
  });

  // Sending. The text stays in the box until the bridge has stored it.
  let sending = false;
  const clear = () => {
    text.value = "";
    files = [];
    keepDraft();
    drawFiles();
    grow();
  };

  // While an agent waits for an answer, words for it are not sent without a choice.
  const instead = document.getElementById("instead");
  const COMMAND = /^(stop( all)?|status|help|queue( now| drop)?)$/i;
  const openAsk = () => {
    const said = text.value.trim();
    const names = [...said.matchAll(/(?:^|[\s(])@([\w-]+)/g)].map((each) => each[1].toLowerCase());
    const meant = names.length ? names : (to?.value || to?.options[0]?.dataset.agents || "").split(" ");
    return [...document.querySelectorAll(".ask[data-rejects]:not([data-words])")].find((ask) =>
      (meant.includes(ask.dataset.agent) || meant.includes(ask.dataset.title.toLowerCase())) && !COMMAND.test(said)
      && ![...ask.querySelectorAll("button")].some((button) => button.textContent.trim().toLowerCase() === said.toLowerCase()));
  };
  const offer = (ask) => {
    instead.hidden = !ask;
    if (!ask) return;
    instead.dataset.ask = ask.dataset.ask;
    instead.firstElementChild.textContent = `${ask.dataset.title} is waiting for your answer.`;
    instead.querySelector("button").focus();
  };
  instead.addEventListener("click", (event) => {
    const how = event.target.dataset.instead;
    if (how === "reject") send(instead.dataset.ask);
    if (how === "keep") send("", "queue");
  });
  instead.addEventListener("keydown", (event) => { if (event.key === "Escape") { offer(null); text.focus(); } });
  text.addEventListener("input", () => { offer(null); window.bridge.complain(""); });

  form.addEventListener("submit", (event) => {
    event.preventDefault();
    if (sending) return;
    if (!text.value.trim() && !files.length) {
      window.bridge.complain("Write a message, or attach a file.");
      return;
    }
    const ask = openAsk();
    if (ask) offer(ask); else send("");
  });
  const send = async (rejects, later) => {
    offer(null);
    sending = true;
    form.classList.add("sending");
    window.bridge.complain("");
    const fields = new FormData();
    fields.set("text", text.value);
    fields.set("thread", thread);
    fields.set("to", to?.value || "");
    for (const each of form.querySelectorAll("[data-send]")) fields.set(each.name, each.value);
    if (rejects) fields.set("rejects", rejects);
    if (later) fields.set("while_busy", later);
    for (const file of files) fields.append("files", file);
    try {
      const answer = await window.bridge.deliver("/send", fields);
      clear();
      if (!answer) return;
      if (thread) {
        if (to) to.value = "";
        const when = document.getElementById("when");
        if (when) when.selectedIndex = 0;
        window.bridge.toEnd();
      } else {
        location.href = (await answer.json()).path;
      }
    } catch (error) {
      window.bridge.complain(`Not sent: ${error.message}`);
    } finally {
      sending = false;
      form.classList.remove("sending");
      text.focus();
    }
  };

  // Edit and resend: what a failed turn was asked comes back into the box.
  document.addEventListener("click", async (event) => {
    const address = event.target.closest("button[data-edit]")?.dataset.edit;
    if (!address) return;
    try {
      const found = await (await fetch(address)).json();
      const sent = await Promise.all(found.files.filter(({ source }) => source).map(async ({ name, type, source }) =>
        new File([await (await fetch(source)).blob()], name, { type })));
      text.value = found.text;
      files = [];
      add(sent);
      keepDraft();
      grow();
      text.focus();
    } catch {
      window.bridge.complain("The message could not be read. Try again in a moment.");
    }
  });

  // A new thread: pick an agent, try an example. In a thread: mention one.
  const pressed = () => {
    for (const card of document.querySelectorAll("[data-pick]")) {
      card.setAttribute("aria-pressed", String(card.dataset.pick === to.value));
    }
  };
  // Why the agent that gets the message cannot work; commands are in backticks.
  const unable = document.getElementById("unable");
  const warn = () => {
    const words = to?.selectedOptions[0]?.dataset.unable || "";
    if (unable.dataset.words === words) return;
    unable.dataset.words = words;
    unable.replaceChildren(...words.split("`").map((part, index) => {
      const piece = document.createElement(index % 2 ? "code" : "span");
      piece.textContent = part;
      return piece;
    }));
  };
  // The agents of the thread were removed: nothing is sent until another one is chosen.
  const close = () => {
    text.disabled = document.getElementById("send").disabled = Boolean(to?.selectedOptions[0]?.hasAttribute("data-closed"));
  };
  const chose = () => { pressed(); warn(); close(); };
  document.addEventListener("bridge:changed", chose);
  to?.addEventListener("change", chose);
  document.addEventListener("click", (event) => {
    const button = event.target.closest("button");
    if (button?.dataset.pick) { to.value = button.dataset.pick; chose(); text.focus(); }
    if (button?.dataset.example) { text.value = button.dataset.example; grow(); keepDraft(); text.focus(); }
    if (button?.dataset.mention) { window.bridge.drawer(null); mention(button.dataset.mention); }
  });

  chose();
  grow();
  if (matchMedia("(hover: hover)").matches) text.focus();
})();
