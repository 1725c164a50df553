const windowMilliseconds = 1000;

// What one answer measured, from the usage and the origins that its chunks carry.
export class Meter {
  // `sentAt`: performance.now() when the question was sent.
  constructor(sentAt) {
    this.sentAt = sentAt;
    this.samples = [];
    this.firstTokenAt = null;
    this.promptTokens = null;
    this.numSteps = 0;
    this.acceptedAt = [];    // steps that accepted a draft at position 1, 2, ...
    this.open = 0;           // accepted drafts of a step whose own token has not come yet
    this.firstSeen = false;  // the prompt's step gives a token without drafts
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
    this.promptTokens = usage.prompt_tokens ?? this.promptTokens;
    if (sample.tokens > 0) this.sawToken();
    if (sample.tokens > this.last.tokens) this.samples.push(sample);
    else Object.assign(this.last, { accepted: sample.accepted, rejected: sample.rejected });
  }

  sawToken() { this.firstTokenAt ??= performance.now(); }

  // `told`: the "token_origins" of a choice. Each step is a run of accepted drafts and then one token
  // of the model's own.
  addOrigins(told) {
    for (const { origin, num_tokens: count } of told ?? []) {
      if (origin === "draft") {
        this.open += count;
        continue;
      }
      let steps = count;
      if (!this.firstSeen && this.open === 0 && steps > 0) {
        this.firstSeen = true;
        --steps;
      }
      if (steps > 0) this.closeStep(steps);
    }
  }

  closeStep(steps = 1) {
    for (let i = 0; i < this.open; ++i) this.acceptedAt[i] = (this.acceptedAt[i] ?? 0) + 1;
    this.numSteps += steps;
    this.open = 0;
  }

  // After the last chunk: a step whose own token ended the answer is not told.
  finish() {
    if (this.open > 0) this.closeStep();
  }

  get last() { return this.samples.at(-1) ?? { tokens: 0, accepted: 0, rejected: 0 }; }

  get firstTokenMilliseconds() {
    return this.firstTokenAt === null ? null : this.firstTokenAt - this.sentAt;
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

  // From the first token to the last; of an answer that came at once, from the sending on.
  meanTokensPerSecond() {
    const first = this.samples[0];
    const last = this.last;
    if (last.tokens === 0) return null;
    const alone = last.tokens === first.tokens || last.time === first.time;
    const seconds = (last.time - (alone ? this.sentAt : first.time)) / 1000;
    return (alone ? last.tokens : last.tokens - first.tokens) / seconds;
  }

  // Accepted of drafted tokens so far, or null without drafts.
  acceptance() {
    const { accepted, rejected } = this.last;
    return accepted + rejected > 0 ? accepted / (accepted + rejected) : null;
  }

  // Share of the steps that accepted a draft at position 1, 2, ...; empty without drafts.
  acceptanceByPosition() {
    if (this.acceptance() === null || this.numSteps === 0) return [];
    return this.acceptedAt.map((count) => count / this.numSteps);
  }

  // Tokens a step: every step yields one token of the target's own beside accepted drafts.
  tokensPerStep() {
    const { tokens, accepted } = this.last;
    return tokens > accepted ? tokens / (tokens - accepted) : null;
  }

  // What stays with the answer.
  figures() {
    const { tokens, accepted } = this.last;
    return { tokens, accepted, first: this.firstTokenMilliseconds, rate: this.meanTokensPerSecond() };
  }
}
