// Keeps what a person sends while the bridge is away, and sends it when the bridge is back.
// Each message has an id that is made once; the bridge takes the same id once.
"use strict";
(() => {
  const bridge = window.bridge;
  const panel = document.getElementById("kept");
  const me = document.body.dataset.visitor;
  const KEPT = /^\/(send|repeat|stop)\b/;
  const newId = () => [...crypto.getRandomValues(new Uint8Array(16))].map((each) => each.toString(16).padStart(2, "0")).join("");

  // In the browser's own store: it outlives a reload, and it can hold files.
  const store = (mode, use) => new Promise((done, fail) => {
    const opening = indexedDB.open("agent-bridge", 1);
    opening.onupgradeneeded = () => opening.result.createObjectStore("kept", { keyPath: "id" });
    opening.onerror = () => fail(opening.error);
    opening.onsuccess = () => {
      const work = opening.result.transaction("kept", mode);
      const request = use(work.objectStore("kept"));
      work.oncomplete = () => { opening.result.close(); done(request.result); };
      work.onabort = () => fail(work.error);
    };
  });
  const put = (entry) => store("readwrite", (kept) => kept.put(entry));
  const drop = (entry) => store("readwrite", (kept) => kept.delete(entry.id));
  const all = async () => (await store("readonly", (kept) => kept.getAll()))
    .filter(({ visitor }) => visitor === me).sort((one, other) => one.at - other.at);

  const words = (entry) => {
    if (entry.problem) return `Not sent: ${entry.problem}`;
    if (entry.address.startsWith("/stop")) return "Not stopped yet: no connection. It will be stopped when the bridge is back.";
    return "Not sent yet: no connection. It will be sent when the bridge is back.";
  };
  let shown = [];
  const show = async () => {
    const entries = (await all()).filter((entry) => entry.page === location.pathname);
    shown = entries.map(({ id }) => id);
    panel?.replaceChildren(...entries.map((entry) => {
      const card = document.createElement("div");
      card.className = "waiting kept";
      card.innerHTML = '<div><p></p><p class="what" dir="auto"></p></div><button type="button">Discard</button>';
      const lines = card.querySelectorAll("p");
      lines[0].textContent = words(entry);
      lines[1].textContent = entry.text;
      card.lastChild.addEventListener("click", () => drop(entry).then(show));
      return card;
    }));
  };

  const keep = async (address, fields) => {
    const same = address.startsWith("/stop") && (await all()).find((entry) => entry.address === address);
    if (same) return;
    const text = fields.get("text") || (address.startsWith("/repeat") ? "Try again" : "");
    await put({ id: fields.get("id"), at: Date.now(), visitor: me, page: location.pathname, address, text, fields: [...fields] });
    await show();
    bridge.toEnd();
  };

  // Returns the answer, or null if it was kept.
  bridge.deliver = async (address, fields) => {
    if (!fields.has("id")) fields.set("id", newId());
    try {
      return await bridge.post(address, fields);
    } catch (error) {
      if (!error.away || !KEPT.test(address)) throw error;
      await keep(address, fields);
      bridge.lost();
      return null;
    }
  };

  // Any window may send what another one keeps: the thread opens where the message was written.
  const windows = new BroadcastChannel("agent-bridge-kept");
  const follow = ({ id, path }) => {
    if (path && shown.includes(id)) location.href = path;
  };
  windows.onmessage = ({ data }) => { follow(data); show(); };

  const AGAIN = 5000;
  let again = null;
  let busy = false;
  const flush = async () => {
    if (busy) return;
    clearTimeout(again);
    busy = true;
    try {
      for (const entry of await all()) {
        if (entry.problem) continue;
        const fields = new FormData();
        for (const [name, value] of entry.fields) fields.append(name, value);
        try {
          const answer = await bridge.post(entry.address, fields);
          await drop(entry);
          const sent = { id: entry.id, path: entry.page === "/" ? (await answer.json()).path : "" };
          windows.postMessage(sent);
          follow(sent);
        } catch (error) {
          // The stream is open and stays so: it shows what arrived in spite of this.
          if (error.away) again = setTimeout(flush, AGAIN);
          if (error.away || [401, 403].includes(error.status)) break;
          await put({ ...entry, problem: error.message });
        }
      }
    } finally {
      busy = false;
      await show();
    }
  };
  document.addEventListener("bridge:back", flush);
  show();
})();
