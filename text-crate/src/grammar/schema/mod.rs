//! JSON schemas before llguidance reads them.

mod arrays;
mod budget;
mod close;
mod conjunction;
mod convert;
mod counted;
mod decimals;
mod disjoint;
mod equality;
pub mod exact;
mod formats;
mod negation;
mod notes;
mod objects;
mod probe;
mod refs;
mod repair;
mod values;
mod walk;
mod whitespace;

use crate::ffi::{Failure, Outcome};
use budget::Budget;
use serde_json::{json, Map, Value};

pub struct JsonOptions<'a> {
    pub no_whitespace: bool,
    pub no_additional_properties: bool,
    /// What cannot be enforced is left out, and no error.
    pub lenient: bool,
    /// Empty: a blank, or a line break with indentation.
    pub whitespace_pattern: &'a str,
}

/// A schema that llguidance enforces entirely, and what it leaves out of the one that was given, as
/// sentences.
pub struct Relaxed {
    pub schema: Value,
    pub notes: Vec<String>,
}

pub fn parse(text: &str) -> Outcome<Value> {
    let schema: Value = serde_json::from_str(text)
        .map_err(|error| Failure::new(format!("the JSON schema is not JSON: {error}")))?;
    match schema {
        Value::Object(_) | Value::Bool(_) => Ok(schema),
        _ => Err(Failure::new(
            "the JSON schema must be a JSON object or a boolean",
        )),
    }
}

/// Keywords that describe and enforce nothing.
fn is_note(keyword: &str) -> bool {
    const NOTES: [&str; 18] = [
        "title",
        "description",
        "default",
        "examples",
        "example",
        "deprecated",
        "readOnly",
        "writeOnly",
        "$comment",
        "$schema",
        "$id",
        "$anchor",
        "$dynamicAnchor",
        "$vocabulary",
        "$defs",
        "definitions",
        "externalDocs",
        "xml",
    ];
    NOTES.contains(&keyword)
}

/// Keeps of a schema what can be enforced. An error where nothing is left of what it says, where no
/// value fits, or where llguidance refuses the rest.
pub fn relaxed(given: &Value) -> Outcome<Relaxed> {
    let budget = Budget::new();
    let mut made = convert::convert(given, &budget)?;
    conjunction::check(&made.schema, &budget)?;
    repair::repair(&mut made, &budget)?;
    let notes = made.notes.texts;
    if !notes.is_empty() && convert::is_any(&made.schema) {
        return Err(Failure::new(format!(
            "nothing of the JSON schema can be enforced: {}; change it, or ask without it",
            notes.join("; ")
        )));
    }
    Ok(Relaxed {
        schema: made.schema,
        notes,
    })
}

/// An error where reading a schema, or what its patterns say together, would take too long.
pub fn check_cost(given: &Value) -> Outcome<()> {
    let budget = Budget::new();
    let made = convert::convert(given, &budget)?;
    conjunction::check(&made.schema, &budget)
}

/// The same for a text; options of llguidance stay as they are.
pub fn relaxed_text(text: &str) -> Outcome<Relaxed> {
    let given = parse(text)?;
    let mut made = relaxed(&given)?;
    if let (Some(own), Some(fields)) = (given.get("x-guidance"), made.schema.as_object_mut()) {
        fields.insert("x-guidance".into(), own.clone());
    }
    Ok(made)
}

/// As llguidance shall read it. An error that names what cannot be enforced, if anything.
pub fn prepared(given: Value, options: &JsonOptions) -> Outcome<Value> {
    let own = given
        .get("x-guidance")
        .cloned()
        .unwrap_or_else(|| json!({}));
    let Value::Object(own) = own else {
        return Err(Failure::new("x-guidance must be a JSON object"));
    };
    let told = |name: &&str| own.get(*name) == Some(&json!(true));
    let lenient = options.lenient || ["lenient", "coerce_one_of"].iter().any(told);
    let Relaxed { mut schema, notes } = relaxed(&given)?;
    if !notes.is_empty() && !lenient {
        return Err(Failure::new(format!(
            "the JSON schema says what cannot be enforced: {}; leave it out, or ask without strict schemas",
            notes.join("; ")
        )));
    }
    if options.no_additional_properties {
        close::close_objects(&mut schema);
    }
    if let Value::Bool(value) = schema {
        schema = json!({ "allOf": [value] });
    }
    let space = whitespace::bounded(&schema);
    let fields = schema.as_object_mut().expect("an object, as parse checks");
    fields.insert(
        "x-guidance".into(),
        Value::Object(with_space(own, options, space)),
    );
    Ok(schema)
}

fn with_space(
    mut own: Map<String, Value>,
    options: &JsonOptions,
    space: String,
) -> Map<String, Value> {
    let is_told = own.contains_key("whitespace_flexible") || own.contains_key("whitespace_pattern");
    if options.no_whitespace {
        own.insert("whitespace_flexible".into(), false.into());
    } else if !options.whitespace_pattern.is_empty() {
        own.insert(
            "whitespace_pattern".into(),
            options.whitespace_pattern.into(),
        );
    } else if !is_told {
        own.insert("whitespace_pattern".into(), space.into());
    }
    own
}
