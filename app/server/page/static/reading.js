// Copies what is next to a button, and shows pictures in full size.
"use strict";
(() => {
  const told = document.createElement("p");
  told.className = "hidden";
  told.setAttribute("role", "status");
  document.body.append(told);

  // The words of a message, without its tools and thoughts; buttons and labels are no words.
  const wordsOf = (message) => {
    message.classList.add("copying");
    const parts = [...message.querySelectorAll(":scope > .body > .md")].map((each) => each.innerText.trim());
    message.classList.remove("copying");
    return parts.join("\n\n");
  };
  const textOf = (button) => {
    const message = button.closest(".who")?.parentElement;
    if (message) return wordsOf(message);
    return button.dataset.copy || button.parentElement.querySelector("pre").textContent.replace(/\n$/, "");
  };
  // Browsers offer the clipboard only to pages with https or on this machine.
  const put = async (text) => {
    if (navigator.clipboard) return navigator.clipboard.writeText(text);
    const box = document.createElement("textarea");
    box.value = text;
    document.body.append(box);
    box.select();
    const done = document.execCommand("copy");
    box.remove();
    if (!done) throw new Error("refused");
  };
  const say = (button, words) => {
    button.textContent = told.textContent = words;
    setTimeout(() => { button.textContent = "Copy"; told.textContent = ""; }, 1500);
  };

  const dialog = document.createElement("dialog");
  dialog.className = "full";
  const image = document.createElement("img");
  const close = document.createElement("button");
  close.type = "button";
  close.textContent = "Close";
  const save = document.createElement("a");
  save.textContent = "Download";
  save.download = "";
  dialog.append(image, save, close);
  document.body.append(dialog);
  dialog.addEventListener("click", (event) => { if (event.target !== image && event.target !== save) dialog.close(); });
  const enlarge = (link) => {
    image.src = save.href = link.href;
    image.alt = link.dataset.full;
    dialog.setAttribute("aria-label", link.dataset.full);
    dialog.showModal();
  };

  document.addEventListener("click", async (event) => {
    const button = event.target.closest("button[data-copy]");
    if (button) {
      event.preventDefault();
      await put(textOf(button)).then(() => say(button, "Copied"), () => say(button, "Not copied"));
      button.focus();
    }
    const link = event.target.closest("a[data-full]");
    if (link && !event.ctrlKey && !event.metaKey && !event.shiftKey) {
      event.preventDefault();
      enlarge(link);
    }
  });
})();
