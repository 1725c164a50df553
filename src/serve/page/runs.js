// Which parts of a text came from drafts. Kept as lengths in turn: of the model's own text, of drafts,
// of the model's own again, ...
export class Runs {
  constructor(lengths = []) {
    this.lengths = [...lengths];
  }

  add(length, fromDrafts) {
    if (length === 0) return;
    const lastIsDraft = this.lengths.length % 2 === 0;
    if (this.lengths.length > 0 && lastIsDraft === fromDrafts) {
      this.lengths[this.lengths.length - 1] += length;
    } else {
      if (this.lengths.length === 0 && fromDrafts) this.lengths.push(0);
      this.lengths.push(length);
    }
  }

  // The parts from drafts between `from` and `to`, as [{from, to}] counted from `from`.
  drafted(from, to) {
    const ranges = [];
    let at = 0;
    for (let i = 0; i < this.lengths.length && at < to; ++i) {
      const end = at + this.lengths[i];
      if (i % 2 === 1 && end > from) {
        ranges.push({ from: Math.max(at, from) - from, to: Math.min(end, to) - from });
      }
      at = end;
    }
    return ranges;
  }
}
