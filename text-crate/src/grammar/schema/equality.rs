//! Values as JSON schemas compare them: 1 is 1.0.

use serde_json::{Number, Value};
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

fn equal_numbers(x: &Number, y: &Number) -> bool {
    x == y || (x.as_f64() == y.as_f64() && x.is_f64() != y.is_f64())
}

pub fn equal(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(x), Value::Number(y)) => equal_numbers(x, y),
        (Value::Array(x), Value::Array(y)) => {
            x.len() == y.len() && x.iter().zip(y).all(|(x, y)| equal(x, y))
        }
        (Value::Object(x), Value::Object(y)) => {
            x.len() == y.len()
                && x.iter()
                    .all(|(key, x)| y.get(key).is_some_and(|y| equal(x, y)))
        }
        _ => a == b,
    }
}

/// Equal values have equal hashes.
fn hash_of(value: &Value) -> u64 {
    let mut hasher = DefaultHasher::new();
    match value {
        Value::Null => 0u8.hash(&mut hasher),
        Value::Bool(value) => value.hash(&mut hasher),
        Value::Number(number) => (number.as_f64().unwrap_or(0.0) + 0.0)
            .to_bits()
            .hash(&mut hasher),
        Value::String(text) => text.hash(&mut hasher),
        Value::Array(items) => items.iter().for_each(|one| hash_of(one).hash(&mut hasher)),
        Value::Object(map) => {
            let each = map.iter().map(|(key, one)| {
                let mut hasher = DefaultHasher::new();
                (key, hash_of(one)).hash(&mut hasher);
                hasher.finish()
            });
            each.fold(0u64, u64::wrapping_add).hash(&mut hasher);
        }
    }
    hasher.finish()
}

/// Values that are found at once, however many there are.
#[derive(Default)]
pub struct ValueSet<'a> {
    by_hash: HashMap<u64, Vec<&'a Value>>,
}

impl<'a> ValueSet<'a> {
    pub fn of(values: impl IntoIterator<Item = &'a Value>) -> ValueSet<'a> {
        let mut set = ValueSet::default();
        values.into_iter().for_each(|value| set.add(value));
        set
    }

    pub fn contains(&self, value: &Value) -> bool {
        let found = self.by_hash.get(&hash_of(value));
        found.is_some_and(|same| same.iter().any(|one| equal(one, value)))
    }

    fn add(&mut self, value: &'a Value) {
        let same = self.by_hash.entry(hash_of(value)).or_default();
        if !same.iter().any(|one| equal(one, value)) {
            same.push(value);
        }
    }

    pub fn join(&mut self, other: ValueSet<'a>) {
        for (hash, mut values) in other.by_hash {
            self.by_hash.entry(hash).or_default().append(&mut values);
        }
    }
}
