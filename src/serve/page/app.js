import { MessageView } from "./message.js";
import { Meter } from "./meter.js";
import { Origins } from "./origins.js";
import { Plot } from "./plot.js";
import { Settings } from "./settings.js";
import { serverSentData } from "./sse.js";

const byId = (id) => document.getElementById(id);

const log = byId("log");
const prompt = byId("prompt");
const dialog = byId("settings");
const settings = new Settings(dialog.querySelector("form"), () => {
  log.classList.toggle("plain", !settings.tint);
  showModel();
});
const ratePlot = new Plot(byId("rate-plot"));
const acceptancePlot = new Plot(byId("acceptance-plot"), { top: 1 });

let messages = [];
let model = null;
let running = null;

function showProblem(text) {
  const problem = byId("problem");
  problem.textContent = text;
  problem.hidden = text === "";
}

async function problemOf(response) {
  const body = await response.text();
  try {
    return JSON.parse(body).error.message;
  } catch {
    return `the server answered with status ${response.status}`;
  }
}

async function showModel() {
  const label = byId("model");
  try {
    const response = await fetch("v1/models", { headers: settings.headers() });
    if (!response.ok) throw new Error(await problemOf(response));
    model = (await response.json()).data[0].id;
    label.textContent = model;
    showProblem("");
  } catch (error) {
    label.textContent = "not connected";
    showProblem(`No model: ${error.message}. If the server wants an API key, set it in Settings.`);
  }
}

function setText(id, value) {
  byId(id).textContent = value ?? "–";
}

function percent(share) {
  return share === null ? null : `${Math.round(share * 100)} %`;
}

function showMeasurements(meter) {
  const rate = meter.tokensPerSecond();
  const acceptance = meter.acceptance();
  const { tokens, accepted } = meter.last;
  if (rate !== null) {
    ratePlot.push(rate);
    setText("rate-now", rate.toFixed(rate < 10 ? 1 : 0));
  }
  if (acceptance !== null) acceptancePlot.push(acceptance);
  setText("acceptance-now", percent(acceptance));
  const first = meter.firstTokenMilliseconds;
  setText("first-token", first === null ? null : `${Math.round(first)} ms`);
  setText("answer-tokens", `${tokens} tokens`);
  setText("draft-share", percent(tokens > 0 ? accepted / tokens : null));
  setText("acceptance-length", meter.tokensPerStep()?.toFixed(2));
}

function chatBody() {
  const system = settings.system ? [{ role: "system", content: settings.system }] : [];
  return {
    model,
    messages: [...system, ...messages],
    stream: true,
    stream_options: { include_usage: true, continuous_usage_stats: true },
    return_token_origins: true,
    ...settings.body(),
  };
}

function showDelta(view, choice, origins) {
  const { content, reasoning } = choice.delta ?? {};
  origins.add(choice.token_origins);
  if (reasoning) {
    for (const run of origins.split(reasoning)) view.appendReasoning(run.text, run.fromDrafts);
  }
  if (content) {
    for (const run of origins.split(content)) view.append(run.text, run.fromDrafts);
  }
  return content ?? "";
}

// Streams one answer into `view` and returns its text.
async function readAnswer(response, view) {
  const meter = new Meter();
  const origins = new Origins();
  let text = "";
  for await (const data of serverSentData(response)) {
    if (data === "[DONE]") break;
    const chunk = JSON.parse(data);
    if (chunk.error) throw new Error(chunk.error.message);
    view.waiting = false;
    for (const choice of chunk.choices) {
      text += showDelta(view, choice, origins);
      if (choice.finish_reason === "length") view.note("Cut at the limit of tokens.");
    }
    if (chunk.usage) {
      meter.add(chunk.usage);
      showMeasurements(meter);
    }
  }
  return text;
}

function setRunning(controller) {
  running = controller;
  byId("send").hidden = controller !== null;
  byId("stop").hidden = controller === null;
}

async function ask(text) {
  byId("welcome")?.remove();
  new MessageView(log, "user").append(text);
  messages.push({ role: "user", content: text });
  const view = new MessageView(log, "assistant");
  view.waiting = true;
  const controller = new AbortController();
  setRunning(controller);
  showProblem("");
  try {
    const response = await fetch("v1/chat/completions", {
      method: "POST",
      headers: { "Content-Type": "application/json", ...settings.headers() },
      body: JSON.stringify(chatBody()),
      signal: controller.signal,
    });
    if (!response.ok) throw new Error(await problemOf(response));
    const answer = await readAnswer(response, view);
    messages.push({ role: "assistant", content: answer });
  } catch (error) {
    messages.pop();
    if (error.name === "AbortError") view.note("Stopped; the next answer does not see this exchange.");
    else showProblem(error.message);
  } finally {
    view.waiting = false;
    setRunning(null);
  }
}

byId("composer").addEventListener("submit", (event) => {
  event.preventDefault();
  const text = prompt.value.trim();
  if (text === "" || running) return;
  prompt.value = "";
  ask(text);
});

prompt.addEventListener("keydown", (event) => {
  if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
  event.preventDefault();
  byId("composer").requestSubmit();
});

document.addEventListener("keydown", (event) => {
  if (event.key === "Escape" && running && !dialog.open) running.abort();
});

byId("stop").addEventListener("click", () => running?.abort());
byId("open-settings").addEventListener("click", () => dialog.showModal());
byId("reset-settings").addEventListener("click", () => settings.reset());
byId("new-chat").addEventListener("click", () => {
  running?.abort();
  messages = [];
  log.replaceChildren();
  prompt.focus();
});

log.classList.toggle("plain", !settings.tint);
showModel();
