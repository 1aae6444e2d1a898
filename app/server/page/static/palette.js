// The palette: threads, agents and commands by a few letters.
"use strict";
(() => {
  const dialog = document.getElementById("palette");
  const text = document.getElementById("palette-text");
  const list = document.getElementById("palette-list");
  const none = document.getElementById("palette-none");
  const fixed = [...list.children];
  const AT_FIRST = 6;                    // threads before anything is written
  const REST = 150;
  let shown = [];
  let chosen = 0;
  let asked = 0;

  const words = () => text.value.toLowerCase().split(/\s+/).filter(Boolean);
  const fits = (item) => words().every((word) => item.textContent.toLowerCase().includes(word));
  // A command is there when what it clicks is there; a panel that is hidden can still be opened.
  const works = (item) => !item.dataset.click || document.querySelector(item.dataset.click)?.checkVisibility() ||
    Boolean(document.querySelector(`dialog ${item.dataset.click}, nav ${item.dataset.click}`));
  const thread = (link) => {
    const item = document.createElement("li");
    item.setAttribute("role", "option");
    item.dataset.href = link.getAttribute("href");
    const mark = link.querySelector(".mark").cloneNode();
    const title = link.querySelector(".title").cloneNode(true);
    const more = document.createElement("small");
    more.textContent = [...link.querySelectorAll(".by, .chip, time")].map((each) => each.textContent).join(" · ");
    item.append(mark, title, more);
    return item;
  };

  const choose = (index) => {
    chosen = Math.max(0, Math.min(index, shown.length - 1));
    shown.forEach((item, number) => {
      item.id = `palette-${number}`;
      item.setAttribute("aria-selected", String(number === chosen));
    });
    if (shown.length) text.setAttribute("aria-activedescendant", `palette-${chosen}`);
    else text.removeAttribute("aria-activedescendant");
    shown[chosen]?.scrollIntoView({ block: "nearest" });
  };
  const draw = (threads) => {
    const known = new Set();
    const fresh = threads.filter((item) => !known.has(item.dataset.href) && known.add(item.dataset.href));
    shown = [...fixed.filter((item) => works(item) && fits(item)), ...fresh];
    if (!words().length) shown = [...fresh, ...fixed.filter(works)];
    list.replaceChildren(...shown);
    none.hidden = Boolean(shown.length);
    choose(0);
  };
  const near = () => [...document.querySelectorAll("#threads .thread")].map(thread);
  const look = async () => {
    const number = ++asked;
    if (!words().length) { draw(near().slice(0, AT_FIRST)); return; }
    draw(near().filter(fits));
    await new Promise((resolve) => { setTimeout(resolve, REST); });
    if (number !== asked) return;
    const found = await window.bridge.find(text.value.trim()).catch(() => null);
    if (number !== asked || !found) return;
    const kept = chosen;
    draw([...near().filter(fits), ...[...found.querySelectorAll(".thread")].map(thread)]);
    choose(kept);
  };
  const go = (item) => {
    dialog.close();
    if (item.dataset.href) { location.href = item.dataset.href; return; }
    const target = document.querySelector(item.dataset.click);
    target.click();
    if (target.matches("input[type=search]")) target.focus();
  };

  text.addEventListener("input", look);
  text.addEventListener("keydown", (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1, PageDown: 8, PageUp: -8 }[event.key];
    if (step) { event.preventDefault(); choose(chosen + step); }
    if (event.key === "Enter" && shown[chosen]) { event.preventDefault(); go(shown[chosen]); }
  });
  list.addEventListener("click", (event) => {
    const item = event.target.closest("li");
    if (item) go(item);
  });
  new MutationObserver(() => { if (dialog.open) { text.value = ""; look(); } })
    .observe(dialog, { attributeFilter: ["open"] });
})();
