//! A form, or calls of tools instead: with the form that `calls` gives them, or a text that begins
//! with one of some openings and is free behind it.

use super::calls;
use super::schema::{self, JsonOptions};
use super::vocabulary::FtGrammarEnv;
use crate::ffi::{Failure, Outcome};
use serde::Deserialize;
use serde_json::Value;

#[derive(Deserialize)]
struct Either {
    schema: Value,
    openings: Vec<String>,
    calls: Option<Value>,
}

/// The alternatives of a structural tag {"either": {"schema", "openings", "calls"}}; none for other
/// ones.
fn parse(text: &str) -> Option<Outcome<Either>> {
    let mut value: Value = serde_json::from_str(text).ok()?;
    let either = value.get_mut("either")?.take();
    Some(
        serde_json::from_value(either)
            .map_err(|error| Failure::new(format!("the structural tag's field 'either': {error}"))),
    )
}

/// The grammar in Lark; none where `text` says no alternatives. An opening that is a special token
/// is that token.
pub fn to_lark(text: &str, options: &JsonOptions, env: &FtGrammarEnv) -> Option<Outcome<String>> {
    let either = match parse(text)? {
        Ok(either) => either,
        Err(failure) => return Some(Err(failure)),
    };
    let body = match schema::prepared(either.schema, options) {
        Ok(body) => body,
        Err(failure) => return Some(Err(failure)),
    };
    if let Some(spec) = either.calls {
        let rules = calls::sections(spec, options, env);
        return Some(rules.map(|rules| format!("start: form | sections\nform: %json {body}\n{rules}")));
    }
    let openings: Vec<String> = either
        .openings
        .iter()
        .filter(|opening| !opening.is_empty())
        .map(|opening| match env.special(opening) {
            Some(id) => format!("<[{id}]>"),
            None => serde_json::to_string(opening).expect("a string is JSON"),
        })
        .collect();
    if openings.is_empty() {
        return Some(Ok(format!("start: %json {body}\n")));
    }
    let last = env.vocab_size - 1;
    Some(Ok(format!(
        "start: form | call\nform: %json {body}\ncall: ({}) rest\nrest: <[0-{last}]>*\n",
        openings.join(" | ")
    )))
}
