//! Formats of structural tags as rules of Lark.

use super::super::gbnf::{self, Tokens};
use super::super::lark;
use super::super::places;
use super::super::schema::{self, JsonOptions};
use super::super::vocabulary::FtGrammarEnv;
use super::format::{AnyText, Edge, Format, Schema, Style, Tag, Token};
use super::nodes::{ends_nowhere, free_text, node, quoted, Node, Piece, Rules, Specials, Ways};
use super::{dispatch, xml};
use crate::ffi::{Failure, Outcome};

/// What stands behind a format.
#[derive(Clone)]
pub enum Next {
    /// Nothing: the whole text ends here.
    End,
    /// One of these, which the format's nodes have to bring along.
    Ways(Ways),
    Other,
}

impl Next {
    pub fn is_end(&self) -> bool {
        matches!(self, Next::End)
    }
}

pub struct Writer<'a> {
    pub env: &'a FtGrammarEnv,
    pub options: &'a JsonOptions<'a>,
    pub rules: Rules,
    specials: Specials,
}

/// A part of a sequence.
enum Step<'f> {
    Piece(Piece),
    Format(&'f Format),
    /// What a tag holds, and how the tag ends.
    Inside(&'f Format, Ways),
}

/// The tags of a format with its separator.
pub struct Separated<'f> {
    pub tags: &'f [Tag],
    pub separator: &'f str,
    pub least_one: bool,
    pub only_first: bool,
}

impl<'a> Writer<'a> {
    pub fn new(env: &'a FtGrammarEnv, options: &'a JsonOptions<'a>) -> Writer<'a> {
        Writer { env, options, rules: Rules::default(), specials: Specials::of(env) }
    }

    pub fn pieces(&self, text: &str) -> Vec<Piece> {
        self.specials.pieces(text, &self.env.eos_ids)
    }

    pub fn id(&self, token: &Token) -> Outcome<u32> {
        let (id, name) = match token {
            Token::Id(id) => (Some(*id), id.to_string()),
            Token::Text(text) => (self.env.find(text), quoted(text)),
        };
        id.filter(|id| (*id as usize) < self.env.vocab_size).ok_or_else(|| {
            Failure::new(format!("the structural tag: {name} is no token of this model"))
        })
    }

    pub fn ids(&self, tokens: &[Token]) -> Outcome<Vec<u32>> {
        tokens.iter().map(|token| self.id(token)).collect()
    }

    /// Any token but some; those that end an output never are of it.
    pub fn others(&self, excluded: &[u32]) -> Outcome<String> {
        let size = self.env.vocab_size as u32;
        let mut gaps = [excluded, &self.env.eos_ids[..], &[size]].concat();
        gaps.sort_unstable();
        let mut next = 0;
        let mut ranges = Vec::new();
        for gap in gaps {
            if gap > next {
                ranges.push(format!("{next}-{}", gap - 1));
            }
            next = next.max(gap + 1);
        }
        match ranges.is_empty() {
            true => Err(Failure::new("the structural tag excludes all tokens of the model")),
            false => Ok(format!("<[{}]>", ranges.join(","))),
        }
    }

    fn edge(&self, edge: &Edge) -> Outcome<Ways> {
        Ok(match edge {
            Edge::Text(text) => vec![self.pieces(text)],
            Edge::Texts(texts) if texts.is_empty() => {
                return Err(Failure::new("a tag of the structural tag has no 'end'"));
            }
            Edge::Texts(texts) => texts.iter().map(|text| self.pieces(text)).collect(),
            Edge::Token { token } => match self.id(token)? {
                id if self.env.eos_ids.contains(&id) => vec![Vec::new()],
                id => vec![vec![Piece::Token(id)]],
            },
        })
    }

    pub fn begin(&self, tag: &Tag) -> Outcome<Vec<Piece>> {
        match &tag.begin {
            Edge::Texts(_) => Err(Failure::new(
                "a tag of the structural tag has several texts as its 'begin'; give one",
            )),
            edge => Ok(self.edge(edge)?.remove(0)),
        }
    }

    /// The nodes of what ends something.
    pub fn closing(&mut self, next: &Next) -> Outcome<Vec<Node>> {
        let Next::Ways(ways) = next else { return Ok(Vec::new()) };
        if let [only] = ways.as_slice() {
            return Ok(only.iter().map(node).collect());
        }
        let mut rows = Vec::new();
        for way in ways {
            let nodes: Vec<Node> = way.iter().map(node).collect();
            rows.push(match nodes.as_slice() {
                [Node::Token(_)] => nodes[0].clone(),
                _ => self.rules.row(&nodes, false)?,
            });
        }
        Ok(vec![self.rules.either(&rows, false)])
    }

    fn closed(&mut self, mut nodes: Vec<Node>, next: &Next) -> Outcome<Vec<Node>> {
        nodes.extend(self.closing(next)?);
        Ok(nodes)
    }

    pub fn json(&mut self, given: &serde_json::Value, max_space: Option<u32>) -> Outcome<Node> {
        let pattern = max_space.map(|most| format!("[ \\n\\r\\t]{{0,{most}}}"));
        let is_told = self.options.no_whitespace || !self.options.whitespace_pattern.is_empty();
        let options = JsonOptions {
            no_whitespace: self.options.no_whitespace,
            no_additional_properties: self.options.no_additional_properties,
            lenient: self.options.lenient,
            whitespace_pattern: match &pattern {
                Some(pattern) if !is_told => pattern,
                _ => self.options.whitespace_pattern,
            },
        };
        let body = schema::prepared(given.clone(), &options)?;
        Ok(Node::rule(self.rules.add("json", "", &format!("%json {body}"))))
    }

    fn schema(&mut self, schema: &Schema, next: &Next) -> Outcome<Vec<Node>> {
        let nodes = match schema.style {
            Style::Json => vec![self.json(&schema.json_schema, schema.max_whitespace_cnt)?],
            style => xml::members(self, &schema.json_schema, style)?,
        };
        self.closed(nodes, next)
    }

    fn grammar(&mut self, text: &str) -> Outcome<Node> {
        let body = match gbnf::is_gbnf(text) {
            true => gbnf::to_lark(text, self.env)?,
            false => {
                lark::check(text)?;
                text.to_string()
            }
        };
        Ok(Node::rule(self.rules.add("grammar", "", &format!("%lark {{\n{body}\n}}"))))
    }

    fn any_text(&mut self, text: &AnyText, next: &Next) -> Outcome<Vec<Node>> {
        if text.max_tokens.is_some_and(|most| most > 0) {
            return Err(Failure::new(
                "the structural tag: 'max_tokens' of any_text is not built; use 'max_chars'",
            ));
        }
        let most = if text.max_tokens == Some(0) { Some(0) } else { text.max_chars };
        let free = |excludes: &[String], most| Node::Text {
            body: free_text(excludes, most),
            open: most != Some(0),
            free: false,
        };
        let Next::Ways(ways) = next else { return Ok(vec![free(&text.excludes, most)]) };
        let mut excludes = text.excludes.clone();
        excludes.extend(dispatch::first_texts(ways));
        let body = free(&excludes, most);
        let starts = |way: &Vec<Piece>| matches!(way.as_slice(), [Piece::Text(_)]);
        if ways.len() == 1 || ways.iter().all(starts) {
            return self.closed(vec![body], next);
        }
        let mut rows = Vec::new();
        for way in ways {
            let mut nodes = vec![body.clone()];
            nodes.extend(way.iter().map(node));
            rows.push(self.rules.row(&nodes, false)?);
        }
        Ok(vec![self.rules.either(&rows, false)])
    }

    fn steps<'f>(&self, format: &'f Format, steps: &mut Vec<Step<'f>>) -> Outcome<()> {
        match format {
            Format::Sequence { elements } if elements.is_empty() => {
                return Err(Failure::new("'sequence' of the structural tag has no elements"));
            }
            Format::Sequence { elements } => {
                return elements.iter().try_for_each(|element| self.steps(element, steps));
            }
            Format::ConstString { value } => {
                steps.extend(self.pieces(value).into_iter().map(Step::Piece));
            }
            Format::Token { token } => {
                let id = self.id(token)?;
                if !self.env.eos_ids.contains(&id) {
                    steps.push(Step::Piece(Piece::Token(id)));
                }
            }
            Format::Tag(tag) => {
                steps.extend(self.begin(tag)?.into_iter().map(Step::Piece));
                steps.push(Step::Inside(&tag.content, self.edge(&tag.end)?));
            }
            other => steps.push(Step::Format(other)),
        }
        Ok(())
    }

    /// Formats behind each other, as one.
    fn sequence(&mut self, format: &Format, next: &Next) -> Outcome<Vec<Node>> {
        let mut steps = Vec::new();
        self.steps(format, &mut steps)?;
        let mut nodes = Vec::new();
        let mut at = 0;
        while at < steps.len() {
            let is_last = at + 1 == steps.len();
            match &steps[at] {
                Step::Piece(piece) => {
                    nodes.push(node(piece));
                    at += 1;
                }
                Step::Inside(content, ways) => {
                    let is_nothing = ways.iter().all(|way| way.is_empty());
                    let behind = match is_nothing {
                        true if is_last => next.clone(),
                        true => Next::Other,
                        false => Next::Ways(ways.clone()),
                    };
                    nodes.extend(self.lower(content, &behind)?);
                    if is_nothing && is_last {
                        return Ok(nodes);
                    }
                    at += 1;
                }
                Step::Format(format) if is_last => {
                    nodes.extend(self.lower(format, next)?);
                    return Ok(nodes);
                }
                Step::Format(format) => match (&steps[at + 1], wants_end(format)) {
                    (Step::Piece(piece), true) => {
                        let ways = Next::Ways(vec![vec![piece.clone()]]);
                        nodes.extend(self.lower(format, &ways)?);
                        at += 2;
                    }
                    _ => {
                        nodes.extend(self.lower(format, &Next::Other)?);
                        at += 1;
                    }
                },
            }
        }
        self.closed(nodes, next)
    }

    pub fn row_of(&mut self, format: &Format, next: &Next) -> Outcome<Node> {
        let nodes = self.lower(format, next)?;
        self.rules.row(&nodes, next.is_end())
    }

    /// A tag as one node, which needs nothing behind it.
    pub fn tag(&mut self, tag: &Tag, rest: &[Piece], next: &Next) -> Outcome<Node> {
        let ways = self.edge(&tag.end)?;
        let is_nothing = ways.iter().all(|way| way.is_empty());
        let mut nodes: Vec<Node> = rest.iter().map(node).collect();
        let behind = if is_nothing { next.clone() } else { Next::Ways(ways) };
        nodes.extend(self.lower(&tag.content, &behind)?);
        if !is_nothing {
            nodes.extend(self.closing(next)?);
        }
        let row = self.rules.row(&nodes, next.is_end())?;
        match row.is_open() && !next.is_end() {
            true => ends_nowhere(),
            false => Ok(row),
        }
    }

    fn either(&mut self, elements: &[Format], next: &Next) -> Outcome<Vec<Node>> {
        if elements.is_empty() {
            return Err(Failure::new("'or' of the structural tag has no elements"));
        }
        let rows: Outcome<Vec<Node>> =
            elements.iter().map(|element| self.row_of(element, next)).collect();
        Ok(vec![self.rules.either(&rows?, next.is_end())])
    }

    fn optional(&mut self, content: &Format, next: &Next) -> Outcome<Vec<Node>> {
        let with = self.row_of(content, next)?;
        if !matches!(next, Next::Ways(_)) {
            return Ok(vec![self.rules.repeated(&with, "?")?]);
        }
        let nodes = self.closing(next)?;
        let without = self.rules.row(&nodes, false)?;
        Ok(vec![self.rules.either(&[with, without], false)])
    }

    fn repeat(&mut self, content: &Format, count: &str, next: &Next) -> Outcome<Vec<Node>> {
        let once = self.row_of(content, &Next::Other)?;
        let nodes = vec![self.rules.repeated(&once, count)?];
        self.closed(nodes, next)
    }

    fn separated(&mut self, tags: &Separated, next: &Next) -> Outcome<Vec<Node>> {
        if tags.tags.is_empty() {
            return Err(Failure::new("'tags' of the structural tag is empty"));
        }
        let mut rows = Vec::new();
        for tag in tags.tags {
            let begin = self.begin(tag)?;
            rows.push(self.tag(tag, &begin, &Next::Other)?);
        }
        let any = self.rules.either(&rows, false);
        let any = self.rules.part(&any, false);
        let mut all = any.clone();
        if !tags.only_first {
            let mut more: Vec<Node> = self.pieces(tags.separator).iter().map(node).collect();
            more.push(Node::rule(any));
            let more = self.rules.row(&more, false)?;
            let more = self.rules.part(&more, false);
            all = format!("{all} {more}*");
        }
        let body = if tags.least_one { all } else { format!("({all})?") };
        self.closed(vec![Node::rule(body)], next)
    }

    /// The nodes of a format, with what `next` wants behind it.
    pub fn lower(&mut self, format: &Format, next: &Next) -> Outcome<Vec<Node>> {
        match format {
            Format::ConstString { .. }
            | Format::Token { .. }
            | Format::Tag(_)
            | Format::Sequence { .. } => self.sequence(format, next),
            Format::JsonSchema(schema) => self.schema(schema, next),
            Format::QwenXmlParameter { json_schema } => {
                let nodes = xml::members(self, json_schema, Style::QwenXml)?;
                self.closed(nodes, next)
            }
            Format::AnyText(text) => self.any_text(text, next),
            Format::Grammar { grammar } => {
                let nodes = vec![self.grammar(grammar)?];
                self.closed(nodes, next)
            }
            Format::Regex { pattern } => {
                let pattern = places::checked(pattern)?;
                let body = format!("/{}/", llguidance::regex_to_lark(&pattern, ""));
                self.closed(vec![Node::text(body)], next)
            }
            Format::Or { elements } => self.either(elements, next),
            Format::Optional { content } => self.optional(content, next),
            Format::Plus { content } => self.repeat(content, "+", next),
            Format::Star { content } => self.repeat(content, "*", next),
            Format::Repeat { min, max, content } => {
                self.repeat(content, &dispatch::count(*min, *max)?, next)
            }
            Format::TagsWithSeparator(tags) => {
                let tags = Separated {
                    tags: &tags.tags,
                    separator: &tags.separator,
                    least_one: tags.at_least_one,
                    only_first: tags.stop_after_first,
                };
                self.separated(&tags, next)
            }
            other => dispatch::lower(self, other, next),
        }
    }
}

/// Whether a format goes on until what stands behind it comes.
fn wants_end(format: &Format) -> bool {
    match format {
        Format::TriggeredTags(tags) => !(tags.at_least_one && tags.stop_after_first),
        Format::TokenTriggeredTags(tags) => !(tags.at_least_one && tags.stop_after_first),
        Format::Dispatch(_) | Format::TokenDispatch(_) | Format::AnyTokens { .. } => true,
        Format::Or { elements } => elements.iter().any(is_free),
        Format::Optional { content } => is_free(content),
        _ => false,
    }
}

fn is_free(format: &Format) -> bool {
    matches!(format, Format::AnyText(_)) || wants_end(format)
}
