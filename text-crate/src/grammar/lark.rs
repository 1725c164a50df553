//! What of a user's grammar in Lark may take for ever to compile.

use super::places::{check_classes, places_of, MOST_TOGETHER};
use super::schema;
use crate::ffi::{Failure, Outcome};
use serde_json::{Deserializer, Value};
use std::collections::HashMap;

/// A piece of a rule's body.
enum Piece<'a> {
    Regex(&'a str),
    Name(&'a str),
    And,
}

/// The text up to an unescaped `end`, and what is behind it.
fn quoted(text: &str, end: char) -> (&str, &str) {
    let mut escaped = false;
    for (at, letter) in text.char_indices() {
        match (escaped, letter) {
            (true, _) => escaped = false,
            (false, '\\') => escaped = true,
            (false, letter) if letter == end || letter == '\n' => {
                return (&text[..at], &text[at + letter.len_utf8()..]);
            }
            _ => {}
        }
    }
    (text, "")
}

fn is_of_name(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || letter == '_'
}

/// What is behind the regex, name or group that '~' excludes: it has one place for each letter, and
/// so adds none.
fn without_negated(body: &str) -> &str {
    let body = body.trim_start();
    if body.starts_with('/') {
        return quoted(&body[1..], '/').1;
    }
    if !body.starts_with('(') {
        return body.trim_start_matches(is_of_name);
    }
    let (mut rest, mut depth) = (body, 0);
    while let Some(first) = rest.chars().next() {
        rest = &rest[first.len_utf8()..];
        match first {
            '(' => depth += 1,
            ')' if depth == 1 => break,
            ')' => depth -= 1,
            '"' | '/' => rest = quoted(rest, first).1,
            _ => {}
        }
    }
    rest
}

fn pieces(mut body: &str) -> Vec<Piece<'_>> {
    let mut pieces = Vec::new();
    while let Some(first) = body.chars().next() {
        let rest = &body[first.len_utf8()..];
        body = match first {
            '"' => quoted(rest, '"').1,
            '/' if rest.starts_with('/') => quoted(rest, '\n').1,
            '/' => {
                let (regex, rest) = quoted(rest, '/');
                pieces.push(Piece::Regex(regex));
                rest.trim_start_matches(|letter: char| letter.is_ascii_lowercase())
            }
            '~' => without_negated(rest),
            '&' => {
                pieces.push(Piece::And);
                rest
            }
            letter if is_of_name(letter) => {
                let end = body
                    .find(|letter| !is_of_name(letter))
                    .unwrap_or(body.len());
                pieces.push(Piece::Name(&body[..end]));
                &body[end..]
            }
            _ => rest,
        };
    }
    pieces
}

/// The name that a line defines, and its body.
fn definition(line: &str) -> Option<(&str, &str)> {
    let line = line.trim_start().trim_start_matches(['?', '!']);
    let name = &line[..line.find(|letter| !is_of_name(letter))?];
    let rest = line[name.len()..].trim_start();
    let rest = match rest.strip_prefix('[') {
        Some(attributes) => attributes.split_once(']')?.1,
        None => rest,
    };
    let rest = rest.trim_start_matches(|letter: char| letter == '.' || letter.is_ascii_digit());
    let body = rest.trim_start().strip_prefix(':')?;
    (!name.is_empty()).then_some((name, body))
}

struct Rules<'a> {
    bodies: HashMap<&'a str, Vec<Piece<'a>>>,
    /// None while a rule is being looked at, as one that names itself is.
    known: HashMap<&'a str, Option<f64>>,
}

impl<'a> Rules<'a> {
    fn read(text: &'a str) -> Rules<'a> {
        let mut bodies: HashMap<&str, Vec<Piece>> = HashMap::new();
        let mut name = "";
        for line in text.lines() {
            let body = match definition(line) {
                Some((defined, body)) => {
                    name = defined;
                    body
                }
                None => line,
            };
            bodies.entry(name).or_default().extend(pieces(body));
        }
        Rules {
            bodies,
            known: HashMap::new(),
        }
    }

    /// The places of a terminal: those of its parts together where they meet, one by one where not.
    fn places(&mut self, name: &'a str, depth: usize) -> f64 {
        const MOST_DEPTH: usize = 100;
        if let Some(known) = self.known.get(name) {
            return known.unwrap_or(0.0);
        }
        let Some(body) = self.bodies.remove(name).filter(|_| depth < MOST_DEPTH) else {
            return 1.0;
        };
        self.known.insert(name, None);
        let meets = body.iter().any(|piece| matches!(piece, Piece::And));
        let each = body.iter().filter_map(|piece| match piece {
            Piece::Regex(regex) => Some(places_of(regex)),
            Piece::Name(name) => Some(self.places(name, depth + 1).max(1.0)),
            Piece::And => None,
        });
        let places = match meets {
            true => each.product(),
            false => each.sum(),
        };
        self.known.insert(name, Some(places));
        places
    }
}

/// The schemas that stand in a grammar.
fn check_schemas(text: &str) -> Outcome<()> {
    for (at, mark) in text.match_indices("%json") {
        let mut values = Deserializer::from_str(&text[at + mark.len()..]).into_iter::<Value>();
        if let Some(Ok(schema)) = values.next() {
            schema::check_cost(&schema)?;
            if schema::exact::has_low(&schema) {
                return Err(Failure::new(
                    "a schema has a number of -9223372036854775808 or less; use a greater one",
                ));
            }
        }
    }
    Ok(())
}

/// An error where regexes meet ('&') that are too many or too long, in the grammar or in its schemas.
pub fn check(text: &str) -> Outcome<()> {
    check_schemas(text)?;
    check_classes(text)?;
    if !text.contains('&') {
        return Ok(());
    }
    let mut rules = Rules::read(text);
    let names: Vec<&str> = rules.bodies.keys().copied().collect();
    for name in names {
        let meets = |piece: &Piece| matches!(piece, Piece::And);
        let here = rules
            .bodies
            .get(name)
            .is_some_and(|body| body.iter().any(meets));
        if here && rules.places(name, 0) > MOST_TOGETHER {
            return Err(Failure::new(format!(
                "the regexes that '{name}' joins with '&' are too many or too long; join fewer, or make them shorter"
            )));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_meets_is_bounded() {
        let many: Vec<String> = (1..60).map(|i| format!("/.*a.{{{i}}}b/")).collect();
        assert!(check(&format!("start: X\nX: {}\n", many.join(" & "))).is_err());
        assert!(check(&format!("start: X\nX: {}\n", many.join(" | "))).is_ok());
        assert!(check(
            "start: X\nX: /[a-z]{3,40}/ & ~/(?s:.*)(x|y)(?s:.*)/ & Y\nY: /.*&.*/ // a & b\n"
        )
        .is_ok());
        let words: Vec<String> = (1..60)
            .map(|i| format!("& ~/word{i}/ & ~(W | \"x)\")"))
            .collect();
        assert!(check(&format!(
            "start: X\nX: /[a-z]+/ {}\nW: \"w\"\n",
            words.join(" ")
        ))
        .is_ok());
        let named: Vec<String> = (1..60)
            .map(|i| format!("X{i}: /.*a.{{{i}}}b/ // \"\n"))
            .collect();
        let names: Vec<String> = (1..60).map(|i| format!("X{i}")).collect();
        assert!(check(&format!(
            "start: X\nX[capture]: {}\n{}",
            names.join("\n & "),
            named.concat()
        ))
        .is_err());
    }

    #[test]
    fn schemas_are_looked_at() {
        let many: Vec<String> = (1..60)
            .map(|i| format!("{{\"pattern\":\"a.{{{i}}}b\"}}"))
            .collect();
        let schema = format!("{{\"type\":\"string\",\"allOf\":[{}]}}", many.join(","));
        assert!(check(&format!("start: \"x\" %json {schema} \"y\"\n")).is_err());
        assert!(check("start: %json {\"type\":\"string\"}\n").is_ok());
        assert!(check("start: %json {\"enum\":[-9223372036854775808]}\n").is_err());
        assert!(check("start: %json {\"minimum\":-1e19,\"maximum\":-1e19}\n").is_err());
        assert!(check("start: %json {\"enum\":[-9223372036854774784]}\n").is_ok());
    }
}
