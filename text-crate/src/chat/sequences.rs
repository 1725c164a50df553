//! The filters over sequences, some of which apply other filters and tests.

use super::arguments::{missing, size, text, truth, Arguments};
use super::budget::{self, Broken, Outcome};
use super::interpreter::{get_item, Interpreter};
use super::ops;
use super::predicates;
use super::python;
use super::value::{Key, Value};
use std::cmp::Ordering;

pub const NAMES: &[&str] = &[
    "attr",
    "batch",
    "dictsort",
    "first",
    "groupby",
    "join",
    "last",
    "list",
    "map",
    "max",
    "min",
    "reject",
    "rejectattr",
    "reverse",
    "select",
    "selectattr",
    "slice",
    "sort",
    "sum",
    "unique",
];

pub fn apply(
    interpreter: &mut Interpreter<'_>,
    name: &str,
    value: &Value,
    arguments: &Arguments,
) -> Outcome<Value> {
    budget::work(value.len().unwrap_or(0) as u64 / 4)?;
    match name {
        "attr" => {
            let [attribute] = arguments.bind(name, ["name"])?;
            let attribute = text(&attribute, name)?.to_string();
            let found = super::methods::attribute(ops::defined(value)?, &attribute);
            Ok(found.unwrap_or_else(|| Value::undefined(format!("no attribute '{attribute}'"))))
        }
        "map" => map(interpreter, value, arguments),
        "select" | "reject" | "selectattr" | "rejectattr" => {
            select(interpreter, name, value, arguments)
        }
        "first" | "last" => end(interpreter, name, value),
        "list" => Value::list(ops::iterate(value)?),
        "reverse" => reverse(value),
        "join" => join(interpreter, value, arguments),
        "sum" => sum(interpreter, value, arguments),
        "max" | "min" => extreme(interpreter, name, value, arguments),
        "sort" => sort(interpreter, value, arguments),
        "dictsort" => dictsort(value, arguments),
        "unique" => unique(interpreter, value, arguments),
        "groupby" => groupby(interpreter, value, arguments),
        "batch" => batch(value, arguments),
        _ => slices(value, arguments),
    }
}

/// `a.b.0` of an item, or of a whole item without a path.
fn attribute_of(
    interpreter: &Interpreter<'_>,
    item: &Value,
    path: &Option<Value>,
) -> Outcome<Value> {
    attribute_or(interpreter, item, path, &None)
}

/// The same, with `default` wherever a part of the path is missing.
fn attribute_or(
    interpreter: &Interpreter<'_>,
    item: &Value,
    path: &Option<Value>,
    default: &Option<Value>,
) -> Outcome<Value> {
    let path = match path {
        None | Some(Value::None) => return Ok(item.clone()),
        Some(path) => python::to_str(path),
    };
    let mut value = item.clone();
    for part in path.split('.') {
        let index = part.parse().map_or_else(|_| Value::str(part), Value::Int);
        value = get_item(interpreter, &value, &index)?;
        if let (true, Some(default)) = (value.is_undefined(), default) {
            value = default.clone();
        }
    }
    Ok(value)
}

/// The items for `map`, `select` and their kin, to which none, false and 0 are empty sequences.
fn items_of(value: &Value) -> Outcome<Vec<Value>> {
    match value.is_true() {
        true => ops::iterate(value),
        false => Ok(Vec::new()),
    }
}

fn map(interpreter: &mut Interpreter<'_>, value: &Value, arguments: &Arguments) -> Outcome<Value> {
    let items = items_of(value)?;
    let mut mapped = Vec::with_capacity(items.len());
    if arguments.positional.is_empty() {
        let [attribute, default] = arguments.bind("map", ["attribute", "default"])?;
        attribute
            .as_ref()
            .ok_or_else(|| missing("map", "attribute"))?;
        for item in &items {
            mapped.push(attribute_or(interpreter, item, &attribute, &default)?);
        }
    } else {
        let filter = text(&arguments.positional.first().cloned(), "map")?.to_string();
        let rest = Arguments {
            positional: arguments.positional[1..].to_vec(),
            named: arguments.named.clone(),
        };
        for item in &items {
            mapped.push(interpreter.apply_filter(&filter, item, &rest)?);
        }
    }
    Value::generator(mapped)
}

fn select(
    interpreter: &mut Interpreter<'_>,
    name: &str,
    value: &Value,
    arguments: &Arguments,
) -> Outcome<Value> {
    let mut positional = arguments.positional.iter().cloned();
    let attribute = match name.ends_with("attr") {
        true => Some(
            positional
                .next()
                .ok_or_else(|| missing(name, "attribute"))?,
        ),
        false => None,
    };
    let test = positional.next();
    let others: Vec<Value> = positional.collect();
    let wanted = name.starts_with("select");
    let mut kept = Vec::new();
    for item in items_of(value)? {
        let subject = attribute_of(interpreter, &item, &attribute)?;
        let passes = match &test {
            None => subject.is_true(),
            Some(test) => predicates::holds(&python::to_str(test), &subject, &others)?,
        };
        if passes == wanted {
            kept.push(item);
        }
    }
    Value::generator(kept)
}

fn end(interpreter: &Interpreter<'_>, name: &str, value: &Value) -> Outcome<Value> {
    let empty = || Value::undefined(format!("No {name} item, sequence was empty."));
    if let Value::List(_) | Value::Tuple(_) | Value::Str(_) = value {
        let at = Value::Int(if name == "first" { 0 } else { -1 });
        return Ok(match value.len() {
            Some(0) => empty(),
            _ => get_item(interpreter, value, &at)?,
        });
    }
    let items = ops::iterate(value)?;
    let item = if name == "first" {
        items.first()
    } else {
        items.last()
    };
    Ok(item.cloned().unwrap_or_else(empty))
}

fn reverse(value: &Value) -> Outcome<Value> {
    if let Value::Str(text) = value {
        return Ok(Value::str(text.chars().rev().collect::<String>()));
    }
    let mut items = ops::iterate(value)?;
    items.reverse();
    Value::generator(items)
}

fn join(interpreter: &Interpreter<'_>, value: &Value, arguments: &Arguments) -> Outcome<Value> {
    let [separator, attribute] = arguments.bind("join", ["d", "attribute"])?;
    let separator = separator.map_or_else(String::new, |value| python::to_str(&value));
    let mut out = String::new();
    for (index, item) in ops::iterate(value)?.iter().enumerate() {
        let piece = python::to_str(&attribute_of(interpreter, item, &attribute)?);
        budget::room(out.len() + separator.len() + piece.len())?;
        out.push_str(if index > 0 { &separator } else { "" });
        out.push_str(&piece);
    }
    Ok(Value::str(out))
}

fn sum(interpreter: &Interpreter<'_>, value: &Value, arguments: &Arguments) -> Outcome<Value> {
    let [attribute, start] = arguments.bind("sum", ["attribute", "start"])?;
    let mut total = start.unwrap_or(Value::Int(0));
    if total.as_str().is_some() {
        return Err(Broken::new("sum() can't sum strings"));
    }
    for item in ops::iterate(value)? {
        total = ops::add(&total, &attribute_of(interpreter, &item, &attribute)?)?;
    }
    Ok(total)
}

/// What is compared: without regard to case unless asked otherwise.
fn sort_key(value: Value, case_sensitive: bool) -> Value {
    match &value {
        Value::Str(text) if !case_sensitive => Value::str(text.to_lowercase()),
        _ => value,
    }
}

fn extreme(
    interpreter: &Interpreter<'_>,
    name: &str,
    value: &Value,
    arguments: &Arguments,
) -> Outcome<Value> {
    let [case_sensitive, attribute] = arguments.bind(name, ["case_sensitive", "attribute"])?;
    let wanted = if name == "max" {
        Ordering::Greater
    } else {
        Ordering::Less
    };
    let mut best: Option<(Value, Value)> = None;
    for item in ops::iterate(value)? {
        let key = sort_key(
            attribute_of(interpreter, &item, &attribute)?,
            truth(&case_sensitive),
        );
        let better = match &best {
            None => true,
            Some((_, other)) => ops::order(&key, other)? == Some(wanted),
        };
        if better {
            best = Some((item, key));
        }
    }
    Ok(best.map_or_else(
        || Value::undefined("No aggregated item, sequence was empty."),
        |(item, _)| item,
    ))
}

/// A stable sort by keys; the first failing comparison ends it.
fn sorted<T>(mut rows: Vec<(Vec<Value>, T)>, reverse: bool) -> Outcome<Vec<(Vec<Value>, T)>> {
    let mut failure = None;
    let mut compare = |a: &[Value], b: &[Value]| {
        for (a, b) in a.iter().zip(b) {
            match ops::order(a, b) {
                Ok(Some(Ordering::Equal) | None) => {}
                Ok(Some(order)) => return order,
                Err(broken) => {
                    failure.get_or_insert(broken);
                    return Ordering::Equal;
                }
            }
        }
        Ordering::Equal
    };
    rows.sort_by(|(a, _), (b, _)| {
        if reverse {
            compare(b, a)
        } else {
            compare(a, b)
        }
    });
    match failure {
        Some(broken) => Err(broken),
        None => Ok(rows),
    }
}

fn sort(interpreter: &Interpreter<'_>, value: &Value, arguments: &Arguments) -> Outcome<Value> {
    let names = ["reverse", "case_sensitive", "attribute"];
    let [reverse, case_sensitive, attribute] = arguments.bind("sort", names)?;
    let paths: Vec<Option<Value>> = match &attribute {
        Some(Value::Str(list)) => list.split(',').map(|path| Some(Value::str(path))).collect(),
        other => vec![other.clone()],
    };
    let mut rows = Vec::new();
    for item in ops::iterate(value)? {
        let mut keys = Vec::new();
        for path in &paths {
            let key = attribute_of(interpreter, &item, path)?;
            keys.push(sort_key(key, truth(&case_sensitive)));
        }
        rows.push((keys, item));
    }
    let rows = sorted(rows, truth(&reverse))?;
    Value::list(rows.into_iter().map(|(_, item)| item).collect())
}

fn dictsort(value: &Value, arguments: &Arguments) -> Outcome<Value> {
    let [case_sensitive, by, reverse] =
        arguments.bind("dictsort", ["case_sensitive", "by", "reverse"])?;
    let Value::Dict(dict) = value else {
        return Err(Broken::new("dictsort needs a dict"));
    };
    let by_value = matches!(by.as_ref().and_then(Value::as_str), Some("value"));
    let mut rows = Vec::new();
    for (key, member) in dict.iter() {
        let subject = if by_value {
            member.clone()
        } else {
            key.value()
        };
        let keys = vec![sort_key(subject, truth(&case_sensitive))];
        rows.push((keys, Value::tuple(vec![key.value(), member.clone()])?));
    }
    let rows = sorted(rows, truth(&reverse))?;
    Value::list(rows.into_iter().map(|(_, pair)| pair).collect())
}

fn unique(interpreter: &Interpreter<'_>, value: &Value, arguments: &Arguments) -> Outcome<Value> {
    let [case_sensitive, attribute] = arguments.bind("unique", ["case_sensitive", "attribute"])?;
    let mut seen = std::collections::HashSet::new();
    let mut kept = Vec::new();
    for item in ops::iterate(value)? {
        let key = sort_key(
            attribute_of(interpreter, &item, &attribute)?,
            truth(&case_sensitive),
        );
        if seen.insert(Key::new(&key)?) {
            kept.push(item);
        }
    }
    Value::generator(kept)
}

fn groupby(interpreter: &Interpreter<'_>, value: &Value, arguments: &Arguments) -> Outcome<Value> {
    let [attribute, default, case_sensitive] =
        arguments.bind("groupby", ["attribute", "default", "case_sensitive"])?;
    let mut rows = Vec::new();
    for item in ops::iterate(value)? {
        let mut found = attribute_of(interpreter, &item, &attribute)?;
        if let (true, Some(default)) = (found.is_undefined(), &default) {
            found = default.clone();
        }
        rows.push((
            vec![sort_key(found.clone(), truth(&case_sensitive))],
            (found, item),
        ));
    }
    let mut groups: Vec<(Value, Value, Vec<Value>)> = Vec::new();
    for (mut keys, (name, item)) in sorted(rows, false)? {
        let key = keys.remove(0);
        match groups.last_mut() {
            Some((last, _, members)) if last.equals(&key) => members.push(item),
            _ => groups.push((key, name, vec![item])),
        }
    }
    let tuple = |(_, name, members)| Value::tuple(vec![name, Value::list(members)?]);
    Value::list(groups.into_iter().map(tuple).collect::<Outcome<_>>()?)
}

fn batch(value: &Value, arguments: &Arguments) -> Outcome<Value> {
    let [length, fill] = arguments.bind("batch", ["linecount", "fill_with"])?;
    let length = size(&length, 0)?.max(1);
    let mut rows = Vec::new();
    for chunk in ops::iterate(value)?.chunks(length) {
        let mut row = chunk.to_vec();
        if let Some(fill) = fill.as_ref().filter(|fill| !matches!(fill, Value::None)) {
            budget::reserve(length.saturating_mul(std::mem::size_of::<Value>()))?;
            row.resize(length, fill.clone());
        }
        rows.push(Value::list(row)?);
    }
    Value::generator(rows)
}

fn slices(value: &Value, arguments: &Arguments) -> Outcome<Value> {
    let [count, fill] = arguments.bind("slice", ["slices", "fill_with"])?;
    let count = size(&count, 0)?;
    if count == 0 {
        return Err(Broken::new("slice() needs a positive number of slices"));
    }
    budget::reserve(count.saturating_mul(64))?;
    let items = ops::iterate(value)?;
    let (each, extra) = (items.len() / count, items.len() % count);
    let mut rows = Vec::new();
    let mut at = 0;
    for index in 0..count {
        let length = each + usize::from(index < extra);
        let mut row = items[at..at + length].to_vec();
        at += length;
        if let (Some(fill), true) = (&fill, index >= extra && extra > 0) {
            row.push(fill.clone());
        }
        rows.push(Value::list(row)?);
    }
    Value::generator(rows)
}
