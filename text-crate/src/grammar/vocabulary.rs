//! The tokens of a model as llguidance sees them.

use crate::ffi::{Failure, Outcome};
use crate::tokenizer::FtTokenizer;
use llguidance::api::ParserLimits;
use llguidance::toktrie::{ApproximateTokEnv, TokRxInfo, TokTrie};
use llguidance::ParserFactory;
use std::sync::Arc;

/// Compiles grammars over one vocabulary. The id behind the last one stands for "the text may end
/// here", so that a model without an EOS token, or with several, needs no special case.
pub struct FtGrammarEnv {
    pub factory: ParserFactory,
    pub vocab_size: usize,
    pub eos_ids: Vec<u32>,
}

/// What bounds the work of one grammar; llguidance has no limit of wall-clock time.
pub fn limits() -> ParserLimits {
    ParserLimits {
        max_items_in_row: 2000,
        initial_lexer_fuel: 1_000_000,
        step_lexer_fuel: 200_000,
        step_max_items: 50_000,
        // One or two kB each.
        max_lexer_states: 20_000,
        max_grammar_size: 200_000,
        precompute_large_lexemes: true,
        verbose_errors: false,
    }
}

fn words(tokenizer: &FtTokenizer, vocab_size: usize) -> Vec<Vec<u8>> {
    let mut words: Vec<Vec<u8>> = (0..vocab_size as u32)
        .map(|id| tokenizer.grammar_word(id))
        .collect();
    words.push([&[TokTrie::SPECIAL_TOKEN_MARKER][..], b"<end-of-output>"].concat());
    words
}

impl FtGrammarEnv {
    pub fn new(tokenizer: &FtTokenizer, vocab_size: usize, eos_ids: &[u32]) -> Outcome<Self> {
        if vocab_size == 0 || eos_ids.iter().any(|id| *id as usize >= vocab_size) {
            return Err(Failure::new(format!(
                "an EOS id lies outside the vocabulary of {vocab_size}"
            )));
        }
        let end = vocab_size as u32;
        let info = TokRxInfo::new(end + 1, end);
        let trie = TokTrie::from(&info, &words(tokenizer, vocab_size));
        let mut factory = ParserFactory::new_simple(&(Arc::new(ApproximateTokEnv::new(trie)) as _))
            .map_err(Failure::new)?;
        factory.quiet();
        *factory.limits_mut() = limits();
        Ok(FtGrammarEnv {
            factory,
            vocab_size,
            eos_ids: eos_ids.to_vec(),
        })
    }

    /// The texts and ids of all special tokens, which no letters spell.
    pub fn specials(&self) -> impl Iterator<Item = (&str, u32)> {
        let trie = self.factory.tok_env().tok_trie();
        (0..self.vocab_size as u32).filter_map(move |id| match trie.token(id) {
            [TokTrie::SPECIAL_TOKEN_MARKER, name @ ..] if !name.is_empty() => {
                Some((std::str::from_utf8(name).ok()?, id))
            }
            _ => None,
        })
    }
}
