//! The filters of Jinja that need no interpreter.

use super::arguments::{missing, size, text, truth, whole, Arguments};
use super::budget::{self, Broken, Outcome};
use super::value::Value;
use super::{format, json, methods, ops, python, splitting};

/// Every filter by name, those of `sequences.rs` included.
pub const NAMES: &[&str] = &[
    "abs",
    "attr",
    "batch",
    "capitalize",
    "center",
    "count",
    "d",
    "default",
    "dictsort",
    "e",
    "escape",
    "first",
    "float",
    "forceescape",
    "format",
    "groupby",
    "indent",
    "int",
    "items",
    "join",
    "last",
    "length",
    "list",
    "lower",
    "map",
    "max",
    "min",
    "pprint",
    "reject",
    "rejectattr",
    "replace",
    "reverse",
    "round",
    "safe",
    "select",
    "selectattr",
    "slice",
    "sort",
    "string",
    "striptags",
    "sum",
    "title",
    "tojson",
    "trim",
    "truncate",
    "unique",
    "upper",
    "urlencode",
    "wordcount",
];

pub fn apply(name: &str, value: &Value, arguments: &Arguments) -> Outcome<Value> {
    match name {
        "tojson" => json::tojson(value, arguments),
        "default" | "d" => default(value, arguments),
        "format" => {
            let values = match arguments.named.is_empty() {
                true => Value::tuple(arguments.positional.clone())?,
                false => Value::dict(arguments.named.clone())?,
            };
            format::percent(&python::to_str(value), &values).map(Value::str)
        }
        "items" => match value {
            Value::Undefined(_) => Value::generator(Vec::new()),
            Value::Dict(dict) => Value::generator(ops::iterate(&methods::items(dict)?)?),
            _ => Err(Broken::new("Can only get item pairs from a mapping.")),
        },
        "length" | "count" => value.len().map_or_else(
            || {
                Err(Broken::new(format!(
                    "object of type '{}' has no len()",
                    value.type_name()
                )))
            },
            |length| Ok(Value::Int(length as i128)),
        ),
        "abs" | "round" | "int" | "float" => number(name, value, arguments),
        _ => of_text(name, value, arguments),
    }
}

fn default(value: &Value, arguments: &Arguments) -> Outcome<Value> {
    let [other, boolean] = arguments.bind("default", ["default_value", "boolean"])?;
    let take_other = value.is_undefined() || (truth(&boolean) && !value.is_true());
    Ok(match take_other {
        true => other.unwrap_or_else(|| Value::str("")),
        false => value.clone(),
    })
}

fn parse_whole(text: &str, base: u32) -> Option<i128> {
    let text = text.trim_matches(python::is_space);
    let (sign, digits) = match text.strip_prefix('-') {
        Some(digits) => (-1, digits),
        None => (1, text.strip_prefix('+').unwrap_or(text)),
    };
    let lower = digits.to_ascii_lowercase();
    let digits = match base {
        16 => lower.strip_prefix("0x").unwrap_or(&lower),
        8 => lower.strip_prefix("0o").unwrap_or(&lower),
        2 => lower.strip_prefix("0b").unwrap_or(&lower),
        _ => &lower,
    };
    let valid = digits
        .bytes()
        .next()
        .is_some_and(|b| b != b'_' && b != b'-' && b != b'+');
    let number = i128::from_str_radix(&digits.replace('_', ""), base.clamp(2, 36)).ok()?;
    valid.then_some(sign * number)
}

fn parse_real(text: &str) -> Option<f64> {
    text.trim_matches(python::is_space)
        .replace('_', "")
        .parse()
        .ok()
}

fn round(value: &Value, arguments: &Arguments) -> Outcome<Value> {
    let [precision, method] = arguments.bind("round", ["precision", "method"])?;
    let digits = whole(&precision, 0)?.clamp(-300, 300) as i32;
    let method = method.as_ref().and_then(Value::as_str).unwrap_or("common");
    let scale = 10f64.powi(digits);
    let real = value.as_float().ok_or_else(|| {
        Broken::new(format!(
            "type {} doesn't define __round__",
            value.type_name()
        ))
    })?;
    match method {
        "common" if value.as_int().is_some() && digits >= 0 => {
            Ok(Value::Int(value.as_int().unwrap_or(0)))
        }
        "common" if digits >= 0 => {
            let exact = format!("{real:.*}", digits as usize);
            Ok(Value::Float(exact.parse().unwrap_or(real)))
        }
        "common" => {
            let rounded = (real * scale).round_ties_even() / scale;
            Ok(match value.as_int() {
                Some(_) => Value::Int(rounded as i128),
                None => Value::Float(rounded),
            })
        }
        "ceil" => Ok(Value::Float((real * scale).ceil() / scale)),
        "floor" => Ok(Value::Float((real * scale).floor() / scale)),
        _ => Err(Broken::new("method must be common, ceil or floor")),
    }
}

fn number(name: &str, value: &Value, arguments: &Arguments) -> Outcome<Value> {
    match name {
        "round" => round(ops::defined(value)?, arguments),
        "abs" => match ops::defined(value)? {
            Value::Float(real) => Ok(Value::Float(real.abs())),
            _ => match value.as_int() {
                Some(whole) => Ok(Value::Int(whole.saturating_abs())),
                None => Err(Broken::new(format!(
                    "bad operand type for abs(): '{}'",
                    value.type_name()
                ))),
            },
        },
        "int" => {
            let [default, base] = arguments.bind(name, ["default", "base"])?;
            let parsed = match value {
                Value::Str(text) => parse_whole(text, whole(&base, 10)? as u32).or_else(|| {
                    parse_real(text)
                        .filter(|r| r.is_finite())
                        .map(|r| r as i128)
                }),
                Value::Float(real) if real.is_finite() => Some(*real as i128),
                other => other.as_int(),
            };
            Ok(parsed.map_or(default.unwrap_or(Value::Int(0)), Value::Int))
        }
        _ => {
            let [default] = arguments.bind(name, ["default"])?;
            let parsed = match value {
                Value::Str(text) => parse_real(text),
                other => other.as_float(),
            };
            Ok(parsed.map_or(default.unwrap_or(Value::Float(0.0)), Value::Float))
        }
    }
}

fn of_text(name: &str, value: &Value, arguments: &Arguments) -> Outcome<Value> {
    let content = python::to_str(value);
    budget::reserve(content.len())?;
    let done = match name {
        "string" | "safe" => match value {
            Value::Str(_) => return Ok(value.clone()),
            _ => content,
        },
        "trim" => {
            let [set] = arguments.bind(name, ["chars"])?;
            methods::strip(&content, &set, true, true)?
        }
        "replace" => {
            let [old, new, count] = arguments.bind(name, ["old", "new", "count"])?;
            let (old, new) = (
                old.ok_or_else(|| missing(name, "old"))?,
                new.ok_or_else(|| missing(name, "new"))?,
            );
            let count = match &count {
                Some(Value::None) => -1,
                count => whole(count, -1)?,
            };
            return methods::replace(
                &content,
                &python::to_str(&old),
                &python::to_str(&new),
                count,
            );
        }
        "upper" => content.to_uppercase(),
        "lower" => content.to_lowercase(),
        "capitalize" => {
            return methods::call(&Value::str(content), "capitalize", &Arguments::default())
        }
        "title" => title(&content),
        "center" => {
            let [width] = arguments.bind(name, ["width"])?;
            methods::pad(&content, size(&width, 80)?, ' ', "center")?
        }
        "indent" => indent(&content, arguments)?,
        "truncate" => truncate(&content, arguments)?,
        "wordcount" => return Ok(Value::Int(wordcount(&content))),
        "escape" | "e" | "forceescape" => escape(&content),
        "striptags" => striptags(&content),
        "urlencode" => urlencode(&content),
        _ => {
            let mut out = String::new();
            python::write_repr(&mut out, value);
            out
        }
    };
    Ok(Value::str(done))
}

/// Jinja's own: words begin after spaces, hyphens and opening brackets.
fn title(content: &str) -> String {
    let (mut out, mut begins) = (String::new(), true);
    for c in content.chars() {
        let between = c.is_whitespace() || "-({[<".contains(c);
        match begins && !between {
            true => out.extend(c.to_uppercase()),
            false => out.extend(c.to_lowercase()),
        }
        begins = between;
    }
    out
}

fn indent(content: &str, arguments: &Arguments) -> Outcome<String> {
    let [width, first, blank] = arguments.bind("indent", ["width", "first", "blank"])?;
    let prefix = match &width {
        Some(Value::Str(text)) => text.to_string(),
        width => {
            let width = size(width, 4)?;
            budget::reserve(width)?;
            " ".repeat(width)
        }
    };
    budget::room(content.len().saturating_mul(16))?;
    let lines = splitting::lines(&format!("{content}\n"), false);
    budget::reserve(lines.len().saturating_mul(prefix.len()) + content.len())?;
    let mut out = String::new();
    for (index, line) in lines.iter().enumerate() {
        if index > 0 {
            out.push('\n');
        }
        let wanted = if index == 0 {
            truth(&first)
        } else {
            truth(&blank) || !line.is_empty()
        };
        if wanted {
            out.push_str(&prefix);
        }
        out.push_str(line);
    }
    Ok(out)
}

fn truncate(content: &str, arguments: &Arguments) -> Outcome<String> {
    let [length, kill, end, leeway] =
        arguments.bind("truncate", ["length", "killwords", "end", "leeway"])?;
    let length = size(&length, 255)?;
    let end = match &end {
        None => "...",
        some => text(some, "truncate")?,
    };
    let characters = content.chars().count();
    if characters <= length.saturating_add(size(&leeway, 5)?) {
        return Ok(content.to_string());
    }
    let kept: String = content
        .chars()
        .take(length.saturating_sub(end.chars().count()))
        .collect();
    let kept = match truth(&kill) {
        true => &kept[..],
        false => kept
            .rsplit_once(' ')
            .map_or(&kept[..], |(before, _)| before),
    };
    Ok(format!("{kept}{end}"))
}

fn wordcount(content: &str) -> i128 {
    let word = |c: char| c.is_alphanumeric() || c == '_';
    content
        .split(|c| !word(c))
        .filter(|part| !part.is_empty())
        .count() as i128
}

fn escape(content: &str) -> String {
    let mut out = String::with_capacity(content.len());
    for c in content.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '\'' => out.push_str("&#39;"),
            '"' => out.push_str("&#34;"),
            c => out.push(c),
        }
    }
    out
}

fn striptags(content: &str) -> String {
    let (mut out, mut rest) = (String::new(), content);
    while let Some(start) = rest.find('<') {
        let Some(end) = rest[start..].find('>') else {
            break;
        };
        out.push_str(&rest[..start]);
        rest = &rest[start + end + 1..];
    }
    out.push_str(rest);
    out.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn urlencode(content: &str) -> String {
    let mut out = String::new();
    for byte in content.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'_' | b'.' | b'-' | b'~' | b'/' => {
                out.push(byte.into())
            }
            _ => out.push_str(&format!("%{byte:02X}")),
        }
    }
    out
}
