//! Python's `str` cut into parts.

use super::arguments::{text, whole, Arguments};
use super::budget::{self, Broken, Outcome};
use super::python;
use super::value::Value;

fn split_spaces(value: &str, limit: usize) -> Vec<String> {
    let mut parts = Vec::new();
    let mut rest = value.trim_start_matches(python::is_space);
    while !rest.is_empty() {
        let end = match parts.len() < limit {
            true => rest.find(python::is_space).unwrap_or(rest.len()),
            false => rest.len(),
        };
        parts.push(rest[..end].to_string());
        rest = rest[end..].trim_start_matches(python::is_space);
    }
    parts
}

fn split_spaces_from_right(value: &str, limit: usize) -> Vec<String> {
    let mut parts = Vec::new();
    let mut rest = value.trim_end_matches(python::is_space);
    while !rest.is_empty() {
        let start = match parts.len() < limit {
            true => rest
                .char_indices()
                .rev()
                .find(|(_, c)| python::is_space(*c))
                .map_or(0, |(at, c)| at + c.len_utf8()),
            false => 0,
        };
        parts.push(rest[start..].to_string());
        rest = rest[..start].trim_end_matches(python::is_space);
    }
    parts.reverse();
    parts
}

pub fn split(value: &str, name: &str, arguments: &Arguments) -> Outcome<Value> {
    let [separator, limit] = arguments.bind(name, ["sep", "maxsplit"])?;
    let limit = usize::try_from(whole(&limit, -1)?).unwrap_or(usize::MAX);
    budget::room(value.len().saturating_mul(16))?;
    let right = name == "rsplit";
    let parts: Vec<String> = match &separator {
        None | Some(Value::None) if right => split_spaces_from_right(value, limit),
        None | Some(Value::None) => split_spaces(value, limit),
        _ => {
            let separator = text(&separator, name)?;
            if separator.is_empty() {
                return Err(Broken::new("empty separator"));
            }
            let count = value.matches(separator).count();
            budget::reserve(count.saturating_mul(64))?;
            let pieces = limit.saturating_add(1);
            if right {
                let mut parts: Vec<String> =
                    value.rsplitn(pieces, separator).map(String::from).collect();
                parts.reverse();
                parts
            } else {
                value.splitn(pieces, separator).map(String::from).collect()
            }
        }
    };
    Value::list(parts.into_iter().map(Value::str).collect())
}

pub fn lines(value: &str, keep_ends: bool) -> Vec<String> {
    const ENDS: &[char] = &[
        '\n', '\r', '\u{b}', '\u{c}', '\u{1c}', '\u{1d}', '\u{1e}', '\u{85}', '\u{2028}',
        '\u{2029}',
    ];
    let mut lines = Vec::new();
    let mut rest = value;
    while let Some(at) = rest.find(ENDS) {
        let end = match rest[at..].starts_with("\r\n") {
            true => at + 2,
            false => at + rest[at..].chars().next().map_or(1, char::len_utf8),
        };
        lines.push(rest[..if keep_ends { end } else { at }].to_string());
        rest = &rest[end..];
    }
    if !rest.is_empty() {
        lines.push(rest.to_string());
    }
    lines
}

pub fn partition(value: &str, name: &str, arguments: &Arguments) -> Outcome<Value> {
    let [separator] = arguments.bind(name, [""])?;
    let separator = text(&separator, name)?;
    if separator.is_empty() {
        return Err(Broken::new("empty separator"));
    }
    let parts = match name {
        "partition" => value.split_once(separator),
        _ => value.rsplit_once(separator),
    };
    let parts = match parts {
        Some((before, after)) => [before, separator, after],
        None if name == "partition" => [value, "", ""],
        None => ["", "", value],
    };
    Value::tuple(parts.into_iter().map(Value::str).collect())
}
