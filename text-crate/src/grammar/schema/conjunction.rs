//! What it takes to find texts that several patterns fit at once.

use super::budget::Budget;
use super::convert::Fields;
use crate::ffi::{Failure, Outcome};
use crate::grammar::places::{places_of, MOST_TOGETHER};
use serde_json::Value;
use std::collections::{BTreeMap, HashMap};

/// Levels below an intersection that are looked at.
const MAX_DEPTH: usize = 4;

/// The places that a value's patterns have together, and those of what lies in it by name.
#[derive(Clone, Default)]
struct Places {
    product: f64,
    within: BTreeMap<String, Places>,
}

impl Places {
    fn none() -> Places {
        Places {
            product: 1.0,
            within: BTreeMap::new(),
        }
    }

    fn join(&mut self, other: Places, how: fn(f64, f64) -> f64) {
        self.product = how(self.product, other.product);
        for (name, places) in other.within {
            match self.within.get_mut(&name) {
                Some(own) => own.join(places, how),
                None => drop(self.within.insert(name, places)),
            }
        }
    }

    /// What lies in it may be described by name and as one of the rest at once.
    fn most(&self) -> f64 {
        let of = |starts: &[&str]| {
            let each = self.within.iter();
            let found = each.filter(|(name, _)| starts.iter().any(|start| name.starts_with(start)));
            found.map(|(_, places)| places.product).fold(1.0, f64::max)
        };
        let together = of(&["properties ", "prefixItems "])
            * of(&["patternProperties "])
            * of(&["items", "additionalProperties"]);
        let within = self.within.values().map(Places::most);
        within.fold(self.product.max(together), f64::max)
    }

    fn count(&self) -> usize {
        1 + self.within.values().map(Places::count).sum::<usize>()
    }
}

struct Reader<'a> {
    definitions: Option<&'a Fields>,
    budget: &'a Budget,
    /// By reference and depth; what refers to itself adds nothing.
    known: HashMap<(&'a str, usize), Places>,
}

impl<'a> Reader<'a> {
    fn places(&mut self, schema: &'a Value, depth: usize) -> Places {
        let mut places = Places::none();
        let Some(fields) = schema.as_object().filter(|_| self.budget.pay(1)) else {
            return places;
        };
        if let Some(pattern) = fields.get("pattern") {
            places.product *= pattern.as_str().map_or(1.0, places_of);
        }
        if fields.contains_key("format") {
            const OF_FORMAT: f64 = 30.0;
            places.product *= OF_FORMAT;
        }
        if depth < MAX_DEPTH {
            self.add_inner(fields, depth, &mut places);
        }
        let list = |name: &str| fields.get(name).and_then(Value::as_array);
        for part in list("allOf").into_iter().flatten() {
            places.join(self.places(part, depth), |a, b| a * b);
        }
        let mut options = Places::none();
        for option in list("anyOf").into_iter().flatten() {
            options.join(self.places(option, depth), f64::max);
        }
        places.join(options, |a, b| a * b);
        if let Some(reference) = fields.get("$ref").and_then(Value::as_str) {
            places.join(self.places_of_target(reference, depth), |a, b| a * b);
        }
        places
    }

    fn add_inner(&mut self, fields: &'a Fields, depth: usize, to: &mut Places) {
        let mut add = |name: String, schema: &'a Value| {
            let places = self.places(schema, depth + 1);
            if places.most() > 1.0 {
                to.within.insert(name, places);
            }
        };
        for keyword in ["properties", "patternProperties"] {
            let inner = fields.get(keyword).and_then(Value::as_object);
            for (name, schema) in inner.into_iter().flatten() {
                add(format!("{keyword} {name}"), schema);
            }
        }
        let first = fields.get("prefixItems").and_then(Value::as_array);
        for (index, schema) in first.into_iter().flatten().enumerate() {
            add(format!("prefixItems {index}"), schema);
        }
        for keyword in ["items", "additionalProperties"] {
            if let Some(schema) = fields.get(keyword) {
                add(keyword.into(), schema);
            }
        }
    }

    fn places_of_target(&mut self, reference: &'a str, depth: usize) -> Places {
        let name = reference.trim_start_matches("#/$defs/");
        let Some(target) = self.definitions.and_then(|all| all.get(name)) else {
            return Places::none();
        };
        if let Some(known) = self.known.get(&(name, depth)) {
            self.budget.pay(known.count());
            return known.clone();
        }
        self.known.insert((name, depth), Places::none());
        let places = self.places(target, depth);
        self.known.insert((name, depth), places.clone());
        places
    }

    /// Looks at every schema that is an intersection.
    fn check(&mut self, schema: &'a Value) -> Outcome<()> {
        match schema {
            Value::Array(items) => items.iter().try_for_each(|one| self.check(one)),
            Value::Object(fields) => {
                let meets = fields.contains_key("allOf")
                    || (fields.len() > 1
                        && ["$ref", "anyOf"]
                            .iter()
                            .any(|name| fields.contains_key(*name)));
                if meets && self.places(schema, 0).most() > MOST_TOGETHER {
                    return Err(Failure::new(
                        "the patterns of the JSON schema that hold for one text at once ('allOf') are too many or too long; join them, or leave some out",
                    ));
                }
                fields.values().try_for_each(|one| self.check(one))
            }
            _ => Ok(()),
        }
    }
}

/// An error where patterns meet that are too many.
pub fn check(schema: &Value, budget: &Budget) -> Outcome<()> {
    let definitions = schema.get("$defs").and_then(Value::as_object);
    let mut reader = Reader {
        definitions,
        budget,
        known: HashMap::new(),
    };
    reader.check(schema)?;
    budget.check()
}
