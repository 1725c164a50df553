import { byId, element } from "./dom.js";
import { Plot } from "./plot.js";

const mostPositions = 16;

export function percent(share) {
  return share === null ? null : `${Math.round(share * 100)} %`;
}

export function rateText(rate) {
  return rate === null ? null : rate.toFixed(rate < 10 ? 1 : 0);
}

export function durationText(milliseconds) {
  if (milliseconds === null) return null;
  return milliseconds < 1000 ? `${Math.round(milliseconds)} ms` : `${(milliseconds / 1000).toFixed(2)} s`;
}

function show(id, value) {
  byId(id).textContent = value ?? "–";
}

function showPositions(shares, maxDrafts) {
  const count = Math.min(Math.max(maxDrafts, shares.length), mostPositions);
  const list = byId("positions");
  while (list.children.length > count) list.lastChild.remove();
  while (list.children.length < count) {
    const meter = element("meter");
    meter.setAttribute("aria-label", `Position ${list.children.length + 1}`);
    list.append(element("li", "", "", meter, element("span", "share")));
  }
  [...list.children].forEach((item, i) => {
    const share = shares[i] ?? 0;
    item.firstChild.value = share;
    item.firstChild.textContent = percent(share);
    item.lastChild.textContent = shares.length > 0 ? percent(share) : "–";
  });
}

// The panel of measurements of the answer that runs, or ran last.
export class Measures {
  constructor() {
    this.plot = new Plot(byId("rate-plot"));
    const wide = matchMedia("(min-width: 60rem)");
    const adapt = () => { byId("measures").open = wide.matches; };
    wide.addEventListener("change", adapt);
    adapt();
  }

  // `limits`: {maxDrafts, maxLength}. `over`: the answer has ended.
  show(meter, limits, over = false) {
    const rate = over ? meter.meanTokensPerSecond() : meter.tokensPerSecond();
    const acceptance = percent(meter.acceptance());
    const { tokens, accepted } = meter.last;
    if (rate !== null) {
      if (!over) this.plot.push(rate);
      show("rate-now", rateText(rate));
      show("summary-rate", rateText(rate));
    }
    show("acceptance-now", acceptance);
    show("summary-acceptance", acceptance);
    showPositions(meter.acceptanceByPosition(), limits.maxDrafts);
    show("first-token", durationText(meter.firstTokenMilliseconds));
    show("rate-mean", rateText(meter.meanTokensPerSecond()));
    show("answer-tokens", `${tokens} tokens`);
    show("draft-share", percent(tokens > 0 && meter.acceptance() !== null ? accepted / tokens : null));
    show("acceptance-length", meter.tokensPerStep()?.toFixed(2));
    const used = meter.promptTokens === null ? null : meter.promptTokens + tokens;
    show("context-used", used !== null && limits.maxLength ? `${used} of ${limits.maxLength}` : used);
  }

  // Before the first answer.
  reset(limits) { showPositions([], limits.maxDrafts); }
}
