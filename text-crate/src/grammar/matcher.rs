//! Where one output stands in its grammar.

use super::vocabulary::FtGrammarEnv;
use crate::ffi::{Failure, Outcome};
use llguidance::Matcher;

pub struct FtGrammar {
    pub start: Matcher,
    pub vocab_size: usize,
    pub eos_ids: Vec<u32>,
}

pub struct FtMatcher {
    matcher: Matcher,
    vocab_size: usize,
    eos_ids: Vec<u32>,
}

impl FtGrammar {
    pub fn new(env: &FtGrammarEnv, start: Matcher) -> FtGrammar {
        FtGrammar {
            start,
            vocab_size: env.vocab_size,
            eos_ids: env.eos_ids.clone(),
        }
    }

    /// Shares nothing that changes with other outputs, so that none waits for another.
    pub fn begin(&self) -> FtMatcher {
        FtMatcher {
            matcher: self.start.deep_clone(),
            vocab_size: self.vocab_size,
            eos_ids: self.eos_ids.clone(),
        }
    }
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
        let mask = self.matcher.compute_mask_or_eos().map_err(Failure::new)?;
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

    pub fn consume(&mut self, id: u32) -> Outcome<()> {
        self.matcher.consume_token(id).map_err(Failure::new)
    }

    pub fn rollback(&mut self, count: usize) -> Outcome<()> {
        self.matcher.rollback(count).map_err(Failure::new)
    }

    pub fn is_accepting(&mut self) -> bool {
        self.is_complete() || self.matcher.is_accepting().unwrap_or(false)
    }

    /// Nothing can follow.
    pub fn is_complete(&self) -> bool {
        self.matcher.is_stopped() && !self.matcher.is_error()
    }
}
