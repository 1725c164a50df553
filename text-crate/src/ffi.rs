//! What crosses the border: owned buffers, borrowed bytes, errors and caught panics.

use std::any::Any;
use std::panic::{catch_unwind, AssertUnwindSafe};

/// Text or another message that ends a call; `refused` marks a template's own `raise_exception`.
pub struct Failure {
    pub message: String,
    pub refused: bool,
}

impl Failure {
    pub fn new(message: impl std::fmt::Display) -> Self {
        Failure {
            message: message.to_string(),
            refused: false,
        }
    }
}

pub type Outcome<T> = Result<T, Failure>;

pub const OK: i32 = 0;
pub const FAILED: i32 = -1;
pub const REFUSED: i32 = -2;

#[repr(C)]
pub struct FtText {
    data: *mut u8,
    size: usize,
}

#[repr(C)]
pub struct FtIds {
    data: *mut u32,
    size: usize,
}

/// Gives a boxed slice away; the empty one becomes a null pointer.
fn release<T>(values: Vec<T>) -> (*mut T, usize) {
    if values.is_empty() {
        return (std::ptr::null_mut(), 0);
    }
    let size = values.len();
    (Box::into_raw(values.into_boxed_slice()) as *mut T, size)
}

unsafe fn reclaim<T>(data: *mut T, size: usize) {
    if !data.is_null() {
        drop(Box::from_raw(std::ptr::slice_from_raw_parts_mut(
            data, size,
        )));
    }
}

impl From<Vec<u8>> for FtText {
    fn from(bytes: Vec<u8>) -> Self {
        let (data, size) = release(bytes);
        FtText { data, size }
    }
}

impl From<String> for FtText {
    fn from(text: String) -> Self {
        text.into_bytes().into()
    }
}

impl From<Vec<u32>> for FtIds {
    fn from(ids: Vec<u32>) -> Self {
        let (data, size) = release(ids);
        FtIds { data, size }
    }
}

/// Borrows `size` bytes for the time of one call; null is allowed when `size` is 0.
pub unsafe fn bytes<'a>(data: *const u8, size: usize) -> &'a [u8] {
    slice(data, size)
}

pub unsafe fn slice<'a, T>(data: *const T, size: usize) -> &'a [T] {
    if size == 0 {
        &[]
    } else {
        std::slice::from_raw_parts(data, size)
    }
}

pub unsafe fn utf8<'a>(data: *const u8, size: usize, what: &str) -> Outcome<&'a str> {
    std::str::from_utf8(bytes(data, size)).map_err(|error| {
        Failure::new(format!(
            "{what} is not valid UTF-8 (first bad byte at offset {})",
            error.valid_up_to()
        ))
    })
}

fn panic_message(payload: Box<dyn Any + Send>) -> String {
    let text = payload
        .downcast_ref::<String>()
        .map(String::as_str)
        .or_else(|| payload.downcast_ref::<&str>().copied())
        .unwrap_or("unknown cause");
    format!("internal error in the text crate: {text}")
}

/// Runs `body`; an error or a panic becomes a message in `error` and a negative code.
pub unsafe fn guard(error: *mut FtText, body: impl FnOnce() -> Outcome<()>) -> i32 {
    // The message travels to the caller; nothing is printed behind its back.
    static QUIET: std::sync::Once = std::sync::Once::new();
    QUIET.call_once(|| std::panic::set_hook(Box::new(|_| {})));
    let outcome = catch_unwind(AssertUnwindSafe(body))
        .unwrap_or_else(|payload| Err(Failure::new(panic_message(payload))));
    match outcome {
        Ok(()) => OK,
        Err(failure) => {
            let code = if failure.refused { REFUSED } else { FAILED };
            if !error.is_null() {
                error.write(failure.message.into());
            }
            code
        }
    }
}

#[no_mangle]
pub unsafe extern "C" fn ft_text_free(text: FtText) {
    reclaim(text.data, text.size);
}

#[no_mangle]
pub unsafe extern "C" fn ft_ids_free(ids: FtIds) {
    reclaim(ids.data, ids.size);
}
