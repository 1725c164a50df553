//! What a structural tag may say: XGrammar's formats, and the older form of triggers and structures.

use crate::ffi::{Failure, Outcome};
use serde::Deserialize;
use serde_json::Value;

/// How the members of an object are written.
#[derive(Clone, Copy, Default, Deserialize, PartialEq)]
#[serde(rename_all = "snake_case")]
pub enum Style {
    #[default]
    Json,
    QwenXml,
    MinimaxXml,
    DeepseekXml,
    GlmXml,
    KimiK3Xml,
}

/// A token by its id, or by its text.
#[derive(Deserialize)]
#[serde(untagged)]
pub enum Token {
    Id(u32),
    Text(String),
}

#[derive(Deserialize)]
pub struct Schema {
    pub json_schema: Value,
    #[serde(default)]
    pub style: Style,
    pub max_whitespace_cnt: Option<u32>,
}

#[derive(Default, Deserialize)]
pub struct AnyText {
    #[serde(default)]
    pub excludes: Vec<String>,
    pub max_tokens: Option<u32>,
    pub max_chars: Option<u32>,
}

/// What begins or ends a tag.
#[derive(Deserialize)]
#[serde(untagged)]
pub enum Edge {
    Text(String),
    /// Any of them; only what ends a tag has several.
    Texts(Vec<String>),
    Token { token: Token },
}

#[derive(Deserialize)]
pub struct Tag {
    pub begin: Edge,
    pub content: Box<Format>,
    pub end: Edge,
}

#[derive(Deserialize)]
pub struct TriggeredTags {
    pub triggers: Vec<String>,
    pub tags: Vec<Tag>,
    #[serde(default)]
    pub at_least_one: bool,
    #[serde(default)]
    pub stop_after_first: bool,
    #[serde(default)]
    pub excludes: Vec<String>,
}

#[derive(Deserialize)]
pub struct SeparatedTags {
    pub tags: Vec<Tag>,
    pub separator: String,
    #[serde(default)]
    pub at_least_one: bool,
    #[serde(default)]
    pub stop_after_first: bool,
}

#[derive(Deserialize)]
pub struct TokenTriggeredTags {
    pub trigger_tokens: Vec<Token>,
    pub tags: Vec<Tag>,
    #[serde(default)]
    pub exclude_tokens: Vec<Token>,
    #[serde(default)]
    pub at_least_one: bool,
    #[serde(default)]
    pub stop_after_first: bool,
}

fn yes() -> bool {
    true
}

#[derive(Deserialize)]
pub struct Dispatch {
    pub rules: Vec<(String, Format)>,
    #[serde(default = "yes", rename = "loop")]
    pub repeats: bool,
    #[serde(default)]
    pub excludes: Vec<String>,
}

#[derive(Deserialize)]
pub struct TokenDispatch {
    pub rules: Vec<(Token, Format)>,
    #[serde(default = "yes", rename = "loop")]
    pub repeats: bool,
    #[serde(default)]
    pub exclude_tokens: Vec<Token>,
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Format {
    ConstString { value: String },
    JsonSchema(Schema),
    QwenXmlParameter { json_schema: Value },
    AnyText(AnyText),
    Grammar { grammar: String },
    Regex { pattern: String },
    Sequence { elements: Vec<Format> },
    Or { elements: Vec<Format> },
    Optional { content: Box<Format> },
    Plus { content: Box<Format> },
    Star { content: Box<Format> },
    Repeat { min: u32, max: i64, content: Box<Format> },
    Tag(Tag),
    TriggeredTags(TriggeredTags),
    TagsWithSeparator(SeparatedTags),
    Dispatch(Dispatch),
    Token { token: Token },
    ExcludeToken { #[serde(default)] exclude_tokens: Vec<Token> },
    AnyTokens { #[serde(default)] exclude_tokens: Vec<Token>, max_tokens: Option<u32> },
    TokenTriggeredTags(TokenTriggeredTags),
    TokenDispatch(TokenDispatch),
}

#[derive(Deserialize)]
struct Structure {
    begin: String,
    schema: Value,
    end: String,
}

#[derive(Deserialize)]
struct Older {
    structures: Vec<Structure>,
    triggers: Vec<String>,
}

fn told(error: serde_json::Error) -> Failure {
    Failure::new(format!("the structural tag: {error}"))
}

/// The older form is tags of schemas that triggers open.
fn of_older(older: Older) -> Outcome<Format> {
    let tag = |structure: Structure| {
        let json_schema = match structure.schema {
            Value::String(text) => serde_json::from_str(&text).map_err(told)?,
            schema => schema,
        };
        let schema = Schema { json_schema, style: Style::Json, max_whitespace_cnt: None };
        Ok(Tag {
            begin: Edge::Text(structure.begin),
            content: Box::new(Format::JsonSchema(schema)),
            end: Edge::Text(structure.end),
        })
    };
    let tags: Outcome<Vec<Tag>> = older.structures.into_iter().map(tag).collect();
    Ok(Format::TriggeredTags(TriggeredTags {
        triggers: older.triggers,
        tags: tags?,
        at_least_one: false,
        stop_after_first: false,
        excludes: Vec::new(),
    }))
}

/// The format of a structural tag, {"format": ...} or {"structures": [...], "triggers": [...]}.
pub fn parse(text: &str) -> Outcome<Format> {
    let mut value: Value = serde_json::from_str(text)
        .map_err(|error| Failure::new(format!("the structural tag is not JSON: {error}")))?;
    match value.get_mut("format") {
        Some(format) => serde_json::from_value(format.take()).map_err(told),
        None => of_older(serde_json::from_value(value).map_err(told)?),
    }
}
