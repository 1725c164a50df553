//! How much white space may stand between the parts of a JSON text.

use super::convert::Fields;
use super::walk;
use serde_json::{Map, Value};

/// Levels where a schema does not say how deep its values are; an object that names properties and
/// does not exclude others has three.
const OPEN_DEPTH: usize = 8;
const MAX_DEPTH: usize = 24;

/// A blank, or a line break with as much indentation as the deepest level of the schema has by four
/// blanks or a tab each: every usual layout, and no blanks without end.
pub fn bounded(schema: &Value) -> String {
    let definitions = schema
        .get("$defs")
        .and_then(Value::as_object)
        .cloned()
        .unwrap_or_default();
    let depth = depth_of(schema, &definitions, &mut Vec::new()).min(MAX_DEPTH);
    format!(r" |\r?\n(?: {{0,{}}}|\t{{0,{depth}}})", 4 * depth)
}

fn depth_of(schema: &Value, definitions: &Fields, within: &mut Vec<String>) -> usize {
    let fields = match schema {
        Value::Object(fields) => fields,
        Value::Bool(false) => return 0,
        _ => return OPEN_DEPTH,
    };
    if let Some(Value::String(reference)) = fields.get("$ref") {
        if within.contains(reference) {
            return OPEN_DEPTH;
        }
        let Some(target) = definitions.get(reference.trim_start_matches("#/$defs/")) else {
            return OPEN_DEPTH;
        };
        within.push(reference.clone());
        let depth = depth_of(target, definitions, within);
        within.pop();
        return depth.max(own_depth(fields, definitions, within, 0));
    }
    let named = fields.contains_key("properties") && !fields.contains_key("additionalProperties");
    let least = if opens(fields) {
        OPEN_DEPTH
    } else {
        1 + 2 * usize::from(named)
    };
    own_depth(fields, definitions, within, least)
}

/// Whether values may hold what the schema does not describe.
fn opens(fields: &Fields) -> bool {
    let has = |names: &[&str]| names.iter().any(|name| fields.contains_key(*name));
    if has(&["allOf", "anyOf", "enum", "const"]) {
        return false;
    }
    let may = |name: &str| match fields.get("type") {
        Some(Value::String(one)) => one == name,
        Some(Value::Array(all)) => all.iter().any(|one| one == name),
        _ => true,
    };
    (may("object") && !has(&["additionalProperties", "properties"]))
        || (may("array") && !has(&["items", "prefixItems"]))
}

fn own_depth(
    fields: &Fields,
    definitions: &Fields,
    within: &mut Vec<String>,
    least: usize,
) -> usize {
    let mut depth = least;
    for step in walk::steps(fields) {
        let adds = match &step {
            walk::Step::Name(keyword, _) if keyword == "$defs" => continue,
            walk::Step::Index(keyword, _) if keyword != "prefixItems" => 0,
            _ => 1,
        };
        if let Some(inner) = walk::at(&Value::Object(fields.clone()), &step) {
            depth = depth.max(adds + depth_of(inner, definitions, within));
        }
    }
    let literals = fields.get("enum").into_iter().chain(fields.get("const"));
    literals.fold(depth, |depth, value| depth.max(depth_of_value(value)))
}

fn depth_of_value(value: &Value) -> usize {
    let nested: Vec<&Value> = match value {
        Value::Array(items) => items.iter().collect(),
        Value::Object(map) => Map::values(map).collect(),
        _ => return 0,
    };
    1 + nested.into_iter().map(depth_of_value).max().unwrap_or(0)
}
