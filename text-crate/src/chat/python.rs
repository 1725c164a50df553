//! Values as Python prints them: `True`, `None`, `1e+20`, `{'a': [1]}`.

use super::budget;
use super::value::Value;
use std::fmt::Write;

/// Python's `str(value)`.
pub fn to_str(value: &Value) -> String {
    let mut out = String::new();
    match value {
        Value::Str(text) => {
            budget::spend(text.len());
            out.push_str(text);
        }
        Value::Undefined(_) => {}
        other => write_repr(&mut out, other),
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

pub fn write_repr(out: &mut String, value: &Value) {
    if !budget::may_grow(out.len()) {
        return;
    }
    match value {
        Value::Undefined(_) => out.push_str("Undefined"),
        Value::None => out.push_str("None"),
        Value::Bool(flag) => out.push_str(if *flag { "True" } else { "False" }),
        Value::Int(number) => {
            let _ = write!(out, "{number}");
        }
        Value::Float(number) => out.push_str(&float(*number)),
        Value::Str(text) => write_quoted(out, text),
        Value::List(items) => write_items(out, items, "[", "]"),
        Value::Tuple(items) if items.len() == 1 => write_items(out, items, "(", ",)"),
        Value::Tuple(items) => write_items(out, items, "(", ")"),
        Value::Dict(dict) => {
            out.push('{');
            for (index, (key, member)) in dict.iter().enumerate() {
                out.push_str(if index > 0 { ", " } else { "" });
                write_repr(out, &key.value());
                out.push_str(": ");
                write_repr(out, member);
            }
            out.push('}');
        }
        other => {
            let _ = write!(out, "<{}>", other.type_name());
        }
    }
}

fn write_items(out: &mut String, items: &[Value], open: &str, close: &str) {
    out.push_str(open);
    for (index, item) in items.iter().enumerate() {
        out.push_str(if index > 0 { ", " } else { "" });
        write_repr(out, item);
    }
    out.push_str(close);
}

/// Characters that Python's `repr` escapes beyond the control characters.
fn is_unprintable(c: char) -> bool {
    matches!(c, '\u{a0}' | '\u{ad}' | '\u{600}'..='\u{605}' | '\u{61c}' | '\u{6dd}' | '\u{70f}' | '\u{1680}'
        | '\u{180e}' | '\u{2000}'..='\u{200f}' | '\u{2028}'..='\u{202f}' | '\u{205f}'..='\u{206f}'
        | '\u{3000}' | '\u{e000}'..='\u{f8ff}' | '\u{feff}' | '\u{fff0}'..='\u{fffb}' | '\u{fffe}'..='\u{ffff}'
        | '\u{e0000}'..='\u{10ffff}')
}

pub fn write_quoted(out: &mut String, text: &str) {
    budget::spend(text.len());
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
            c if c.is_control() || is_unprintable(c) => {
                let code = c as u32;
                let _ = match code {
                    0..=0xff => write!(out, "\\x{code:02x}"),
                    0x100..=0xffff => write!(out, "\\u{code:04x}"),
                    _ => write!(out, "\\U{code:08x}"),
                };
            }
            c => out.push(c),
        }
    }
    out.push(quote);
}

/// Python's `str.isspace` for one character.
pub fn is_space(c: char) -> bool {
    c.is_whitespace() || ('\u{1c}'..='\u{1f}').contains(&c)
}
