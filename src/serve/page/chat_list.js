import { button, byId, element, iconButton } from "./dom.js";

const undoMilliseconds = 12000;

// The list of conversations: open, rename, delete. A drawer where the window is narrow.
export class ChatList {
  // `on`: {open(id), renamed(id, title), removed(id)}, after the store has changed.
  constructor(store, on) {
    this.store = store;
    this.on = on;
    this.openId = null;
    this.renaming = false;
    this.nav = byId("chats");
    this.toggle = byId("open-chats");
    this.toggle.addEventListener("click", () => this.setDrawer(!this.drawerIsOpen));
    this.nav.addEventListener("keydown", (event) => {
      if (event.key !== "Escape" || !this.drawerIsOpen) return;
      event.stopPropagation();
      this.setDrawer(false);
    });
    document.addEventListener("pointerdown", (event) => {
      if (this.drawerIsOpen && !this.nav.contains(event.target) && !this.toggle.contains(event.target)) {
        this.setDrawer(false);
      }
    });
    byId("undo-delete").addEventListener("click", () => this.undo());
    addEventListener("storage", () => this.show());
  }

  get drawerIsOpen() { return this.nav.classList.contains("open"); }

  setDrawer(open) {
    if (open === this.drawerIsOpen) return;
    this.nav.classList.toggle("open", open);
    this.toggle.setAttribute("aria-expanded", String(open));
    (open ? byId("new-chat") : this.toggle).focus();
  }

  show(openId = this.openId) {
    this.openId = openId;
    if (this.renaming) return;
    const chats = this.store.list();
    byId("chat-list").replaceChildren(...chats.map((chat) => this.row(chat)));
    byId("no-chats").hidden = chats.length > 0;
  }

  row({ id, title }) {
    const name = title || "Untitled";
    const open = button(name, "title", () => {
      this.setDrawer(false);
      this.on.open(id);
    });
    open.title = name;
    if (id === this.openId) open.setAttribute("aria-current", "true");
    const item = element("li", "", "", open,
      iconButton("rename", `Rename ${name}`, () => this.rename(item, id, name)),
      iconButton("remove", `Delete ${name}`, () => this.remove(item, id)));
    item.dataset.id = id;
    return item;
  }

  rename(item, id, name) {
    const field = element("input");
    field.value = name;
    field.maxLength = 100;
    field.setAttribute("aria-label", `New name of ${name}`);
    item.replaceChildren(field);
    field.select();
    this.renaming = true;
    const end = (keep) => {
      if (!this.renaming) return;
      this.renaming = false;
      const title = field.value.trim();
      if (keep && title && title !== name) {
        this.store.rename(id, title);
        this.on.renamed(id, title);
      }
      const focused = document.activeElement === field;
      this.show();
      if (focused) this.nav.querySelector(`[data-id="${id}"] .title`)?.focus();
    };
    field.addEventListener("blur", () => end(true));
    field.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" && event.key !== "Escape") return;
      event.preventDefault();
      event.stopPropagation();
      end(event.key === "Enter");
    });
  }

  remove(item, id) {
    const next = item.nextElementSibling ?? item.previousElementSibling;
    const nextId = next?.dataset.id;
    this.deleted = this.store.load(id);
    this.store.remove(id);
    this.on.removed(id);
    this.show();
    const target = nextId ? this.nav.querySelector(`[data-id="${nextId}"] .title`) : byId("new-chat");
    target.focus();
    this.tellDeleted();
  }

  tellDeleted() {
    const notice = byId("chat-notice");
    notice.querySelector("span").textContent = `Deleted “${this.deleted.title}”.`;
    notice.hidden = false;
    clearTimeout(this.timer);
    this.timer = setTimeout(() => { notice.hidden = true; }, undoMilliseconds);
  }

  undo() {
    const { id } = this.deleted;
    this.store.save(this.deleted);
    byId("chat-notice").hidden = true;
    this.show();
    this.nav.querySelector(`[data-id="${id}"] .title`)?.focus();
  }
}
