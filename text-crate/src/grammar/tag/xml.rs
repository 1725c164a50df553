//! Members of an object as elements, which models write in place of JSON: texts as they are, all else
//! as JSON.

use super::format::{AnyText, Format, Style};
use super::nodes::{node, quoted, Node};
use super::writer::{Next, Writer};
use crate::ffi::{Failure, Outcome};
use serde_json::{Map, Value};

/// What stands around a name and around its value.
struct Marks {
    before_name: &'static str,
    behind_name: &'static str,
    before_value: &'static str,
    behind_value: &'static str,
}

fn marks(style: Style) -> Marks {
    let (before_name, behind_name, before_value, behind_value) = match style {
        Style::Json | Style::QwenXml => ("<parameter=", ">", "", "</parameter>"),
        Style::MinimaxXml => ("<parameter name=\"", "\">", "", "</parameter>"),
        Style::DeepseekXml => ("<｜DSML｜parameter name=\"", "\"", "", "</｜DSML｜parameter>"),
        Style::GlmXml => ("<arg_key>", "</arg_key>", "<arg_value>", "</arg_value>"),
        Style::KimiK3Xml => {
            ("<|open|>argument key=\"", "\"", "", "<|close|>argument<|sep|>")
        }
    };
    Marks { before_name, behind_name, before_value, behind_value }
}

fn space() -> Node {
    Node::text("/[ \\n\\t]{0,8}/".into())
}

/// What a schema refers to within its root.
fn resolved<'v>(mut schema: &'v Value, root: &'v Value) -> &'v Value {
    const MOST: usize = 32;
    for _ in 0..MOST {
        let target = schema.get("$ref").and_then(Value::as_str).and_then(|at| at.strip_prefix('#'));
        match target.and_then(|at| root.pointer(at)) {
            Some(found) => schema = found,
            None => break,
        }
    }
    schema
}

/// Whether a value may be a text.
fn may_be_text(schema: &Value, root: &Value) -> bool {
    let schema = resolved(schema, root);
    let Some(fields) = schema.as_object() else { return true };
    match fields.get("type") {
        Some(Value::String(only)) => return only == "string",
        Some(Value::Array(types)) => return types.iter().any(|one| one == "string"),
        _ => {}
    }
    let listed = ["anyOf", "oneOf", "allOf"].iter().find_map(|name| fields.get(*name)?.as_array());
    match listed {
        Some(options) => options.iter().any(|option| may_be_text(option, root)),
        None => !["properties", "items"].iter().any(|name| fields.contains_key(*name)),
    }
}

/// The values that a schema lists, as they are written.
fn listed(schema: &Value) -> Option<Vec<String>> {
    let written = |value: &Value| match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    match (schema.get("const"), schema.get("enum").and_then(Value::as_array)) {
        (Some(only), _) => Some(vec![written(only)]),
        (None, Some(values)) if !values.is_empty() => Some(values.iter().map(written).collect()),
        _ => None,
    }
}

/// Kimi's name of a type; none: any.
fn kimi_type(schema: &Value) -> Option<&str> {
    match schema.get("type").and_then(Value::as_str) {
        Some("integer") => Some("number"),
        other => other,
    }
}

/// What stands behind a name beyond its mark.
fn attributes(style: Style, schema: &Value) -> Option<Node> {
    match style {
        Style::DeepseekXml => Some(Node::text("/ string=\"(true|false)\">/".into())),
        Style::KimiK3Xml => {
            let any = "string|number|integer|boolean|object|array|null";
            let name = kimi_type(schema).unwrap_or(any);
            Some(Node::text(format!("/ type=\"({name})\"/")))
        }
        _ => None,
    }
}

fn length(schema: &Value, name: &str) -> Option<u32> {
    schema.get(name).and_then(Value::as_u64).and_then(|most| u32::try_from(most).ok())
}

fn value(writer: &mut Writer, given: &Value, root: &Value, close: &str) -> Outcome<Vec<Node>> {
    let schema = resolved(given, root);
    let ends: Vec<Node> = writer.pieces(close).iter().map(node).collect();
    if let Some(values) = listed(schema) {
        let texts: Vec<Node> = values.iter().map(|text| Node::text(quoted(text))).collect();
        let any = writer.rules.either(&texts, false);
        return Ok([vec![space(), any, space()], ends].concat());
    }
    if may_be_text(schema, root) {
        let ways = Next::Ways(vec![writer.pieces(close)]);
        if let Some(pattern) = schema.get("pattern").and_then(Value::as_str) {
            return writer.lower(&Format::Regex { pattern: pattern.to_string() }, &ways);
        }
        let max_chars = length(schema, "maxLength");
        let text = AnyText { max_chars, ..AnyText::default() };
        return writer.lower(&Format::AnyText(text), &ways);
    }
    let mut whole = schema.clone();
    for name in ["$defs", "definitions"] {
        if let (Some(fields), Some(defs)) = (whole.as_object_mut(), root.get(name)) {
            fields.entry(name).or_insert(defs.clone());
        }
    }
    Ok([vec![space(), writer.json(&whole, None)?, space()], ends].concat())
}

/// One member as a rule; `name`: its node.
fn member(
    writer: &mut Writer,
    name: Node,
    given: &Value,
    root: &Value,
    style: Style,
) -> Outcome<String> {
    let marks = marks(style);
    let mut nodes = vec![space()];
    let add = |writer: &Writer, nodes: &mut Vec<Node>, text: &str| {
        nodes.extend(writer.pieces(text).iter().map(node));
    };
    add(writer, &mut nodes, marks.before_name);
    nodes.push(name);
    add(writer, &mut nodes, marks.behind_name);
    nodes.extend(attributes(style, resolved(given, root)));
    if style == Style::KimiK3Xml {
        add(writer, &mut nodes, "<|sep|>");
    }
    if !marks.before_value.is_empty() {
        nodes.push(space());
        add(writer, &mut nodes, marks.before_value);
    }
    nodes.extend(value(writer, given, root, marks.behind_value)?);
    let row = writer.rules.row(&nodes, false)?;
    Ok(writer.rules.part(&row, false))
}

/// The members of an object that follows a schema, in the order of its properties.
pub fn members(writer: &mut Writer, given: &Value, style: Style) -> Outcome<Vec<Node>> {
    let none = Map::new();
    let root = resolved(given, given);
    let properties = root.get("properties").and_then(Value::as_object).unwrap_or(&none);
    if root.get("type").is_some_and(|name| name != "object") || *root == Value::Bool(false) {
        return Err(Failure::new(
            "a json_schema of the structural tag with a style of XML must be of type object",
        ));
    }
    let is_required = |name: &str| {
        let required = root.get("required").and_then(Value::as_array);
        required.is_some_and(|names| names.iter().any(|one| one == name))
    };
    let mut nodes = Vec::new();
    for (name, property) in properties {
        let written = match style {
            Style::KimiK3Xml => name.replace('&', "&amp;").replace('"', "&quot;"),
            _ => name.clone(),
        };
        let part = member(writer, Node::text(quoted(&written)), property, given, style)?;
        let count = if is_required(name) { "" } else { "?" };
        nodes.push(Node::rule(format!("{part}{count}")));
    }
    let more = root.get("additionalProperties");
    let is_open = more.map_or(properties.is_empty(), |more| *more != Value::Bool(false));
    if is_open {
        let name = Node::text("/[a-zA-Z_][a-zA-Z0-9_]{0,63}/".into());
        let any = Value::Bool(true);
        let part = member(writer, name, more.unwrap_or(&any), given, style)?;
        nodes.push(Node::rule(format!("{part}*")));
    }
    nodes.push(space());
    Ok(nodes)
}
