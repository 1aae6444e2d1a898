// The pages of a workspace: files load as they come into view, layout, keys, copying.
"use strict";
(() => {
  const content = document.getElementById("content");
  if (!content || !document.body.classList.contains("work")) return;
  const AHEAD = "800px";                 // loaded before it is seen
  const ROW = 20;                        // pixels of a line, so that the scroll bar tells the truth
  const changes = [...document.querySelectorAll(".patch[id]")];

  // Side by side, an equal line is shown on both sides.
  const twin = (root) => {
    if (!content.classList.contains("split")) return;
    for (const side of root.querySelectorAll(".same > .before:only-child")) {
      const copy = side.cloneNode(true);
      copy.className = "after twin";
      copy.setAttribute("aria-hidden", "true");
      side.after(copy);
    }
  };
  const layOut = (view) => {
    content.classList.toggle("split", view === "split");
    for (const button of document.querySelectorAll("[data-view]")) {
      button.setAttribute("aria-pressed", String(button.dataset.view === view));
    }
    twin(content);
  };
  const chooseLayout = (view) => {
    localStorage.setItem("changes-view", view);
    layOut(view);
  };

  const isOpen = (change) => change.querySelector(".fold").getAttribute("aria-expanded") === "true";
  const load = async (link) => {
    const lines = link.closest(".lines");
    const change = lines.closest(".patch");
    delete lines.dataset.load;
    change.querySelector(".fold").setAttribute("aria-expanded", "true");
    try {
      const answer = await fetch(link.href);
      if (answer.status === 401) { location.reload(); return; }
      if (!answer.ok) throw new Error(answer.status);
      const html = await answer.text();
      const focused = link === document.activeElement;
      (link.closest(".remark") || link).remove();
      lines.insertAdjacentHTML("beforeend", html);
      twin(lines);
      if (focused) change.querySelector("h3").focus({ preventScroll: true });
    } catch {
      link.textContent = "Not loaded: no connection. Try again";
    }
    lines.style.minHeight = "";
  };
  const seen = new IntersectionObserver((entries) => {
    for (const { isIntersecting, target } of entries) {
      const link = target.querySelector("[data-load]:not([hidden]) .load");
      if (!isIntersecting || !link) continue;
      seen.unobserve(target);
      load(link);
    }
  }, { rootMargin: AHEAD });
  for (const change of changes) {
    const lines = change.querySelector("[data-load]");
    if (!lines) continue;
    lines.style.minHeight = `${lines.dataset.load * ROW}px`;
    seen.observe(change);
  }

  const fold = (change) => {
    const lines = change.querySelector(".lines");
    const link = lines.querySelector(".remark .load");
    if (!isOpen(change) && link && !lines.hidden) { load(link); return; }
    const open = !isOpen(change);
    lines.hidden = !open;
    change.querySelector(".fold").setAttribute("aria-expanded", String(open));
  };

  let here = -1;
  const go = (step) => {
    const next = changes[here + step];
    if (!next) return;
    changes[here]?.classList.remove("here");
    here += step;
    next.classList.add("here");
    next.scrollIntoView({ block: "start" });
    next.querySelector("h3").focus({ preventScroll: true });
  };

  const copy = async (button) => {
    const words = button.textContent;
    const said = await navigator.clipboard?.writeText(button.dataset.copy).then(() => "Copied", () => "");
    button.textContent = said || "Not copied";
    setTimeout(() => { button.textContent = words; }, 1500);
  };

  const showKeys = () => document.getElementById("keys").showModal();
  document.addEventListener("click", (event) => {
    const target = event.target.closest("button, a.load");
    if (!target) return;
    if (target.matches("a.load")) { event.preventDefault(); load(target); }
    else if (target.dataset.copy !== undefined) copy(target);
    else if (target.dataset.view) chooseLayout(target.dataset.view);
    else if (target.matches(".fold")) fold(target.closest(".patch"));
    else if (target.id === "keys-button") showKeys();
  });
  document.addEventListener("focusin", (event) => {
    const at = changes.indexOf(event.target.closest(".patch"));
    if (at >= 0) here = at;
  });
  const keys = {
    j: () => go(1),
    k: () => go(-1),
    o: () => changes[here] && fold(changes[here]),
    s: () => chooseLayout(content.classList.contains("split") ? "unified" : "split"),
    p: () => document.querySelector("header a.main")?.click(),
    t: () => document.querySelector(".back").click(),
    "?": showKeys,
  };
  document.addEventListener("keydown", (event) => {
    if (!changes.length || localStorage.getItem("single-keys") === "no" || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.target.closest("input, textarea, select, dialog")) return;
    const key = keys[event.key];
    if (key) { event.preventDefault(); key(); }
  });

  // On a phone the list is above the changes, and short.
  if (changes.length > 5 && matchMedia("(max-width: 760px)").matches) document.querySelector(".list").open = false;
  if (changes.length) layOut(localStorage.getItem("changes-view") || "unified");
})();
