import { chatChunks } from "./api.js";
import { Meter } from "./meter.js";
import { Origins } from "./origins.js";

function textOfWarning(warning) {
  return typeof warning === "string" ? warning : warning?.message ?? JSON.stringify(warning);
}

// One answer on its way from the server into a view.
export class AnswerRun {
  constructor(view, onMeasure) {
    this.view = view;
    this.onMeasure = onMeasure;
    this.controller = new AbortController();
    this.origins = new Origins();
    this.meter = null;
  }

  stop() { this.controller.abort(); }

  get hasText() { return this.view.text.source !== "" || this.view.thoughts !== null; }

  // Returns when the answer is whole; throws a ServerProblem or an AbortError.
  async read(body, headers) {
    this.meter = new Meter(performance.now());
    try {
      for await (const chunk of chatChunks(body, headers, this.controller.signal)) this.take(chunk);
    } finally {
      this.meter.finish();
      if (this.meter.last.tokens > 0) this.onMeasure(this.meter, true);
    }
  }

  take(chunk) {
    for (const warning of [chunk.warnings ?? []].flat()) this.view.note(textOfWarning(warning));
    for (const choice of chunk.choices) this.takeChoice(choice);
    if (chunk.usage) {
      this.meter.add(chunk.usage);
      this.onMeasure(this.meter, false);
    }
  }

  takeChoice({ delta, token_origins: told, finish_reason: reason }) {
    this.origins.add(told);
    this.meter.addOrigins(told);
    const reasoning = delta?.reasoning ?? delta?.reasoning_content;
    if (reasoning) this.show(reasoning, this.view.reasoning());
    if (delta?.content) this.show(delta.content, this.view);
    if (reason === "length") this.view.note("Cut at the limit of tokens.");
    if (reason === "abort") this.view.note("The server ended this answer early.");
  }

  show(text, target) {
    this.meter.sawToken();
    this.view.waiting = false;
    for (const run of this.origins.split(text)) target.append(run.text, run.fromDrafts);
  }
}
