//! "oneOf" as "anyOf", which is the same where no value fits two of the options.

use super::budget::Budget;
use super::convert::{and_all, types_of, Fields, TYPES};
use super::equality::ValueSet;
use super::notes::{Notes, Place};
use super::walk;
use serde_json::{json, Map, Value};

/// Where a "oneOf" stood in the schema that was given; gone when it is settled.
pub const PATH: &str = "x-path";

pub fn settle(schema: &mut Value, notes: &mut Notes, budget: &Budget) {
    let definitions = schema
        .get("$defs")
        .and_then(Value::as_object)
        .cloned()
        .unwrap_or_default();
    walk::each(schema, &mut |fields| {
        let Some(Value::Array(options)) = fields.remove("oneOf") else {
            return;
        };
        let path = fields
            .remove(PATH)
            .and_then(|path| path.as_str().map(String::from))
            .unwrap_or_default();
        let within = kinds_of(fields, &definitions, budget, MAX_DEPTH);
        let mut options = options;
        let judge = Judge {
            definitions: &definitions,
            budget,
        };
        if !judge.all_differ(&options, within) {
            match exclusive(&options, within) {
                Some(better) => options = better,
                None => notes.add(
                    &Place {
                        path,
                        base: "".into(),
                    },
                    "oneOf",
                    "it is taken as 'anyOf'",
                ),
            }
        }
        match fields.contains_key("anyOf") {
            true => and_all(fields, vec![json!({ "anyOf": options })]),
            false => drop(fields.insert("anyOf".into(), json!(options))),
        }
    });
}

const MAX_DEPTH: usize = 6;
const OBJECT: u32 = 1 << 6;
const NUMBERS: u32 = 1 << 2 | 1 << 3;

fn bit(name: &str) -> u32 {
    let index = TYPES.iter().position(|one| *one == name).unwrap_or(0);
    // Every integer is a number.
    if name == "number" {
        NUMBERS
    } else {
        1 << index
    }
}

fn kind_of(value: &Value) -> u32 {
    bit(match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.as_f64().is_some_and(|n| n.fract() == 0.0) => "integer",
        Value::Number(_) => return 1 << 3,
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    })
}

fn followed<'a>(reference: &Value, definitions: &'a Fields) -> Option<&'a Value> {
    definitions.get(reference.as_str()?.strip_prefix("#/$defs/")?)
}

/// The types that a schema can take, as bits.
fn kinds_of(fields: &Fields, definitions: &Fields, budget: &Budget, depth: usize) -> u32 {
    let mut kinds = types_of(fields).iter().fold(0, |all, name| all | bit(name));
    if let Some(values) = literals(fields) {
        kinds &= values.iter().fold(0, |all, value| all | kind_of(value));
    }
    if depth == 0 || !budget.compare() {
        return kinds;
    }
    let of = |schema: &Value| match schema {
        Value::Object(inner) => kinds_of(inner, definitions, budget, depth - 1),
        Value::Bool(false) => 0,
        _ => u32::MAX,
    };
    if let Some(target) = fields.get("$ref").and_then(|to| followed(to, definitions)) {
        kinds &= of(target);
    }
    if let Some(Value::Array(all)) = fields.get("allOf") {
        kinds = all.iter().fold(kinds, |kinds, one| kinds & of(one));
    }
    if let Some(Value::Array(any)) = fields.get("anyOf") {
        kinds &= any.iter().fold(0, |all, one| all | of(one));
    }
    kinds
}

fn literals(fields: &Fields) -> Option<&[Value]> {
    match (fields.get("const"), fields.get("enum")) {
        (Some(one), _) => Some(std::slice::from_ref(one)),
        (None, Some(Value::Array(all))) => Some(all),
        _ => None,
    }
}

struct Judge<'a> {
    definitions: &'a Fields,
    budget: &'a Budget,
}

impl Judge<'_> {
    fn all_differ(&self, options: &[Value], within: u32) -> bool {
        if let Some(differ) = literals_differ(options) {
            return differ;
        }
        let mut pairs = options
            .iter()
            .enumerate()
            .flat_map(|(i, a)| options[i + 1..].iter().map(move |b| (a, b)));
        pairs.all(|(a, b)| self.differ(a, b, within, MAX_DEPTH))
    }

    /// Whether certainly no value fits both.
    fn differ(&self, a: &Value, b: &Value, within: u32, depth: usize) -> bool {
        match (a, b) {
            (Value::Bool(false), _) | (_, Value::Bool(false)) => true,
            (Value::Object(a), Value::Object(b)) => self.fields_differ(a, b, within, depth),
            _ => false,
        }
    }

    fn fields_differ(&self, a: &Fields, b: &Fields, within: u32, depth: usize) -> bool {
        if depth == 0 || !self.budget.compare() {
            return false;
        }
        let kinds = |fields| kinds_of(fields, self.definitions, self.budget, depth);
        let common = within & kinds(a) & kinds(b);
        if common == 0 {
            return true;
        }
        if let (Some(x), Some(y)) = (literals(a), literals(b)) {
            let (fewer, more) = if x.len() < y.len() { (x, y) } else { (y, x) };
            let fewer = ValueSet::of(fewer);
            return !more.iter().any(|one| fewer.contains(one));
        }
        self.splits(a, b, common, depth)
            || self.splits(b, a, common, depth)
            || self.differ_as_objects(a, b, common, depth)
    }

    /// By what `a` refers to or is made of.
    fn splits(&self, a: &Fields, b: &Fields, common: u32, depth: usize) -> bool {
        let apart = |one: &Value| match one {
            Value::Object(one) => self.fields_differ(one, b, common, depth - 1),
            one => *one == Value::Bool(false),
        };
        let target = a.get("$ref").and_then(|to| followed(to, self.definitions));
        let all = a.get("allOf").and_then(Value::as_array);
        let any = a.get("anyOf").and_then(Value::as_array);
        target.is_some_and(apart)
            || all.is_some_and(|all| all.iter().any(apart))
            || any.is_some_and(|any| any.iter().all(apart))
    }

    fn differ_as_objects(&self, a: &Fields, b: &Fields, common: u32, depth: usize) -> bool {
        if common != OBJECT {
            return false;
        }
        let needs = [a.get("required"), b.get("required")];
        let mut keys = needs
            .into_iter()
            .flatten()
            .filter_map(Value::as_array)
            .flatten();
        keys.any(|key| {
            let key = key.as_str().unwrap_or_default();
            self.budget.compare()
                && self.differ(property(a, key), property(b, key), u32::MAX, depth - 1)
        })
    }
}

/// Whether options that only list values have none in common; none where one says something else.
fn literals_differ(options: &[Value]) -> Option<bool> {
    let lists: Option<Vec<&[Value]>> = options
        .iter()
        .map(|option| literals(option.as_object()?))
        .collect();
    let mut seen = ValueSet::default();
    for list in lists? {
        let own = ValueSet::of(list);
        if list.iter().any(|one| seen.contains(one)) {
            return Some(false);
        }
        seen.join(own);
    }
    Some(true)
}

fn property<'a>(fields: &'a Fields, key: &str) -> &'a Value {
    const ANY: &Value = &Value::Bool(true);
    if let Some(found) = fields.get("properties").and_then(|all| all.get(key)) {
        return found;
    }
    match fields.contains_key("patternProperties") {
        true => ANY,
        false => fields.get("additionalProperties").unwrap_or(ANY),
    }
}

/// Options that each ask for one property of an object: exactly one of these is there.
fn exclusive(options: &[Value], within: u32) -> Option<Vec<Value>> {
    let only = |option: &Value| -> Option<String> {
        let fields = option.as_object()?;
        let known = fields
            .keys()
            .all(|name| name == "required" || (name == "type" && fields[name] == "object"));
        match fields.get("required")?.as_array()?.as_slice() {
            [Value::String(name)] if known => Some(name.clone()),
            _ => None,
        }
    };
    // Each is told of all others.
    const MOST: usize = 300;
    let names: Vec<String> = options.iter().map(only).collect::<Option<_>>()?;
    let is_pure = within == OBJECT
        && names.len() <= MOST
        && names
            .iter()
            .enumerate()
            .all(|(i, name)| !names[i + 1..].contains(name));
    is_pure.then(|| {
        let option = |name: &String| {
            let others: Map<String, Value> = names
                .iter()
                .filter(|other| *other != name)
                .map(|other| (other.clone(), json!(false)))
                .collect();
            json!({ "type": "object", "required": [name], "properties": others })
        };
        names.iter().map(option).collect()
    })
}
