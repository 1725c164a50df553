// Who proposed the text of an answer. The server tells it for the model's whole text; what an event
// shows may come later, or leave markers out, so pieces are looked up in the order in which they
// came.
export class Origins {
  constructor() {
    this.pieces = [];  // not shown yet: {text, fromDrafts}
  }

  // `told`: the "token_origins" of a choice, or undefined.
  add(told) {
    for (const { origin, text } of told ?? []) {
      if (text !== "") this.pieces.push({ text, fromDrafts: origin === "draft" });
    }
  }

  // Cuts `text` into [{text, fromDrafts}].
  split(text) {
    const waiting = this.pieces.map((piece) => piece.text).join("");
    const at = waiting.indexOf(text);
    if (at < 0) return [{ text, fromDrafts: false }];
    this.take(at);
    return this.take(text.length);
  }

  // Removes the first `count` characters and returns them.
  take(count) {
    const taken = [];
    while (count > 0) {
      const first = this.pieces[0];
      const text = first.text.slice(0, count);
      taken.push({ text, fromDrafts: first.fromDrafts });
      first.text = first.text.slice(text.length);
      if (first.text === "") this.pieces.shift();
      count -= text.length;
    }
    return taken;
  }
}
