import { Announcer } from "./announcer.js";
import { AnswerRun } from "./answer_run.js";
import { readModel, readOffer } from "./api.js";
import { ChatList } from "./chat_list.js";
import { ChatStore, newChat } from "./chat_store.js";
import { ChatView } from "./chat_view.js";
import { byId } from "./dom.js";
import { Measures } from "./measures.js";
import { Settings } from "./settings.js";

const log = byId("log");
const prompt = byId("prompt");
const dialog = byId("settings");
const store = new ChatStore();
const measures = new Measures();
const announcer = new Announcer(byId("announcer"));
const settings = new Settings(byId("settings-form"), () => log.classList.toggle("plain", !settings.tint));
const limits = { maxDrafts: 0, maxLength: null };

let chat = newChat();
let model = null;
let running = null;  // {run, view, chat}
let leaving = false;  // the page goes, and what it waits for fails

const view = new ChatView(log, {
  edit: (index, text) => ask(text, index),
  again: (index) => answer(index),
  block: (answerView, text) => running?.view === answerView && announcer.say(text),
  start: (text) => ask(text),
});
const list = new ChatList(store, {
  open: (id) => openChat(store.load(id) ?? newChat()),
  renamed: (id, title) => id === chat.id && Object.assign(chat, { title, named: true }),
  removed: (id) => id === chat.id && leaveDeleted(),
});

function showProblem(text, askForKey = false) {
  byId("problem").hidden = text === "";
  byId("problem").querySelector("p").textContent = text;
  if (!CSS.supports("field-sizing", "content")) {
  prompt.addEventListener("input", () => {
    prompt.style.height = "auto";
    prompt.style.height = `${prompt.scrollHeight}px`;
  });
}

byId("key-form").hidden = !askForKey;
  if (askForKey) byId("key").focus();
}

function tellProblem(error) {
  const needsKey = error.status === 401;
  if (model === null) byId("model").textContent = "not connected";
  const help = settings.apiKey ? "The server does not take this API key." : "This server asks for an API key.";
  showProblem(needsKey ? help : error.message, needsKey);
}

// Asks the server for its model and what it offers; throws a ServerProblem.
async function connect() {
  model = null;
  byId("model").textContent = "connecting";
  const [found, offer] = await Promise.all([
    readModel(settings.headers()),
    readOffer(settings.headers()).catch(() => null),
  ]);
  model = found.id;
  byId("model").textContent = model;
  document.title = `${model} · Foretoken`;
  Object.assign(limits, { maxLength: found.maxLength, maxDrafts: offer?.maxDrafts ?? 0 });
  settings.showOffer(offer);
  measures.reset(limits);
}

async function tryConnect() {
  try {
    await connect();
    showProblem("");
    return true;
  } catch (error) {
    tellProblem(error);
    return false;
  }
}

function keep(changed) {
  if (changed.deleted || leaving) return;
  changed.updated = Date.now();
  if (changed.messages.length === 0) store.remove(changed.id);
  else if (!store.save(changed)) showProblem("The browser keeps no more: a reload will lose this conversation.");
  store.openId = chat.id;
  list.show(chat.id);
}

// An answer that still runs must not bring it back.
function leaveDeleted() {
  chat.deleted = true;
  openChat(newChat());
}

function openChat(next) {
  running?.run.stop();
  chat = next;
  store.openId = chat.id;
  view.show(chat.messages);
  list.show(chat.id);
  prompt.focus();
}

// What the server is told of a chat. Questions that stayed without an answer are one with the next, as
// templates want the roles to take turns.
function conversation(messages) {
  const told = settings.system ? [{ role: "system", content: settings.system }] : [];
  for (const { role, content } of messages) {
    if (told.at(-1)?.role === role) told.at(-1).content += `\n\n${content}`;
    else told.push({ role, content });
  }
  return told;
}

function chatBody(messages) {
  return {
    model,
    messages: conversation(messages),
    stream: true,
    stream_options: { include_usage: true, continuous_usage_stats: true },
    return_token_origins: true,
    ...settings.body(),
  };
}

function setRunning(state) {
  running = state;
  byId("send").hidden = state !== null;
  byId("stop").hidden = state === null;
  log.classList.toggle("busy", state !== null);
}

// Asks `text` as the message `index` of the chat; what was there and after it goes.
async function ask(text, index = chat.messages.length) {
  if (running) return;
  const before = chat.messages.slice();
  chat.messages.splice(index, Infinity, { role: "user", content: text });
  view.cut(index);
  view.addQuestion(chat.messages[index]);
  if (await answer(index + 1, before)) return;
  if (prompt.value.trim() === "") prompt.value = text;
}

// Fills the message `index` with an answer to what is before it. Without one the chat is as `before`;
// then the result is false.
async function answer(index, before = chat.messages.slice()) {
  if (running) return true;
  const own = chat;
  own.messages.splice(index);
  view.cut(index);
  const answerView = view.addAnswer();
  const run = new AnswerRun(answerView, (meter, over) => measures.show(meter, limits, over));
  setRunning({ run, view: answerView, chat: own });
  Object.assign(answerView, { running: true, waiting: true });
  announcer.start();
  showProblem("");
  prompt.focus();
  let problem = null;
  try {
    keep(own);
    if (model === null) await connect();
    await run.read(chatBody(own.messages), settings.headers());
  } catch (error) {
    problem = error;
  }
  return finish(own, run, answerView, problem, before);
}

function finish(own, run, answerView, problem, before) {
  const stopped = problem?.name === "AbortError";
  const answered = problem === null || run.hasText;
  if (stopped) answerView.note("Stopped.");
  else if (problem && run.hasText) answerView.note(`Broke off: ${problem.message}`);
  answerView.finish();
  Object.assign(answerView, { running: false, waiting: false });
  const figures = run.meter?.figures() ?? null;
  answerView.showFigures(figures);
  setRunning(null);
  if (answered) own.messages.push(answerView.message(figures));
  else own.messages = before;
  keep(own);
  if (!answered && own === chat) view.show(own.messages);
  list.show();
  if (problem && !stopped) tellProblem(problem);
  else announcer.say(stopped ? "Stopped." : "The answer is complete.");
  return answered;
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

byId("key-form").addEventListener("submit", async (event) => {
  event.preventDefault();
  settings.apiKey = byId("key").value.trim();
  if (await tryConnect()) prompt.focus();
});

document.addEventListener("keydown", (event) => {
  if (event.key === "Escape" && running && !dialog.open) running.run.stop();
});

addEventListener("pageshow", () => { leaving = false; });
addEventListener("pagehide", () => {
  leaving = true;
  if (!running?.run.hasText) return;
  const { chat: own, view: answerView, run } = running;
  store.save({ ...own, messages: [...own.messages, answerView.message(run.meter.figures())] });
});

byId("stop").addEventListener("click", () => running?.run.stop());
byId("close-problem").addEventListener("click", () => {
  showProblem("");
  prompt.focus();
});
byId("open-settings").addEventListener("click", () => dialog.showModal());
byId("reset-settings").addEventListener("click", () => settings.reset());
dialog.addEventListener("close", () => { if (model === null) tryConnect(); });
byId("new-chat").addEventListener("click", () => {
  list.setDrawer(false);
  openChat(newChat());
});

log.classList.toggle("plain", !settings.tint);
measures.reset(limits);
openChat((store.openId && store.load(store.openId)) || chat);
tryConnect();
