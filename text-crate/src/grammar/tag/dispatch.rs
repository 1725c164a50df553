//! Free text, or tokens, in which what opens a branch is followed by the branch.

use super::format::{Dispatch, Format, Tag, TokenDispatch, TokenTriggeredTags, TriggeredTags};
use super::nodes::{ends_nowhere, free_text, literal, node, quoted, Node, Piece, Rules, Ways};
use super::writer::{Next, Writer};
use crate::ffi::{Failure, Outcome};

/// What opens a branch, and the branches that it may open.
struct Opening {
    pieces: Vec<Piece>,
    branches: Vec<Node>,
}

struct Branches {
    openings: Vec<Opening>,
    /// Tags as wholes, where the text has to begin with one.
    first: Vec<Node>,
    repeats: bool,
}

pub fn first_texts(ways: &Ways) -> Vec<String> {
    let first = |way: &Vec<Piece>| match way.first() {
        Some(Piece::Text(text)) => Some(text.clone()),
        _ => None,
    };
    ways.iter().filter_map(first).collect()
}

/// How often a format stands behind itself.
pub fn count(min: u32, max: i64) -> Outcome<String> {
    const MOST: i64 = 10_000;
    match max {
        -1 if i64::from(min) <= MOST => Ok(format!("{{{min},}}")),
        max if max >= i64::from(min) && max <= MOST => Ok(format!("{{{min},{max}}}")),
        _ => Err(Failure::new(format!(
            "'repeat' of the structural tag is from {min} to {max} times; 'max' must be -1 or between 'min' and {MOST}"
        ))),
    }
}

/// How free text goes on and ends.
struct TextRegion {
    excludes: Vec<String>,
    plain: String, // a terminal without anything that opens or ends something
}

impl TextRegion {
    fn new(rules: &mut Rules, branches: &Branches, excludes: &[String], next: &Next) -> TextRegion {
        let ways: Ways = branches.openings.iter().map(|opening| opening.pieces.clone()).collect();
        let mut all = excludes.to_vec();
        all.extend(first_texts(&ways));
        if let Next::Ways(ends) = next {
            all.extend(first_texts(ends));
        }
        let plain = rules.add("PLAIN", "", &free_text(&all, None));
        TextRegion { excludes: excludes.to_vec(), plain }
    }

    /// Free text up to a text or token, with it.
    fn up_to(&self, rules: &mut Rules, pieces: &[Piece]) -> String {
        let head = match &pieces[0] {
            Piece::Token(id) => format!("{}? <[{id}]>", self.plain),
            Piece::Text(text) => {
                let body = match self.excludes.is_empty() {
                    true => format!("/(?s:.*){}/", literal(text)),
                    false => format!("{} {}", free_text(&self.excludes, None), quoted(text)),
                };
                rules.add("until", "[lazy]", &body)
            }
        };
        let rest: Vec<String> =
            pieces[1..].iter().map(|piece| rules.part(&node(piece), false)).collect();
        [vec![head], rest].concat().join(" ")
    }

    /// Free text up to the end.
    fn tail(&self, rules: &mut Rules, next: &Next) -> Node {
        let Next::Ways(ways) = next else {
            return Node::Rule { body: format!("{}?", self.plain), open: true };
        };
        let ends: Vec<String> = ways
            .iter()
            .map(|way| match way.is_empty() {
                true => format!("{}?", self.plain),
                false => self.up_to(rules, way),
            })
            .collect();
        let open = ways.iter().any(|way| way.is_empty());
        Node::Rule { body: rules.add("tail", "", &ends.join(" | ")), open }
    }
}

fn alternatives(writer: &mut Writer, nodes: &[Node]) -> String {
    let parts: Vec<String> = nodes.iter().map(|node| writer.rules.part(node, false)).collect();
    format!("({})", parts.join(" | "))
}

/// What ends a format, as it stands in a rule.
fn part_of(writer: &mut Writer, close: &[Node]) -> Outcome<String> {
    if close.is_empty() {
        return Ok(String::new());
    }
    let row = writer.rules.row(close, false)?;
    Ok(writer.rules.part(&row, false))
}

/// Branches behind what opens them, and the tail behind all.
fn joined(
    writer: &mut Writer,
    branches: &Branches,
    opened: &[String],
    tail: Node,
    next: &Next,
) -> Outcome<Vec<Node>> {
    let (tail, open) = match tail {
        Node::Rule { body, open } => (body, open),
        _ => (String::new(), false),
    };
    let any = writer.rules.add("opened", "", &opened.join(" | "));
    let close = writer.closing(next)?;
    let first = match branches.first.is_empty() {
        true => None,
        false => Some(alternatives(writer, &branches.first)),
    };
    if let (Some(first), false) = (&first, branches.repeats) {
        return Ok([vec![Node::rule(first.clone())], close].concat());
    }
    let rest = match branches.repeats {
        true => format!("{any}* {tail}"),
        false => {
            let close = part_of(writer, &close)?;
            format!("({any} {close} | {tail})")
        }
    };
    let body = first.map_or(rest.clone(), |first| format!("{first} {rest}"));
    Ok(vec![Node::Rule { body, open }])
}

fn by_text(
    writer: &mut Writer,
    branches: &Branches,
    excludes: &[String],
    next: &Next,
) -> Outcome<Vec<Node>> {
    let region = TextRegion::new(&mut writer.rules, branches, excludes, next);
    let mut opened = Vec::new();
    for opening in &branches.openings {
        let head = region.up_to(&mut writer.rules, &opening.pieces);
        opened.push(format!("{head} {}", alternatives(writer, &opening.branches)));
    }
    let tail = region.tail(&mut writer.rules, next);
    joined(writer, branches, &opened, tail, next)
}

/// The tokens that may end what goes by tokens.
fn end_ids(next: &Next) -> Outcome<Vec<u32>> {
    let Next::Ways(ways) = next else { return Ok(Vec::new()) };
    let first = |way: &Vec<Piece>| match way.first() {
        Some(Piece::Token(id)) => Ok(*id),
        Some(Piece::Text(_)) => ends_nowhere(),
        None => ends_nowhere(),
    };
    ways.iter().map(first).collect()
}

fn by_tokens(
    writer: &mut Writer,
    branches: &Branches,
    excludes: &[u32],
    next: &Next,
) -> Outcome<Vec<Node>> {
    let mut excluded = [excludes, &end_ids(next)?[..]].concat();
    let mut opened = Vec::new();
    for opening in &branches.openings {
        if let [Piece::Token(id)] = opening.pieces.as_slice() {
            excluded.push(*id);
            opened.push(format!("<[{id}]> {}", alternatives(writer, &opening.branches)));
        }
    }
    let free = format!("{}*", writer.others(&excluded)?);
    let opened: Vec<String> = opened.iter().map(|branch| format!("{free} {branch}")).collect();
    let close = writer.closing(next)?;
    let close = part_of(writer, &close)?;
    let open = !matches!(next, Next::Ways(_));
    let tail = Node::Rule { body: format!("{free} {close}"), open };
    joined(writer, branches, &opened, tail, next)
}

/// The opening that has `pieces`, a new one where there is none.
fn opening<'o>(openings: &'o mut Vec<Opening>, pieces: Vec<Piece>) -> &'o mut Opening {
    let at = openings.iter().position(|opening| opening.pieces == pieces);
    let at = at.unwrap_or_else(|| {
        openings.push(Opening { pieces, branches: Vec::new() });
        openings.len() - 1
    });
    &mut openings[at]
}

/// The trigger that opens a tag: of several that its begin starts with the shortest, which comes first.
fn trigger_of<'t>(tags: &'t TriggeredTags, begin: &str) -> Outcome<&'t String> {
    let fitting = tags.triggers.iter().filter(|trigger| begin.starts_with(trigger.as_str()));
    fitting.min_by_key(|trigger| trigger.len()).ok_or_else(|| {
        let begin = quoted(begin);
        Failure::new(format!("no trigger of the structural tag starts the begin {begin}"))
    })
}

fn needs(ok: bool, what: &str) -> Outcome<()> {
    match ok {
        true => Ok(()),
        false => Err(Failure::new(format!("the structural tag: {what}"))),
    }
}

fn firsts(writer: &mut Writer, tags: &[Tag], least_one: bool) -> Outcome<Vec<Node>> {
    let mut first = Vec::new();
    for tag in tags.iter().filter(|_| least_one) {
        let begin = writer.begin(tag)?;
        first.push(writer.tag(tag, &begin, &Next::Other)?);
    }
    Ok(first)
}

fn triggered(writer: &mut Writer, tags: &TriggeredTags, next: &Next) -> Outcome<Vec<Node>> {
    let is_full = !tags.triggers.is_empty() && !tags.tags.is_empty();
    needs(is_full, "it needs at least one of 'structures' or 'tags' and one of 'triggers'")?;
    let has_empty = tags.triggers.iter().any(|trigger| trigger.is_empty());
    needs(!has_empty, "a trigger is empty")?;
    let mut openings = Vec::new();
    for tag in &tags.tags {
        let super::format::Edge::Text(begin) = &tag.begin else {
            return Err(Failure::new(
                "the tags of triggered_tags begin with texts; use token_triggered_tags for tokens",
            ));
        };
        let trigger = trigger_of(tags, begin)?;
        let rest = writer.pieces(&begin[trigger.len()..]);
        let branch = writer.tag(tag, &rest, &Next::Other)?;
        let pieces = writer.pieces(trigger);
        needs(!pieces.is_empty(), "a trigger is a token that ends the output")?;
        opening(&mut openings, pieces).branches.push(branch);
    }
    let first = firsts(writer, &tags.tags, tags.at_least_one)?;
    let branches = Branches { openings, first, repeats: !tags.stop_after_first };
    by_text(writer, &branches, &tags.excludes, next)
}

fn dispatch(writer: &mut Writer, given: &Dispatch, next: &Next) -> Outcome<Vec<Node>> {
    let mut openings = Vec::new();
    for (text, format) in &given.rules {
        let pieces = writer.pieces(text);
        needs(!pieces.is_empty(), "a rule of 'dispatch' has an empty text")?;
        let branch = branch_of(writer, format)?;
        opening(&mut openings, pieces).branches.push(branch);
    }
    needs(!openings.is_empty(), "'dispatch' has no rules")?;
    let branches = Branches { openings, first: Vec::new(), repeats: given.repeats };
    by_text(writer, &branches, &given.excludes, next)
}

fn branch_of(writer: &mut Writer, format: &Format) -> Outcome<Node> {
    let row = writer.row_of(format, &Next::Other)?;
    match row.is_open() {
        true => ends_nowhere(),
        false => Ok(row),
    }
}

fn token_triggered(
    writer: &mut Writer,
    tags: &TokenTriggeredTags,
    next: &Next,
) -> Outcome<Vec<Node>> {
    let triggers = writer.ids(&tags.trigger_tokens)?;
    needs(!triggers.is_empty() && !tags.tags.is_empty(), "token_triggered_tags has no tags or triggers")?;
    let mut openings = Vec::new();
    for tag in &tags.tags {
        let begin = writer.begin(tag)?;
        let opens = matches!(begin.as_slice(), [Piece::Token(id)] if triggers.contains(id));
        needs(opens, "a tag of token_triggered_tags begins with none of 'trigger_tokens'")?;
        let branch = writer.tag(tag, &[], &Next::Other)?;
        opening(&mut openings, begin).branches.push(branch);
    }
    let first = firsts(writer, &tags.tags, tags.at_least_one)?;
    let excluded = [writer.ids(&tags.exclude_tokens)?, triggers].concat();
    let branches = Branches { openings, first, repeats: !tags.stop_after_first };
    by_tokens(writer, &branches, &excluded, next)
}

fn token_dispatch(writer: &mut Writer, given: &TokenDispatch, next: &Next) -> Outcome<Vec<Node>> {
    let mut openings = Vec::new();
    for (token, format) in &given.rules {
        let pieces = vec![Piece::Token(writer.id(token)?)];
        let branch = branch_of(writer, format)?;
        opening(&mut openings, pieces).branches.push(branch);
    }
    needs(!openings.is_empty(), "'token_dispatch' has no rules")?;
    let branches = Branches { openings, first: Vec::new(), repeats: given.repeats };
    let excluded = writer.ids(&given.exclude_tokens)?;
    by_tokens(writer, &branches, &excluded, next)
}

/// Formats that go by triggers or tokens.
pub fn lower(writer: &mut Writer, format: &Format, next: &Next) -> Outcome<Vec<Node>> {
    match format {
        Format::TriggeredTags(tags) => triggered(writer, tags, next),
        Format::TokenTriggeredTags(tags) => token_triggered(writer, tags, next),
        Format::Dispatch(rules) => dispatch(writer, rules, next),
        Format::TokenDispatch(rules) => token_dispatch(writer, rules, next),
        Format::ExcludeToken { exclude_tokens } => {
            let excluded = [writer.ids(exclude_tokens)?, end_ids_if_tokens(next)].concat();
            let nodes = vec![Node::Token(writer.others(&excluded)?)];
            Ok([nodes, writer.closing(next)?].concat())
        }
        Format::AnyTokens { exclude_tokens, max_tokens } => {
            let excluded = [writer.ids(exclude_tokens)?, end_ids(next)?].concat();
            let times = match max_tokens {
                Some(most) => count(0, i64::from(*most))?,
                None => "*".to_string(),
            };
            let body = format!("{}{times}", writer.others(&excluded)?);
            let open = !matches!(next, Next::Ways(_));
            let nodes = vec![Node::Rule { body, open }];
            let close = writer.closing(next)?;
            Ok([nodes, close].concat())
        }
        _ => unreachable!("the writer has the others"),
    }
}

fn end_ids_if_tokens(next: &Next) -> Vec<u32> {
    end_ids(next).unwrap_or_default()
}
