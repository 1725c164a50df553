//! The methods of Python's `str`, `dict`, `list` and `tuple` that the sandbox allows.

use super::arguments::{missing, size, text, truth, whole, Arguments};
use super::budget::{self, Broken, Outcome};
use super::letters::{cased, is};
use super::ops;
use super::splitting::{lines, partition, split};
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
            let found = match key.ok_or_else(|| missing(name, "key"))? {
                Value::Undefined(_) => None,
                key => dict.get(&Key::new(&key)?).cloned(),
            };
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
