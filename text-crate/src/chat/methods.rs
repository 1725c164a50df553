//! The methods of Python's `str`, `dict`, `list` and `tuple` that the sandbox allows.

use super::arguments::{missing, size, text, truth, whole, Arguments};
use super::budget::{self, Broken, Outcome};
use super::ops;
use super::value::{Entries, Key, Text, Value};
use super::{format, python};

const STR: &[&str] = &[
    "capitalize",
    "casefold",
    "center",
    "count",
    "endswith",
    "expandtabs",
    "find",
    "format",
    "format_map",
    "index",
    "isalnum",
    "isalpha",
    "isascii",
    "isdecimal",
    "isdigit",
    "isidentifier",
    "islower",
    "isnumeric",
    "isprintable",
    "isspace",
    "istitle",
    "isupper",
    "join",
    "ljust",
    "lower",
    "lstrip",
    "partition",
    "removeprefix",
    "removesuffix",
    "replace",
    "rfind",
    "rindex",
    "rjust",
    "rpartition",
    "rsplit",
    "rstrip",
    "split",
    "splitlines",
    "startswith",
    "strip",
    "swapcase",
    "title",
    "upper",
    "zfill",
];
const DICT: &[&str] = &["copy", "get", "items", "keys", "values"];
const SEQUENCE: &[&str] = &["count", "index"];
const DICT_CHANGES: &[&str] = &["clear", "pop", "popitem", "setdefault", "update"];
const LIST_CHANGES: &[&str] = &[
    "append", "clear", "extend", "insert", "pop", "remove", "reverse", "sort",
];

fn unsafe_attribute(object: &Value, name: &str) -> Value {
    Value::undefined(format!(
        "access to attribute '{name}' of '{}' object is unsafe.",
        object.type_name()
    ))
}

fn listed(names: &'static [&'static str], object: &Value, name: &str) -> Option<Value> {
    let known = names.iter().find(|known| **known == name)?;
    Some(Value::method(object, known))
}

/// `object.name` where it is an attribute of the type; what would change the object is undefined.
pub fn attribute(object: &Value, name: &str) -> Option<Value> {
    if name.starts_with("__") && !object.is_undefined() {
        return Some(unsafe_attribute(object, name));
    }
    let (methods, changes): (_, &[&str]) = match object {
        Value::Str(_) => (STR, &[]),
        Value::Dict(_) => (DICT, DICT_CHANGES),
        Value::List(_) => (SEQUENCE, LIST_CHANGES),
        Value::Tuple(_) => (SEQUENCE, &[]),
        _ => return None,
    };
    if changes.contains(&name) {
        return Some(unsafe_attribute(object, name));
    }
    if matches!(object, Value::List(_)) && name == "copy" {
        return Some(Value::method(object, "copy"));
    }
    listed(methods, object, name)
}

pub fn call(object: &Value, name: &str, arguments: &Arguments) -> Outcome<Value> {
    match object {
        Value::Str(value) => call_str(value, name, arguments),
        Value::Dict(dict) => call_dict(dict, name, arguments),
        Value::List(items) | Value::Tuple(items) => call_sequence(object, items, name, arguments),
        _ => Err(Broken::new(format!(
            "'{}' object is not callable",
            object.type_name()
        ))),
    }
}

fn call_dict(dict: &Entries, name: &str, arguments: &Arguments) -> Outcome<Value> {
    budget::work(dict.len() as u64 / 4)?;
    match name {
        "get" => {
            let [key, default] = arguments.bind(name, ["", ""])?;
            let key = Key::new(&key.ok_or_else(|| missing(name, "key"))?)?;
            let found = dict.get(&key).cloned();
            Ok(found.or(default).unwrap_or(Value::None))
        }
        "keys" => Value::list(dict.keys().map(Key::value).collect()),
        "values" => Value::list(dict.values().cloned().collect()),
        "copy" => Value::dict(dict.clone()),
        _ => items(dict),
    }
}

pub fn items(dict: &Entries) -> Outcome<Value> {
    budget::reserve(dict.len() * 5 * std::mem::size_of::<Value>())?;
    let pair = |(key, value): (&Key, &Value)| Value::tuple(vec![key.value(), value.clone()]);
    Value::list(dict.iter().map(pair).collect::<Outcome<_>>()?)
}

fn call_sequence(
    object: &Value,
    items: &[Value],
    name: &str,
    arguments: &Arguments,
) -> Outcome<Value> {
    if name == "copy" {
        return Ok(object.clone());
    }
    budget::work(items.len() as u64 / 16)?;
    let [value] = arguments.bind(name, [""])?;
    let value = value.ok_or_else(|| missing(name, "value"))?;
    let mut matches = items
        .iter()
        .enumerate()
        .filter(|(_, item)| item.equals(&value));
    if name == "count" {
        return Ok(Value::Int(matches.count() as i128));
    }
    let at = matches.next().map(|(at, _)| Value::Int(at as i128));
    at.ok_or_else(|| Broken::new("the value is not in the list"))
}

fn call_str(value: &Text, name: &str, arguments: &Arguments) -> Outcome<Value> {
    budget::work(value.len() as u64 / 1024)?;
    match name {
        "strip" | "lstrip" | "rstrip" => {
            let [set] = arguments.bind(name, [""])?;
            strip(value, &set, name != "rstrip", name != "lstrip").map(Value::str)
        }
        "split" | "rsplit" => split(value, name, arguments),
        "splitlines" => {
            let [keep] = arguments.bind(name, ["keepends"])?;
            budget::room(value.len().saturating_mul(16))?;
            Value::list(
                lines(value, truth(&keep))
                    .into_iter()
                    .map(Value::str)
                    .collect(),
            )
        }
        "partition" | "rpartition" => partition(value, name, arguments),
        "startswith" | "endswith" => affix(value, name, arguments),
        "removeprefix" | "removesuffix" => {
            let [affix] = arguments.bind(name, [""])?;
            let affix = text(&affix, name)?;
            let rest = match name {
                "removeprefix" => value.strip_prefix(affix),
                _ => value.strip_suffix(affix),
            };
            Ok(Value::str(rest.unwrap_or(value)))
        }
        "find" | "rfind" | "index" | "rindex" | "count" => search(value, name, arguments),
        "replace" => {
            let [old, new, count] = arguments.bind(name, ["", "", "count"])?;
            replace(
                value,
                text(&old, name)?,
                text(&new, name)?,
                whole(&count, -1)?,
            )
        }
        "join" => {
            let [values] = arguments.bind(name, [""])?;
            join(
                value,
                &ops::iterate(&values.ok_or_else(|| missing(name, "iterable"))?)?,
            )
        }
        "format" => format::braces(value, &arguments.positional, &arguments.named).map(Value::str),
        "format_map" => match arguments.positional.as_slice() {
            [Value::Dict(named)] => format::braces(value, &[], named).map(Value::str),
            _ => Err(Broken::new("format_map() needs a dict")),
        },
        "center" | "ljust" | "rjust" | "zfill" | "expandtabs" => padded(value, name, arguments),
        _ => {
            let [] = arguments.bind(name, [])?;
            Ok(cased(value, name).map_or_else(|| Value::Bool(is(value, name)), Value::str))
        }
    }
}

/// Without the characters of `set`, or without spaces, at the chosen ends.
pub fn strip(value: &str, set: &Option<Value>, left: bool, right: bool) -> Outcome<String> {
    let set = match set {
        None | Some(Value::None) => None,
        Some(_) => Some(text(set, "strip")?),
    };
    let cut = |c: char| set.map_or_else(|| python::is_space(c), |set| set.contains(c));
    let mut rest = value;
    if left {
        rest = rest.trim_start_matches(cut);
    }
    if right {
        rest = rest.trim_end_matches(cut);
    }
    Ok(rest.to_string())
}

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

fn split(value: &str, name: &str, arguments: &Arguments) -> Outcome<Value> {
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

fn lines(value: &str, keep_ends: bool) -> Vec<String> {
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

fn partition(value: &str, name: &str, arguments: &Arguments) -> Outcome<Value> {
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

/// The part of `value` between two positions counted in characters.
fn window<'a>(
    value: &'a str,
    start: &Option<Value>,
    end: &Option<Value>,
) -> Outcome<(i128, &'a str)> {
    let length = value.chars().count() as i128;
    let bound = |bound: &Option<Value>, default: i128| {
        let at = match bound {
            None | Some(Value::None) => default,
            some => whole(some, default)?,
        };
        Ok(if at < 0 { at + length } else { at }.clamp(0, length))
    };
    let (start, end) = (bound(start, 0)?, bound(end, length)?);
    let byte = |at: i128| {
        let mut places = value.char_indices().map(|(byte, _)| byte);
        places.nth(at as usize).unwrap_or(value.len())
    };
    Ok((
        start,
        if start <= end {
            &value[byte(start)..byte(end)]
        } else {
            ""
        },
    ))
}

fn affix(value: &str, name: &str, arguments: &Arguments) -> Outcome<Value> {
    let [affix, start, end] = arguments.bind(name, ["", "", ""])?;
    let (_, part) = window(value, &start, &end)?;
    let fits = |affix: &str| match name {
        "startswith" => part.starts_with(affix),
        _ => part.ends_with(affix),
    };
    match &affix {
        Some(Value::Tuple(options)) => Ok(Value::Bool(
            options.iter().filter_map(Value::as_str).any(fits),
        )),
        other => Ok(Value::Bool(fits(text(other, name)?))),
    }
}

fn search(value: &str, name: &str, arguments: &Arguments) -> Outcome<Value> {
    let [needle, start, end] = arguments.bind(name, ["", "", ""])?;
    let needle = text(&needle, name)?;
    let (offset, part) = window(value, &start, &end)?;
    if name == "count" {
        return Ok(Value::Int(part.matches(needle).count() as i128));
    }
    let found = if name.starts_with('r') {
        part.rfind(needle)
    } else {
        part.find(needle)
    };
    match found {
        Some(byte) => Ok(Value::Int(offset + part[..byte].chars().count() as i128)),
        None if name.ends_with("find") => Ok(Value::Int(-1)),
        None => Err(Broken::new("substring not found")),
    }
}

pub fn replace(value: &str, old: &str, new: &str, count: i128) -> Outcome<Value> {
    let limit = usize::try_from(count).unwrap_or(usize::MAX);
    let found = value.matches(old).count().min(limit);
    budget::reserve(value.len() + found.saturating_mul(new.len()))?;
    Ok(Value::str(value.replacen(old, new, limit)))
}

fn join(separator: &str, values: &[Value]) -> Outcome<Value> {
    let mut out = String::new();
    for (index, value) in values.iter().enumerate() {
        let piece = value.as_str().ok_or_else(|| {
            Broken::new(format!(
                "sequence item {index}: expected str instance, {} found",
                value.type_name()
            ))
        })?;
        budget::room(out.len() + separator.len() + piece.len())?;
        out.push_str(if index > 0 { separator } else { "" });
        out.push_str(piece);
    }
    Ok(Value::str(out))
}

/// Spaces before and after, to a width in characters.
pub fn pad(value: &str, width: usize, fill: char, name: &str) -> Outcome<String> {
    let missing = width.saturating_sub(value.chars().count());
    budget::reserve(missing.saturating_mul(4))?;
    let left = match name {
        "ljust" => 0,
        "rjust" => missing,
        _ => missing / 2 + (missing & width & 1),
    };
    let fill = |count: usize| fill.to_string().repeat(count);
    Ok(format!("{}{value}{}", fill(left), fill(missing - left)))
}

fn padded(value: &str, name: &str, arguments: &Arguments) -> Outcome<Value> {
    if name == "expandtabs" {
        let [width] = arguments.bind(name, ["tabsize"])?;
        return expand_tabs(value, size(&width, 8)?).map(Value::str);
    }
    let [width, fill] = arguments.bind(name, ["", ""])?;
    let width_given = width.is_some();
    let width = size(&width, 0)?;
    if !width_given {
        return Err(missing(name, "width"));
    }
    if name == "zfill" {
        let digits = value.strip_prefix(['+', '-']).unwrap_or(value);
        let sign = &value[..value.len() - digits.len()];
        let digits = pad(digits, width.saturating_sub(sign.len()), '0', "rjust")?;
        return Ok(Value::str(format!("{sign}{digits}")));
    }
    let mut fill_text = match &fill {
        None => " ",
        some => text(some, name)?,
    }
    .chars();
    match (fill_text.next(), fill_text.next()) {
        (Some(fill), None) => pad(value, width, fill, name).map(Value::str),
        _ => Err(Broken::new(
            "The fill character must be exactly one character long",
        )),
    }
}

fn expand_tabs(value: &str, tab: usize) -> Outcome<String> {
    budget::reserve(value.matches('\t').count().saturating_mul(tab))?;
    let (mut out, mut column) = (String::new(), 0);
    for c in value.chars() {
        match c {
            '\t' if tab > 0 => {
                let spaces = tab - column % tab;
                out.push_str(&" ".repeat(spaces));
                column += spaces;
            }
            '\t' => {}
            _ => {
                out.push(c);
                column = if c == '\n' || c == '\r' {
                    0
                } else {
                    column + 1
                };
            }
        }
    }
    Ok(out)
}

fn capitalize(word: &str) -> String {
    let mut characters = word.chars();
    match characters.next() {
        Some(first) => titled(first) + &characters.as_str().to_lowercase(),
        None => String::new(),
    }
}

/// One letter in title case.
fn titled(c: char) -> String {
    match c {
        'ß' => "Ss".into(),
        'ǆ' | 'ǅ' => "ǅ".into(),
        'ǉ' | 'ǈ' => "ǈ".into(),
        'ǌ' | 'ǋ' => "ǋ".into(),
        'ǳ' | 'ǲ' => "ǲ".into(),
        'ﬀ'..='ﬆ' => capitalize_letters(&c.to_uppercase().to_string()),
        _ => c.to_uppercase().collect(),
    }
}

fn capitalize_letters(upper: &str) -> String {
    let mut characters = upper.chars();
    let first = characters.next().map(String::from).unwrap_or_default();
    first + &characters.as_str().to_lowercase()
}

fn is_cased(c: char) -> bool {
    c.is_lowercase() || c.is_uppercase()
}

fn title(value: &str) -> String {
    let (mut out, mut inside) = (String::new(), false);
    for c in value.chars() {
        if inside {
            out.extend(c.to_lowercase());
        } else {
            out.push_str(&titled(c));
        }
        inside = is_cased(c);
    }
    out
}

fn cased(value: &str, name: &str) -> Option<String> {
    Some(match name {
        "upper" => value.to_uppercase(),
        "lower" => value.to_lowercase(),
        "casefold" => value.to_lowercase().replace('ß', "ss"),
        "capitalize" => capitalize(value),
        "title" => title(value),
        "swapcase" => value
            .chars()
            .flat_map(|c| -> Vec<char> {
                match c.is_uppercase() {
                    true => c.to_lowercase().collect(),
                    false => c.to_uppercase().collect(),
                }
            })
            .collect(),
        _ => return None,
    })
}

/// The zeros of Unicode's decimal digits, each followed by its one to nine.
const ZEROS: &[u32] = &[
    0x30, 0x660, 0x6f0, 0x7c0, 0x966, 0x9e6, 0xa66, 0xae6, 0xb66, 0xbe6, 0xc66, 0xce6, 0xd66,
    0xde6, 0xe50, 0xed0, 0xf20, 0x1040, 0x1090, 0x17e0, 0x1810, 0x1946, 0x19d0, 0x1a80, 0x1a90,
    0x1b50, 0x1bb0, 0x1c40, 0x1c50, 0xa620, 0xa8d0, 0xa900, 0xa9d0, 0xa9f0, 0xaa50, 0xabf0, 0xff10,
    0x104a0, 0x11066, 0x1d7ce, 0x1d7d8, 0x1d7e2, 0x1d7ec, 0x1d7f6, 0x1fbf0,
];

fn is_decimal(c: char) -> bool {
    ZEROS
        .iter()
        .any(|zero| (*zero..zero + 10).contains(&(c as u32)))
}

/// Raised, lowered and circled digits.
fn is_other_digit(c: char) -> bool {
    matches!(c, '²' | '³' | '¹' | '⁰' | '⁴'..='⁹' | '₀'..='₉' | '①'..='⑨' | '⓪')
}

fn is(value: &str, name: &str) -> bool {
    let all = |test: fn(char) -> bool| !value.is_empty() && value.chars().all(test);
    let any_cased = value.chars().any(is_cased);
    match name {
        "isascii" => value.is_ascii(),
        "isspace" => all(python::is_space),
        "isalpha" => all(char::is_alphabetic),
        "isalnum" => all(char::is_alphanumeric),
        "isnumeric" => all(char::is_numeric),
        "isdigit" => all(|c| is_decimal(c) || is_other_digit(c)),
        "isdecimal" => all(is_decimal),
        "islower" => any_cased && !value.chars().any(char::is_uppercase),
        "isupper" => any_cased && !value.chars().any(char::is_lowercase),
        "istitle" => any_cased && title(value) == *value,
        "isidentifier" => {
            let mut characters = value.chars();
            let letter = |c: char| c == '_' || c.is_alphabetic();
            characters.next().is_some_and(letter)
                && characters.all(|c| letter(c) || c.is_alphanumeric())
        }
        _ => value
            .chars()
            .all(|c| !c.is_control() && (c == ' ' || !c.is_whitespace())),
    }
}
