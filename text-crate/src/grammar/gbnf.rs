//! GBNF, the grammars of llama.cpp, as Lark.

use super::gbnf_form::{Form, Rules};
use crate::ffi::{Failure, Outcome};
use std::collections::HashSet;

/// The tokens that a grammar may name.
pub trait Tokens {
    /// The only token with this text, written out.
    fn find(&self, text: &str) -> Option<u32>;
    fn vocab_size(&self) -> usize;
    fn eos_ids(&self) -> &[u32];
}

/// Whether a grammar is GBNF rather than Lark, which has no `::=`.
pub fn is_gbnf(text: &str) -> bool {
    let mut rest = text;
    while let Some(at) = rest.find("::=") {
        let line = rest[..at].rsplit('\n').next().unwrap_or("").trim();
        let names = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        if !line.is_empty() && line.chars().all(names) {
            return true;
        }
        rest = &rest[at + 3..];
    }
    false
}

const MAX_DEPTH: usize = 100;

struct Reader<'a> {
    tokens: &'a dyn Tokens,
    rule: String, // that is being read
    source: &'a str,
    text: &'a [u8], // its bytes
    at: usize,
    depth: usize,
    defined: HashSet<String>,
    used: Vec<String>,
}

/// `my-rule` as a rule of Lark; `start` belongs to the converter.
fn rule_name(name: &str) -> String {
    let mut out = String::from("g_");
    for c in name.chars() {
        match c {
            'A'..='Z' => {
                out.push('_');
                out.push('_');
                out.push(c.to_ascii_lowercase());
            }
            '-' => out.push_str("_d_"),
            c => out.push(c),
        }
    }
    out
}

impl<'a> Reader<'a> {
    fn fail<T>(&self, what: &str) -> Outcome<T> {
        let before = &self.text[..self.at.min(self.text.len())];
        let line = before.iter().filter(|b| **b == b'\n').count() + 1;
        let rule = match self.rule.is_empty() {
            true => String::new(),
            false => format!("rule '{}', ", self.rule),
        };
        Err(Failure::new(format!("GBNF, {rule}line {line}: {what}")))
    }

    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    /// Skips blanks and comments, and line ends where a rule goes on behind them.
    fn skip(&mut self, newlines: bool) {
        while let Some(c) = self.peek() {
            match c {
                b' ' | b'\t' | b'\r' => self.at += 1,
                b'\n' if newlines => self.at += 1,
                b'#' => {
                    while self.peek().is_some_and(|c| c != b'\n') {
                        self.at += 1;
                    }
                }
                _ => return,
            }
        }
    }

    fn name(&mut self) -> Outcome<String> {
        let begin = self.at;
        while self
            .peek()
            .is_some_and(|c| c.is_ascii_alphanumeric() || c == b'-' || c == b'_')
        {
            self.at += 1;
        }
        if begin == self.at {
            return self.fail("a rule's name is missing");
        }
        Ok(String::from_utf8_lossy(&self.text[begin..self.at]).into_owned())
    }

    /// Whether a new rule begins here.
    fn at_rule(&self) -> bool {
        let rest = &self.text[self.at..];
        let name = rest
            .iter()
            .take_while(|c| c.is_ascii_alphanumeric() || **c == b'-' || **c == b'_')
            .count();
        let blanks = rest[name..]
            .iter()
            .take_while(|c| **c == b' ' || **c == b'\t')
            .count();
        name > 0 && rest[name + blanks..].starts_with(b"::=")
    }

    fn character(&mut self) -> Outcome<char> {
        let Some(rest) = self.source.get(self.at..) else {
            return self.fail("the text is cut inside a character");
        };
        let mut chars = rest.chars();
        let Some(c) = chars.next() else {
            return self.fail("the grammar ends inside a literal");
        };
        self.at += c.len_utf8();
        if c != '\\' {
            return Ok(c);
        }
        let Some(escaped) = chars.next() else {
            return self.fail("the grammar ends inside an escape");
        };
        self.at += escaped.len_utf8();
        match escaped {
            'n' => Ok('\n'),
            'r' => Ok('\r'),
            't' => Ok('\t'),
            'x' => self.code(2),
            'u' => self.code(4),
            'U' => self.code(8),
            '"' | '\\' | '[' | ']' | '/' | '-' | '^' | '\'' | '.' => Ok(escaped),
            other => self.fail(&format!("'\\{other}' is no escape")),
        }
    }

    fn code(&mut self, digits: usize) -> Outcome<char> {
        let hex = self.text.get(self.at..self.at + digits);
        let code = hex
            .and_then(|hex| std::str::from_utf8(hex).ok())
            .and_then(|hex| u32::from_str_radix(hex, 16).ok());
        self.at += digits;
        match code.and_then(char::from_u32) {
            Some(c) => Ok(c),
            None => self.fail("an escape names no character"),
        }
    }

    /// Each character is a lexeme of its own: the lexer takes the longest lexeme and never goes back,
    /// while GBNF tries every way to read a text.
    fn literal(&mut self) -> Outcome<Form> {
        self.at += 1;
        let mut parts = Vec::new();
        while self.peek() != Some(b'"') {
            let letter = self.character()?.to_string();
            parts.push(serde_json::to_string(&letter).expect("a string is JSON"));
        }
        self.at += 1;
        Ok(match parts.len() {
            0 => Form::empty(),
            1 => Form::Text(parts.remove(0)),
            _ => Form::Text(format!("({})", parts.join(" "))),
        })
    }

    /// `<[id]>` or `<text>`, and with `!` before it any other token.
    fn token(&mut self) -> Outcome<String> {
        let others = self.peek() == Some(b'!');
        self.at += usize::from(others);
        let rest = self.source.get(self.at..).unwrap_or("");
        let Some(name) = rest.find('>').filter(|_| rest.starts_with('<')).map(|end| &rest[..=end]) else {
            return self.fail("a token is neither <[id]> nor <text>");
        };
        let number = name.strip_prefix("<[").and_then(|inner| inner.strip_suffix("]>"));
        let id = match number {
            Some(number) => number.trim().parse().ok(),
            None => self.tokens.find(name),
        };
        let size = self.tokens.vocab_size() as u32;
        let Some(id) = id.filter(|id| *id < size) else {
            return self.fail(&format!("{name} is no token of this model"));
        };
        let ends = self.tokens.eos_ids();
        if !others && ends.contains(&id) {
            return self.fail(&format!("{name} is the token that ends an output; leave it out"));
        }
        self.at += name.len();
        if !others {
            return Ok(format!("<[{id}]>"));
        }
        let mut gaps = [ends, &[id, size]].concat();
        gaps.sort_unstable();
        let mut next = 0;
        let mut ranges = Vec::new();
        for gap in gaps {
            if gap > next {
                ranges.push(format!("{next}-{}", gap - 1));
            }
            next = next.max(gap + 1);
        }
        Ok(format!("<[{}]>", ranges.join(",")))
    }

    fn class(&mut self) -> Outcome<String> {
        self.at += 1;
        let mut out = String::from("/[");
        if self.peek() == Some(b'^') {
            self.at += 1;
            out.push('^');
        }
        let mut is_empty = true;
        while self.peek() != Some(b']') {
            let from = self.character()?;
            let mut to = from;
            if self.peek() == Some(b'-') && self.text.get(self.at + 1) != Some(&b']') {
                self.at += 1;
                to = self.character()?;
            }
            if to < from {
                return self.fail("a range of a class runs backwards");
            }
            out += &format!("\\u{{{:x}}}", from as u32);
            if to != from {
                out += &format!("-\\u{{{:x}}}", to as u32);
            }
            is_empty = false;
        }
        self.at += 1;
        if is_empty {
            return self.fail("a class is empty");
        }
        Ok(out + "]/")
    }

    /// With the blanks around it.
    fn number(&mut self, nested: bool) -> Option<u32> {
        self.skip(nested);
        let begin = self.at;
        while self.peek().is_some_and(|c| c.is_ascii_digit()) {
            self.at += 1;
        }
        let end = self.at;
        self.skip(nested);
        std::str::from_utf8(&self.text[begin..end]).ok()?.parse().ok()
    }

    /// How often the item before may stand there: from so many times to so many, or any number. Blanks
    /// may stand before it and within it; where there is none, what was skipped is before the next item.
    fn repetition(&mut self, nested: bool) -> Outcome<Option<(u32, Option<u32>)>> {
        self.skip(nested);
        match self.peek() {
            Some(c @ (b'*' | b'+' | b'?')) => {
                self.at += 1;
                Ok(Some((u32::from(c == b'+'), (c == b'?').then_some(1))))
            }
            Some(b'{') => {
                self.at += 1;
                let least = self.number(nested);
                let has_comma = self.peek() == Some(b',');
                self.at += usize::from(has_comma);
                let most = if has_comma { self.number(nested) } else { least };
                if self.peek() != Some(b'}') || (least.is_none() && most.is_none()) {
                    return self.fail("a repetition is not {m}, {m,}, {,n} or {m,n}");
                }
                self.at += 1;
                Ok(Some((least.unwrap_or(0), most)))
            }
            _ => Ok(None),
        }
    }

    fn item(&mut self) -> Outcome<Form> {
        match self.peek() {
            Some(b'"') => self.literal(),
            Some(b'[') => Ok(Form::Text(self.class()?)),
            Some(b'<' | b'!') => Ok(Form::Text(self.token()?)),
            Some(b'.') => {
                self.at += 1;
                Ok(Form::Text("/(?s:.)/".into()))
            }
            Some(b'(') => {
                self.at += 1;
                let inner = self.alternatives(true)?;
                if self.peek() != Some(b')') {
                    return self.fail("a ')' is missing");
                }
                self.at += 1;
                Ok(inner)
            }
            _ => {
                let name = self.name()?;
                self.used.push(name.clone());
                Ok(Form::Rule(rule_name(&name)))
            }
        }
    }

    fn sequence(&mut self, nested: bool) -> Outcome<Form> {
        let mut out = Vec::new();
        loop {
            self.skip(nested);
            match self.peek() {
                None | Some(b'|' | b')' | b'\n') => break,
                _ if self.at_rule() => break,
                _ => {}
            }
            let item = self.item()?;
            out.push(match self.repetition(nested)? {
                Some((least, most)) => item.repeat(least, most),
                None => item,
            });
        }
        Ok(Form::sequence(out))
    }

    fn alternatives(&mut self, nested: bool) -> Outcome<Form> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return self.fail("groups are nested too deeply");
        }
        let mut out = vec![self.sequence(nested)?];
        loop {
            // An alternative may stand on a line of its own.
            let end = self.at;
            self.skip(true);
            if self.peek() != Some(b'|') {
                self.at = if nested { self.at } else { end };
                break;
            }
            self.at += 1;
            self.skip(true);
            out.push(self.sequence(nested)?);
        }
        self.depth -= 1;
        Ok(Form::either(out))
    }

    fn rule(&mut self) -> Outcome<(String, Form)> {
        let name = self.name()?;
        self.rule = name.clone();
        self.skip(false);
        if !self.text[self.at..].starts_with(b"::=") {
            return self.fail("'::=' is missing");
        }
        self.at += 3;
        self.skip(true);
        let body = self.alternatives(false)?;
        if !self.defined.insert(name.clone()) {
            return self.fail(&format!("the rule '{name}' is defined twice"));
        }
        Ok((rule_name(&name), body))
    }
}

pub fn to_lark(text: &str, tokens: &dyn Tokens) -> Outcome<String> {
    let mut reader = Reader {
        tokens,
        rule: String::new(),
        source: text,
        text: text.as_bytes(),
        at: 0,
        depth: 0,
        defined: HashSet::new(),
        used: Vec::new(),
    };
    let mut read = Vec::new();
    reader.skip(true);
    while reader.peek().is_some() {
        read.push(reader.rule()?);
        reader.skip(true);
    }
    reader.used.push("root".into());
    if let Some(name) = reader.used.iter().find(|name| !reader.defined.contains(*name)) {
        return Err(Failure::new(format!("GBNF: there is no rule '{name}'")));
    }
    let mut rules = Rules::new(&read);
    let mut lark = format!("start: {}\n", rule_name("root"));
    for (name, body) in &read {
        lark += &format!("{name}: {}\n", rules.simplified(body));
    }
    Ok(lark)
}
