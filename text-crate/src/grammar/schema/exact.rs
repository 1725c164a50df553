//! Literals whose digits a double does not hold, as large ids: llguidance compares numbers as doubles,
//! and would ask for the neighbour that is one.

use serde_json::{json, Map, Number, Value};

/// Whether a literal has such a number, or a low one.
pub fn is_inexact(literal: &Value) -> bool {
    has(literal, &|number| {
        is_low(number) || whole(number).is_some_and(|n| n as f64 as i128 != n)
    })
}

/// Whether a schema or a literal has a number that llguidance, where it is a whole one, negates again and
/// again until the stack ends.
pub fn has_low(value: &Value) -> bool {
    has(value, &is_low)
}

fn is_low(number: &Number) -> bool {
    number.as_f64().is_some_and(|n| n <= i64::MIN as f64)
}

fn has(value: &Value, wanted: &impl Fn(&Number) -> bool) -> bool {
    match value {
        Value::Number(number) => wanted(number),
        Value::Array(items) => items.iter().any(|one| has(one, wanted)),
        Value::Object(fields) => fields.values().any(|one| has(one, wanted)),
        _ => false,
    }
}

fn whole(number: &Number) -> Option<i128> {
    let signed = number.as_i64().map(i128::from);
    signed.or_else(|| number.as_u64().map(i128::from))
}

/// A schema for the literal in which such numbers are whole ones from the double before to the one
/// behind. 1234567890123456789 lies from 1234567890123456768 to 1234567890123457024.
pub fn nearest(literal: &Value) -> Value {
    if !is_inexact(literal) {
        return json!({ "const": literal });
    }
    match literal {
        Value::Number(number) if is_low(number) => json!({ "type": "number" }),
        Value::Number(number) => between(whole(number).unwrap_or(0)),
        Value::Array(items) => {
            let each: Vec<Value> = items.iter().map(nearest).collect();
            json!({ "type": "array", "minItems": each.len(), "prefixItems": each, "items": false })
        }
        Value::Object(fields) => {
            let names: Vec<&String> = fields.keys().collect();
            let each = fields
                .iter()
                .map(|(name, one)| (name.clone(), nearest(one)));
            json!({
                "type": "object",
                "required": names,
                "properties": each.collect::<Map<String, Value>>(),
                "additionalProperties": false,
            })
        }
        _ => json!(true),
    }
}

fn between(number: i128) -> Value {
    let near = number as f64;
    let (below, above) = match near as i128 > number {
        true => (near.next_down(), near),
        false => (near, near.next_up()),
    };
    // Bounds are 64-bit numbers in llguidance; beyond them only the double can be asked for.
    let bounded = |bound: f64| i64::try_from(bound as i128).ok();
    match (bounded(below), bounded(above)) {
        (Some(least), Some(most)) => {
            json!({ "type": "integer", "minimum": least, "maximum": most })
        }
        _ => json!({ "const": near }),
    }
}
