import { read, readJson, remove, write } from "./storage.js";

const prefix = "foretoken-chat-";
const openKey = "foretoken-open-chat";
const mostChats = 100;
const mostCharacters = 4000000;  // browsers keep about five million for a site
const longestTitle = 60;
const local = () => localStorage;
const ofTab = () => sessionStorage;

function makeId() {
  return `${Date.now().toString(36)}-${Math.random().toString(36).slice(2, 8)}`;
}

export function newChat() {
  return { id: makeId(), title: "", named: false, updated: Date.now(), messages: [] };
}

function keys() {
  try {
    return Object.keys(localStorage).filter((key) => key.startsWith(prefix));
  } catch {
    return [];
  }
}

// The conversations of this browser, one entry of its storage each. The oldest go when there are more
// than a hundred or no room is left.
export class ChatStore {
  // All, the last changed first. A damaged entry is passed over.
  list() {
    return keys()
      .map((key) => readJson(local, key))
      .filter((chat) => Array.isArray(chat?.messages))
      .sort((a, b) => b.updated - a.updated);
  }

  load(id) { return readJson(local, prefix + id); }

  // Keeps a chat under the first words of its first question, unless it was named. False when it is
  // longer than what may be kept.
  save(chat) {
    if (!chat.named) {
      const words = (chat.messages[0]?.content ?? "").replace(/\s+/g, " ").trim();
      chat.title = words.length > longestTitle ? `${words.slice(0, longestTitle - 1)}…` : words;
    }
    const text = JSON.stringify(chat);
    const others = this.list().filter((other) => other.id !== chat.id);
    let total = text.length + others.reduce((sum, other) => sum + JSON.stringify(other).length, 0);
    while (others.length > 0 && (others.length >= mostChats || total > mostCharacters)) {
      total -= this.drop(others);
    }
    while (!write(local, prefix + chat.id, text)) {
      if (others.length === 0) return false;
      this.drop(others);
    }
    return true;
  }

  drop(chats) {
    const oldest = chats.pop();
    this.remove(oldest.id);
    return JSON.stringify(oldest).length;
  }

  rename(id, title) {
    const chat = this.load(id);
    if (!chat) return;
    Object.assign(chat, { title, named: true });
    write(local, prefix + id, JSON.stringify(chat));
  }

  remove(id) { remove(local, prefix + id); }

  // The chat that this tab shows.
  get openId() { return read(ofTab, openKey); }
  set openId(id) { write(ofTab, openKey, id); }
}
