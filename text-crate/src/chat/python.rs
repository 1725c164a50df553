//! Values as Python prints them: `True`, `None`, `1e+20`, `{'a': [1]}`.

use minijinja::value::ValueKind;
use minijinja::Value;
use std::fmt::Write;

/// Python's `str(value)`.
pub fn to_str(value: &Value) -> String {
    let mut out = String::new();
    if let Some(text) = value.as_str() {
        out.push_str(text);
    } else if !value.is_undefined() {
        write_repr(&mut out, value, 0);
    }
    out
}

/// Python's `repr` of a float, which is also its JSON form.
pub fn float(value: f64) -> String {
    if value.is_nan() {
        return "nan".into();
    }
    if value.is_infinite() {
        return if value < 0.0 { "-inf" } else { "inf" }.into();
    }
    // The shortest digits that read back, as d.ddde[-]x.
    let scientific = format!("{value:e}");
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let power: i32 = exponent.parse().unwrap_or(0);
    if value != 0.0 && !(-4..16).contains(&power) {
        let sign = if power < 0 { '-' } else { '+' };
        return format!("{mantissa}e{sign}{:02}", power.abs());
    }
    let plain = format!("{value}");
    if plain.contains('.') {
        plain
    } else {
        plain + ".0"
    }
}

/// A number of a template: integers keep all digits.
pub fn number(value: &Value) -> String {
    match f64::try_from(value.clone()) {
        Ok(real) if !value.is_integer() => float(real),
        _ => value.to_string(),
    }
}

/// Deeper values are cut: a template can make a value that holds itself.
const MAX_DEPTH: usize = 128;

fn write_repr(out: &mut String, value: &Value, depth: usize) {
    if depth > MAX_DEPTH {
        out.push_str("...");
        return;
    }
    match value.kind() {
        ValueKind::Undefined => out.push_str("Undefined"),
        ValueKind::None => out.push_str("None"),
        ValueKind::Bool => out.push_str(if value.is_true() { "True" } else { "False" }),
        ValueKind::Number => out.push_str(&number(value)),
        ValueKind::String => write_quoted(out, value.as_str().unwrap_or_default()),
        ValueKind::Seq => write_items(out, value, '[', ']', depth),
        ValueKind::Map => write_items(out, value, '{', '}', depth),
        _ => out.push_str(&value.to_string()),
    }
}

fn write_items(out: &mut String, value: &Value, open: char, close: char, depth: usize) {
    out.push(open);
    let items = value.try_iter().into_iter().flatten();
    for (index, item) in items.enumerate() {
        if index > 0 {
            out.push_str(", ");
        }
        write_repr(out, &item, depth + 1);
        if open == '{' {
            out.push_str(": ");
            write_repr(out, &value.get_item(&item).unwrap_or_default(), depth + 1);
        }
    }
    out.push(close);
}

fn write_quoted(out: &mut String, text: &str) {
    let quote = if text.contains('\'') && !text.contains('"') {
        '"'
    } else {
        '\''
    };
    out.push(quote);
    for character in text.chars() {
        match character {
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if c == quote => {
                out.push('\\');
                out.push(c);
            }
            c if c.is_control() => {
                let _ = write!(out, "\\x{:02x}", c as u32);
            }
            c => out.push(c),
        }
    }
    out.push(quote);
}
