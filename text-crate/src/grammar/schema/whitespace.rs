//! How much white space may stand between the parts of a JSON text.

use super::convert::Fields;
use super::walk;
use serde_json::{Map, Value};
use std::collections::HashMap;

/// Levels where a schema does not say how deep its values are; an object that names properties and
/// does not exclude others has three.
const OPEN_DEPTH: usize = 8;
const MAX_DEPTH: usize = 24;

/// A blank, or a line break with as much indentation as the deepest level of the schema has by four
/// blanks or a tab each: every usual layout, and no blanks without end.
pub fn bounded(schema: &Value) -> String {
    let none = Map::new();
    let definitions = schema.get("$defs").and_then(Value::as_object);
    let mut depths = Depths {
        definitions: definitions.unwrap_or(&none),
        known: HashMap::new(),
    };
    let depth = depths.of(schema).min(MAX_DEPTH);
    format!(r" |\r?\n(?: {{0,{}}}|\t{{0,{depth}}})", 4 * depth)
}

struct Depths<'a> {
    definitions: &'a Fields,
    /// By reference; none while it is being asked for. Each is looked into once, however many name it.
    known: HashMap<&'a str, Option<usize>>,
}

impl<'a> Depths<'a> {
    fn of(&mut self, schema: &'a Value) -> usize {
        let fields = match schema {
            Value::Object(fields) => fields,
            Value::Bool(false) => return 0,
            _ => return OPEN_DEPTH,
        };
        if let Some(Value::String(reference)) = fields.get("$ref") {
            return self.of_target(reference).max(self.within(fields, 0));
        }
        let named =
            fields.contains_key("properties") && !fields.contains_key("additionalProperties");
        let least = if opens(fields) {
            OPEN_DEPTH
        } else {
            1 + 2 * usize::from(named)
        };
        self.within(fields, least)
    }

    fn of_target(&mut self, reference: &'a str) -> usize {
        if let Some(known) = self.known.get(reference) {
            return known.unwrap_or(OPEN_DEPTH);
        }
        let Some(target) = self.definitions.get(reference.trim_start_matches("#/$defs/")) else {
            return OPEN_DEPTH;
        };
        self.known.insert(reference, None);
        let depth = self.of(target);
        self.known.insert(reference, Some(depth));
        depth
    }

    fn within(&mut self, fields: &'a Fields, least: usize) -> usize {
        let mut depth = least;
        for step in walk::steps(fields) {
            let adds = match &step {
                walk::Step::Name(keyword, _) if keyword == "$defs" => continue,
                walk::Step::Index(keyword, _) if keyword != "prefixItems" => 0,
                _ => 1,
            };
            if let Some(inner) = walk::within(fields, &step) {
                depth = depth.max(adds + self.of(inner));
            }
        }
        let literals = fields.get("enum").into_iter().chain(fields.get("const"));
        literals.fold(depth, |depth, value| depth.max(depth_of_value(value)))
    }
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

fn depth_of_value(value: &Value) -> usize {
    let nested: Vec<&Value> = match value {
        Value::Array(items) => items.iter().collect(),
        Value::Object(map) => Map::values(map).collect(),
        _ => return 0,
    };
    1 + nested.into_iter().map(depth_of_value).max().unwrap_or(0)
}
