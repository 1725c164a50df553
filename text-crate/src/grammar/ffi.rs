//! The C interface of grammars.

use super::compile::{compile, Kind};
use super::deep::deep;
use super::matcher::{FtGrammar, FtMatcher};
use super::reasoning::Reasoning;
use super::schema::{self, JsonOptions};
use super::vocabulary::FtGrammarEnv;
use crate::ffi::{guard, slice, utf8, Failure, FtText};
use crate::tokenizer::FtTokenizer;

#[repr(C)]
pub struct FtGrammarText {
    kind: u32,
    text: *const u8,
    text_size: usize,
    whitespace_pattern: *const u8,
    whitespace_pattern_size: usize,
    no_whitespace: bool,
    no_additional_properties: bool,
    lenient_schemas: bool,
    reasoning_ends: *const u8,
    reasoning_ends_size: usize,
    space_after_reasoning: bool,
}

unsafe fn reasoning_of(grammar: &FtGrammarText) -> Result<Reasoning, Failure> {
    let ends = utf8(
        grammar.reasoning_ends,
        grammar.reasoning_ends_size,
        "the ends of reasoning",
    )?;
    let ends = match ends.is_empty() {
        true => Vec::new(),
        false => serde_json::from_str(ends).map_err(Failure::new)?,
    };
    Ok(Reasoning {
        ends,
        space: grammar.space_after_reasoning,
    })
}

#[no_mangle]
pub unsafe extern "C" fn ft_schema_relax(
    text: *const u8,
    size: usize,
    out: *mut FtText,
    notes: *mut FtText,
    error: *mut FtText,
) -> i32 {
    guard(error, || {
        let text = utf8(text, size, "the JSON schema")?;
        let made = deep(Kind::JsonSchema, text, || schema::relaxed_text(text))?;
        out.write(made.schema.to_string().into());
        notes.write(serde_json::json!(made.notes).to_string().into());
        Ok(())
    })
}

#[no_mangle]
pub unsafe extern "C" fn ft_grammar_env_new(
    tokenizer: *const FtTokenizer,
    vocab_size: usize,
    eos_ids: *const u32,
    num_eos_ids: usize,
    out: *mut *mut FtGrammarEnv,
    error: *mut FtText,
) -> i32 {
    guard(error, || {
        let env = FtGrammarEnv::new(&*tokenizer, vocab_size, slice(eos_ids, num_eos_ids))?;
        out.write(Box::into_raw(Box::new(env)));
        Ok(())
    })
}

#[no_mangle]
pub unsafe extern "C" fn ft_grammar_env_free(env: *mut FtGrammarEnv) {
    if !env.is_null() {
        drop(Box::from_raw(env));
    }
}

#[no_mangle]
pub unsafe extern "C" fn ft_grammar_new(
    env: *const FtGrammarEnv,
    grammar: FtGrammarText,
    out: *mut *mut FtGrammar,
    error: *mut FtText,
) -> i32 {
    guard(error, || {
        let text = utf8(grammar.text, grammar.text_size, "the grammar")?;
        let options = JsonOptions {
            no_whitespace: grammar.no_whitespace,
            no_additional_properties: grammar.no_additional_properties,
            lenient: grammar.lenient_schemas,
            whitespace_pattern: utf8(
                grammar.whitespace_pattern,
                grammar.whitespace_pattern_size,
                "whitespace_pattern",
            )?,
        };
        let reasoning = reasoning_of(&grammar)?;
        let kind = Kind::of(grammar.kind)?;
        let made = deep(kind, text, || compile(&*env, kind, text, &options, &reasoning))?;
        out.write(Box::into_raw(Box::new(made)));
        Ok(())
    })
}

#[no_mangle]
pub unsafe extern "C" fn ft_grammar_free(grammar: *mut FtGrammar) {
    if !grammar.is_null() {
        drop(Box::from_raw(grammar));
    }
}

#[no_mangle]
pub unsafe extern "C" fn ft_matcher_new(
    grammar: *const FtGrammar,
    out: *mut *mut FtMatcher,
    error: *mut FtText,
) -> i32 {
    guard(error, || {
        out.write(Box::into_raw(Box::new((*grammar).begin())));
        Ok(())
    })
}

#[no_mangle]
pub unsafe extern "C" fn ft_matcher_free(matcher: *mut FtMatcher) {
    if !matcher.is_null() {
        drop(Box::from_raw(matcher));
    }
}

#[no_mangle]
pub unsafe extern "C" fn ft_matcher_mask(
    matcher: *mut FtMatcher,
    words: *mut u32,
    num_words: usize,
    error: *mut FtText,
) -> i32 {
    guard(error, || {
        (*matcher).mask(std::slice::from_raw_parts_mut(words, num_words))
    })
}

#[no_mangle]
pub unsafe extern "C" fn ft_matcher_forced(
    matcher: *const FtMatcher,
    words: *const u32,
    num_words: usize,
) -> i64 {
    let mut forced = None;
    guard(std::ptr::null_mut(), || {
        forced = (*matcher).forced(slice(words, num_words));
        Ok(())
    });
    forced.map_or(-1, i64::from)
}

#[no_mangle]
pub unsafe extern "C" fn ft_matcher_consume(
    matcher: *mut FtMatcher,
    id: u32,
    error: *mut FtText,
) -> i32 {
    guard(error, || (*matcher).consume(id))
}

#[no_mangle]
pub unsafe extern "C" fn ft_matcher_rollback(
    matcher: *mut FtMatcher,
    count: usize,
    error: *mut FtText,
) -> i32 {
    guard(error, || (*matcher).rollback(count))
}

#[no_mangle]
pub unsafe extern "C" fn ft_matcher_is_accepting(matcher: *mut FtMatcher) -> bool {
    let mut accepting = false;
    guard(std::ptr::null_mut(), || {
        accepting = (*matcher).is_accepting();
        Ok(())
    });
    accepting
}

#[no_mangle]
pub unsafe extern "C" fn ft_matcher_is_complete(matcher: *mut FtMatcher) -> bool {
    let mut complete = false;
    guard(std::ptr::null_mut(), || {
        complete = (*matcher).is_complete();
        Ok(())
    });
    complete
}
