//! What one rendering may use: work, memory, depth. Templates come with models and are not trusted.

use std::cell::Cell;

/// Why a rendering ended.
#[derive(Debug)]
pub struct Broken {
    pub message: String,
    /// The template's own `raise_exception`.
    pub refused: bool,
    pub line: Option<u32>,
}

pub type Outcome<T> = Result<T, Broken>;

impl Broken {
    pub fn new(message: impl Into<String>) -> Broken {
        Broken {
            message: message.into(),
            refused: false,
            line: None,
        }
    }
}

/// Bytes of all values of a rendering that live at one time.
const MAX_BYTES: usize = 256 << 20;

/// Bytes of text that a rendering may give.
pub const MAX_OUTPUT: usize = 64 << 20;

/// Evaluated expressions and statements, and quarters of a kilobyte copied or searched: about a second of work, far beyond
/// an honest conversation.
const MAX_STEPS: u64 = 10_000_000;

/// Expressions and statements inside one another, macro calls included.
const MAX_DEPTH: u32 = 600;

thread_local! {
    static BYTES: Cell<usize> = const { Cell::new(0) };
    static STEPS: Cell<u64> = const { Cell::new(0) };
    static DEPTH: Cell<u32> = const { Cell::new(0) };
}

/// Starts the account of a rendering on this thread, where no value of another one lives any more.
pub fn start() {
    BYTES.set(0);
    STEPS.set(0);
    DEPTH.set(0);
}

pub fn take(bytes: usize) {
    BYTES.set(BYTES.get() + bytes);
}

pub fn give_back(bytes: usize) {
    BYTES.set(BYTES.get().saturating_sub(bytes));
}

fn too_large() -> Broken {
    Broken::new(format!(
        "its values need more than {} MiB of memory",
        MAX_BYTES >> 20
    ))
}

/// Whether a buffer may grow to this size.
pub fn room(bytes: usize) -> Outcome<()> {
    if bytes > MAX_BYTES.saturating_sub(BYTES.get()) {
        return Err(too_large());
    }
    work(0)
}

/// For work that cannot fail: counts it, and ends the rendering at the next chance when it was too
/// much.
pub fn spend(bytes: usize) {
    STEPS.set(STEPS.get() + bytes as u64 / 256);
}

/// The same for a buffer that grows; false when it must not grow on.
pub fn may_grow(buffer: usize) -> bool {
    let fits = room(buffer).is_ok();
    if !fits {
        STEPS.set(MAX_STEPS);
    }
    fits
}

/// Call before making a value whose size the template chooses.
pub fn reserve(bytes: usize) -> Outcome<()> {
    room(bytes)?;
    work(bytes as u64 / 256)
}

pub fn work(steps: u64) -> Outcome<()> {
    let done = STEPS.get() + steps + 1;
    STEPS.set(done);
    if done > MAX_STEPS {
        return Err(Broken::new(
            "it does not come to an end within the allowed work",
        ));
    }
    if BYTES.get() > MAX_BYTES {
        return Err(too_large());
    }
    Ok(())
}

/// One level deeper for the life of this object.
pub struct Level;

impl Level {
    pub fn enter() -> Outcome<Level> {
        work(0)?;
        if DEPTH.get() >= MAX_DEPTH {
            return Err(Broken::new("its macros or expressions nest too deeply"));
        }
        DEPTH.set(DEPTH.get() + 1);
        Ok(Level)
    }
}

impl Drop for Level {
    fn drop(&mut self) {
        DEPTH.set(DEPTH.get() - 1);
    }
}
