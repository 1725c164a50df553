//! Local time for `strftime_now`.

use std::ffi::CString;

/// `now` (seconds since 1970; none is the present) as local time in C's `strftime` format; none
/// where the format cannot be rendered.
pub fn format_local(format: &str, now: Option<i64>) -> Option<String> {
    const LIMIT: usize = 4096;
    if format.is_empty() {
        return Some(String::new());
    }
    let format = CString::new(format).ok()?;
    let mut buffer = vec![0u8; LIMIT];
    let size = unsafe {
        let now = now.unwrap_or_else(|| libc::time(std::ptr::null_mut()));
        let mut parts: libc::tm = std::mem::zeroed();
        if libc::localtime_r(&now, &mut parts).is_null() {
            return None;
        }
        libc::strftime(buffer.as_mut_ptr().cast(), LIMIT, format.as_ptr(), &parts)
    };
    buffer.truncate(size);
    (size > 0).then(|| String::from_utf8_lossy(&buffer).into_owned())
}
