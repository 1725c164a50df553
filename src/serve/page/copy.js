import { button, element } from "./dom.js";

// Puts `text` into the clipboard; browsers give their own function only to encrypted and local pages.
async function copy(text) {
  if (navigator.clipboard) return navigator.clipboard.writeText(text);
  const before = document.activeElement;
  const holder = element("textarea", "hidden");
  holder.value = text;
  document.body.append(holder);
  holder.select();
  const done = document.execCommand("copy");
  holder.remove();
  before?.focus();
  if (!done) throw new Error("the browser refuses");
}

// A button that copies what `text()` returns and says so for a moment.
export function copyButton(label, text) {
  const made = button("Copy", "quiet copy", async () => {
    try {
      await copy(text());
      made.textContent = "Copied";
    } catch {
      made.textContent = "Not copied";
    }
    setTimeout(() => { made.textContent = "Copy"; }, 1500);
  });
  made.title = label;
  return made;
}
