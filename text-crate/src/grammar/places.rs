//! How many places a regex has that a text can stand at.

use regex_syntax::hir::{Hir, HirKind};

/// Where several regexes must fit one text, llguidance goes on by each place of each with each place
/// of all others, in one piece: so many together take about a second.
pub const MOST_TOGETHER: f64 = 1e6;

fn places(regex: &Hir) -> f64 {
    match regex.kind() {
        HirKind::Empty | HirKind::Look(_) => 0.0,
        HirKind::Literal(text) => text.0.len() as f64,
        HirKind::Class(_) => 1.0,
        HirKind::Repetition(repeated) => {
            let count = repeated.max.unwrap_or(repeated.min).max(1);
            f64::from(count) * places(&repeated.sub)
        }
        HirKind::Capture(group) => places(&group.sub),
        HirKind::Concat(parts) | HirKind::Alternation(parts) => parts.iter().map(places).sum(),
    }
}

/// Of a text that is no regex, its length.
pub fn places_of(pattern: &str) -> f64 {
    1.0 + regex_syntax::parse(pattern).map_or(pattern.len() as f64, |regex| places(&regex))
}
