//! Types, literals, numbers and strings.

use super::convert::{types_of, Converter, Fields, TYPES};
use super::notes::Place;
use super::probe;
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
        return super::convert::and_all(out, vec![json!(false)]);
    }
    out.insert(keyword.into(), value.clone());
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
    let alone = json!({ "type": "number", keyword: value });
    match to.fault(&alone) {
        None => {
            out.insert(keyword.into(), value.clone());
        }
        Some(fault) => to.notes.add(at, keyword, &fault),
    }
}

pub fn pattern(to: &mut Converter, value: &Value, at: &Place, out: &mut Fields) {
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
