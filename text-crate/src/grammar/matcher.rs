//! Where one output stands in its grammar.

use super::vocabulary::FtGrammarEnv;
use crate::ffi::{Failure, Outcome};
use llguidance::toktrie::TokEnv;
use llguidance::Matcher;

pub struct FtGrammar {
    pub start: Matcher,
    pub vocab_size: usize,
    pub eos_ids: Vec<u32>,
    tokens: TokEnv,
}

pub struct FtMatcher {
    matcher: Matcher,
    vocab_size: usize,
    eos_ids: Vec<u32>,
    tokens: TokEnv,
}

impl FtGrammar {
    pub fn new(env: &FtGrammarEnv, start: Matcher) -> FtGrammar {
        FtGrammar {
            start,
            vocab_size: env.vocab_size,
            eos_ids: env.eos_ids.clone(),
            tokens: env.factory.tok_env().clone(),
        }
    }

    /// Shares nothing that changes with other outputs, so that none waits for another.
    pub fn begin(&self) -> FtMatcher {
        FtMatcher {
            matcher: self.start.deep_clone(),
            vocab_size: self.vocab_size,
            eos_ids: self.eos_ids.clone(),
            tokens: self.tokens.clone(),
        }
    }
}

/// What llguidance says, for users: messages quote lines of the grammar, which may be as long as a
/// book, and end with a mark of its own.
pub fn told(message: impl std::fmt::Display) -> Failure {
    const MOST: usize = 1000;
    const MARK: &str = "<non-verbose/>";
    let message = message.to_string();
    let text = message.trim_end().trim_end_matches(MARK).trim_end();
    if text.len() <= MOST {
        return Failure::new(text);
    }
    let end = (0..=MOST).rev().find(|end| text.is_char_boundary(*end));
    Failure::new(format!("{}...", &text[..end.unwrap_or(0)]))
}

fn set(words: &mut [u32], id: u32, value: bool) {
    let (word, bit) = (id as usize / 32, 1u32 << (id % 32));
    match value {
        true => words[word] |= bit,
        false => words[word] &= !bit,
    }
}

impl FtMatcher {
    /// Sets the bit of every id that may come next; those of the EOS ids where the output may end.
    pub fn mask(&mut self, words: &mut [u32]) -> Outcome<()> {
        if words.len() != self.vocab_size.div_ceil(32) {
            return Err(Failure::new(format!(
                "a mask of {} words for a vocabulary of {}",
                words.len(),
                self.vocab_size
            )));
        }
        let mask = self.matcher.compute_mask_or_eos().map_err(told)?;
        let ends = mask.is_allowed(self.vocab_size as u32);
        words.copy_from_slice(&mask.as_slice()[..words.len()]);
        let rest = self.vocab_size % 32;
        if rest != 0 {
            words[words.len() - 1] &= (1u32 << rest) - 1;
        }
        for id in &self.eos_ids {
            set(words, *id, ends);
        }
        Ok(())
    }

    /// The id with the longest text among those of a mask, where all others are beginnings of it.
    pub fn forced(&self, words: &[u32]) -> Option<u32> {
        const MOST: usize = 64;
        let mut ids = [0u32; MOST];
        let mut count = 0;
        for (at, word) in words.iter().enumerate() {
            let mut rest = *word;
            if count + rest.count_ones() as usize > MOST {
                return None;
            }
            while rest != 0 {
                ids[count] = at as u32 * 32 + rest.trailing_zeros();
                count += 1;
                rest &= rest - 1;
            }
        }
        let ids = &ids[..count];
        let text = |id: u32| self.tokens.tok_trie().token(id);
        let longest = *ids.iter().max_by_key(|id| text(**id).len())?;
        let fits = |id: u32| id == longest || text(longest).starts_with(text(id));
        let is_end = |id: u32| self.eos_ids.contains(&id);
        let forces = ids.iter().all(|id| fits(*id)) && (count == 1 || !ids.iter().any(|id| is_end(*id)));
        forces.then_some(longest)
    }

    pub fn consume(&mut self, id: u32) -> Outcome<()> {
        self.matcher.consume_token(id).map_err(told)
    }

    pub fn rollback(&mut self, count: usize) -> Outcome<()> {
        self.matcher.rollback(count).map_err(told)
    }

    pub fn is_accepting(&mut self) -> bool {
        self.is_complete() || self.matcher.is_accepting().unwrap_or(false)
    }

    /// Nothing can follow.
    pub fn is_complete(&self) -> bool {
        self.matcher.is_stopped() && !self.matcher.is_error()
    }
}
