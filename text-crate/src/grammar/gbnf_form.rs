//! What a rule of GBNF may be, with repetitions that read a text in one way only: `("a"*)*` has as many
//! readings as a text has cuts, and the parser keeps them all.

use std::collections::{HashMap, HashSet};
use std::fmt::{Display, Formatter, Result};

#[derive(Clone, PartialEq)]
pub enum Form {
    /// A terminal of Lark, never empty.
    Text(String),
    /// A rule by Lark's name.
    Rule(String),
    /// Without parts it is the empty text.
    Sequence(Vec<Form>),
    Either(Vec<Form>),
    /// From so many times to so many, or any number.
    Repeat(Box<Form>, u32, Option<u32>),
}

impl Form {
    pub fn empty() -> Form {
        Form::Sequence(Vec::new())
    }

    pub fn repeat(self, least: u32, most: Option<u32>) -> Form {
        Form::Repeat(Box::new(self), least, most)
    }

    pub fn sequence(mut parts: Vec<Form>) -> Form {
        match parts.len() {
            1 => parts.remove(0),
            _ => Form::Sequence(parts),
        }
    }

    pub fn either(mut options: Vec<Form>) -> Form {
        match options.len() {
            0 => Form::empty(),
            1 => options.remove(0),
            _ => Form::Either(options),
        }
    }

    fn is_empty(&self) -> bool {
        matches!(self, Form::Sequence(parts) if parts.is_empty())
    }

    /// About how many bytes it takes.
    fn size(&self) -> usize {
        match self {
            Form::Text(text) | Form::Rule(text) => text.len(),
            Form::Sequence(parts) | Form::Either(parts) => {
                parts.iter().map(|part| 1 + part.size()).sum()
            }
            Form::Repeat(part, ..) => 8 + part.size(),
        }
    }

    fn rules<'a>(&'a self, found: &mut Vec<&'a str>) {
        match self {
            Form::Text(_) => {}
            Form::Rule(name) => found.push(name),
            Form::Sequence(parts) | Form::Either(parts) => {
                parts.iter().for_each(|part| part.rules(found))
            }
            Form::Repeat(part, ..) => part.rules(found),
        }
    }

    /// As a part of a sequence, or of what is repeated.
    fn write_within(&self, out: &mut Formatter) -> Result {
        let is_one = match self {
            Form::Text(_) | Form::Rule(_) => true,
            Form::Sequence(parts) => parts.is_empty(),
            Form::Either(_) | Form::Repeat(..) => false,
        };
        match is_one {
            true => write!(out, "{self}"),
            false => write!(out, "({self})"),
        }
    }
}

/// As the body of a rule of Lark.
impl Display for Form {
    fn fmt(&self, out: &mut Formatter) -> Result {
        match self {
            Form::Text(text) | Form::Rule(text) => out.write_str(text),
            // Lark has no empty alternative.
            Form::Sequence(parts) if parts.is_empty() => out.write_str("\"\""),
            Form::Sequence(parts) => {
                for (i, part) in parts.iter().enumerate() {
                    out.write_str(if i > 0 { " " } else { "" })?;
                    match part {
                        Form::Repeat(..) => write!(out, "{part}")?,
                        _ => part.write_within(out)?,
                    }
                }
                Ok(())
            }
            Form::Either(options) => {
                for (i, option) in options.iter().enumerate() {
                    out.write_str(if i > 0 { " | " } else { "" })?;
                    write!(out, "{option}")?;
                }
                Ok(())
            }
            Form::Repeat(part, least, most) => {
                part.write_within(out)?;
                match (least, most) {
                    (0, None) => out.write_str("*"),
                    (1, None) => out.write_str("+"),
                    (0, Some(1)) => out.write_str("?"),
                    (least, None) => write!(out, "{{{least},}}"),
                    (least, Some(most)) => write!(out, "{{{least},{most}}}"),
                }
            }
        }
    }
}

/// How many rules may stand within each other where their bodies take their places.
const MAX_DEPTH: usize = 8;
/// How large they may be, all together.
const MAX_BODY_BYTES: usize = 200_000;

/// Rules by name, and which of them may be empty.
pub struct Rules<'a> {
    bodies: HashMap<&'a str, &'a Form>,
    sizes: HashMap<&'a str, usize>,
    empty: HashSet<&'a str>,
    opened: Vec<&'a str>,
    body_bytes: usize,
}

impl<'a> Rules<'a> {
    pub fn new(rules: &'a [(String, Form)]) -> Rules<'a> {
        let mut users: HashMap<&str, Vec<&str>> = HashMap::new();
        for (name, body) in rules {
            let mut used = Vec::new();
            body.rules(&mut used);
            used.into_iter()
                .for_each(|rule| users.entry(rule).or_default().push(name));
        }
        let mut found = Rules {
            bodies: rules
                .iter()
                .map(|(name, body)| (name.as_str(), body))
                .collect(),
            sizes: rules
                .iter()
                .map(|(name, body)| (name.as_str(), 1 + body.size()))
                .collect(),
            empty: HashSet::new(),
            opened: Vec::new(),
            body_bytes: 0,
        };
        let mut waiting: Vec<&str> = rules.iter().map(|(name, _)| name.as_str()).collect();
        while let Some(name) = waiting.pop() {
            if !found.empty.contains(name) && found.may_be_empty(found.bodies[name]) {
                found.empty.insert(name);
                waiting.extend(users.get(name).into_iter().flatten());
            }
        }
        found
    }

    fn may_be_empty(&self, form: &Form) -> bool {
        match form {
            Form::Text(_) => false,
            Form::Rule(name) => self.empty.contains(name.as_str()),
            Form::Sequence(parts) => parts.iter().all(|part| self.may_be_empty(part)),
            Form::Either(options) => options.iter().any(|option| self.may_be_empty(option)),
            Form::Repeat(part, least, most) => {
                *least == 0 || *most == Some(0) || self.may_be_empty(part)
            }
        }
    }

    /// The same texts, where what is repeated is neither empty nor itself a repetition of the same:
    /// `("a"* "b"*)*` as `("a" | "b")*`.
    pub fn simplified(&mut self, form: &'a Form) -> Form {
        let all = |rules: &mut Self, parts: &'a [Form]| {
            parts.iter().map(|part| rules.simplified(part)).collect()
        };
        match form {
            Form::Text(_) | Form::Rule(_) => form.clone(),
            Form::Sequence(parts) => Form::sequence(all(self, parts)),
            Form::Either(options) => {
                let mut options: Vec<Form> = all(self, options);
                let num_options = options.len();
                options.retain(|option| !option.is_empty());
                let has_empty = options.len() < num_options;
                let rest = Form::either(options);
                match has_empty && !rest.is_empty() && !self.may_be_empty(&rest) {
                    true => rest.repeat(0, Some(1)),
                    false => rest,
                }
            }
            Form::Repeat(part, least, most) => {
                let part = self.simplified(part);
                self.repeated(part, *least, *most)
            }
        }
    }

    fn repeated(&mut self, part: Form, least: u32, most: Option<u32>) -> Form {
        if part.is_empty() || most == Some(0) {
            return Form::empty();
        }
        match (part, most) {
            (Form::Repeat(part, 0, Some(1)), Some(most)) => part.repeat(0, Some(most)),
            (Form::Repeat(part, 0, None), Some(_)) => part.repeat(0, None),
            (Form::Repeat(part, 1, None), _) => part.repeat(least, None),
            (part, None) if least == 0 || self.may_be_empty(&part) => {
                let once = self.once(&part);
                once.repeat(0, None)
            }
            (part, None) if least == 1 => self.once(&part).repeat(1, None),
            (part, most) => part.repeat(least, most),
        }
    }

    /// What has the same texts as `form` where any number of them stand behind each other, and is
    /// not empty where that can be told: Brueggemann-Klein's star normal form.
    fn once(&mut self, form: &Form) -> Form {
        match form {
            Form::Text(_) => form.clone(),
            Form::Rule(name) => self.once_of_rule(name),
            Form::Sequence(parts) => {
                let full: Vec<usize> = (0..parts.len())
                    .filter(|i| !self.may_be_empty(&parts[*i]))
                    .collect();
                match full.as_slice() {
                    [] => Form::either(self.once_of_each(parts)),
                    [only] => {
                        let mut parts = parts.clone();
                        parts[*only] = self.once(&parts[*only]);
                        Form::sequence(parts)
                    }
                    _ => form.clone(),
                }
            }
            Form::Either(options) => Form::either(self.once_of_each(options)),
            Form::Repeat(part, least, _) if *least <= 1 || self.may_be_empty(part) => {
                self.once(part)
            }
            Form::Repeat(..) => form.clone(),
        }
    }

    fn once_of_each(&mut self, forms: &[Form]) -> Vec<Form> {
        let mut once: Vec<Form> = Vec::new();
        for form in forms {
            let form = self.once(form);
            if !form.is_empty() && !once.contains(&form) {
                once.push(form);
            }
        }
        once
    }

    /// The rule's body, where another form of it is better than its name.
    fn once_of_rule(&mut self, name: &str) -> Form {
        let rule = Form::Rule(name.to_string());
        let Some((&name, &body)) = self.bodies.get_key_value(name) else {
            return rule;
        };
        let is_open = self.opened.contains(&name) || self.opened.len() == MAX_DEPTH;
        let body_bytes = self.body_bytes + self.sizes[name];
        if is_open || body_bytes > MAX_BODY_BYTES {
            return rule;
        }
        self.body_bytes = body_bytes;
        self.opened.push(name);
        let simple = self.simplified(body);
        let once = self.once(&simple);
        self.opened.pop();
        match once == *body {
            true => rule,
            false => once,
        }
    }
}
