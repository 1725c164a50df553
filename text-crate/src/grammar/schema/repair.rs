//! What is left out where llguidance refuses a schema for what several keywords say together.

use super::budget::Budget;
use super::convert::Converted;
use super::notes::Place;
use super::probe;
use super::walk::{self, Step};
use crate::ffi::{Failure, Outcome};
use serde_json::{json, Map, Value};
use std::collections::HashSet;

/// Of one schema, and the bytes that all of them read.
const MAX_TRIALS: usize = 4000;
const MAX_BYTES: usize = 16 << 20;

/// Left out first, since they say least; what is not here comes before them all.
const ORDER: [&str; 12] = [
    "allOf",
    "anyOf",
    "$ref",
    "enum",
    "const",
    "items",
    "prefixItems",
    "required",
    "additionalProperties",
    "patternProperties",
    "properties",
    "type",
];

struct Repair<'a> {
    given: &'a mut Converted,
    budget: &'a Budget,
    trials: usize,
    bytes: usize,
    /// Definitions are judged as if they took everything, so that a fault shows where it is.
    alone: bool,
    first_fault: String,
}

/// Leaves out what llguidance refuses, with notes. An error where that does not help, or where the
/// budget does not suffice.
pub fn repair(given: &mut Converted, budget: &Budget) -> Outcome<()> {
    budget.check()?;
    let Some(fault) = probe::fault(&given.schema) else {
        return Ok(());
    };
    let mut repair = Repair {
        given,
        budget,
        trials: 0,
        bytes: 0,
        alone: true,
        first_fault: fault,
    };
    if probe::is_unsatisfiable(&repair.first_fault) {
        repair.forbid_what_nothing_fits()?;
        match probe::fault(&repair.given.schema) {
            None => return Ok(()),
            Some(fault) if probe::is_unsatisfiable(&fault) => return Err(Failure::new(fault)),
            Some(fault) => repair.first_fault = fault,
        }
    }
    for alone in [true, false] {
        repair.alone = alone;
        repair.all()?;
        match probe::fault(&repair.given.schema) {
            None => return Ok(()),
            Some(fault) => repair.first_fault = fault,
        }
    }
    Err(Failure::new(repair.first_fault))
}

/// The names of definitions that a schema refers to.
fn add_refs<'a>(schema: &'a Value, names: &mut HashSet<&'a str>) {
    match schema {
        Value::Array(items) => items.iter().for_each(|one| add_refs(one, names)),
        Value::Object(map) => map.iter().for_each(|(key, one)| match one.as_str() {
            Some(text) if key == "$ref" => drop(names.insert(text.trim_start_matches("#/$defs/"))),
            _ => add_refs(one, names),
        }),
        _ => {}
    }
}

impl Repair<'_> {
    fn all(&mut self) -> Outcome<()> {
        for start in self.starts() {
            while let Some(fault) = self.fault_at(&start)? {
                if probe::is_unsatisfiable(&fault) {
                    break;
                }
                if !self.apply(&start, &fault)? {
                    return Err(Failure::new(fault));
                }
            }
        }
        Ok(())
    }

    /// References to definitions that no value fits become schemas that say so: llguidance sees an
    /// optional property that cannot be there, but not through a reference.
    fn forbid_what_nothing_fits(&mut self) -> Outcome<()> {
        self.alone = true;
        loop {
            let mut never = HashSet::new();
            for start in self.starts() {
                let fault = self.fault_at(&start)?;
                let is_never = fault.is_some_and(|fault| probe::is_unsatisfiable(&fault));
                if let (true, Some(Step::Name(_, name))) = (is_never, start.first()) {
                    never.insert(format!("#/$defs/{name}"));
                }
            }
            let mut num_forbidden = 0;
            walk::each(&mut self.given.schema, &mut |fields| {
                let target = fields.get("$ref").and_then(Value::as_str);
                if target.is_some_and(|target| never.contains(target)) {
                    let definitions = fields.shift_remove("$defs");
                    *fields = Map::from_iter([("allOf".to_string(), json!([false]))]);
                    fields.extend(definitions.map(|all| ("$defs".to_string(), all)));
                    num_forbidden += 1;
                }
            });
            if num_forbidden == 0 {
                return Ok(());
            }
        }
    }

    /// The definitions, then the schema itself.
    fn starts(&self) -> Vec<Vec<Step>> {
        let definitions = self.given.schema.get("$defs").and_then(Value::as_object);
        let names = definitions.into_iter().flat_map(Map::keys);
        let mut starts: Vec<Vec<Step>> = names
            .map(|name| vec![Step::Name("$defs".into(), name.clone())])
            .collect();
        starts.push(Vec::new());
        starts
    }

    fn find(&self, path: &[Step]) -> Value {
        let mut found = &self.given.schema;
        for step in path {
            found = walk::at(found, step).unwrap_or(&Value::Null);
        }
        found.clone()
    }

    /// The definitions that a schema needs.
    fn told(&self, schema: &Value) -> Map<String, Value> {
        let mut told = Map::new();
        let Some(all) = self.given.schema.get("$defs").and_then(Value::as_object) else {
            return told;
        };
        let mut names = HashSet::new();
        add_refs(schema, &mut names);
        let mut fresh: Vec<&str> = names.iter().copied().collect();
        while let Some(name) = fresh.pop() {
            let Some(definition) = all.get(name) else {
                continue;
            };
            if self.alone {
                told.insert(name.into(), json!(true));
                continue;
            }
            told.insert(name.into(), definition.clone());
            let mut found = HashSet::new();
            add_refs(definition, &mut found);
            fresh.extend(found.into_iter().filter(|name| names.insert(name)));
        }
        told
    }

    fn fault_of(&mut self, mut schema: Value) -> Outcome<Option<String>> {
        let told = self.told(&schema);
        if let (Some(fields), false) = (schema.as_object_mut(), told.is_empty()) {
            fields.insert("$defs".into(), Value::Object(told));
        }
        self.trials += 1;
        self.bytes += schema.to_string().len();
        if self.trials > MAX_TRIALS || self.bytes > MAX_BYTES || !self.budget.has_time() {
            return Err(Failure::new(format!(
                "{}; the JSON schema is too large to find what of it can be left out: change that, or split it",
                self.first_fault
            )));
        }
        Ok(probe::fault(&schema))
    }

    fn fault_at(&mut self, path: &[Step]) -> Outcome<Option<String>> {
        self.fault_of(self.find(path))
    }

    /// Leaves out one keyword in the smallest schema that is refused; false where nothing helps.
    fn apply(&mut self, start: &[Step], fault: &str) -> Outcome<bool> {
        let mut path = start.to_vec();
        let mut fault = fault.to_string();
        'deeper: loop {
            let schema = self.find(&path);
            let Some(fields) = schema.as_object() else {
                return Ok(false);
            };
            for step in walk::steps(fields)
                .into_iter()
                .filter(|step| !is_definition(step))
            {
                let inner = [path.clone(), vec![step]].concat();
                match self.fault_at(&inner)? {
                    Some(found) if !probe::is_unsatisfiable(&found) => {
                        fault = found;
                        path = inner;
                        continue 'deeper;
                    }
                    _ => {}
                }
            }
            return self.leave_out(&path, &schema, &fault);
        }
    }

    fn leave_out(&mut self, path: &[Step], schema: &Value, fault: &str) -> Outcome<bool> {
        let rank = |name: &str| {
            ORDER
                .iter()
                .position(|one| *one == name)
                .map_or(0, |at| at + 1)
        };
        let fields = schema.as_object().expect("apply() looked");
        let mut names: Vec<String> = fields
            .keys()
            .filter(|name| *name != "$defs" && *name != "x-guidance")
            .cloned()
            .collect();
        names.sort_by_key(|name| rank(name));
        for name in &names {
            let mut less = schema.clone();
            let gone = without(&mut less, name);
            let left = self.fault_of(less.clone())?;
            if left.is_none_or(|left| probe::is_unsatisfiable(&left)) {
                self.put(path, less);
                let place = self.place_of(path);
                gone.iter()
                    .for_each(|name| self.given.notes.add(&place, name, fault));
                return Ok(true);
            }
        }
        let place = self.place_of(path);
        names
            .iter()
            .for_each(|name| self.given.notes.add(&place, name, fault));
        self.put(path, json!({}));
        Ok(!names.is_empty())
    }

    fn put(&mut self, path: &[Step], schema: Value) {
        let mut found = &mut self.given.schema;
        for step in path {
            found = walk::at_mut(found, step).expect("find() went there");
        }
        *found = schema;
    }

    fn place_of(&self, path: &[Step]) -> Place {
        let (mut place, mut rest) = (Place::root(), path);
        if let Some(Step::Name(keyword, name)) = path.first().filter(|step| is_definition(step)) {
            place = self
                .given
                .places
                .get(name)
                .cloned()
                .unwrap_or_else(|| place.child(keyword).child(name));
            rest = &path[1..];
        }
        rest.iter().fold(place, |place, step| match step {
            Step::Name(keyword, key) => place.child(keyword).child(key),
            Step::Index(keyword, index) => place.child(keyword).index(*index),
            Step::Only(keyword) => place.child(keyword),
        })
    }
}

fn is_definition(step: &Step) -> bool {
    matches!(step, Step::Name(keyword, _) if keyword == "$defs")
}

/// What bounds the properties that others do not name goes with those others.
fn without(schema: &mut Value, name: &str) -> Vec<String> {
    let fields = schema.as_object_mut().expect("apply() looked");
    let mut gone = vec![name.to_string()];
    fields.shift_remove(name);
    let more = match name {
        "properties" | "patternProperties" => "additionalProperties",
        "prefixItems" => "items",
        _ => return gone,
    };
    if fields.shift_remove(more).is_some() {
        gone.push(more.into());
    }
    gone
}
