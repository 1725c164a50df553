//! Structural tags: texts that are put together of parts with a form and parts that are free.

mod dispatch;
mod format;
mod nodes;
mod writer;
mod xml;

use super::schema::JsonOptions;
use super::vocabulary::FtGrammarEnv;
use crate::ffi::Outcome;
use writer::{Next, Writer};

/// The grammar in Lark.
pub fn to_lark(text: &str, options: &JsonOptions, env: &FtGrammarEnv) -> Outcome<String> {
    let format = format::parse(text)?;
    let mut writer = Writer::new(env, options);
    let row = writer.row_of(&format, &Next::End)?;
    let start = writer.rules.part(&row, true);
    Ok(format!("start: {start}\n{}", writer.rules.lark))
}
