//! Keywords of objects.

use super::arrays::APPLICATORS;
use super::budget::Budget;
use super::convert::{and_all, is_any, Converter, Fields};
use super::notes::Place;
use super::probe;
use regex_syntax::hir::literal::Extractor;
use regex_syntax::hir::Look;
use serde_json::{json, Map, Value};

pub fn keyword<'a>(
    to: &mut Converter<'a>,
    all: &'a Fields,
    name: &str,
    value: &'a Value,
    at: &Place,
    out: &mut Fields,
) {
    match name {
        "properties" => {
            let made = map(to, name, value, at);
            join_properties(out, made);
        }
        "patternProperties" => patterns(to, all, value, at, out),
        "additionalProperties" => {
            let made = to.schema(value, &at.child(name));
            // Patterns that have to go take it with them.
            if !has_lost_pattern(to, all) {
                out.insert(name.into(), made);
            }
        }
        "required" => required(to, value, at, out),
        "propertyNames" => names(to, all, value, at, out),
        "unevaluatedProperties" => unevaluated(to, all, value, at, out),
        "dependentRequired" | "dependentSchemas" if !to.old => dependent(to, name, value, at, out),
        "dependencies" => dependent(to, name, value, at, out),
        _ => {}
    }
}

fn map<'a>(to: &mut Converter<'a>, name: &str, value: &'a Value, at: &Place) -> Map<String, Value> {
    let place = at.child(name);
    let Some(schemas) = value.as_object() else {
        to.notes.add(at, name, "it is no object of schemas");
        return Map::new();
    };
    let each = schemas.iter();
    each.map(|(key, one)| (key.clone(), to.schema(one, &place.child(key))))
        .collect()
}

/// Of which a schema is made: what a copy of it costs.
pub fn num_values(schema: &Value) -> usize {
    1 + match schema {
        Value::Array(items) => items.iter().map(num_values).sum(),
        Value::Object(map) => map.values().map(num_values).sum(),
        _ => 0,
    }
}

/// "properties" and the names that patterns list; what is said twice of one holds together.
fn join_properties(out: &mut Fields, made: Map<String, Value>) {
    let all = out.entry("properties").or_insert_with(|| json!({}));
    let Some(all) = all.as_object_mut() else {
        return;
    };
    for (name, schema) in made {
        match all.get_mut(&name) {
            Some(found) => *found = json!({ "allOf": [found.take(), schema] }),
            None => drop(all.insert(name, schema)),
        }
    }
}

/// Many are looked at by pairs, so that it does not take long to see that there is no more time.
fn fault_of_patterns(budget: &Budget, patterns: &[&String]) -> Option<String> {
    const FEW: usize = 8;
    if patterns.len() <= FEW {
        return fault_of_few(budget, patterns);
    }
    let pairs = patterns
        .iter()
        .enumerate()
        .flat_map(|(i, a)| patterns[i + 1..].iter().map(move |b| [*a, *b]));
    pairs
        .into_iter()
        .find_map(|pair| fault_of_few(budget, &pair))
}

fn fault_of_few(budget: &Budget, patterns: &[&String]) -> Option<String> {
    if !budget.has_time() {
        return None;
    }
    let all: Map<String, Value> = patterns
        .iter()
        .map(|p| ((*p).clone(), json!(true)))
        .collect();
    probe::fault(&json!({ "type": "object", "patternProperties": all }))
}

fn has_lost_pattern(to: &mut Converter, all: &Fields) -> bool {
    let key = all as *const Fields;
    if let Some(known) = to.lost_patterns.get(&key) {
        return *known;
    }
    let lost = loses_pattern(to.budget, all);
    to.lost_patterns.insert(key, lost);
    lost
}

fn loses_pattern(budget: &Budget, all: &Fields) -> bool {
    match all.get("patternProperties") {
        None => false,
        Some(Value::Object(map)) => {
            let rest: Map<String, Value> = map
                .iter()
                .filter(|(pattern, _)| names_of(all, pattern).is_none())
                .map(|(pattern, one)| (pattern.clone(), one.clone()))
                .collect();
            fault_of_patterns(budget, &rest.keys().collect::<Vec<_>>()).is_some()
                && !is_one(budget, &rest)
        }
        Some(_) => true,
    }
}

/// Patterns with one schema for all are one pattern.
fn is_one(budget: &Budget, map: &Map<String, Value>) -> bool {
    let same = map.values().all(|one| Some(one) == map.values().next());
    same && fault_of_patterns(budget, &[&either(map)]).is_none()
}

fn either(map: &Map<String, Value>) -> String {
    let each: Vec<String> = map.keys().map(|pattern| format!("(?:{pattern})")).collect();
    each.join("|")
}

/// The names that a pattern lists, as "^(a|b)$", where the object says which others there are:
/// llguidance takes no pattern of which "properties" leave nothing.
fn names_of(all: &Fields, pattern: &str) -> Option<Vec<String>> {
    const MOST: usize = 100;
    let closed = all.get("additionalProperties") == Some(&Value::Bool(false));
    if !closed && !all.contains_key("properties") {
        return None;
    }
    let parsed = regex_syntax::parse(pattern).ok()?;
    let looks = parsed.properties();
    let whole = looks.look_set_prefix().contains(Look::Start)
        && looks.look_set_suffix().contains(Look::End);
    let texts = Extractor::new().limit_total(MOST).extract(&parsed);
    if !whole || !texts.is_exact() {
        return None;
    }
    let bytes = texts
        .literals()?
        .iter()
        .map(|text| text.as_bytes().to_vec());
    bytes.map(|text| String::from_utf8(text).ok()).collect()
}

fn patterns<'a>(
    to: &mut Converter<'a>,
    all: &Fields,
    value: &'a Value,
    at: &Place,
    out: &mut Fields,
) {
    let name = "patternProperties";
    let mut made = Map::new();
    let mut given = Map::new();
    for (pattern, schema) in map(to, name, value, at) {
        match names_of(all, &pattern) {
            Some(names) => {
                if !to.budget.pay(names.len() * num_values(&schema)) {
                    return;
                }
                let each = names.into_iter().map(|name| (name, schema.clone()));
                join_properties(out, each.collect());
            }
            None => {
                given.insert(pattern.clone(), value[&pattern].clone());
                made.insert(pattern, schema);
            }
        }
    }
    if made.is_empty() {
        return;
    }
    let Some(fault) = fault_of_patterns(to.budget, &made.keys().collect::<Vec<_>>()) else {
        out.insert(name.into(), Value::Object(made));
        return;
    };
    if is_one(to.budget, &given) {
        let only = made.values().next().expect("not empty").clone();
        out.insert(name.into(), json!({ either(&given): only }));
        return;
    }
    to.notes.add(
        at,
        name,
        &format!("{fault}, and additionalProperties beside it"),
    );
}

fn required(to: &mut Converter, value: &Value, at: &Place, out: &mut Fields) {
    let Some(names) = value
        .as_array()
        .filter(|all| all.iter().all(Value::is_string))
    else {
        return to.notes.add(at, "required", "it is no list of names");
    };
    if !names.is_empty() {
        out.insert("required".into(), json!(names));
    }
}

/// Names by a pattern or a list are what "patternProperties" can say where nothing else names any.
fn names<'a>(
    to: &mut Converter<'a>,
    all: &'a Fields,
    value: &'a Value,
    at: &Place,
    out: &mut Fields,
) {
    let place = at.child("propertyNames");
    let made = to.schema(value, &place);
    if made == json!(false) {
        return and_all(out, vec![json!({ "maxProperties": 0 })]);
    }
    let mut rules = made.as_object().cloned().unwrap_or_default();
    if rules.get("type") == Some(&json!("string")) {
        rules.remove("type");
    }
    if rules.is_empty() {
        return;
    }
    let pattern = match rules.iter().next() {
        Some((kind, Value::String(text))) if rules.len() == 1 && kind == "pattern" => {
            Some(text.clone())
        }
        Some((kind, Value::Array(names))) if rules.len() == 1 && kind == "enum" => {
            Some(one_of(names))
        }
        Some((kind, name)) if rules.len() == 1 && kind == "const" => {
            Some(one_of(std::slice::from_ref(name)))
        }
        _ => None,
    };
    let alone = !all.contains_key("properties") && !all.contains_key("patternProperties");
    match pattern.filter(|text| alone && fault_of_patterns(to.budget, &[text]).is_none()) {
        Some(text) => {
            let rest = out
                .shift_remove("additionalProperties")
                .unwrap_or(json!(true));
            let only =
                json!({ "patternProperties": { text: rest }, "additionalProperties": false });
            and_all(out, vec![only]);
        }
        None => to.notes.add(
            at,
            "propertyNames",
            "beside named properties, or with more than a pattern or a list",
        ),
    }
}

fn one_of(names: &[Value]) -> String {
    let each: Vec<String> = names
        .iter()
        .filter_map(Value::as_str)
        .map(regex_syntax::escape)
        .collect();
    format!("^(?:{})$", each.join("|"))
}

fn unevaluated<'a>(
    to: &mut Converter<'a>,
    all: &'a Fields,
    value: &'a Value,
    at: &Place,
    out: &mut Fields,
) {
    let name = "unevaluatedProperties";
    if to.old || all.contains_key("additionalProperties") || is_any(value) {
        return;
    }
    let beside = all
        .keys()
        .any(|other| APPLICATORS.contains(&other.as_str()) && other != "contains");
    if beside {
        return to.notes.add(at, name, "beside other schemas");
    }
    if has_lost_pattern(to, all) {
        return;
    }
    let made = to.schema(value, &at.child(name));
    out.insert("additionalProperties".into(), made);
}

/// "If this property is there, so are those": either it is not there, or they are.
fn dependent<'a>(
    to: &mut Converter<'a>,
    name: &str,
    value: &'a Value,
    at: &Place,
    out: &mut Fields,
) {
    let Some(rules) = value.as_object() else {
        return to.notes.add(at, name, "it is no object");
    };
    // Each doubles the number of cases.
    const MOST: usize = 4;
    if rules.len() > MOST {
        return to.notes.add(at, name, "it has too many entries");
    }
    for (key, then) in rules {
        let then = match then {
            Value::Array(names) if names.iter().all(Value::is_string) => match names.is_empty() {
                true => continue,
                false => json!({ "required": names }),
            },
            one => to.schema(one, &at.child(name).child(key)),
        };
        if !is_any(&then) {
            let without = json!({ "properties": { key: false } });
            and_all(out, vec![json!({ "anyOf": [without, then] })]);
        }
    }
}
