import { byId } from "./dom.js";
import { AnswerView, QuestionView } from "./message.js";

const nearEnd = 60;  // pixels

// The messages of the open chat. It follows its end while the reader is there.
export class ChatView {
  // `on`: {edit(index, text), again(index), block(text), start(text)}; `index`: of the message.
  constructor(log, on) {
    this.log = log;
    this.on = on;
    this.following = true;
    log.addEventListener("scroll", () => {
      this.following = log.scrollHeight - log.scrollTop - log.clientHeight < nearEnd;
      byId("latest").hidden = this.following;
    });
    byId("latest").addEventListener("click", () => {
      this.follow();
      byId("prompt").focus();
    });
  }

  show(messages) {
    this.log.replaceChildren();
    for (const message of messages) {
      if (message.role === "user") this.addQuestion(message);
      else this.addAnswer().restore(message);
    }
    if (messages.length === 0) this.welcome();
    this.follow();
  }

  welcome() {
    this.log.append(byId("welcome-template").content.cloneNode(true));
    for (const button of this.log.querySelectorAll("#starters button")) {
      button.addEventListener("click", () => this.on.start(button.textContent));
    }
  }

  // Takes away the messages from `index` on.
  cut(index) {
    for (const node of [...this.log.querySelectorAll(".message")].slice(index)) node.remove();
  }

  get length() { return this.log.querySelectorAll(".message").length; }

  addQuestion(message) {
    byId("welcome")?.remove();
    const index = this.length;
    const view = new QuestionView(message, (text) => this.on.edit(index, text));
    this.log.append(view.article);
    this.follow();
    return view;
  }

  addAnswer() {
    const index = this.length;
    const view = new AnswerView({
      draw: () => this.following && this.follow(),
      block: (text) => this.on.block(view, text),
      again: () => this.on.again(index),
    });
    this.log.append(view.article);
    this.follow();
    return view;
  }

  follow() {
    this.log.scrollTop = this.log.scrollHeight;
    this.following = true;
    byId("latest").hidden = true;
  }
}
