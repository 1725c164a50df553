import { element } from "./dom.js";
import { read, readJson, write } from "./storage.js";

const storageKey = "foretoken-settings";
const apiKeyKey = "foretoken-api-key";
const local = () => localStorage;
const ofTab = () => sessionStorage;

function option(value, text) {
  const made = element("option", "", text);
  made.value = value;
  return made;
}

// The fields of the settings form, kept in the browser; the API key only as long as the tab.
export class Settings {
  constructor(form, onChange) {
    this.form = form;
    this.fields = form.elements;
    this.onChange = onChange;
    this.defaults = this.values();
    this.showOffer(null);
    this.fill(readJson(local, storageKey) ?? {});
    this.fields.api_key.value = read(ofTab, apiKeyKey) ?? "";
    for (const field of this.fields) field.addEventListener("change", () => this.keep());
  }

  values() {
    const values = {};
    for (const field of this.fields) {
      if (!field.name || field.name === "api_key") continue;
      values[field.name] = field.type === "checkbox" ? field.checked : field.value;
    }
    return values;
  }

  fill(values) {
    for (const [name, value] of Object.entries(values)) {
      const field = this.fields.namedItem(name);
      if (!field) continue;
      if (field.type === "checkbox") field.checked = value;
      else if (name === "method") this.wishedMethod = value;
      else field.value = value;
    }
    this.showMethod();
  }

  keep() {
    if (!this.fields.method.disabled) this.wishedMethod = this.fields.method.value;
    write(local, storageKey, JSON.stringify({ ...this.values(), method: this.wishedMethod }));
    write(ofTab, apiKeyKey, this.fields.api_key.value);
    this.showMethod();
    this.onChange();
  }

  reset() {
    this.fill({ ...this.defaults, method: "" });
    this.fields.api_key.value = "";
    this.fields.method.value = "";
    this.keep();
  }

  // The drafters to choose from, or null while they are unknown; a wish for one that is not there waits
  // until it is.
  showOffer(offer) {
    const { method, num_speculative_tokens: count } = this.fields;
    const { methods, maxDrafts } = offer ?? { methods: [], maxDrafts: 0 };
    const choice = methods.length === 1 ? `${methods[0]} (the server's)` : "The server's choice";
    const named = methods.length > 1 ? methods.map((name) => option(name, name)) : [];
    method.replaceChildren(...(methods.length > 0
      ? [option("", choice), ...named, option("off", "Off")]
      : [option("", offer ? "None on this server" : "The server's")]));
    method.disabled = methods.length === 0;
    if (maxDrafts > 0) count.max = maxDrafts;
    count.placeholder = maxDrafts > 0 ? `server's, up to ${maxDrafts}` : "server's";
    this.showMethod();
  }

  showMethod() {
    const { method, num_speculative_tokens: count } = this.fields;
    const offered = [...method.options].some(({ value }) => value === this.wishedMethod);
    method.value = offered ? this.wishedMethod : "";
    count.disabled = method.disabled || method.value === "off";
  }

  get tint() { return this.fields.tint.checked; }
  get system() { return this.fields.system.value.trim(); }
  get apiKey() { return this.fields.api_key.value; }

  set apiKey(key) {
    this.fields.api_key.value = key;
    this.keep();
  }

  headers() { return this.apiKey ? { Authorization: `Bearer ${this.apiKey}` } : {}; }

  // The fields of a chat body that the form fills in; empty ones stay the server's.
  body() {
    const body = {};
    for (const name of ["temperature", "top_p", "max_tokens", "seed"]) {
      const value = this.fields.namedItem(name).value;
      if (value !== "") body[name] = Number(value);
    }
    const { method, num_speculative_tokens: count } = this.fields;
    if (method.disabled) return body;
    const speculative = {};
    if (method.value === "off") speculative.enabled = false;
    else if (method.value !== "") speculative.method = method.value;
    if (!count.disabled && count.value !== "") speculative.num_speculative_tokens = Number(count.value);
    if (Object.keys(speculative).length > 0) body.speculative = speculative;
    return body;
  }
}
