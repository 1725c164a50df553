//! Jinja's tests: what stands after `is`.

use super::budget::{Broken, Outcome};
use super::value::Value;
use super::{methods, ops, python};
use std::cmp::Ordering;

pub const NAMES: &[&str] = &[
    "!=",
    "<",
    "<=",
    "==",
    ">",
    ">=",
    "boolean",
    "callable",
    "defined",
    "divisibleby",
    "eq",
    "equalto",
    "escaped",
    "even",
    "false",
    "filter",
    "float",
    "ge",
    "greaterthan",
    "gt",
    "in",
    "integer",
    "iterable",
    "le",
    "lessthan",
    "lower",
    "lt",
    "mapping",
    "ne",
    "none",
    "number",
    "odd",
    "sameas",
    "sequence",
    "string",
    "test",
    "true",
    "undefined",
    "upper",
];

fn same(value: &Value, other: &Value) -> bool {
    std::mem::discriminant(value) == std::mem::discriminant(other) && value.equals(other)
}

fn compared(value: &Value, other: &Value, wanted: &[Ordering]) -> Outcome<bool> {
    Ok(ops::order(value, other)?.is_some_and(|order| wanted.contains(&order)))
}

fn is_iterable(value: &Value) -> bool {
    use Value::{Dict, Generator, List, Loop, Str, Tuple, Undefined};
    matches!(
        value,
        Undefined(_) | Str(_) | List(_) | Tuple(_) | Dict(_) | Generator(_) | Loop(_)
    )
}

fn is_callable(value: &Value) -> bool {
    use Value::{Function, Loop, Macro, Method, Undefined};
    matches!(
        value,
        Undefined(_) | Function(_) | Macro(_) | Method(_) | Loop(_)
    )
}

fn cased(value: &Value, method: &str) -> Outcome<bool> {
    let text = Value::str(python::to_str(value));
    Ok(methods::call(&text, method, &Default::default())?.is_true())
}

fn of_two(name: &str, value: &Value, other: &Value) -> Outcome<bool> {
    use Ordering::{Equal, Greater, Less};
    match name {
        "==" | "eq" | "equalto" => Ok(value.equals(other)),
        "!=" | "ne" => Ok(!value.equals(other)),
        "<" | "lt" | "lessthan" => compared(value, other, &[Less]),
        "<=" | "le" => compared(value, other, &[Less, Equal]),
        ">" | "gt" | "greaterthan" => compared(value, other, &[Greater]),
        ">=" | "ge" => compared(value, other, &[Greater, Equal]),
        "in" => ops::contains(other, value),
        "sameas" => Ok(same(value, other)),
        _ => Ok(ops::rem(value, other)?.equals(&Value::Int(0))),
    }
}

pub fn holds(name: &str, value: &Value, others: &[Value]) -> Outcome<bool> {
    if let [other] = others {
        return of_two(name, value, other);
    }
    Ok(match name {
        "defined" => !value.is_undefined(),
        "undefined" => value.is_undefined(),
        "none" => matches!(value, Value::None),
        "string" => matches!(value, Value::Str(_)),
        "mapping" => matches!(value, Value::Dict(_)),
        "sequence" => value.len().is_some(),
        "iterable" => is_iterable(value),
        "callable" => is_callable(value),
        "boolean" => matches!(value, Value::Bool(_)),
        "true" => matches!(value, Value::Bool(true)),
        "false" => matches!(value, Value::Bool(false)),
        "integer" => matches!(value, Value::Int(_)),
        "float" => matches!(value, Value::Float(_)),
        "number" => value.as_float().is_some(),
        "even" => ops::rem(value, &Value::Int(2))?.equals(&Value::Int(0)),
        "odd" => ops::rem(value, &Value::Int(2))?.equals(&Value::Int(1)),
        "lower" => cased(value, "islower")?,
        "upper" => cased(value, "isupper")?,
        "filter" => super::filters::NAMES.contains(&python::to_str(value).as_str()),
        "test" => NAMES.contains(&python::to_str(value).as_str()),
        "escaped" => false,
        name if NAMES.contains(&name) => {
            return Err(Broken::new(format!("the test '{name}' needs an argument")))
        }
        _ => return Err(Broken::new(format!("No test named '{name}'."))),
    })
}
