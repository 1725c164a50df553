//! A schema of any draft as one that llguidance enforces entirely, with notes of what is left out.

use super::budget::Budget;
use super::notes::{Notes, Place};
use super::refs::{id_of, is_old, Refs, Target};
use super::{arrays, counted, disjoint, negation, objects, probe, values};
use crate::ffi::Outcome;
use serde_json::{json, Map, Value};
use std::collections::{HashMap, VecDeque};

pub type Fields = Map<String, Value>;

/// A schema without references to anything but its own "$defs", and what it leaves out.
pub struct Converted {
    pub schema: Value,
    pub notes: Notes,
    /// The place of each of its "$defs" in the schema that was given.
    pub places: HashMap<String, Place>,
}

pub struct Converter<'a> {
    refs: Refs<'a>,
    pub notes: Notes,
    pub old: bool,
    names: HashMap<*const Value, String>, // of definitions
    waiting: VecDeque<(String, Target<'a>)>,
    num_probes: usize,
    pub budget: &'a Budget,
    /// Whether the "patternProperties" beside these keywords have to go.
    pub lost_patterns: HashMap<*const Fields, bool>,
    places: HashMap<String, Place>,
    pub joined_multiples: values::Multiple,
}

pub const TYPES: [&str; 7] = [
    "null", "boolean", "integer", "number", "string", "array", "object",
];

/// Whether a schema takes every value.
pub fn is_any(schema: &Value) -> bool {
    match schema {
        Value::Bool(value) => *value,
        Value::Object(fields) => fields
            .iter()
            .all(|(keyword, value)| takes_all(keyword, value)),
        _ => false,
    }
}

fn takes_all(keyword: &str, value: &Value) -> bool {
    match (keyword, value) {
        ("properties" | "patternProperties", Value::Object(map)) => map.values().all(is_any),
        ("additionalProperties" | "items", one) => is_any(one),
        ("prefixItems" | "allOf", Value::Array(all)) => all.iter().all(is_any),
        ("anyOf", Value::Array(all)) => all.iter().any(is_any),
        ("$defs", _) => true,
        _ => false,
    }
}

/// The types that the fields of a schema name; all of them where they name none.
pub fn types_of(fields: &Fields) -> Vec<&str> {
    match fields.get("type") {
        Some(Value::String(one)) => vec![one.as_str()],
        Some(Value::Array(all)) => all.iter().filter_map(Value::as_str).collect(),
        _ => TYPES.to_vec(),
    }
}

/// The types that a keyword speaks of; others pass it whatever it says.
fn spoken_of(keyword: &str) -> &'static [&'static str] {
    match keyword {
        "minLength" | "maxLength" | "pattern" => &["string"],
        "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum" | "multipleOf" => {
            &["integer", "number"]
        }
        "items" | "prefixItems" | "additionalItems" | "unevaluatedItems" | "contains"
        | "minContains" | "maxContains" | "uniqueItems" | "minItems" | "maxItems" => &["array"],
        "properties"
        | "patternProperties"
        | "additionalProperties"
        | "required"
        | "propertyNames"
        | "minProperties"
        | "maxProperties"
        | "unevaluatedProperties"
        | "dependentRequired"
        | "dependentSchemas"
        | "dependencies" => &["object"],
        _ => &[],
    }
}

/// Keywords that are read behind their neighbours, of which they take account.
const LATE: [&str; 2] = ["propertyNames", "not"];

fn is_late(keyword: &str) -> bool {
    LATE.contains(&keyword)
}

pub fn and_all(fields: &mut Fields, more: Vec<Value>) {
    if let Value::Array(all) = fields.entry("allOf").or_insert_with(|| json!([])) {
        all.extend(more);
    }
}

/// An error where the budget does not suffice.
pub fn convert<'a>(root: &'a Value, budget: &'a Budget) -> Outcome<Converted> {
    let mut converter = Converter {
        refs: Refs::new(root),
        notes: Notes::default(),
        old: is_old(root),
        names: HashMap::new(),
        waiting: VecDeque::new(),
        num_probes: 0,
        budget,
        lost_patterns: HashMap::new(),
        places: HashMap::new(),
        joined_multiples: values::Multiple::default(),
    };
    let mut place = Place::root();
    place.base = base_of(root).into();
    let mut schema = converter.schema(root, &place);
    let mut definitions = Map::new();
    while let Some((name, target)) = converter.waiting.pop_front() {
        let made = converter.schema(target.schema, &target.place);
        converter.places.insert(name.clone(), target.place);
        definitions.insert(name, made);
    }
    if !definitions.is_empty() {
        if let Some(fields) = schema.as_object_mut() {
            fields.insert("$defs".into(), Value::Object(definitions));
        }
    }
    budget.check()?;
    counted::settle(&mut schema, &mut converter.notes, budget);
    disjoint::settle(&mut schema, &mut converter.notes, budget);
    Ok(Converted {
        schema,
        notes: converter.notes,
        places: converter.places,
    })
}

fn base_of(root: &Value) -> &str {
    let id = id_of(root).unwrap_or("");
    id.trim_end_matches('#')
}

impl<'a> Converter<'a> {
    /// What llguidance has against a small schema. Of a schema with very many of them only the first
    /// are asked about: the whole is judged at the end.
    pub fn fault(&mut self, schema: &Value) -> Option<String> {
        const MOST: usize = 500;
        self.num_probes += 1;
        match self.num_probes > MOST || !self.budget.has_time() {
            true => None,
            false => probe::fault(schema),
        }
    }

    pub fn schema(&mut self, given: &'a Value, place: &Place) -> Value {
        if !self.budget.pay(1) {
            return json!(true);
        }
        let fields = match given {
            Value::Bool(_) => return given.clone(),
            Value::Object(fields) => fields,
            _ => {
                self.notes
                    .add(place, "schema", "it is neither an object nor a boolean");
                return json!(true);
            }
        };
        let mut place = place.clone();
        if let Some(target) = id_of(given) {
            if let Some(found) = self.refs.find(&place.base, target) {
                if std::ptr::eq(found.schema, given) {
                    place.base = found.place.base;
                }
            }
        }
        let mut out = Map::new();
        if self.old && fields.contains_key("$ref") {
            self.reference(&fields["$ref"], &place, &mut out);
            return Value::Object(out);
        }
        values::types(self, fields, &place, &mut out);
        for (keyword, value) in fields.iter().filter(|(keyword, _)| !is_late(keyword)) {
            self.keyword(fields, keyword, value, &place, &mut out);
        }
        for keyword in LATE.iter().filter(|keyword| fields.contains_key(**keyword)) {
            self.keyword(fields, keyword, &fields[*keyword], &place, &mut out);
        }
        values::formats_of_strings(self, fields, &place, &mut out);
        counted::note(&place, &mut out);
        Value::Object(out)
    }

    fn keyword(
        &mut self,
        all: &'a Fields,
        keyword: &str,
        value: &'a Value,
        at: &Place,
        out: &mut Fields,
    ) {
        let kinds = types_of(out);
        let speaks = spoken_of(keyword);
        if !speaks.is_empty() && !speaks.iter().any(|kind| kinds.contains(kind)) {
            return;
        }
        match keyword {
            "$ref" => self.reference(value, at, out),
            "$dynamicRef" | "$recursiveRef" => self.notes.add(at, keyword, ""),
            "allOf" | "anyOf" | "oneOf" => self.combination(keyword, value, at, out),
            "not" => negation::not(self, value, at, out),
            "if" | "then" | "else" => negation::condition(self, all, keyword, at, out),
            "enum" | "const" => values::literals(self, keyword, value, at, out),
            "minLength" | "maxLength" | "minItems" | "maxItems" | "minProperties"
            | "maxProperties" => values::count(self, keyword, value, at, out),
            "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum" | "multipleOf" => {
                values::number(self, all, keyword, value, at, out)
            }
            "pattern" => values::pattern(self, value, at, out),
            "items" | "prefixItems" | "additionalItems" | "unevaluatedItems" | "contains"
            | "minContains" | "maxContains" | "uniqueItems" => {
                arrays::keyword(self, all, keyword, value, at, out)
            }
            _ => objects::keyword(self, all, keyword, value, at, out),
        }
    }

    fn combination(&mut self, keyword: &str, value: &'a Value, at: &Place, out: &mut Fields) {
        let place = at.child(keyword);
        let Some(options) = value.as_array().filter(|options| !options.is_empty()) else {
            return self.notes.add(at, keyword, "it is no list of schemas");
        };
        let each = options.iter().enumerate();
        let made: Vec<Value> = each
            .map(|(i, one)| self.schema(one, &place.index(i)))
            .collect();
        if keyword == "allOf" {
            and_all(out, made);
        } else if keyword == "oneOf" && made.len() > 1 {
            // Settled when the definitions are there.
            out.insert("oneOf".into(), json!(made));
            out.insert(disjoint::PATH.into(), json!(at.path));
        } else if out.contains_key("anyOf") {
            and_all(out, vec![json!({ "anyOf": made })]);
        } else {
            out.insert("anyOf".into(), json!(made));
        }
    }

    /// A reference as one into "$defs"; a chain of references without end takes everything.
    fn reference(&mut self, value: &Value, at: &Place, out: &mut Fields) {
        let Some(text) = value.as_str() else {
            return self.notes.add(at, "$ref", "it is no text");
        };
        let Some(target) = self.refs.find(&at.base, text) else {
            let why = format!("{} is not in the schema", Value::from(text));
            return self.notes.add(at, "$ref", &why);
        };
        let Some(target) = self.end_of_chain(target) else {
            return self.notes.add(at, "$ref", "it leads back to itself");
        };
        let next = format!("d{}", self.names.len());
        let key = target.schema as *const Value;
        let is_new = !self.names.contains_key(&key);
        let name = self.names.entry(key).or_insert(next).clone();
        if is_new {
            self.waiting.push_back((name.clone(), target));
        }
        out.insert("$ref".into(), json!(format!("#/$defs/{name}")));
    }

    fn end_of_chain(&self, mut target: Target<'a>) -> Option<Target<'a>> {
        for _ in 0..100 {
            if !self.budget.pay(1) {
                return None;
            }
            let Some(fields) = target.schema.as_object() else {
                return Some(target);
            };
            let only = fields
                .keys()
                .all(|name| super::is_note(name) || name == "$ref");
            match fields.get("$ref").and_then(Value::as_str) {
                Some(next) if only || self.old => {
                    target = self.refs.find(&target.place.base, next)?;
                }
                _ => return Some(target),
            }
        }
        None
    }
}
