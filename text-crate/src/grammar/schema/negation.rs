//! "not" and "if", as far as other keywords can say the same.

use super::convert::{and_all, is_any, types_of, Converter, Fields, TYPES};
use super::equality::ValueSet;
use super::notes::Place;
use serde_json::{json, Value};

pub fn not<'a>(to: &mut Converter<'a>, value: &'a Value, at: &Place, out: &mut Fields) {
    // What the inner schema leaves out would be asked for here.
    let (num_texts, count) = (to.notes.texts.len(), to.notes.count);
    let inner = to.schema(value, &at.child("not"));
    let whole = to.notes.count == count;
    to.notes.forget(num_texts, count);
    if whole && inner == json!(false) {
        return;
    }
    if whole && is_any(&inner) {
        return and_all(out, vec![json!(false)]);
    }
    let opposite = inner
        .as_object()
        .filter(|rules| whole && rules.len() == 1)
        .and_then(|rules| {
            let (keyword, rule) = rules.iter().next()?;
            match keyword.as_str() {
                "type" => without_types(rules, out),
                "enum" | "const" => without_literals(keyword, rule, out),
                _ => None,
            }
        });
    match opposite.or_else(|| without_property(&inner, out).filter(|_| whole)) {
        Some(rule) => and_all(out, vec![rule]),
        None => to.notes.add(at, "not", ""),
    }
}

fn without_types(rules: &Fields, out: &Fields) -> Option<Value> {
    let refused = types_of(rules);
    let numbers = refused.contains(&"number");
    // No schema says "numbers that are no integers".
    if refused.contains(&"integer") && !numbers && types_of(out).contains(&"number") {
        return None;
    }
    let is_kept = |name: &&&str| !refused.contains(*name) && !(numbers && **name == "integer");
    let rest: Vec<&str> = TYPES.iter().filter(is_kept).copied().collect();
    Some(if rest.is_empty() {
        json!(false)
    } else {
        json!({ "type": rest })
    })
}

fn without_literals(keyword: &str, rule: &Value, out: &Fields) -> Option<Value> {
    let refused = match keyword {
        "enum" => ValueSet::of(rule.as_array()?),
        _ => ValueSet::of([rule]),
    };
    let all = out.get("enum")?.as_array()?;
    let rest: Vec<&Value> = all.iter().filter(|one| !refused.contains(one)).collect();
    Some(if rest.is_empty() {
        json!(false)
    } else {
        json!({ "enum": rest })
    })
}

/// Of an object: not having a property.
fn without_property(inner: &Value, out: &Fields) -> Option<Value> {
    let rules = inner.as_object()?;
    let known = rules
        .keys()
        .all(|name| name == "required" || name == "type");
    let objects = |fields: &Fields| fields.get("type") == Some(&json!("object"));
    if !known || !objects(out) || (rules.contains_key("type") && !objects(rules)) {
        return None;
    }
    match rules.get("required")?.as_array()?.as_slice() {
        [Value::String(name)] => Some(json!({ "properties": { name: false } })),
        _ => None,
    }
}

pub fn condition<'a>(
    to: &mut Converter<'a>,
    all: &'a Fields,
    keyword: &str,
    at: &Place,
    out: &mut Fields,
) {
    let Some(test) = all.get("if") else { return };
    let told = |name: &str| all.get(name).is_some_and(|branch| !is_any(branch));
    if is_any(test) || *test == json!(false) {
        let taken = if is_any(test) { "then" } else { "else" };
        if keyword == taken {
            let made = to.schema(&all[taken], &at.child(taken));
            and_all(out, vec![made]);
        }
        return;
    }
    if keyword == "if" && (told("then") || told("else")) {
        let names = ["then", "else"]
            .iter()
            .filter(|name| told(name))
            .map(|name| format!("'{name}'"));
        let names: Vec<String> = names.collect();
        to.notes
            .add(at, "if", &format!("nor {}", names.join(" and ")));
    }
}
