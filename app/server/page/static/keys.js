// Keys of the page, its drawers and dialogs, the settings of this browser, and a focus that is
// never lost.
"use strict";
(() => {
  const text = document.getElementById("text");
  const search = document.getElementById("search");
  const root = document.documentElement;
  const get = (name) => document.getElementById(name);

  // Drawers on small screens.
  const drawers = ["left", "right"];
  const veil = get("veil");
  const opened = () => drawers.find((each) => document.body.classList.contains(`open-${each}`));
  const show = (which) => {
    const before = opened();
    for (const each of drawers) {
      document.body.classList.toggle(`open-${each}`, each === which);
      document.querySelector(`header [data-drawer=${each}]`)?.setAttribute("aria-expanded", String(each === which));
    }
    veil.hidden = !which;
    if (which) get(which).querySelector("a, button")?.focus();
    else if (before) document.querySelector(`header [data-drawer=${before}]`)?.focus();
  };
  document.addEventListener("click", (event) => {
    const button = event.target.closest("[data-drawer], [data-open]");
    if (button?.dataset.drawer) show(opened() === button.dataset.drawer ? null : button.dataset.drawer);
    if (button?.dataset.open) open(button.dataset.open);
    if (event.target === veil) show(null);
    if (event.target.tagName === "DIALOG") event.target.close();  // outside of what it shows
  });

  const open = (name) => {
    for (const dialog of document.querySelectorAll("dialog[open]")) dialog.close();
    if (opened()) show(null);
    get(name).showModal();
  };
  const reach = (element) => {
    const drawer = drawers.find((each) => get(each).contains(element));
    if (drawer && getComputedStyle(get(drawer)).visibility === "hidden") show(drawer);
    element.focus();
  };

  // Asks: reached by a key, answered by a number.
  const asks = () => [...document.querySelectorAll(".ask:not(.closed)")];
  const toAsk = () => {
    const open = asks();
    const next = open[open.findIndex((each) => each.contains(document.activeElement)) + 1] || open[0];
    next?.querySelector(".row button")?.focus();
    next?.scrollIntoView({ block: "nearest" });
    return Boolean(next);
  };

  const SINGLE = {
    "?": () => open("help"),
    "/": () => reach(search),
    a: toAsk,
    m: () => text?.focus(),
    n: () => { location.href = get("new").href; },
  };
  const typing = (element) => element.matches("input:not([type=checkbox], [type=radio]), textarea, select, [contenteditable]");
  document.addEventListener("keydown", (event) => {
    if (event.defaultPrevented) return;
    const key = event.key.toLowerCase();
    if ((event.ctrlKey || event.metaKey) && !event.altKey && !event.shiftKey && key === "k") {
      event.preventDefault();
      open("palette");
      return;
    }
    if (key === "escape" && opened()) { show(null); return; }
    if (event.ctrlKey || event.metaKey || event.altKey || typing(event.target)) return;
    if (document.querySelector("dialog[open]")) return;
    const ask = event.target.closest(".ask:not(.closed)");
    if (ask && /^[1-9]$/.test(key)) ask.querySelectorAll(".row button")[key - 1]?.click();
    else if (singles.checked) {
      const link = /^[a-z]$/.test(key) && document.querySelector(`#side [data-single=${key}]`);
      const act = SINGLE[key] || (link && (() => link.click()));
      if (act) { event.preventDefault(); act(); }
    }
  });

  // Settings.
  const singles = get("single-keys");
  singles.checked = localStorage.getItem("single-keys") !== "no";
  singles.addEventListener("change", () => localStorage.setItem("single-keys", singles.checked ? "yes" : "no"));
  const theme = localStorage.getItem("theme") || "";
  for (const choice of document.querySelectorAll("[name=theme]")) {
    choice.checked = choice.value === theme;
    choice.addEventListener("change", () => {
      localStorage.setItem("theme", choice.value);
      root.dataset.theme = choice.value;
    });
  }

  // An element that goes away while it has the focus passes it on: an ask to the next one, others to
  // their successor, the box or the thread.
  let last = document.activeElement;
  let home = null;
  document.addEventListener("focusin", (event) => {
    last = event.target;
    home = last.closest(".ask, [id]:not(button)");
  });
  new MutationObserver(() => {
    if (document.activeElement !== document.body || last.isConnected) return;
    const again = last.dataset.key && document.querySelector(`[data-key="${CSS.escape(last.dataset.key)}"]`);
    const asked = home?.matches(".ask");
    last = document.body;
    if (again) again.focus();
    else if (!asked || !toAsk()) (text || get("scroll")).focus();
  }).observe(document.body, { childList: true, subtree: true });

  window.bridge.drawer = show;
})();
