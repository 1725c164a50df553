//! How many places a regex has that a text can stand at, and what it costs to read one.

use super::dialect;
use crate::ffi::{Failure, Outcome};
use regex_syntax::hir::{Hir, HirKind};
use std::borrow::Cow;

/// Where several regexes must fit one text, llguidance goes on by each place of each with each place
/// of all others, in one piece: so many together take about a second.
pub const MOST_TOGETHER: f64 = 1e6;

fn places(regex: &Hir) -> f64 {
    match regex.kind() {
        HirKind::Empty | HirKind::Look(_) => 0.0,
        HirKind::Literal(text) => text.0.len() as f64,
        HirKind::Class(_) => 1.0,
        HirKind::Repetition(repeated) => {
            let count = repeated.max.unwrap_or(repeated.min).max(1);
            f64::from(count) * places(&repeated.sub)
        }
        HirKind::Capture(group) => places(&group.sub),
        HirKind::Concat(parts) | HirKind::Alternation(parts) => parts.iter().map(places).sum(),
    }
}

/// Of a text that is no regex, its length.
pub fn places_of(pattern: &str) -> f64 {
    1.0 + regex_syntax::parse(pattern).map_or(pattern.len() as f64, |regex| places(&regex))
}

/// An error where a text of regexes has too many classes like \w: each is hundreds of ranges, and the time
/// to read them all grows with their square.
pub fn check_classes(text: &str) -> Outcome<()> {
    const MOST: usize = 10_000;
    let (mut num_classes, mut escaped) = (0, false);
    for byte in text.bytes() {
        num_classes += usize::from(escaped && b"wWdDsSpPbB".contains(&byte));
        escaped = byte == b'\\' && !escaped;
    }
    match num_classes <= MOST {
        true => Ok(()),
        false => Err(Failure::new(format!(
            "the regex has {num_classes} classes such as \\w, at most {MOST} are possible; repeat one with {{n}}, or write its letters as [a-z]"
        ))),
    }
}

/// A regex in the syntax of Rust, where it can be read in time.
pub fn checked(regex: &str) -> Outcome<Cow<'_, str>> {
    check_classes(regex)?;
    Ok(dialect::plain(regex))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_are_bounded() {
        assert!(checked(&"\\w".repeat(10_000)).is_ok());
        assert!(checked(&"\\w".repeat(10_001)).is_err());
        assert!(checked(&"\\\\w".repeat(20_000)).is_ok());
        assert!(checked("\\w{100000}").is_ok());
    }
}
