import { copyButton } from "./copy.js";
import { button, element } from "./dom.js";
import { durationText, percent, rateText } from "./measures.js";
import { RichText } from "./rich_text.js";

function figuresText({ tokens, accepted, first, rate }) {
  const parts = [`${tokens} tokens`];
  if (rate !== null) parts.push(`${rateText(rate)} tokens/s`);
  if (first !== null) parts.push(`first after ${durationText(first)}`);
  if (accepted > 0) parts.push(`${percent(accepted / tokens)} from drafts`);
  return parts.join(" · ");
}

// A question: text as it was written, with a form to change it.
export class QuestionView {
  // `onEdit` gets the new text.
  constructor(message, onEdit) {
    this.body = element("p", "text", message.content);
    this.edit = button("Edit", "quiet edit-question", () => this.startEdit(message.content, onEdit));
    const again = button("Ask again", "quiet again", () => onEdit(message.content));
    this.foot = element("div", "foot", "", again, this.edit, copyButton("Copy this question", () => message.content));
    this.article = element("article", "message user", "", element("h2", "hidden", "You"), this.body, this.foot);
  }

  startEdit(text, onEdit) {
    const field = element("textarea");
    field.value = text;
    field.rows = 3;
    field.setAttribute("aria-label", "Question");
    const send = element("button", "primary", "Send");
    send.type = "submit";
    const cancel = button("Cancel", "", () => end());
    const form = element("form", "edit", "", field, element("div", "", "", cancel, send));
    const end = () => {
      form.replaceWith(this.body, this.foot);
      this.edit.focus();
    };
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      if (field.value.trim()) onEdit(field.value.trim());
    });
    field.addEventListener("keydown", (event) => {
      if (event.key === "Escape") {
        event.stopPropagation();
        end();
      }
      if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
        event.preventDefault();
        form.requestSubmit();
      }
    });
    this.body.remove();
    this.foot.replaceWith(form);
    field.focus();
  }
}

// An answer: Markdown that grows, its reasoning folded, notes and what was measured.
export class AnswerView {
  // `on`: {draw, block(text), again}. `again` asks the same question once more.
  constructor(on) {
    this.on = on;
    this.body = element("div", "text");
    this.notes = element("ul", "notes");
    this.figures = element("span", "figures");
    this.foot = element("div", "foot", "", this.figures, copyButton("Copy this answer", () => this.text.source),
                        button("Regenerate", "quiet again", on.again));
    this.article = element("article", "message assistant", "", element("h2", "hidden", "Model"), this.body,
                           this.notes, this.foot);
    this.text = new RichText(this.body, { onDraw: on.draw, onBlock: on.block });
    this.thoughts = null;
  }

  // A kept message of a chat.
  restore(message) {
    if (message.reasoning) this.reasoning().restore(message.reasoning, message.reasoningRuns);
    this.text.restore(message.content, message.runs);
    for (const note of message.notes ?? []) this.note(note);
    this.showFigures(message.figures);
  }

  set running(on) {
    this.article.classList.toggle("running", on);
    this.article.setAttribute("aria-busy", String(on));
  }

  set waiting(on) { this.article.classList.toggle("waiting", on); }

  append(text, fromDrafts) { this.text.append(text, fromDrafts); }

  reasoning() {
    if (this.thoughts === null) {
      const body = element("div", "thoughts");
      const details = element("details", "", "", element("summary", "", "Reasoning"), body);
      this.article.insertBefore(details, this.body);
      this.thoughts = new RichText(body, { onDraw: this.on.draw });
    }
    return this.thoughts;
  }

  note(text) {
    const known = [...this.notes.children].some((note) => note.textContent === text);
    if (!known) this.notes.append(element("li", "", text));
  }

  showFigures(figures) {
    this.figures.textContent = figures?.tokens > 0 ? figuresText(figures) : "";
  }

  finish() {
    this.thoughts?.finish();
    this.text.finish();
  }

  // What is kept of it.
  message(figures) {
    return {
      role: "assistant",
      content: this.text.source,
      runs: this.text.runs.lengths,
      reasoning: this.thoughts?.source ?? "",
      reasoningRuns: this.thoughts?.runs.lengths ?? [],
      notes: [...this.notes.children].map((note) => note.textContent),
      figures,
    };
  }
}
