//! The schemas within a converted schema.

use super::convert::Fields;
use serde_json::Value;

const MAPS: [&str; 3] = ["properties", "patternProperties", "$defs"];
const LISTS: [&str; 4] = ["allOf", "anyOf", "oneOf", "prefixItems"];
const SINGLES: [&str; 2] = ["additionalProperties", "items"];

/// One step to a schema within another: the keyword and, in maps and lists, which one.
#[derive(Clone, PartialEq)]
pub enum Step {
    Name(String, String),
    Index(String, usize),
    Only(String),
}

pub fn steps(fields: &Fields) -> Vec<Step> {
    let mut steps = Vec::new();
    for (keyword, value) in fields {
        let name = keyword.as_str();
        match value {
            Value::Object(map) if MAPS.contains(&name) => {
                steps.extend(map.keys().map(|key| Step::Name(name.into(), key.clone())))
            }
            Value::Array(list) if LISTS.contains(&name) => {
                steps.extend((0..list.len()).map(|index| Step::Index(name.into(), index)))
            }
            Value::Object(_) if SINGLES.contains(&name) => steps.push(Step::Only(name.into())),
            _ => {}
        }
    }
    steps
}

pub fn at<'a>(schema: &'a Value, step: &Step) -> Option<&'a Value> {
    within(schema.as_object()?, step)
}

pub fn within<'a>(fields: &'a Fields, step: &Step) -> Option<&'a Value> {
    match step {
        Step::Name(keyword, key) => fields.get(keyword)?.get(key),
        Step::Index(keyword, index) => fields.get(keyword)?.get(index),
        Step::Only(keyword) => fields.get(keyword),
    }
}

pub fn at_mut<'a>(schema: &'a mut Value, step: &Step) -> Option<&'a mut Value> {
    match step {
        Step::Name(keyword, key) => schema.get_mut(keyword)?.get_mut(key),
        Step::Index(keyword, index) => schema.get_mut(keyword)?.get_mut(index),
        Step::Only(keyword) => schema.get_mut(keyword),
    }
}

/// Calls `change` with every schema, inner ones first.
pub fn each(schema: &mut Value, change: &mut impl FnMut(&mut Fields)) {
    let steps = match schema.as_object() {
        Some(fields) => steps(fields),
        None => return,
    };
    for step in &steps {
        if let Some(inner) = at_mut(schema, step) {
            each(inner, change);
        }
    }
    if let Some(fields) = schema.as_object_mut() {
        change(fields);
    }
}
