//! Literals whose digits a double does not hold, as large ids: llguidance compares numbers as doubles,
//! and would ask for the neighbour that is one.

use serde_json::{json, Map, Value};

/// Whether a literal has such a number.
pub fn is_inexact(literal: &Value) -> bool {
    match literal {
        Value::Number(number) => whole(number).is_some_and(|n| n as f64 as i128 != n),
        Value::Array(items) => items.iter().any(is_inexact),
        Value::Object(fields) => fields.values().any(is_inexact),
        _ => false,
    }
}

fn whole(number: &serde_json::Number) -> Option<i128> {
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
    let mut range = json!({ "type": "integer" });
    for (keyword, bound) in [("minimum", below), ("maximum", above)] {
        // Bounds are 64-bit numbers in llguidance.
        if let Ok(bound) = i64::try_from(bound as i128) {
            range[keyword] = json!(bound);
        }
    }
    range
}
