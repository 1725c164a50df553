//! The `tojson` filter with the meaning of Python's `json.dumps`.

use super::arguments::{truth, Arguments};
use super::budget::{self, Broken, Outcome};
use super::python;
use super::value::{Key, Value};
use std::fmt::Write;

struct Style {
    /// Text of one indentation level; none keeps everything on one line.
    indent: Option<String>,
    item_separator: String,
    key_separator: String,
    ensure_ascii: bool,
    sort_keys: bool,
}

fn indentation(option: &Option<Value>) -> Outcome<Option<String>> {
    Ok(match option {
        None | Some(Value::None) => None,
        Some(Value::Str(text)) => Some(text.to_string()),
        Some(value) => {
            let width = value.as_int().unwrap_or(0).clamp(0, 1 << 20) as usize;
            Some(" ".repeat(width))
        }
    })
}

impl Style {
    fn new(options: [Option<Value>; 4]) -> Outcome<Style> {
        let [ensure_ascii, indent, separators, sort_keys] = options;
        let indent = indentation(&indent)?;
        let mut item_separator = if indent.is_some() { "," } else { ", " }.to_string();
        let mut key_separator = ": ".to_string();
        if let Some(Value::Tuple(pair) | Value::List(pair)) = &separators {
            if let [item, key] = &pair[..] {
                item_separator = python::to_str(item);
                key_separator = python::to_str(key);
            }
        }
        Ok(Style {
            indent,
            item_separator,
            key_separator,
            ensure_ascii: truth(&ensure_ascii),
            sort_keys: truth(&sort_keys),
        })
    }
}

pub fn tojson(value: &Value, arguments: &Arguments) -> Outcome<Value> {
    let names = ["ensure_ascii", "indent", "separators", "sort_keys"];
    let style = Style::new(arguments.bind("tojson", names)?)?;
    let mut writer = Writer {
        out: String::new(),
        style: &style,
    };
    writer.value(value, 0)?;
    Ok(Value::str(writer.out))
}

struct Writer<'a> {
    out: String,
    style: &'a Style,
}

fn number(value: f64) -> String {
    match python::float(value).as_str() {
        "nan" => "NaN".into(),
        "inf" => "Infinity".into(),
        "-inf" => "-Infinity".into(),
        text => text.into(),
    }
}

fn key_text(key: &Key) -> Outcome<String> {
    Ok(match key {
        Key::None => "null".into(),
        Key::Bool(flag) => if *flag { "true" } else { "false" }.into(),
        Key::Float(real) => number(*real),
        Key::Tuple(_) => {
            return Err(Broken::new(
                "keys must be str, int, float, bool or None, not tuple",
            ))
        }
        other => python::to_str(&other.value()),
    })
}

impl Writer<'_> {
    fn value(&mut self, value: &Value, depth: usize) -> Outcome<()> {
        budget::room(self.out.len())?;
        match value {
            Value::None => self.out.push_str("null"),
            Value::Bool(flag) => self.out.push_str(if *flag { "true" } else { "false" }),
            Value::Int(whole) => {
                let _ = write!(self.out, "{whole}");
            }
            Value::Float(real) => self.out.push_str(&number(*real)),
            Value::Str(text) => self.string(text),
            Value::List(items) | Value::Tuple(items) => self.sequence(items, depth)?,
            Value::Dict(dict) => self.mapping(dict.iter().collect(), depth)?,
            other => {
                return Err(Broken::new(format!(
                    "Object of type {} is not JSON serializable",
                    other.type_name()
                )))
            }
        }
        Ok(())
    }

    fn sequence(&mut self, items: &[Value], depth: usize) -> Outcome<()> {
        self.out.push('[');
        for (index, item) in items.iter().enumerate() {
            self.separate(index == 0, depth + 1)?;
            self.value(item, depth + 1)?;
        }
        self.close(items.is_empty(), depth, ']')
    }

    fn mapping(&mut self, mut members: Vec<(&Key, &Value)>, depth: usize) -> Outcome<()> {
        if self.style.sort_keys {
            let mut failure = None;
            members.sort_by(|(a, _), (b, _)| {
                super::ops::order(&a.value(), &b.value())
                    .unwrap_or_else(|broken| {
                        failure = Some(broken);
                        None
                    })
                    .unwrap_or(std::cmp::Ordering::Equal)
            });
            if let Some(broken) = failure {
                return Err(broken);
            }
        }
        self.out.push('{');
        for (index, (key, member)) in members.iter().enumerate() {
            self.separate(index == 0, depth + 1)?;
            self.string(&key_text(key)?);
            self.out.push_str(&self.style.key_separator);
            self.value(member, depth + 1)?;
        }
        self.close(members.is_empty(), depth, '}')
    }

    fn separate(&mut self, first: bool, depth: usize) -> Outcome<()> {
        if !first {
            self.out.push_str(&self.style.item_separator);
        }
        self.line_break(depth)
    }

    fn close(&mut self, empty: bool, depth: usize, bracket: char) -> Outcome<()> {
        if !empty {
            self.line_break(depth)?;
        }
        self.out.push(bracket);
        Ok(())
    }

    fn line_break(&mut self, depth: usize) -> Outcome<()> {
        if let Some(indent) = &self.style.indent {
            budget::room(self.out.len() + indent.len() * depth)?;
            self.out.push('\n');
            self.out.push_str(&indent.repeat(depth));
        }
        Ok(())
    }

    fn string(&mut self, text: &str) {
        budget::spend(text.len());
        self.out.push('"');
        for character in text.chars() {
            match character {
                '"' => self.out.push_str("\\\""),
                '\\' => self.out.push_str("\\\\"),
                '\n' => self.out.push_str("\\n"),
                '\r' => self.out.push_str("\\r"),
                '\t' => self.out.push_str("\\t"),
                '\u{8}' => self.out.push_str("\\b"),
                '\u{c}' => self.out.push_str("\\f"),
                c if (c as u32) < 0x20 => self.escaped(c),
                c if self.style.ensure_ascii && (c as u32) > 0x7e => self.escaped(c),
                c => self.out.push(c),
            }
        }
        self.out.push('"');
    }

    fn escaped(&mut self, character: char) {
        for unit in character.encode_utf16(&mut [0; 2]) {
            let _ = write!(self.out, "\\u{unit:04x}");
        }
    }
}
