//! What is left out where llguidance refuses a schema for what several keywords say together.

use super::convert::Converted;
use super::notes::Place;
use super::probe;
use super::walk::{self, Step};
use crate::ffi::{Failure, Outcome};
use serde_json::{json, Map, Value};

/// Of one schema, and the bytes that all of them read.
const MAX_TRIALS: usize = 400;
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
    trials: usize,
    bytes: usize,
    size: usize, // of the schema as a text
    /// Definitions are judged as if they took everything, so that a fault shows where it is.
    alone: bool,
}

/// Leaves out what llguidance refuses, with notes. An error where that does not help.
pub fn repair(given: &mut Converted) -> Outcome<()> {
    let Some(fault) = probe::fault(&given.schema) else {
        return Ok(());
    };
    if probe::is_unsatisfiable(&fault) {
        return Err(Failure::new(fault));
    }
    let size = given.schema.to_string().len();
    let mut repair = Repair {
        size,
        given,
        trials: 0,
        bytes: 0,
        alone: true,
    };
    for alone in [true, false] {
        repair.alone = alone;
        for start in repair.starts() {
            while let Some(fault) = repair.fault_at(&start) {
                if probe::is_unsatisfiable(&fault) {
                    break;
                }
                if !repair.apply(&start, &fault) {
                    return Err(Failure::new(fault));
                }
            }
        }
    }
    match probe::fault(&given.schema) {
        Some(fault) => Err(Failure::new(fault)),
        None => Ok(()),
    }
}

impl Repair<'_> {
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

    fn fault_of(&mut self, mut schema: Value) -> Option<String> {
        self.trials += 1;
        self.bytes += self.size;
        let definitions = self.given.schema.get("$defs").and_then(Value::as_object);
        let (Some(definitions), Some(fields)) = (definitions, schema.as_object_mut()) else {
            return probe::fault(&schema);
        };
        let told: Map<String, Value> = match self.alone {
            true => definitions
                .keys()
                .map(|name| (name.clone(), json!(true)))
                .collect(),
            false => definitions.clone(),
        };
        fields.insert("$defs".into(), Value::Object(told));
        probe::fault(&schema)
    }

    fn fault_at(&mut self, path: &[Step]) -> Option<String> {
        self.fault_of(self.find(path))
    }

    /// Leaves out one keyword in the smallest schema that is refused; false where nothing helps.
    fn apply(&mut self, start: &[Step], fault: &str) -> bool {
        let mut path = start.to_vec();
        let mut fault = fault.to_string();
        'deeper: loop {
            let schema = self.find(&path);
            let Some(fields) = schema.as_object() else {
                return false;
            };
            for step in walk::steps(fields)
                .into_iter()
                .filter(|step| !is_definition(step))
            {
                let inner = [path.clone(), vec![step]].concat();
                if self.trials > MAX_TRIALS || self.bytes > MAX_BYTES {
                    return false;
                }
                match self.fault_at(&inner) {
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

    fn leave_out(&mut self, path: &[Step], schema: &Value, fault: &str) -> bool {
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
            let left = self.fault_of(less.clone());
            if left.is_none_or(|left| probe::is_unsatisfiable(&left)) {
                self.put(path, less);
                let place = self.place_of(path);
                gone.iter()
                    .for_each(|name| self.given.notes.add(&place, name, fault));
                return true;
            }
        }
        let place = self.place_of(path);
        names
            .iter()
            .for_each(|name| self.given.notes.add(&place, name, fault));
        self.put(path, json!({}));
        !names.is_empty()
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
