import { element } from "./dom.js";

// Tells screen readers of an answer as its paragraphs come, each once.
export class Announcer {
  constructor(region) { this.region = region; }

  start() { this.region.replaceChildren(element("p", "", "Answering.")); }
  say(text) { this.region.append(element("p", "", text)); }
}
