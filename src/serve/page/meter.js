const windowMilliseconds = 1000;

// What one answer measured while it streams, from the usage that each chunk carries.
export class Meter {
  constructor() {
    this.start = performance.now();
    this.samples = [];
    this.firstTokenAt = null;
  }

  // `usage`: OpenAI's, counted from the beginning of the answer.
  add(usage) {
    const details = usage.completion_tokens_details ?? {};
    const sample = {
      time: performance.now(),
      tokens: usage.completion_tokens ?? 0,
      accepted: details.accepted_prediction_tokens ?? 0,
      rejected: details.rejected_prediction_tokens ?? 0,
    };
    if (sample.tokens > 0 && this.firstTokenAt === null) this.firstTokenAt = sample.time;
    this.samples.push(sample);
  }

  get last() { return this.samples.at(-1) ?? { tokens: 0, accepted: 0, rejected: 0 }; }

  get firstTokenMilliseconds() {
    return this.firstTokenAt === null ? null : this.firstTokenAt - this.start;
  }

  // Of the last second, or null before two chunks.
  tokensPerSecond() {
    if (this.samples.length < 2) return null;
    const last = this.last;
    const first = this.samples.find((sample) => last.time - sample.time <= windowMilliseconds);
    const from = first === last ? this.samples.at(-2) : first;
    const seconds = (last.time - from.time) / 1000;
    return seconds > 0 ? (last.tokens - from.tokens) / seconds : null;
  }

  // Accepted of drafted tokens so far, or null without drafts.
  acceptance() {
    const { accepted, rejected } = this.last;
    return accepted + rejected > 0 ? accepted / (accepted + rejected) : null;
  }

  // Tokens a step: every step yields one token of the target's own beside accepted drafts.
  tokensPerStep() {
    const { tokens, accepted } = this.last;
    return tokens > accepted ? tokens / (tokens - accepted) : null;
  }
}
