//! "minProperties" and "maxProperties" of objects that name properties, some of which may be missing.
//! llguidance counts only where each that is named must be there, so that such an object becomes a
//! choice between objects. With a, b, c and at least 2: {a, b, c?}, {a, c} or {b, c}.

use super::budget::Budget;
use super::close;
use super::convert::{and_all, Fields};
use super::notes::{Notes, Place};
use super::objects::num_values;
use super::walk;
use serde_json::{json, Value};

const WHY: &str =
    "beside properties that may be missing, where others may be there, too, or there are many";
const MOST_CHOICES: usize = 64;
/// Of which all choices of one object are made.
const MOST_VALUES: usize = 4000;

/// Where an object stands whose counts are not settled yet.
const PATH: &str = "x-counted-at";

/// Leaves of the counts of a converted schema what they say beside the properties that must be there;
/// `settle` looks at the rest.
pub fn note(at: &Place, out: &mut Fields) {
    let bound = |name: &str| out.get(name).and_then(Value::as_u64).map(|n| n as usize);
    let (least, most) = (bound("minProperties"), bound("maxProperties"));
    let Some(Value::Object(named)) = out.get("properties") else {
        return;
    };
    let required = names_of(out.get("required"));
    let may_miss = named.keys().any(|name| !required.contains(name));
    if most.is_some_and(|most| most < required.len()) {
        return and_all(out, vec![json!(false)]);
    }
    if least.is_some_and(|least| least <= required.len()) {
        out.shift_remove("minProperties");
    }
    if may_miss && (out.contains_key("minProperties") || most.is_some()) {
        out.insert(PATH.into(), json!(at.path));
    }
}

/// Makes choices of the objects of a converted schema, and leaves out the counts of those that others
/// describe, too, or that are too many.
pub fn settle(schema: &mut Value, notes: &mut Notes, budget: &Budget) {
    close::each_alone(schema, &mut |fields| {
        if fields.contains_key(PATH) {
            choose(fields, budget);
        }
    });
    walk::each(schema, &mut |fields| {
        let Some(path) = fields.shift_remove(PATH) else {
            return;
        };
        let mut place = Place::root();
        place.path = path.as_str().unwrap_or("$").into();
        for name in ["minProperties", "maxProperties"] {
            if fields.shift_remove(name).is_some() {
                notes.add(&place, name, WHY);
            }
        }
    });
}

fn names_of(list: Option<&Value>) -> Vec<String> {
    let all = list.and_then(Value::as_array).into_iter().flatten();
    all.filter_map(Value::as_str).map(String::from).collect()
}

/// Of properties that may be missing: those that must be there, and those that may.
struct Choice {
    must: Vec<String>,
    may: Vec<String>,
}

/// None where there are too many. Without an upper bound, the first so many that are there must be;
/// with one, all that are there.
fn choices(missing: &[String], least: usize, most: usize) -> Option<Vec<Choice>> {
    let open = most >= missing.len();
    let sizes = least..=if open { least } else { most };
    let mut all = Vec::new();
    for size in sizes {
        let mut taken: Vec<usize> = (0..size.min(missing.len() + 1)).collect();
        while taken.last().is_none_or(|last| *last < missing.len()) {
            if all.len() == MOST_CHOICES {
                return None;
            }
            let rest = taken.last().map_or(0, |last| last + 1);
            all.push(Choice {
                must: taken.iter().map(|at| missing[*at].clone()).collect(),
                may: if open {
                    missing[rest..].to_vec()
                } else {
                    Vec::new()
                },
            });
            if !next(&mut taken, missing.len()) {
                break;
            }
        }
    }
    Some(all)
}

/// The next combination of so many indices below `end`, in order; false behind the last.
fn next(taken: &mut [usize], end: usize) -> bool {
    let size = taken.len();
    let Some(at) = (0..size).rev().find(|at| taken[*at] + size - at < end) else {
        return false;
    };
    taken[at] += 1;
    for later in at + 1..size {
        taken[later] = taken[later - 1] + 1;
    }
    true
}

/// An object that says nothing about others has none, as `close` has it.
fn is_closed(fields: &Fields) -> bool {
    let others = ["patternProperties", "$ref", "allOf", "anyOf", "oneOf"];
    !others.iter().any(|name| fields.contains_key(*name))
        && matches!(
            fields.get("additionalProperties"),
            None | Some(Value::Bool(false))
        )
}

fn choose(fields: &mut Fields, budget: &Budget) {
    let bound = |name: &str| fields.get(name).and_then(Value::as_u64).map(|n| n as usize);
    let (least, most) = (bound("minProperties"), bound("maxProperties"));
    let required = names_of(fields.get("required"));
    let Some(Value::Object(named)) = fields.get("properties").filter(|_| is_closed(fields)) else {
        return;
    };
    if !required.iter().all(|name| named.contains_key(name)) {
        return;
    }
    let missing: Vec<String> = named
        .keys()
        .filter(|name| !required.contains(*name))
        .cloned()
        .collect();
    let least = least.unwrap_or(0).saturating_sub(required.len());
    let most = most.map_or(usize::MAX, |most| most.saturating_sub(required.len()));
    if least > missing.len() && !fields.contains_key("additionalProperties") {
        return;
    }
    let Some(choices) = choices(&missing, least, most) else {
        return;
    };
    let copied = choices.len() * num_values(&fields["properties"]);
    if copied > MOST_VALUES || !budget.pay(copied) {
        return;
    }
    let named = named.clone();
    let made = choices
        .iter()
        .map(|choice| object_of(&named, &required, choice));
    let options: Vec<Value> = made.collect();
    for name in [
        PATH,
        "minProperties",
        "maxProperties",
        "properties",
        "required",
    ] {
        fields.shift_remove(name);
    }
    fields.shift_remove("additionalProperties");
    let options = if options.is_empty() {
        vec![json!(false)]
    } else {
        options
    };
    fields.insert("anyOf".into(), json!(options));
}

fn object_of(named: &Fields, required: &[String], choice: &Choice) -> Value {
    let kept = |name: &String| {
        required.contains(name) || choice.must.contains(name) || choice.may.contains(name)
    };
    let each = named.iter().filter(|(name, _)| kept(name));
    let properties: Fields = each
        .map(|(name, one)| (name.clone(), one.clone()))
        .collect();
    let required = [required, &choice.must[..]].concat();
    json!({ "properties": properties, "required": required, "additionalProperties": false })
}
