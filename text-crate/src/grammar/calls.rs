//! Free text in which a call of a tool, once its marker is there, must have a form.

use super::schema::{self, JsonOptions};
use super::vocabulary::FtGrammarEnv;
use crate::ffi::{Failure, Outcome};
use serde::Deserialize;
use serde_json::Value;

/// A piece of a call. `Text`: it alone, special tokens as such; `Until`: any text up to this one.
#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum Part {
    Text(String),
    Regex(String),
    Schema(Value),
    Until(String),
    Optional(Vec<Part>),
}

/// The marker, what follows it, one of the calls, perhaps more of them with `between` before each,
/// and the end.
#[derive(Deserialize)]
struct Calls {
    marker: String,
    open: Vec<Part>,
    calls: Vec<Vec<Part>>,
    between: Option<Vec<Part>>,
    close: Vec<Part>,
}

struct Writer<'a> {
    env: &'a FtGrammarEnv,
    options: &'a JsonOptions<'a>,
    rules: String,
    num_rules: usize,
}

fn quoted(text: &str) -> String {
    serde_json::to_string(text).expect("a string is JSON")
}

fn regex(text: &str) -> String {
    llguidance::regex_to_lark(text, "")
}

impl Writer<'_> {
    fn add(&mut self, prefix: &str, attributes: &str, body: &str) -> String {
        self.num_rules += 1;
        let name = format!("{prefix}_{}", self.num_rules);
        self.rules += &format!("{name}{attributes}: {body}\n");
        name
    }

    fn part(&mut self, part: &Part) -> Outcome<String> {
        Ok(match part {
            Part::Text(text) => match self.env.special(text) {
                Some(id) => format!("<[{id}]>"),
                None => quoted(text),
            },
            Part::Regex(text) => self.add("W", "", &format!("/{}/", regex(text))),
            Part::Schema(schema) => {
                let body = schema::prepared(schema.clone(), self.options)?;
                self.add("json", "", &format!("%json {body}"))
            }
            Part::Until(text) => {
                let end = regex(&regex_syntax::escape(text));
                self.add("until", "[lazy]", &format!("/(?s:.*){end}/"))
            }
            Part::Optional(parts) => {
                let body = self.row(parts)?;
                let name = self.add("maybe", "", &body);
                format!("{name}?")
            }
        })
    }

    fn row(&mut self, parts: &[Part]) -> Outcome<String> {
        let parts: Outcome<Vec<String>> = parts.iter().map(|part| self.part(part)).collect();
        Ok(parts?.join(" "))
    }

    /// What stands behind the marker.
    fn body(&mut self, spec: &Calls) -> Outcome<String> {
        let open = self.row(&spec.open)?;
        let rows: Outcome<Vec<String>> = spec.calls.iter().map(|call| self.row(call)).collect();
        let call = self.add("call", "", &rows?.join(" | "));
        let close = self.row(&spec.close)?;
        let Some(between) = &spec.between else {
            return Ok(format!("{open} {call} {close}"));
        };
        let between = self.row(between)?;
        let more = self.add("more", "", &format!("{between} {call}"));
        Ok(format!("{open} {call} {more}* {close}"))
    }

    /// Special tokens other than the marker may stand in the text; those that end it are not of it.
    fn specials(&self, marker: Option<u32>) -> String {
        let ids: Vec<String> = self
            .env
            .specials()
            .filter(|(_, id)| Some(*id) != marker && !self.env.eos_ids.contains(id))
            .map(|(_, id)| id.to_string())
            .collect();
        ids.join(",")
    }
}

fn checked(calls: Value) -> Outcome<Calls> {
    let spec: Calls = serde_json::from_value(calls)
        .map_err(|error| Failure::new(format!("the structural tag's field 'calls': {error}")))?;
    match spec.marker.is_empty() || spec.calls.is_empty() {
        true => {
            Err(Failure::new("the structural tag's field 'calls' needs a 'marker' and 'calls'"))
        }
        false => Ok(spec),
    }
}

/// The calls of a structural tag {"calls": {...}}; none for other ones.
fn parse(text: &str) -> Option<Outcome<Calls>> {
    let mut value: Value = serde_json::from_str(text).ok()?;
    Some(checked(value.get_mut("calls")?.take()))
}

/// Rules in Lark for a text that is calls alone, `sections`, with a blank or line break between them.
pub fn sections(calls: Value, options: &JsonOptions, env: &FtGrammarEnv) -> Outcome<String> {
    let spec = checked(calls)?;
    let mut writer = Writer { env, options, rules: String::new(), num_rules: 0 };
    let body = writer.body(&spec)?;
    let marker = writer.part(&Part::Text(spec.marker))?;
    let rules = writer.rules;
    Ok(format!(
        "sections: section more_section*\nmore_section: GAP? section\nsection: {marker} {body}\n\
         GAP: /[ \\n]{{1,2}}/\n{rules}"
    ))
}

fn lark_of(spec: &Calls, options: &JsonOptions, env: &FtGrammarEnv) -> Outcome<String> {
    let mut writer = Writer { env, options, rules: String::new(), num_rules: 0 };
    let body = writer.body(spec)?;
    let marker = env.special(&spec.marker);
    let mut lark = String::from("start: segment* PLAIN?\n");
    match marker {
        Some(id) => lark += &format!("PLAIN: /(?s:.+)/\ncalls: PLAIN? <[{id}]> {body}\n"),
        None => {
            let text = regex(&regex_syntax::escape(&spec.marker));
            lark += &format!("PLAIN: /(?s:.+)/ & ~/(?s:.*){text}(?s:.*)/\n");
            lark += &format!("marked[lazy]: /(?s:.*){text}/\ncalls: marked {body}\n");
        }
    }
    let specials = writer.specials(marker);
    lark += match specials.is_empty() {
        true => "segment: calls\n".to_string(),
        false => format!("segment: calls | PLAIN? <[{specials}]>\n"),
    }
    .as_str();
    Ok(lark + &writer.rules)
}

/// The grammar in Lark; none where `text` says no calls.
pub fn to_lark(text: &str, options: &JsonOptions, env: &FtGrammarEnv) -> Option<Outcome<String>> {
    Some(parse(text)?.and_then(|spec| lark_of(&spec, options, env)))
}
