//! Types, literals, numbers and strings.

use super::convert::{and_all, types_of, Converter, Fields, TYPES};
use super::notes::Place;
use super::{decimals, exact, formats, probe};
use crate::grammar::dialect;
use serde_json::{json, Value};

/// "type", also in capitals, and OpenAPI's "nullable".
pub fn types(to: &mut Converter, fields: &Fields, at: &Place, out: &mut Fields) {
    let given: Vec<&Value> = match fields.get("type") {
        None => return,
        Some(Value::Array(all)) => all.iter().collect(),
        Some(one) => vec![one],
    };
    let mut names: Vec<String> = Vec::new();
    for one in given {
        let name = one.as_str().unwrap_or("").to_ascii_lowercase();
        if !TYPES.contains(&name.as_str()) {
            return to
                .notes
                .add(at, "type", &format!("{one} is no type of JSON schemas"));
        }
        if !names.contains(&name) {
            names.push(name);
        }
    }
    if fields.get("nullable") == Some(&json!(true)) && !names.iter().any(|name| name == "null") {
        names.push("null".into());
    }
    let value = if names.len() == 1 {
        json!(names[0])
    } else {
        json!(names)
    };
    out.insert("type".into(), value);
}

pub fn literals(to: &mut Converter, keyword: &str, value: &Value, at: &Place, out: &mut Fields) {
    if keyword == "enum" && !value.is_array() {
        return to.notes.add(at, keyword, "it is no list");
    }
    if value
        .as_array()
        .is_some_and(|all| keyword == "enum" && all.is_empty())
    {
        return and_all(out, vec![json!(false)]);
    }
    if !exact::is_inexact(value) {
        out.insert(keyword.into(), value.clone());
        return;
    }
    to.notes.add(
        at,
        keyword,
        match exact::has_low(value) {
            true => "numbers of -9223372036854775807 or less may be any",
            false => "the last digits of numbers that a double does not hold are free",
        },
    );
    let options: Vec<Value> = match value {
        Value::Array(all) if keyword == "enum" => all.iter().map(exact::nearest).collect(),
        one => vec![exact::nearest(one)],
    };
    and_all(out, vec![json!({ "anyOf": options })]);
}

pub fn count(to: &mut Converter, keyword: &str, value: &Value, at: &Place, out: &mut Fields) {
    let whole = value.as_u64().or_else(|| {
        let number = value.as_f64()?;
        (number >= 0.0 && number.fract() == 0.0 && number < 1e15).then_some(number as u64)
    });
    match whole {
        Some(0) if keyword.starts_with("min") => {}
        Some(number) => {
            out.insert(keyword.into(), json!(number));
        }
        None => to.notes.add(at, keyword, "it is no whole number from 0 on"),
    }
}

/// An automaton has a state for each remainder, and more than so many take seconds to walk through.
const MOST_REMAINDERS: u64 = 10_000;
const MOST_DECIMALS: u32 = 8;
const TOO_MANY_REMAINDERS: &str = "more than 10000 remainders, or none, are not told apart";

/// `digits` of the last of so many decimals.
#[derive(Clone, Copy)]
pub struct Multiple {
    digits: u64,
    decimals: u32,
}

impl Default for Multiple {
    fn default() -> Self {
        Multiple {
            digits: 1,
            decimals: 0,
        }
    }
}

impl Multiple {
    fn of(value: &Value) -> Option<Multiple> {
        let text = format!("{}", value.as_f64()?);
        let (whole, decimals) = text.split_once('.').unwrap_or((&text, ""));
        let digits: u64 = format!("{whole}{decimals}").parse().ok()?;
        let decimals = decimals.len() as u32;
        let told_apart = (1..=MOST_REMAINDERS).contains(&digits) && decimals <= MOST_DECIMALS;
        told_apart.then_some(Multiple { digits, decimals })
    }

    /// What is a multiple of both; none where that is too large.
    fn and(self, other: Multiple) -> Option<Multiple> {
        let decimals = self.decimals.max(other.decimals);
        let a = self.digits * 10u64.pow(decimals - self.decimals);
        let b = other.digits * 10u64.pow(decimals - other.decimals);
        let (mut gcd, mut rest) = (a, b);
        while rest > 0 {
            (gcd, rest) = (rest, gcd % rest);
        }
        let digits = (a / gcd).checked_mul(b)?;
        (digits <= MOST_REMAINDERS).then_some(Multiple { digits, decimals })
    }
}

/// Whether "multipleOf" leaves few enough remainders, also together with others that may hold for the
/// same number.
fn is_told_apart(to: &mut Converter, all: &Fields, value: &Value, at: &Place) -> bool {
    let Some(multiple) = Multiple::of(value) else {
        return false;
    };
    let joins = ["allOf", "anyOf", "oneOf", "$ref"];
    let is_joined = joins
        .iter()
        .any(|key| all.contains_key(*key) || at.path.contains(key))
        || at.path.contains("$defs")
        || at.path.contains("definitions");
    if !is_joined {
        return true;
    }
    let both = to.joined_multiples.and(multiple);
    to.joined_multiples = both.unwrap_or(to.joined_multiples);
    both.is_some()
}

pub fn number(
    to: &mut Converter,
    all: &Fields,
    keyword: &str,
    value: &Value,
    at: &Place,
    out: &mut Fields,
) {
    // Draft 4 has booleans here, which make the neighbour exclusive.
    if let (Value::Bool(exclusive), Some(name)) = (value, keyword.strip_prefix("exclusive")) {
        if let (true, Some(bound)) = (*exclusive, all.get(&name.to_ascii_lowercase())) {
            number(to, all, keyword, bound, at, out);
        }
        return;
    }
    if !value.is_number() {
        return to.notes.add(at, keyword, "it is no number");
    }
    if keyword == "multipleOf" && !is_told_apart(to, all, value, at) {
        return to.notes.add(at, keyword, TOO_MANY_REMAINDERS);
    }
    let alone = json!({ "type": "number", keyword: value });
    match to.fault(&alone) {
        None if keyword != "multipleOf" && types_of(out).contains(&"number") => {
            decimals::bound(keyword, value, out)
        }
        None => {
            out.insert(keyword.into(), value.clone());
        }
        Some(fault) => to.notes.add(at, keyword, &fault),
    }
}

pub fn pattern(to: &mut Converter, value: &Value, at: &Place, out: &mut Fields) {
    let value = match value.as_str() {
        Some(regex) => &json!(dialect::plain(regex)),
        None => value,
    };
    match to.fault(&json!({ "type": "string", "pattern": value })) {
        Some(fault) if !probe::is_unsatisfiable(&fault) => to.notes.add(at, "pattern", &fault),
        _ => {
            out.insert("pattern".into(), value.clone());
        }
    }
}

/// Formats speak of strings only.
pub fn formats_of_strings(to: &mut Converter, fields: &Fields, at: &Place, out: &mut Fields) {
    let Some(format) = fields.get("format") else {
        return;
    };
    if !types_of(out).contains(&"string") {
        return;
    }
    if let Some(regex) = format.as_str().and_then(formats::regex_of) {
        let alone = !out.contains_key("pattern");
        return match alone {
            true => drop(out.insert("pattern".into(), json!(regex))),
            false => and_all(out, vec![json!({ "pattern": regex })]),
        };
    }
    match to.fault(&json!({ "type": "string", "format": format })) {
        None => {
            out.insert("format".into(), format.clone());
        }
        Some(_) => to.notes.add(
            at,
            "format",
            &format!("{format} is no format that is known here"),
        ),
    }
}
