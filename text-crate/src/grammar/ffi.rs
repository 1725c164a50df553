//! The C interface of grammars.

use super::compile::{compile, Kind};
use super::matcher::{FtGrammar, FtMatcher};
use super::schema::JsonOptions;
use super::vocabulary::FtGrammarEnv;
use crate::ffi::{guard, slice, utf8, FtText};
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
            whitespace_pattern: utf8(
                grammar.whitespace_pattern,
                grammar.whitespace_pattern_size,
                "whitespace_pattern",
            )?,
        };
        let made = compile(&*env, Kind::of(grammar.kind)?, text, &options)?;
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
