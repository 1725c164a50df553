//! Objects without properties that nobody named.

use super::convert::Fields;
use super::walk::{self, Step};
use serde_json::Value;
use std::collections::BTreeSet;

/// Gives each object that names properties and says nothing about others: none. Those that several
/// schemas describe together (`allOf`, options beside properties, a reference with siblings) stay
/// open, since each would forbid what the others name, and so do those that ask for more than they
/// name.
pub fn close_objects(schema: &mut Value) {
    each_alone(schema, &mut |fields| {
        if names_all(fields) {
            fields.insert("additionalProperties".into(), false.into());
        }
    });
}

/// Calls `change` with every schema that alone describes its values, inner ones first.
pub fn each_alone(schema: &mut Value, change: &mut impl FnMut(&mut Fields)) {
    let mut shared = BTreeSet::new();
    find_shared(schema, false, &mut shared);
    // What a shared definition refers to is shared, too.
    let mut fresh: Vec<String> = shared.iter().cloned().collect();
    while let Some(name) = fresh.pop() {
        let mut found = BTreeSet::new();
        if let Some(definition) = schema.get("$defs").and_then(|all| all.get(&name)) {
            find_shared(definition, true, &mut found);
        }
        fresh.extend(found.difference(&shared).cloned());
        shared.extend(found);
    }
    visit(schema, false, &shared, change);
}

fn is_combined(fields: &Fields) -> bool {
    let has = |names: &[&str]| names.iter().any(|name| fields.contains_key(*name));
    let parts = fields.get("allOf").and_then(Value::as_array);
    parts.is_some_and(|parts| parts.len() > 1)
        || (has(&["properties", "patternProperties"]) && has(&["$ref", "allOf", "anyOf", "oneOf"]))
}

/// Whether the schema at `step` says more of the value that its owner describes.
fn is_part(step: &Step) -> bool {
    matches!(step, Step::Index(keyword, _) if keyword != "prefixItems")
}

/// Names of definitions that are one of several descriptions of an object.
fn find_shared(schema: &Value, within: bool, shared: &mut BTreeSet<String>) {
    let Some(fields) = schema.as_object() else {
        return;
    };
    let combined = within || is_combined(fields);
    if let (true, Some(Value::String(reference))) = (combined, fields.get("$ref")) {
        shared.insert(reference.trim_start_matches("#/$defs/").into());
    }
    for step in walk::steps(fields) {
        if let Some(inner) = walk::at(schema, &step) {
            find_shared(inner, combined && is_part(&step), shared);
        }
    }
}

fn visit(
    schema: &mut Value,
    within: bool,
    shared: &BTreeSet<String>,
    change: &mut impl FnMut(&mut Fields),
) {
    let Some(fields) = schema.as_object() else {
        return;
    };
    let combined = within || is_combined(fields);
    for step in walk::steps(fields) {
        let is_shared = matches!(&step, Step::Name(keyword, name) if keyword == "$defs" && shared.contains(name));
        if let Some(inner) = walk::at_mut(schema, &step) {
            visit(inner, is_shared || combined && is_part(&step), shared, change);
        }
    }
    if !combined {
        change(schema.as_object_mut().expect("as above"));
    }
}

/// Whether what an object must have is among the properties that it names.
fn names_all(fields: &Fields) -> bool {
    if fields.contains_key("additionalProperties") {
        return false;
    }
    if fields.contains_key("patternProperties") {
        return true;
    }
    let Some(Value::Object(named)) = fields.get("properties") else {
        return false;
    };
    let required = fields.get("required").and_then(Value::as_array);
    let all_named = required.is_none_or(|names| {
        let is_named = |name: &Value| name.as_str().is_some_and(|name| named.contains_key(name));
        names.iter().all(is_named)
    });
    let least = fields.get("minProperties").and_then(Value::as_u64);
    all_named && least.unwrap_or(0) <= named.len() as u64
}
