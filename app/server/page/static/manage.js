// The menu of a thread closes by Escape and by a click elsewhere; what a form did is said once.
"use strict";
(() => {
  if (document.getElementById("told").textContent) history.replaceState(null, "", location.pathname);
  const menu = document.getElementById("manage");
  if (!menu) return;
  document.addEventListener("click", (event) => { if (!menu.contains(event.target)) menu.open = false; });
  menu.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || !menu.open) return;
    event.stopPropagation();
    menu.open = false;
    menu.querySelector("summary").focus();
  });
})();
