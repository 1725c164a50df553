//! Grammars as token masks: what a structured output may go on with.

mod calls;
mod compile;
mod deep;
mod dialect;
mod either;
mod ffi;
mod gbnf;
mod gbnf_form;
mod harmony;
mod lark;
mod matcher;
mod places;
mod reasoning;
mod schema;
mod tag;
mod vocabulary;
