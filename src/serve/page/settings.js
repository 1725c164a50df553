const storageKey = "foretoken-settings";
const apiKeyKey = "foretoken-api-key";

function read(storage, key) {
  try {
    return storage().getItem(key);
  } catch {
    return null;
  }
}

function write(storage, key, value) {
  try {
    storage().setItem(key, value);
  } catch {
    // Storage may be off; the settings then last as long as the page.
  }
}

// The fields of the settings form, kept in the browser; the API key only as long as the tab.
export class Settings {
  constructor(form, onChange) {
    this.form = form;
    this.onChange = onChange;
    this.defaults = this.values();
    this.fill(this.stored());
    form.elements.api_key.value = read(() => sessionStorage, apiKeyKey) ?? "";
    form.addEventListener("change", () => this.keep());
  }

  stored() {
    try {
      return JSON.parse(read(() => localStorage, storageKey)) ?? {};
    } catch {
      return {};
    }
  }

  values() {
    const values = {};
    for (const field of this.form.elements) {
      if (!field.name || field.name === "api_key") continue;
      values[field.name] = field.type === "checkbox" ? field.checked : field.value;
    }
    return values;
  }

  fill(values) {
    for (const [name, value] of Object.entries(values)) {
      const field = this.form.elements[name];
      if (!field) continue;
      if (field.type === "checkbox") field.checked = value;
      else field.value = value;
    }
  }

  keep() {
    write(() => localStorage, storageKey, JSON.stringify(this.values()));
    write(() => sessionStorage, apiKeyKey, this.form.elements.api_key.value);
    this.onChange();
  }

  reset() {
    this.fill(this.defaults);
    this.form.elements.api_key.value = "";
    this.keep();
  }

  get tint() { return this.form.elements.tint.checked; }
  get system() { return this.form.elements.system.value.trim(); }

  headers() {
    const key = this.form.elements.api_key.value;
    return key ? { Authorization: `Bearer ${key}` } : {};
  }

  // The fields of a chat body that the form fills in; empty ones stay the server's.
  body() {
    const body = {};
    for (const name of ["temperature", "top_p", "max_tokens", "seed"]) {
      const value = this.form.elements[name].value;
      if (value !== "") body[name] = Number(value);
    }
    const speculative = {};
    if (!this.form.elements.speculate.checked) speculative.enabled = false;
    const drafts = this.form.elements.num_speculative_tokens.value;
    if (drafts !== "" && this.form.elements.speculate.checked) {
      speculative.num_speculative_tokens = Number(drafts);
    }
    if (Object.keys(speculative).length > 0) body.speculative = speculative;
    return body;
  }
}
