// The list of threads: times that count, days, what is new, search; and telling when someone is
// needed: in the title, on the icon, by a notification.
"use strict";
(() => {
  const list = document.getElementById("threads");
  const found = document.getElementById("found");
  const search = document.getElementById("search");
  const shown = (link) => link.querySelector(".title").textContent;
  const links = (marks) => [...list.querySelectorAll(".thread")].filter(marks || Boolean);

  // Times and days, in the zone of the reader.
  const date = new Intl.DateTimeFormat(undefined, { day: "numeric", month: "short" });
  const whole = new Intl.DateTimeFormat(undefined, { dateStyle: "short", timeStyle: "medium" });
  const day = (moment) => new Date(moment).setHours(0, 0, 0, 0);
  const ago = (moment) => {
    const minutes = Math.floor((Date.now() - moment) / 60000);
    if (minutes < 1) return "now";
    if (minutes < 60) return `${minutes}m`;
    if (minutes < 1440) return `${Math.floor(minutes / 60)}h`;
    return minutes < 10080 ? `${Math.floor(minutes / 1440)}d` : date.format(moment);
  };
  const count = () => {
    for (const time of document.querySelectorAll("time.ago")) {
      const moment = new Date(time.dateTime);
      time.textContent = ago(moment);
      time.title = whole.format(moment);
    }
  };
  const name = (item) => {
    const days = Math.round((day(Date.now()) - day(item.querySelector("time").dateTime)) / 86400000);
    return days < 1 ? "Today" : days < 2 ? "Yesterday" : "Older";
  };
  const split = () => {
    const recent = list.querySelector("ul[data-days]");
    if (!recent) return;
    const groups = Map.groupBy ? Map.groupBy([...recent.children], name) : new Map([["Recent", [...recent.children]]]);
    const heading = recent.previousElementSibling;
    const focused = recent.contains(document.activeElement) ? document.activeElement : null;
    const made = [...groups].flatMap(([title, items]) => {
      const head = heading.cloneNode();
      head.textContent = title;
      const group = document.createElement("ul");
      group.append(...items);
      return [head, group];
    });
    heading.remove();
    recent.replaceWith(...made);
    focused?.focus();  // what is moved loses it
  };

  // What is new: the last row of each thread that this browser has shown. What was there before its
  // first visit is not new.
  const KEPT = 500;
  const memory = () => JSON.parse(localStorage.getItem("seen") || "null");
  const see = () => {
    const rows = links().map((link) => Number(link.dataset.last));
    const seen = memory() || { "": Math.max(0, ...rows) };
    const here = list.querySelector(".thread.on");
    if (here && !document.hidden) seen[here.pathname] = Math.max(seen[here.pathname] || 0, Number(here.dataset.last));
    const kept = Object.entries(seen).sort((one, two) => two[1] - one[1]).slice(0, KEPT);
    localStorage.setItem("seen", JSON.stringify({ ...Object.fromEntries(kept), "": seen[""] }));
    for (const link of links()) {
      const fresh = Number(link.dataset.last) > Math.max(seen[""], seen[link.pathname] || 0);
      if (link.classList.toggle("fresh", fresh) && !link.querySelector(".since")) {
        const words = document.createElement("span");
        words.className = "hidden since";
        words.textContent = "New: ";
        link.firstElementChild.prepend(words);
      } else if (!fresh) link.querySelector(".since")?.remove();
    }
  };

  // Title and icon say how many threads need someone.
  const icon = document.getElementById("icon");
  const plain = icon.href;
  const title = document.title;
  const tell = () => {
    const needed = links((link) => link.dataset.mark === "wait").length;
    const fresh = links((link) => link.classList.contains("fresh")).length;
    document.title = (needed ? `(${needed}) ` : "") + title;
    const wanted = needed || fresh ? new URL(icon.dataset.badge, location).href : plain;
    if (icon.href !== wanted) icon.href = wanted;
  };

  // Notifications: of threads that this browser has opened, while the page is out of sight.
  const WORDS = { wait: "needs you", fail: "failed", "": "is done" };
  const LONG = 30000;
  const bar = document.getElementById("notify");
  const marks = new Map();
  const began = new Map();
  const may = () => "Notification" in window && Notification.permission === "granted" && localStorage.getItem("notify") !== "no";
  const notice = () => {
    const seen = memory() || {};
    for (const link of links()) {
      const { pathname: path, dataset: { mark } } = link;
      const before = marks.get(path);
      marks.set(path, mark);
      if (mark === "work" && before !== "work") began.set(path, Date.now());
      if (before === undefined || before === mark || mark === "work" || mark === "limit") continue;
      const took = Date.now() - began.get(path);
      if (link.classList.contains("on") && took > LONG && "Notification" in window &&
          Notification.permission === "default" && !localStorage.getItem("notify")) bar.hidden = false;
      if (!document.hidden || !may() || !(path in seen)) continue;
      const made = new Notification(shown(link), { body: `${link.querySelector(".by").textContent} ${WORDS[mark]}`, tag: path, icon: plain });
      made.addEventListener("click", () => { window.focus(); location.href = path; });
    }
  };
  const decide = async (answer) => {
    bar.hidden = true;
    if (answer === "yes" && await Notification.requestPermission() !== "granted") answer = "no";
    localStorage.setItem("notify", answer);
    setting.checked = may();
  };
  const setting = document.getElementById("notify-on");
  setting.checked = may();
  setting.addEventListener("change", () => decide(setting.checked ? "yes" : "no"));
  document.getElementById("notify-yes").addEventListener("click", () => decide("yes"));
  document.getElementById("notify-no").addEventListener("click", () => decide("no"));

  const draw = () => { split(); count(); see(); notice(); tell(); changes.takeRecords(); };
  const changes = new MutationObserver(draw);
  changes.observe(list, { childList: true });
  setInterval(count, 30000);
  document.addEventListener("visibilitychange", () => { see(); tell(); });
  window.addEventListener("storage", (event) => { if (event.key === "seen") { see(); tell(); } });

  // Search: the bridge looks, after a short rest in typing.
  const REST = 150;
  let wait = null;
  let asked = 0;
  const find = async (words) => {
    const answer = await fetch(`/threads?q=${encodeURIComponent(words)}`);
    const made = document.createElement("template");
    made.innerHTML = answer.ok ? await answer.text() : "";
    return made.content;
  };
  const look = async () => {
    const number = ++asked;
    const words = search.value.trim();
    if (words) {
      const content = await find(words).catch(() => null);
      if (number !== asked || !content) return;
      found.replaceChildren(content);
      count();
    }
    found.hidden = !words;
    list.hidden = Boolean(words);
    const many = found.querySelectorAll(".thread").length;
    document.getElementById("count").textContent = words ? `${many} ${many === 1 ? "thread" : "threads"} found` : "";
  };
  search.addEventListener("input", () => { clearTimeout(wait); wait = setTimeout(look, REST); });
  search.form.addEventListener("submit", (event) => { event.preventDefault(); found.querySelector(".thread")?.click(); });
  search.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || !search.value) return;
    event.preventDefault();
    search.value = "";
    look();
  });

  window.bridge.find = find;
  draw();
})();
