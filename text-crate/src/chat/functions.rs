//! The functions of a chat template.

use super::arguments::{missing, text, Arguments};
use super::budget::{self, Broken, Outcome};
use super::interpreter::Interpreter;
use super::value::{Entries, Key, Value};
use super::{ops, python, time};
use std::collections::HashMap;

pub const NAMES: &[&str] = &[
    "dict",
    "namespace",
    "raise_exception",
    "range",
    "strftime_now",
];

/// As in Jinja's sandbox.
const MAX_RANGE: i128 = 100_000;

pub fn call(
    interpreter: &mut Interpreter<'_>,
    name: &str,
    arguments: &Arguments,
) -> Outcome<Value> {
    match name {
        "range" => range(arguments),
        "dict" => Value::dict(members(arguments)?),
        "namespace" => {
            let mut named = HashMap::new();
            for (key, value) in members(arguments)? {
                let name = python::to_str(&key.value());
                check_member(&name)?;
                named.insert(name, value);
            }
            interpreter.new_namespace(named)
        }
        "raise_exception" => {
            let [message] = arguments.bind(name, ["message"])?;
            let message = message.ok_or_else(|| missing(name, "message"))?;
            Err(Broken {
                message: python::to_str(&message),
                refused: true,
                line: None,
            })
        }
        _ => {
            let [format] = arguments.bind(name, ["format"])?;
            let now = time::format_local(text(&format, name)?, interpreter.now);
            now.map(Value::str)
                .ok_or_else(|| Broken::new("strftime_now: the format cannot be rendered"))
        }
    }
}

/// transformers refuses these, which could reach the insides of Python.
pub fn check_member(name: &str) -> Outcome<()> {
    match name.starts_with('_') {
        true => Err(Broken::new(format!(
            "Chat templates cannot store underscore-prefixed attributes on a namespace, but got '{name}'. \
             Please rename the attribute."
        ))),
        false => Ok(()),
    }
}

fn members(arguments: &Arguments) -> Outcome<Entries> {
    let mut entries = Entries::new();
    match arguments.positional.as_slice() {
        [] => {}
        [Value::Dict(dict)] => entries.clone_from(dict),
        [pairs] => {
            for pair in ops::iterate(pairs)? {
                match ops::iterate(&pair)?.as_slice() {
                    [key, value] => entries.insert(Key::new(key)?, value.clone()),
                    _ => return Err(Broken::new("dict() needs pairs of key and value")),
                };
            }
        }
        _ => return Err(Broken::new("dict() takes at most 1 positional argument")),
    }
    budget::reserve(entries.len() * 96)?;
    entries.extend(
        arguments
            .named
            .iter()
            .map(|(key, value)| (key.clone(), value.clone())),
    );
    Ok(entries)
}

fn range(arguments: &Arguments) -> Outcome<Value> {
    let mut numbers = Vec::new();
    for value in &arguments.positional {
        numbers.push(ops::defined(value)?.as_int().ok_or_else(|| {
            Broken::new(format!(
                "'{}' object cannot be interpreted as an integer",
                value.type_name()
            ))
        })?);
    }
    let (start, stop, step) = match numbers.as_slice() {
        [stop] => (0, *stop, 1),
        [start, stop] => (*start, *stop, 1),
        [start, stop, step] => (*start, *stop, *step),
        _ => return Err(Broken::new("range expected 1 to 3 arguments")),
    };
    if step == 0 {
        return Err(Broken::new("range() arg 3 must not be zero"));
    }
    let distance = if step > 0 {
        stop.saturating_sub(start)
    } else {
        start.saturating_sub(stop)
    };
    let size = step.saturating_abs();
    let count = (distance.max(0) / size).saturating_add(i128::from(distance.max(0) % size != 0));
    if count > MAX_RANGE {
        return Err(Broken::new(format!(
            "Range too big. The sandbox blocks ranges larger than MAX_RANGE ({MAX_RANGE})."
        )));
    }
    budget::work(count as u64 / 4)?;
    Value::list(
        (0..count)
            .map(|index| Value::Int(start + index * step))
            .collect(),
    )
}
