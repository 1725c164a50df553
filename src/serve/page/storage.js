// The browser's storages, which may be off or full.
export function read(storage, key) {
  try {
    return storage().getItem(key);
  } catch {
    return null;
  }
}

// False when nothing was kept.
export function write(storage, key, value) {
  try {
    storage().setItem(key, value);
    return true;
  } catch {
    return false;
  }
}

export function remove(storage, key) {
  try {
    storage().removeItem(key);
  } catch {
    // Then nothing is stored either.
  }
}

export function readJson(storage, key) {
  try {
    return JSON.parse(read(storage, key));
  } catch {
    return null;
  }
}
