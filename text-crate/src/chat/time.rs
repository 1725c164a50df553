//! Local time for `strftime_now`.

use std::ffi::CString;

/// The current local time in C's `strftime` format; none where the format cannot be rendered.
pub fn local_now(format: &str) -> Option<String> {
    const LIMIT: usize = 4096;
    if format.is_empty() {
        return Some(String::new());
    }
    let format = CString::new(format).ok()?;
    let mut buffer = vec![0u8; LIMIT];
    let size = unsafe {
        let now = libc::time(std::ptr::null_mut());
        let mut parts: libc::tm = std::mem::zeroed();
        if libc::localtime_r(&now, &mut parts).is_null() {
            return None;
        }
        libc::strftime(buffer.as_mut_ptr().cast(), LIMIT, format.as_ptr(), &parts)
    };
    buffer.truncate(size);
    (size > 0).then(|| String::from_utf8_lossy(&buffer).into_owned())
}
