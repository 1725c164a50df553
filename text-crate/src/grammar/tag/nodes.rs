//! Pieces of a grammar in Lark. Texts that stand side by side become one terminal: the lexer takes the
//! longest lexeme and never goes back, but within one it tries every way to read a text.

use super::super::vocabulary::FtGrammarEnv;
use crate::ffi::{Failure, Outcome};
use std::collections::HashMap;

/// A part of a fixed text: letters, or a special token, which no letters spell.
#[derive(Clone, PartialEq)]
pub enum Piece {
    Text(String),
    Token(u32),
}

/// The ways in which something may end.
pub type Ways = Vec<Vec<Piece>>;

#[derive(Clone)]
pub enum Node {
    /// Of a terminal. `open`: it ends with free text; `free`: it has free text before its end.
    Text { body: String, open: bool, free: bool },
    /// One of some tokens.
    Token(String),
    Rule { body: String, open: bool },
}

impl Node {
    pub fn text(body: String) -> Node {
        Node::Text { body, open: false, free: false }
    }

    pub fn rule(body: String) -> Node {
        Node::Rule { body, open: false }
    }

    pub fn is_open(&self) -> bool {
        matches!(self, Node::Text { open: true, .. } | Node::Rule { open: true, .. })
    }
}

pub fn quoted(text: &str) -> String {
    serde_json::to_string(text).expect("a string is JSON")
}

pub fn literal(text: &str) -> String {
    llguidance::regex_to_lark(&regex_syntax::escape(text), "")
}

/// Free text of at most so many characters without any of some texts.
pub fn free_text(excludes: &[String], most: Option<u32>) -> String {
    let count = most.map_or("*".to_string(), |most| format!("{{0,{most}}}"));
    let excludes: Vec<String> =
        excludes.iter().filter(|text| !text.is_empty()).map(|text| literal(text)).collect();
    match excludes.is_empty() {
        true => format!("/(?s:.){count}/"),
        false => format!("(/(?s:.){count}/ & ~/(?s:.*)({})(?s:.*)/)", excludes.join("|")),
    }
}

pub fn ends_nowhere<T>() -> Outcome<T> {
    Err(Failure::new(
        "the structural tag has free text (any_text, triggered_tags, dispatch, any_tokens) that nothing ends; put it last, in a tag with an end, or before a const_string (behind tokens: a token)",
    ))
}

/// Special tokens by their texts.
pub struct Specials {
    ids: HashMap<String, u32>,
    sizes: Vec<usize>, // of the texts, the longest first
}

impl Specials {
    pub fn of(env: &FtGrammarEnv) -> Specials {
        let ids: HashMap<String, u32> =
            env.specials().map(|(text, id)| (text.to_string(), id)).collect();
        let mut sizes: Vec<usize> = ids.keys().map(|text| text.len()).collect();
        sizes.sort_unstable_by(|a, b| b.cmp(a));
        sizes.dedup();
        Specials { ids, sizes }
    }

    fn at(&self, text: &str) -> Option<(usize, u32)> {
        let found = |size: &usize| Some((*size, *self.ids.get(text.get(..*size)?)?));
        self.sizes.iter().find_map(found)
    }

    /// The letters and special tokens of a text. A token that ends an output is no part of it.
    pub fn pieces(&self, text: &str, eos_ids: &[u32]) -> Vec<Piece> {
        let mut pieces = Vec::new();
        let mut letters = String::new();
        let mut rest = text;
        while let Some(first) = rest.chars().next() {
            let Some((size, id)) = self.at(rest) else {
                letters.push(first);
                rest = &rest[first.len_utf8()..];
                continue;
            };
            if !letters.is_empty() {
                pieces.push(Piece::Text(std::mem::take(&mut letters)));
            }
            if !eos_ids.contains(&id) {
                pieces.push(Piece::Token(id));
            }
            rest = &rest[size..];
        }
        if !letters.is_empty() {
            pieces.push(Piece::Text(letters));
        }
        pieces
    }
}

pub fn node(piece: &Piece) -> Node {
    match piece {
        Piece::Text(text) => Node::text(quoted(text)),
        Piece::Token(id) => Node::Token(format!("<[{id}]>")),
    }
}

/// Named rules and terminals.
#[derive(Default)]
pub struct Rules {
    pub lark: String,
    num_rules: usize,
}

impl Rules {
    pub fn add(&mut self, prefix: &str, attributes: &str, body: &str) -> String {
        self.num_rules += 1;
        let name = format!("{prefix}_{}", self.num_rules);
        self.lark += &format!("{name}{attributes}: {body}\n");
        name
    }

    /// Texts that stand side by side, as one terminal. Behind free text the first way to end is taken
    /// where something follows.
    fn terminal(&mut self, texts: &[Node], followed: bool) -> String {
        let (body, open, free) = joined(texts);
        match followed && free && !open {
            true => self.add("until", "[lazy]", &body),
            false => self.add("TEXT", "", &body),
        }
    }

    /// Nodes behind each other. `last`: nothing follows in the whole text.
    pub fn row(&mut self, nodes: &[Node], last: bool) -> Outcome<Node> {
        if nodes.iter().all(|node| matches!(node, Node::Text { .. })) {
            let (body, open, free) = joined(nodes);
            return Ok(Node::Text { body, open, free });
        }
        let mut parts: Vec<String> = Vec::new();
        let mut at = 0;
        while at < nodes.len() {
            let rest = &nodes[at..];
            let count = rest.iter().take_while(|node| matches!(node, Node::Text { .. })).count();
            at += count.max(1);
            let behind = nodes.get(at);
            let ends = &nodes[at - 1];
            let is_ended = match behind {
                None => true,
                Some(Node::Token(_)) => count > 0 || !ends.is_open(),
                Some(_) => !ends.is_open(),
            };
            if !is_ended {
                return ends_nowhere();
            }
            parts.push(match &rest[0] {
                Node::Text { .. } => self.terminal(&rest[..count], behind.is_some() || !last),
                Node::Token(body) | Node::Rule { body, .. } => body.clone(),
            });
        }
        let open = nodes.last().is_some_and(|node| node.is_open());
        Ok(Node::Rule { body: parts.join(" "), open })
    }

    /// A node as it stands in a rule.
    pub fn part(&mut self, node: &Node, last: bool) -> String {
        match node {
            Node::Text { .. } => self.terminal(std::slice::from_ref(node), !last),
            Node::Token(body) => body.clone(),
            Node::Rule { body, .. } => self.add("part", "", body),
        }
    }

    /// One of several nodes.
    pub fn either(&mut self, nodes: &[Node], last: bool) -> Node {
        let open = nodes.iter().any(|node| node.is_open());
        let texts: Vec<&str> = nodes
            .iter()
            .filter_map(|node| match node {
                Node::Text { body, .. } => Some(body.as_str()),
                _ => None,
            })
            .collect();
        if texts.len() == nodes.len() {
            let free = nodes.iter().any(|node| matches!(node, Node::Text { free: true, .. }));
            return Node::Text { body: format!("({})", texts.join(" | ")), open, free };
        }
        if nodes.iter().all(|node| matches!(node, Node::Token(_))) {
            let ids: Vec<String> = nodes.iter().map(|node| self.part(node, last)).collect();
            return Node::Token(format!("({})", ids.join(" | ")));
        }
        let parts: Vec<String> = nodes.iter().map(|node| self.part(node, last)).collect();
        Node::Rule { body: format!("({})", parts.join(" | ")), open }
    }

    /// A node so many times: `count` is ?, * or the like.
    pub fn repeated(&mut self, node: &Node, count: &str) -> Outcome<Node> {
        if let Node::Text { body, open, free } = node {
            return Ok(Node::Text { body: format!("({body}){count}"), open: *open, free: *free });
        }
        match node.is_open() && count != "?" {
            true => ends_nowhere(),
            false => {
                let part = self.part(node, false);
                Ok(Node::Rule { body: format!("({part}){count}"), open: node.is_open() })
            }
        }
    }
}

/// The body of texts side by side; whether it ends with free text, and has some before its end.
fn joined(texts: &[Node]) -> (String, bool, bool) {
    let mut bodies: Vec<&str> = Vec::new();
    let (mut open, mut free) = (false, false);
    for text in texts {
        if let Node::Text { body, open: ends_free, free: has_free } = text {
            bodies.push(body);
            free |= open || *has_free;
            open = *ends_free;
        }
    }
    match bodies.as_slice() {
        [] => ("\"\"".to_string(), false, false),
        [only] => (only.to_string(), open, free),
        _ => (format!("({})", bodies.join(" ")), open, free),
    }
}
