//! The Jinja dialect: the options, filters and functions that transformers sets.

use super::{json, python, time};
use minijinja::value::{Kwargs, ValueKind};
use minijinja::{AutoEscape, Environment, Error, ErrorKind, Value};

/// The template called `raise_exception` with this text.
#[derive(Debug)]
pub struct Refusal(pub String);

impl std::fmt::Display for Refusal {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl std::error::Error for Refusal {}

/// Instructions of one rendering: under a second of work, far beyond any honest conversation.
const FUEL: u64 = 2_000_000;

fn raise_exception(message: String) -> Result<Value, Error> {
    Err(Error::new(ErrorKind::InvalidOperation, message.clone()).with_source(Refusal(message)))
}

fn strftime_now(format: String) -> Result<String, Error> {
    time::local_now(&format).ok_or_else(|| {
        Error::new(
            ErrorKind::InvalidOperation,
            "strftime_now: the format cannot be rendered",
        )
    })
}

fn tojson(value: &Value, options: Kwargs) -> Result<String, Error> {
    let style = json::Style::from_options(&options)?;
    options.assert_all_used()?;
    json::to_string(value, &style)
}

fn string(value: &Value) -> String {
    python::to_str(value)
}

fn trim(value: &Value, characters: Option<String>) -> String {
    let text = python::to_str(value);
    match characters {
        Some(set) => text.trim_matches(|c| set.contains(c)).to_string(),
        None => text.trim().to_string(),
    }
}

/// False for `none`, over which minijinja itself would iterate.
fn is_iterable(value: &Value) -> bool {
    !value.is_none() && value.try_iter().is_ok()
}

pub fn hugging_face() -> Environment<'static> {
    let mut environment = Environment::new();
    environment.set_trim_blocks(true);
    environment.set_lstrip_blocks(true);
    environment.set_fuel(Some(FUEL));
    environment.set_auto_escape_callback(|_| AutoEscape::None);
    environment.set_unknown_method_callback(minijinja_contrib::pycompat::unknown_method_callback);
    environment.set_formatter(|out, _, value| {
        let text = match value.kind() {
            ValueKind::Undefined => return Ok(()),
            ValueKind::String => return Ok(out.write_str(value.as_str().unwrap_or_default())?),
            _ => python::to_str(value),
        };
        Ok(out.write_str(&text)?)
    });
    environment.add_filter("tojson", tojson);
    environment.add_filter("string", string);
    environment.add_filter("trim", trim);
    environment.add_test("iterable", is_iterable);
    environment.add_function("raise_exception", raise_exception);
    environment.add_function("strftime_now", strftime_now);
    environment
}
