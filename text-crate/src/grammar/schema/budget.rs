//! What one schema may cost.

use crate::ffi::{Failure, Outcome};
use std::cell::Cell;

/// Of the thread that reads a schema; the largest ones that are published take a tenth.
const MAX_CPU_NS: u64 = 1_500_000_000;

/// Schemas that are read, copied or followed. A text has at most some 100,000.
const MAX_STEPS: usize = 400_000;

/// How many pairs of options are looked at before they count as not known to differ.
const MAX_COMPARISONS: usize = 1_000_000;

/// Counted down by all that works on one schema, on the thread that made it.
pub struct Budget {
    began_ns: u64,
    steps: Cell<usize>,
    comparisons: Cell<usize>,
    is_over: Cell<bool>,
}

fn thread_cpu_ns() -> u64 {
    let mut now = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: `now` is a place to write to.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut now) };
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

impl Budget {
    pub fn new() -> Budget {
        Budget {
            began_ns: thread_cpu_ns(),
            steps: Cell::new(0),
            comparisons: Cell::new(0),
            is_over: Cell::new(false),
        }
    }

    /// Pays for `count` schemas; false where too many were paid for.
    pub fn pay(&self, count: usize) -> bool {
        const BETWEEN_LOOKS: usize = 1024;
        let before = self.steps.get();
        let now = before.saturating_add(count);
        self.steps.set(now);
        if now > MAX_STEPS {
            self.is_over.set(true);
        } else if before / BETWEEN_LOOKS != now / BETWEEN_LOOKS {
            self.has_time();
        }
        !self.is_over.get()
    }

    /// Whether there is time for more; asked before whatever takes more than a step.
    pub fn has_time(&self) -> bool {
        if !self.is_over.get() && thread_cpu_ns() - self.began_ns > MAX_CPU_NS {
            self.is_over.set(true);
        }
        !self.is_over.get()
    }

    /// Pays for a comparison of two options; false where there were too many, which is no refusal.
    pub fn compare(&self) -> bool {
        let now = self.comparisons.get() + 1;
        self.comparisons.set(now);
        now <= MAX_COMPARISONS
    }

    pub fn check(&self) -> Outcome<()> {
        match self.is_over.get() {
            false => Ok(()),
            true => Err(Failure::new(
                "the JSON schema takes too long to read: its combinations, references and patterns \
                 say more than its size; split it, or leave some of them out",
            )),
        }
    }
}
