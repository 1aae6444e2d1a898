// Asks, failures and what to do about them: focus, waiting times, words for an open ask.
"use strict";
(() => {
  const bridge = window.bridge;
  const text = document.getElementById("text");
  const DEAF = 400;                      // milliseconds: what appears under a click is not answered
  const asks = () => [...document.querySelectorAll(".ask[data-ask]")];

  // An ask that just appeared, or moved because another one did, takes no click yet.
  let known = asks().map((ask) => ask.id).join();
  let deaf = null;
  const rows = () => document.querySelectorAll(".ask[data-ask] > .row");
  const watch = () => {
    const now = asks().map((ask) => ask.id).join();
    if (now !== known) {
      known = now;
      clearTimeout(deaf);
      deaf = setTimeout(() => { deaf = null; for (const row of rows()) row.removeAttribute("aria-disabled"); }, DEAF);
    }
    if (deaf) for (const row of rows()) row.setAttribute("aria-disabled", "true");
    count();
  };
  document.addEventListener("click", (event) => {
    if (event.target.closest("[aria-disabled=true]") && event.detail) event.stopImmediatePropagation();
  }, true);

  const count = () => {
    if (document.body.classList.contains("away")) return;
    for (const each of document.querySelectorAll("[data-asked]")) {
      const minutes = Math.floor((Date.now() / 1000 - Number(each.dataset.asked)) / 60);
      const span = minutes < 60 ? `${minutes} min` : minutes < 1440 ? `${Math.floor(minutes / 60)} h` : `${Math.floor(minutes / 1440)} d`;
      const words = minutes < 1 ? "Waiting for an answer" : `Waiting ${span}`;
      if (each.textContent !== words) each.textContent = words;
    }
  };
  setInterval(count, 15000);
  document.addEventListener("bridge:changed", watch);
  count();

  // After an answer the focus goes to the next ask, else to the box.
  document.addEventListener("bridge:posted", ({ target }) => {
    const ask = target.closest(".ask");
    if (!ask || (document.activeElement !== target && document.activeElement !== document.body)) return;
    const next = asks().find((each) => each !== ask)?.querySelector(".row button");
    if (next) next.focus();
    else if (matchMedia("(hover: hover)").matches) (text || document.getElementById("scroll")).focus();
  });

  // The log of a failure is loaded when it is opened.
  document.addEventListener("toggle", async ({ target }) => {
    const into = target.open && target.dataset.load && target.querySelector(".loaded:empty");
    if (!into) return;
    const answer = await fetch(target.dataset.load).catch(() => null);
    if (answer?.ok) into.innerHTML = await answer.text();
    else into.textContent = "The log could not be loaded.";
  }, true);
})();
