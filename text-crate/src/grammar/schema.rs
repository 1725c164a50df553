//! JSON schemas before llguidance reads them.

use crate::ffi::{Failure, Outcome};
use serde_json::{json, Map, Value};

pub struct JsonOptions<'a> {
    pub no_whitespace: bool,
    pub no_additional_properties: bool,
    /// Empty: any whitespace.
    pub whitespace_pattern: &'a str,
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

pub fn prepared(mut schema: Value, options: &JsonOptions) -> Outcome<Value> {
    if options.no_additional_properties {
        close_objects(&mut schema);
    }
    if !options.no_whitespace && options.whitespace_pattern.is_empty() {
        return Ok(schema);
    }
    if let Value::Bool(value) = schema {
        schema = json!({ "allOf": [value] });
    }
    let fields = schema.as_object_mut().expect("an object, as parse checks");
    let own = fields
        .entry("x-guidance")
        .or_insert_with(|| Value::Object(Map::new()));
    let Some(own) = own.as_object_mut() else {
        return Err(Failure::new("x-guidance must be a JSON object"));
    };
    if options.no_whitespace {
        own.insert("whitespace_flexible".into(), false.into());
    } else {
        own.insert(
            "whitespace_pattern".into(),
            options.whitespace_pattern.into(),
        );
    }
    Ok(schema)
}

/// Keywords whose value maps names to schemas, and those whose value is plain data.
const MAPS: [&str; 5] = [
    "properties",
    "patternProperties",
    "$defs",
    "definitions",
    "dependentSchemas",
];
const DATA: [&str; 4] = ["enum", "const", "default", "examples"];

/// Gives every object schema that says nothing about further properties: none.
fn close_objects(schema: &mut Value) {
    match schema {
        Value::Array(items) => items.iter_mut().for_each(close_objects),
        Value::Object(fields) => {
            for (keyword, value) in fields.iter_mut() {
                match value {
                    Value::Object(map) if MAPS.contains(&keyword.as_str()) => {
                        map.values_mut().for_each(close_objects)
                    }
                    _ if DATA.contains(&keyword.as_str()) => {}
                    value => close_objects(value),
                }
            }
            let is_object = fields.contains_key("properties")
                || fields.contains_key("patternProperties")
                || fields.get("type").is_some_and(|kind| kind == "object");
            if is_object && !fields.contains_key("additionalProperties") {
                fields.insert("additionalProperties".into(), false.into());
            }
        }
        _ => {}
    }
}
