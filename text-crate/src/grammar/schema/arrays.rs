//! Keywords of arrays.

use super::convert::{is_any, Converter, Fields};
use super::notes::Place;
use serde_json::{json, Value};

/// Keywords beside which an "unevaluated..." looks into other schemas.
pub const APPLICATORS: [&str; 10] = [
    "allOf",
    "anyOf",
    "oneOf",
    "not",
    "if",
    "$ref",
    "$dynamicRef",
    "$recursiveRef",
    "dependentSchemas",
    "contains",
];

pub fn keyword<'a>(
    to: &mut Converter<'a>,
    all: &'a Fields,
    name: &str,
    value: &'a Value,
    at: &Place,
    out: &mut Fields,
) {
    let is_list = all.get("items").is_some_and(Value::is_array);
    match name {
        "items" if is_list => prefix(to, name, value, at, out),
        "prefixItems" if to.old || is_list => {}
        "prefixItems" => prefix(to, name, value, at, out),
        "items" => {
            out.insert("items".into(), to.schema(value, &at.child(name)));
        }
        "additionalItems" if is_list => {
            out.insert("items".into(), to.schema(value, &at.child(name)));
        }
        "additionalItems" => {}
        "unevaluatedItems" => unevaluated(to, all, value, at, out),
        "uniqueItems" if *value == json!(true) => {
            let single = all
                .get("maxItems")
                .and_then(Value::as_f64)
                .is_some_and(|most| most <= 1.0);
            if !single {
                to.notes.add(at, name, "");
            }
        }
        "contains" => {
            let needs_none =
                all.get("minContains") == Some(&json!(0)) && !all.contains_key("maxContains");
            if !needs_none {
                to.notes.add(at, name, "");
            }
        }
        "minContains" | "maxContains" if all.contains_key("contains") => {
            if *value != json!(0) || name == "maxContains" {
                to.notes.add(at, name, "");
            }
        }
        _ => {}
    }
}

fn prefix<'a>(to: &mut Converter<'a>, name: &str, value: &'a Value, at: &Place, out: &mut Fields) {
    let place = at.child(name);
    let Some(items) = value.as_array() else {
        return to.notes.add(at, name, "it is no list of schemas");
    };
    let each = items.iter().enumerate();
    let made: Vec<Value> = each
        .map(|(i, one)| to.schema(one, &place.index(i)))
        .collect();
    if !made.is_empty() {
        out.insert("prefixItems".into(), json!(made));
    }
}

fn unevaluated<'a>(
    to: &mut Converter<'a>,
    all: &'a Fields,
    value: &'a Value,
    at: &Place,
    out: &mut Fields,
) {
    let name = "unevaluatedItems";
    let rest_is_seen = match all.get("items") {
        Some(Value::Array(_)) => all.contains_key("additionalItems"),
        Some(_) => true,
        None => false,
    };
    if to.old || rest_is_seen || is_any(value) {
        return;
    }
    if all
        .keys()
        .any(|other| APPLICATORS.contains(&other.as_str()))
    {
        return to.notes.add(at, name, "beside other schemas");
    }
    out.insert("items".into(), to.schema(value, &at.child(name)));
}
