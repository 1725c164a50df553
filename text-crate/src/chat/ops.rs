//! Python's operators.

use super::budget::{self, Broken, Outcome};
use super::value::{Key, Value};
use super::{format, python};
use std::cmp::Ordering;

fn mismatch(operator: &str, left: &Value, right: &Value) -> Broken {
    Broken::new(format!(
        "unsupported operand type(s) for {operator}: '{}' and '{}'",
        left.type_name(),
        right.type_name()
    ))
}

/// Most uses of an undefined value raise what is missing.
pub fn defined(value: &Value) -> Outcome<&Value> {
    match value {
        Value::Undefined(message) => Err(Broken::new(message.to_string())),
        _ => Ok(value),
    }
}

fn overflow() -> Broken {
    Broken::new("a whole number is too large")
}

pub fn add(left: &Value, right: &Value) -> Outcome<Value> {
    defined(left)?;
    defined(right)?;
    match (left, right) {
        (Value::Str(a), Value::Str(b)) => {
            budget::reserve(a.len() + b.len())?;
            let mut joined = String::with_capacity(a.len() + b.len());
            joined.push_str(a);
            joined.push_str(b);
            Ok(Value::str(joined))
        }
        (Value::List(a), Value::List(b)) | (Value::Tuple(a), Value::Tuple(b)) => {
            budget::reserve((a.len() + b.len()) * std::mem::size_of::<Value>())?;
            let joined: Vec<Value> = a.iter().chain(b.iter()).cloned().collect();
            match left {
                Value::List(_) => Value::list(joined),
                _ => Value::tuple(joined),
            }
        }
        _ => arithmetic("+", left, right, i128::checked_add, |a, b| a + b),
    }
}

fn arithmetic(
    operator: &str,
    left: &Value,
    right: &Value,
    whole: fn(i128, i128) -> Option<i128>,
    real: fn(f64, f64) -> f64,
) -> Outcome<Value> {
    defined(left)?;
    defined(right)?;
    if let (Some(a), Some(b)) = (left.as_int(), right.as_int()) {
        return whole(a, b).map(Value::Int).ok_or_else(overflow);
    }
    match (left.as_float(), right.as_float()) {
        (Some(a), Some(b)) => Ok(Value::Float(real(a, b))),
        _ => Err(mismatch(operator, left, right)),
    }
}

pub fn sub(left: &Value, right: &Value) -> Outcome<Value> {
    arithmetic("-", left, right, i128::checked_sub, |a, b| a - b)
}

fn repeated(value: &Value, count: i128) -> Outcome<Option<Value>> {
    let count = usize::try_from(count.max(0)).unwrap_or(usize::MAX);
    Ok(Some(match value {
        Value::Str(text) => {
            budget::reserve(text.len().saturating_mul(count))?;
            Value::str(text.repeat(if text.is_empty() { 0 } else { count }))
        }
        Value::List(items) | Value::Tuple(items) => {
            let size = items.len().saturating_mul(std::mem::size_of::<Value>());
            budget::reserve(size.saturating_mul(count))?;
            let mut all = Vec::with_capacity(items.len() * if size == 0 { 0 } else { count });
            for _ in 0..if size == 0 { 0 } else { count } {
                all.extend(items.iter().cloned());
            }
            match value {
                Value::List(_) => Value::list(all)?,
                _ => Value::tuple(all)?,
            }
        }
        _ => return Ok(None),
    }))
}

pub fn mul(left: &Value, right: &Value) -> Outcome<Value> {
    defined(left)?;
    defined(right)?;
    for (value, count) in [(left, right), (right, left)] {
        if let Some(count) = count.as_int() {
            if let Some(result) = repeated(value, count)? {
                return Ok(result);
            }
        }
    }
    arithmetic("*", left, right, i128::checked_mul, |a, b| a * b)
}

fn divisor(left: &Value, right: &Value, operator: &str) -> Outcome<()> {
    defined(left)?;
    defined(right)?;
    match (left.as_float(), right.as_float()) {
        (Some(_), Some(0.0)) => Err(Broken::new("division by zero")),
        (Some(_), Some(_)) => Ok(()),
        _ => Err(mismatch(operator, left, right)),
    }
}

pub fn div(left: &Value, right: &Value) -> Outcome<Value> {
    divisor(left, right, "/")?;
    let (a, b) = (left.as_float(), right.as_float());
    Ok(Value::Float(a.unwrap_or(0.0) / b.unwrap_or(1.0)))
}

fn whole_floor_div(a: i128, b: i128) -> Option<i128> {
    let quotient = a.checked_div(b)?;
    Some(quotient - i128::from(a % b != 0 && (a < 0) != (b < 0)))
}

fn whole_rem(a: i128, b: i128) -> Option<i128> {
    let rest = a.checked_rem(b)?;
    Some(if rest != 0 && (rest < 0) != (b < 0) {
        rest + b
    } else {
        rest
    })
}

pub fn floor_div(left: &Value, right: &Value) -> Outcome<Value> {
    divisor(left, right, "//")?;
    arithmetic("//", left, right, whole_floor_div, |a, b| (a / b).floor())
}

pub fn rem(left: &Value, right: &Value) -> Outcome<Value> {
    if let Value::Str(pattern) = left {
        return format::percent(pattern, right).map(Value::str);
    }
    divisor(left, right, "%")?;
    arithmetic("%", left, right, whole_rem, |a, b| a - b * (a / b).floor())
}

pub fn pow(left: &Value, right: &Value) -> Outcome<Value> {
    defined(left)?;
    defined(right)?;
    if let (Some(base), Some(exponent)) = (left.as_int(), right.as_int()) {
        if exponent >= 0 {
            let exponent = u32::try_from(exponent).map_err(|_| overflow())?;
            return base
                .checked_pow(exponent)
                .map(Value::Int)
                .ok_or_else(overflow);
        }
    }
    match (left.as_float(), right.as_float()) {
        (Some(a), Some(b)) => Ok(Value::Float(a.powf(b))),
        _ => Err(mismatch("**", left, right)),
    }
}

pub fn neg(value: &Value) -> Outcome<Value> {
    defined(value)?;
    match value.as_int() {
        Some(number) => number.checked_neg().map(Value::Int).ok_or_else(overflow),
        None => match value {
            Value::Float(number) => Ok(Value::Float(-number)),
            _ => Err(Broken::new(format!(
                "bad operand type for unary -: '{}'",
                value.type_name()
            ))),
        },
    }
}

/// `a ~ b`: both as text.
pub fn concat(left: &Value, right: &Value) -> Outcome<Value> {
    let mut text = python::to_str(left);
    let tail = python::to_str(right);
    budget::reserve(text.len() + tail.len())?;
    text.push_str(&tail);
    Ok(Value::str(text))
}

/// For `<` and sorting; an error where Python has no order.
pub fn order(left: &Value, right: &Value) -> Outcome<Option<Ordering>> {
    budget::work(0)?;
    defined(left)?;
    defined(right)?;
    match (left, right) {
        (Value::Str(a), Value::Str(b)) => {
            budget::spend(a.len().min(b.len()));
            return Ok(Some((**a).cmp(&**b)));
        }
        (Value::List(a), Value::List(b)) | (Value::Tuple(a), Value::Tuple(b)) => {
            for (a, b) in a.iter().zip(b.iter()) {
                if !a.equals(b) {
                    return order(a, b);
                }
            }
            return Ok(Some(a.len().cmp(&b.len())));
        }
        _ => {}
    }
    if let (Some(a), Some(b)) = (left.as_int(), right.as_int()) {
        return Ok(Some(a.cmp(&b)));
    }
    match (left.as_float(), right.as_float()) {
        (Some(a), Some(b)) => Ok(a.partial_cmp(&b)),
        _ => Err(Broken::new(format!(
            "'<' not supported between instances of '{}' and '{}'",
            left.type_name(),
            right.type_name()
        ))),
    }
}

pub fn contains(container: &Value, value: &Value) -> Outcome<bool> {
    Ok(match container {
        Value::Undefined(_) => false,
        Value::Str(text) => match value {
            Value::Str(part) => {
                budget::spend(text.len());
                text.contains(&**part)
            }
            _ => {
                return Err(Broken::new(format!(
                    "'in <string>' requires string as left operand, not {}",
                    value.type_name()
                )))
            }
        },
        Value::List(items) | Value::Tuple(items) => {
            budget::work(items.len() as u64 / 16)?;
            items.iter().any(|item| item.equals(value))
        }
        Value::Dict(_) if matches!(value, Value::Undefined(_)) => false,
        Value::Dict(dict) => dict.contains_key(&Key::new(value)?),
        Value::Generator(generator) => generator
            .take()
            .is_some_and(|items| items.iter().any(|item| item.equals(value))),
        other => {
            return Err(Broken::new(format!(
                "argument of type '{}' is not iterable",
                other.type_name()
            )))
        }
    })
}

/// The values that a `for` walks over.
pub fn iterate(value: &Value) -> Outcome<Vec<Value>> {
    budget::reserve(value.len().unwrap_or(0) * std::mem::size_of::<Value>())?;
    Ok(match value {
        Value::Undefined(_) => Vec::new(),
        Value::Str(text) => text
            .chars()
            .map(|c| Value::str(c.encode_utf8(&mut [0; 4]) as &str))
            .collect(),
        Value::List(items) | Value::Tuple(items) => items.to_vec(),
        Value::Dict(dict) => dict.keys().map(Key::value).collect(),
        Value::Generator(generator) => generator.take().map_or(Vec::new(), |items| items.to_vec()),
        other => {
            return Err(Broken::new(format!(
                "'{}' object is not iterable",
                other.type_name()
            )))
        }
    })
}

/// `container[index]`; none where Python raises TypeError or LookupError.
pub fn item(container: &Value, index: &Value) -> Option<Value> {
    let position = |length: usize| {
        let index = index.as_int()?;
        let at = if index < 0 {
            index + length as i128
        } else {
            index
        };
        usize::try_from(at).ok().filter(|at| *at < length)
    };
    match container {
        Value::Dict(dict) => dict.get(&Key::new(index).ok()?).cloned(),
        Value::List(items) | Value::Tuple(items) => Some(items[position(items.len())?].clone()),
        Value::Str(text) => {
            budget::spend(text.len());
            let at = position(text.chars().count())?;
            let c = text.chars().nth(at)?;
            Some(Value::str(c.encode_utf8(&mut [0; 4]) as &str))
        }
        _ => None,
    }
}

/// The positions that `[start:stop:step]` picks out of `length`, as Python's `slice.indices`.
fn picked(length: usize, bounds: [Option<i128>; 3]) -> Outcome<Vec<usize>> {
    let length = length as i128;
    let step = bounds[2].unwrap_or(1);
    if step == 0 {
        return Err(Broken::new("slice step cannot be zero"));
    }
    let (low, high) = if step < 0 {
        (-1, length - 1)
    } else {
        (0, length)
    };
    let clamp = |bound: Option<i128>, default: i128| match bound {
        None => default,
        Some(at) if at < 0 => (at + length).max(low),
        Some(at) => at.min(high),
    };
    let (first, last) = if step < 0 { (high, low) } else { (low, high) };
    let (mut at, stop) = (clamp(bounds[0], first), clamp(bounds[1], last));
    let mut picked = Vec::new();
    while if step < 0 { at > stop } else { at < stop } {
        picked.push(at as usize);
        at = at.saturating_add(step);
    }
    Ok(picked)
}

pub fn slice(value: &Value, bounds: [Option<Value>; 3]) -> Outcome<Value> {
    defined(value)?;
    let mut numbers = [None; 3];
    for (number, bound) in numbers.iter_mut().zip(&bounds) {
        *number = match bound {
            None | Some(Value::None) => None,
            Some(bound) => Some(
                defined(bound)?
                    .as_int()
                    .ok_or_else(|| Broken::new("slice indices must be integers or None"))?,
            ),
        };
    }
    budget::reserve(value.len().unwrap_or(0) * std::mem::size_of::<usize>())?;
    match value {
        Value::List(items) | Value::Tuple(items) => {
            let part = picked(items.len(), numbers)?;
            let part = part.into_iter().map(|at| items[at].clone()).collect();
            match value {
                Value::List(_) => Value::list(part),
                _ => Value::tuple(part),
            }
        }
        Value::Str(text) => {
            let characters: Vec<char> = text.chars().collect();
            let part = picked(characters.len(), numbers)?;
            let part: String = part.into_iter().map(|at| characters[at]).collect();
            Ok(Value::str(part))
        }
        other => Err(Broken::new(format!(
            "'{}' object is not subscriptable",
            other.type_name()
        ))),
    }
}
