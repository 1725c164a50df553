//! Room for libraries that call themselves once for each rule or reference that names the next one.

use super::compile::Kind;
use crate::ffi::{Failure, Outcome};
use std::cell::Cell;
use std::panic::resume_unwind;
use std::thread;

/// Of stack for a level: a rule takes 3.5 kB, a group in one 2.3 kB, an object of a schema 5 kB.
const LEVEL_BYTES: usize = if cfg!(debug_assertions) { 64 << 10 } else { 12 << 10 };

/// As many levels have room on the stack of any caller.
const FEW_LEVELS: usize = 200;

const MAX_LEVELS: usize = 30_000;

/// serde_json reads no deeper ones.
const MAX_JSON_DEPTH: usize = 128;

/// How many levels a form may have at most: rules and groups that lie within each other, or objects
/// of a schema, which only references bring together beyond the depth of its text.
fn levels(kind: Kind, text: &str) -> usize {
    let count = |marks: &str| text.bytes().filter(|b| marks.as_bytes().contains(b)).count();
    match kind {
        Kind::Grammar => count(":([{"),
        Kind::JsonSchema | Kind::StructuralTag => {
            // A name may be written with escapes.
            let num_refs = text.matches("$ref").count() + text.matches("\\u00").count();
            count("{").min((num_refs + 1).saturating_mul(MAX_JSON_DEPTH))
        }
        // What regexes nest is bounded by their parser.
        Kind::Regex | Kind::Choice => 0,
    }
}

struct Lent<T>(T);
// SAFETY: the thread that lends waits while the other one uses it.
unsafe impl<T> Sync for Lent<T> {}

impl<T> Lent<T> {
    fn get(&self) -> &T {
        &self.0
    }
}

/// Runs `body` on a thread with `size` bytes of stack, of which only what is touched takes memory.
fn on_stack<T>(size: usize, body: impl FnOnce() -> Outcome<T>) -> Outcome<T> {
    let body = Lent(Cell::new(Some(body)));
    let result = Lent(Cell::new(None));
    let run = || {
        if let Some(body) = body.get().take() {
            result.get().set(Some(body()));
        }
    };
    thread::scope(|scope| {
        match thread::Builder::new().stack_size(size).spawn_scoped(scope, run) {
            Ok(started) => started.join().unwrap_or_else(|panic| resume_unwind(panic)),
            Err(error) => result.get().set(Some(Err(Failure::new(format!(
                "there is no memory for a form this deep now ({error}); ask again later"
            ))))),
        }
    });
    result.get().take().expect("set above")
}

/// Runs `body`, which reads `text`, with as much stack as that can need. Refuses what is too deep.
pub fn deep<T>(kind: Kind, text: &str, body: impl FnOnce() -> Outcome<T>) -> Outcome<T> {
    match levels(kind, text) {
        0..=FEW_LEVELS => body(),
        many if many <= MAX_LEVELS => on_stack((many + FEW_LEVELS) * LEVEL_BYTES, body),
        many => {
            let what = match kind {
                Kind::Grammar => "the grammar's rules and groups",
                _ => "the objects of a JSON schema with so many references",
            };
            Err(Failure::new(format!(
                "{what} may lie {many} deep in each other, at most {MAX_LEVELS} are possible; split it or make it smaller"
            )))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn depth(left: usize) -> usize {
        std::hint::black_box([left; 400]);
        match left {
            0 => 0,
            _ => 1 + depth(left - 1),
        }
    }

    #[test]
    fn recursion_has_room() {
        let text = "a: b\n".repeat(MAX_LEVELS);
        let made = deep(Kind::Grammar, &text, || Ok(depth(MAX_LEVELS)));
        assert_eq!(made.ok(), Some(MAX_LEVELS));
    }

    #[test]
    fn levels_are_bounded() {
        let text = "a: b\n".repeat(MAX_LEVELS + 1);
        assert!(deep(Kind::Grammar, &text, || Ok(())).is_err());
        assert!(deep(Kind::JsonSchema, &"{".repeat(MAX_LEVELS + 1), || Ok(())).is_ok());
    }
}
