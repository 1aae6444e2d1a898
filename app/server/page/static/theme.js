// Sets the theme that a person chose, before anything is shown.
"use strict";
document.documentElement.dataset.theme = localStorage.getItem("theme") || "";
