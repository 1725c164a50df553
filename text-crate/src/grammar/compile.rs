//! What a request says about its output, as a grammar of llguidance.

use super::calls;
use super::either;
use super::gbnf;
use super::lark;
use super::matcher::{told, FtGrammar};
use super::places;
use super::reasoning::Reasoning;
use super::schema::{self, JsonOptions};
use super::tag;
use super::vocabulary::FtGrammarEnv;
use crate::ffi::{Failure, Outcome};
use llguidance::api::TopLevelGrammar;
use llguidance::Matcher;

#[derive(Clone, Copy, PartialEq)]
pub enum Kind {
    JsonSchema,
    Regex,
    Choice,
    Grammar,
    StructuralTag,
}

impl Kind {
    pub fn of(number: u32) -> Outcome<Kind> {
        match number {
            0 => Ok(Kind::JsonSchema),
            1 => Ok(Kind::Regex),
            2 => Ok(Kind::Choice),
            3 => Ok(Kind::Grammar),
            4 => Ok(Kind::StructuralTag),
            _ => Err(Failure::new(format!(
                "no kind of grammar has number {number}"
            ))),
        }
    }
}

/// One of a JSON array of texts.
fn choice_regex(text: &str) -> Outcome<String> {
    let choices: Vec<String> = serde_json::from_str(text).map_err(|error| {
        Failure::new(format!("the choices are no JSON array of texts: {error}"))
    })?;
    if choices.is_empty() {
        return Err(Failure::new("there is no choice to choose from"));
    }
    let escaped: Vec<String> = choices.iter().map(|c| regex_syntax::escape(c)).collect();
    Ok(escaped.join("|"))
}

fn grammar_of(
    env: &FtGrammarEnv,
    kind: Kind,
    text: &str,
    options: &JsonOptions,
) -> Outcome<TopLevelGrammar> {
    Ok(match kind {
        Kind::JsonSchema => {
            TopLevelGrammar::from_json_schema(schema::prepared(schema::parse(text)?, options)?)
        }
        Kind::Regex => TopLevelGrammar::from_regex(&places::checked(text)?),
        Kind::Choice => TopLevelGrammar::from_regex(&choice_regex(text)?),
        Kind::Grammar if gbnf::is_gbnf(text) => {
            TopLevelGrammar::from_lark(gbnf::to_lark(text, env)?)
        }
        Kind::Grammar => {
            lark::check(text)?;
            TopLevelGrammar::from_lark(text.to_string())
        }
        Kind::StructuralTag => TopLevelGrammar::from_lark(
            either::to_lark(text, options, env)
                .or_else(|| calls::to_lark(text, options, env))
                .unwrap_or_else(|| tag::to_lark(text, options, env))?,
        ),
    })
}

pub fn compile(
    env: &FtGrammarEnv,
    kind: Kind,
    text: &str,
    options: &JsonOptions,
    reasoning: &Reasoning,
) -> Outcome<FtGrammar> {
    let form = grammar_of(env, kind, text, options)?;
    let grammar = reasoning.before(form, env);
    let parser = env.factory.create_parser(grammar).map_err(told)?;
    let mut start = Matcher::new(Ok(parser));
    // The automata that the first mask builds are then there for every output.
    start.compute_mask_or_eos().map_err(no_mask)?;
    Ok(FtGrammar::new(env, start))
}

/// llguidance has a name for it and no sentence.
fn no_mask(message: impl std::fmt::Display) -> Failure {
    let text = message.to_string();
    match text.contains("NoExtensionBias") {
        true => {
            Failure::new("no token can begin a text of this form; change it, or ask without it")
        }
        false => told(text),
    }
}
