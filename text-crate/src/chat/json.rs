//! The `tojson` filter with the meaning of Python's `json.dumps`.

use super::python;
use minijinja::value::{Kwargs, ValueKind};
use minijinja::{Error, ErrorKind, Value};
use std::fmt::Write;

pub struct Style {
    /// Text of one indentation level; none keeps everything on one line.
    indent: Option<String>,
    item_separator: String,
    key_separator: String,
    ensure_ascii: bool,
    sort_keys: bool,
}

const MAX_DEPTH: usize = 200;

fn indentation(option: Option<Value>) -> Option<String> {
    let value = option.filter(|value| !value.is_none() && !value.is_undefined())?;
    match value.as_str() {
        Some(text) => Some(text.to_string()),
        None => Some(" ".repeat(value.as_usize().unwrap_or(0).min(64))),
    }
}

impl Style {
    pub fn from_options(options: &Kwargs) -> Result<Style, Error> {
        let indent = indentation(options.get("indent")?);
        let mut item_separator = if indent.is_some() { "," } else { ", " }.to_string();
        let mut key_separator = ": ".to_string();
        let separators: Option<Value> = options.get("separators")?;
        if let Some(pair) = separators.filter(|pair| !pair.is_none()) {
            item_separator = python::to_str(&pair.get_item_by_index(0)?);
            key_separator = python::to_str(&pair.get_item_by_index(1)?);
        }
        let flag = |name| {
            options
                .get::<Option<bool>>(name)
                .map(Option::unwrap_or_default)
        };
        Ok(Style {
            indent,
            item_separator,
            key_separator,
            ensure_ascii: flag("ensure_ascii")?,
            sort_keys: flag("sort_keys")?,
        })
    }
}

pub fn to_string(value: &Value, style: &Style) -> Result<String, Error> {
    let mut writer = Writer {
        out: String::new(),
        style,
    };
    writer.value(value, 0)?;
    Ok(writer.out)
}

struct Writer<'a> {
    out: String,
    style: &'a Style,
}

fn unserializable(what: &str) -> Error {
    Error::new(
        ErrorKind::BadSerialization,
        format!("tojson: {what} is not JSON serializable"),
    )
}

fn number(value: &Value) -> String {
    match python::number(value).as_str() {
        "nan" => "NaN".into(),
        "inf" => "Infinity".into(),
        "-inf" => "-Infinity".into(),
        text => text.into(),
    }
}

impl Writer<'_> {
    fn value(&mut self, value: &Value, depth: usize) -> Result<(), Error> {
        if depth > MAX_DEPTH {
            return Err(unserializable("a value nested this deeply"));
        }
        match value.kind() {
            ValueKind::None => self.out.push_str("null"),
            ValueKind::Bool => self
                .out
                .push_str(if value.is_true() { "true" } else { "false" }),
            ValueKind::Number => self.out.push_str(&number(value)),
            ValueKind::String => self.string(value.as_str().unwrap_or_default()),
            ValueKind::Seq | ValueKind::Iterable => self.sequence(value, depth)?,
            ValueKind::Map => self.mapping(value, depth)?,
            ValueKind::Undefined => return Err(unserializable("an undefined value")),
            _ => return Err(unserializable("this object")),
        }
        Ok(())
    }

    fn sequence(&mut self, value: &Value, depth: usize) -> Result<(), Error> {
        self.out.push('[');
        let mut empty = true;
        for item in value.try_iter()? {
            self.separate(empty, depth + 1);
            self.value(&item, depth + 1)?;
            empty = false;
        }
        self.close(empty, depth, ']');
        Ok(())
    }

    fn mapping(&mut self, value: &Value, depth: usize) -> Result<(), Error> {
        let mut keys: Vec<Value> = value.try_iter()?.collect();
        if self.style.sort_keys {
            keys.sort();
        }
        self.out.push('{');
        let empty = keys.is_empty();
        for (index, key) in keys.iter().enumerate() {
            self.separate(index == 0, depth + 1);
            self.key(key);
            self.out.push_str(&self.style.key_separator);
            self.value(&value.get_item(key)?, depth + 1)?;
        }
        self.close(empty, depth, '}');
        Ok(())
    }

    fn key(&mut self, key: &Value) {
        match key.kind() {
            ValueKind::None => self.string("null"),
            ValueKind::Bool => self.string(if key.is_true() { "true" } else { "false" }),
            _ => self.string(&python::to_str(key)),
        }
    }

    fn separate(&mut self, first: bool, depth: usize) {
        if !first {
            self.out.push_str(&self.style.item_separator);
        }
        self.line_break(depth);
    }

    fn close(&mut self, empty: bool, depth: usize, bracket: char) {
        if !empty {
            self.line_break(depth);
        }
        self.out.push(bracket);
    }

    fn line_break(&mut self, depth: usize) {
        if let Some(indent) = &self.style.indent {
            self.out.push('\n');
            self.out.push_str(&indent.repeat(depth));
        }
    }

    fn string(&mut self, text: &str) {
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
