function element(name, className, text = "") {
  const made = document.createElement(name);
  made.className = className;
  made.textContent = text;
  return made;
}

// One message of the conversation. Text is only ever set as text, never as markup.
export class MessageView {
  constructor(log, role) {
    this.log = log;
    this.article = element("article", `message ${role}`);
    this.article.append(element("h2", "", role === "user" ? "You" : "Model"));
    this.body = element("p", "text");
    this.article.append(this.body);
    log.append(this.article);
    this.scroll(true);
  }

  set waiting(on) { this.body.classList.toggle("waiting", on); }

  // Adds text at the end; `fromDrafts` tells where it came from.
  append(text, fromDrafts = false) {
    const follow = this.atEnd();
    this.appendTo(this.body, text, fromDrafts);
    this.scroll(follow);
  }

  appendReasoning(text, fromDrafts = false) {
    if (!this.reasoning) {
      const details = document.createElement("details");
      details.append(element("summary", "", "Reasoning"));
      this.reasoning = element("p", "text");
      details.append(this.reasoning);
      this.article.insertBefore(details, this.body);
    }
    this.appendTo(this.reasoning, text, fromDrafts);
  }

  note(text) {
    this.article.append(element("p", "note", text));
    this.scroll(this.atEnd());
  }

  appendTo(parent, text, fromDrafts) {
    if (text === "") return;
    const last = parent.lastChild;
    const name = fromDrafts ? "MARK" : "#text";
    if (last && last.nodeName === name) {
      const node = fromDrafts ? last.firstChild : last;
      node.appendData(text);
    } else if (fromDrafts) {
      parent.append(element("mark", "draft", text));
    } else {
      parent.append(document.createTextNode(text));
    }
  }

  atEnd() {
    return this.log.scrollHeight - this.log.scrollTop - this.log.clientHeight < 60;
  }

  scroll(follow) {
    if (follow) this.log.scrollTop = this.log.scrollHeight;
  }
}
