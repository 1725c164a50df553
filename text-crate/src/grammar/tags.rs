//! Structural tags: free text in which what follows a trigger must have a form.

use super::schema::{self, JsonOptions};
use crate::ffi::{Failure, Outcome};
use serde::Deserialize;
use serde_json::Value;

#[derive(Deserialize)]
struct Structure {
    begin: String,
    schema: Value,
    end: String,
}

#[derive(Deserialize)]
struct Tags {
    structures: Vec<Structure>,
    triggers: Vec<String>,
}

/// A text as a regex of Lark that matches it alone.
fn literal_regex(text: &str) -> String {
    llguidance::regex_to_lark(&regex_syntax::escape(text), "")
}

fn quoted(text: &str) -> String {
    serde_json::to_string(text).expect("a string is JSON")
}

fn parse(text: &str) -> Outcome<Tags> {
    let value: Value = serde_json::from_str(text)
        .map_err(|error| Failure::new(format!("the structural tag is not JSON: {error}")))?;
    if value.get("format").is_some() {
        return Err(Failure::new(
            "the structural tag has a field 'format', which is not supported; use 'structures' (begin, schema, end) and 'triggers'",
        ));
    }
    let tags: Tags = serde_json::from_value(value)
        .map_err(|error| Failure::new(format!("the structural tag: {error}")))?;
    if tags.structures.is_empty() || tags.triggers.is_empty() {
        return Err(Failure::new(
            "the structural tag needs at least one of 'structures' and one of 'triggers'",
        ));
    }
    if tags.triggers.iter().any(|trigger| trigger.is_empty()) {
        return Err(Failure::new("a trigger of the structural tag is empty"));
    }
    Ok(tags)
}

/// The grammar in Lark. Text without a trigger is free; a trigger opens one of the structures whose
/// begin starts with it.
pub fn to_lark(text: &str, options: &JsonOptions) -> Outcome<String> {
    let tags = parse(text)?;
    let mut branches = vec![Vec::new(); tags.triggers.len()];
    for structure in &tags.structures {
        let trigger = tags
            .triggers
            .iter()
            .position(|trigger| structure.begin.starts_with(trigger.as_str()))
            .ok_or_else(|| {
                Failure::new(format!(
                    "no trigger of the structural tag starts the begin {}",
                    quoted(&structure.begin)
                ))
            })?;
        let rest = &structure.begin[tags.triggers[trigger].len()..];
        let body = schema::prepared(structure.schema.clone(), options)?;
        branches[trigger].push(format!("{} %json {} {}", quoted(rest), body, quoted(&structure.end)));
    }
    let mut lark = String::from("start: tagged* TAIL\n");
    let any: Vec<String> = tags.triggers.iter().map(|t| literal_regex(t)).collect();
    lark += &format!("TAIL: /(?s:.*)/ & ~/(?s:.*)({})(?s:.*)/\n", any.join("|"));
    let used: Vec<usize> = (0..branches.len()).filter(|i| !branches[*i].is_empty()).collect();
    let names: Vec<String> = used.iter().map(|i| format!("tag_{i}")).collect();
    lark += &format!("tagged: {}\n", names.join(" | "));
    for i in used {
        lark += &format!("tag_{i}: trigger_{i} ({})\n", branches[i].join(" | "));
        lark += &format!("trigger_{i}[lazy]: /(?s:.*){}/\n", any[i]);
    }
    Ok(lark)
}
