//! Whether llguidance takes a schema, without a vocabulary.

use crate::grammar::vocabulary::limits;
use llguidance::{GrammarBuilder, JsonCompileOptions};
use serde_json::Value;

/// What is wrong with it, in llguidance's words.
pub fn fault(schema: &Value) -> Option<String> {
    let builder = GrammarBuilder::new(None, limits());
    let made = JsonCompileOptions::default().json_to_llg_with_overrides(builder, schema.clone());
    made.err().map(|error| shortened(&format!("{error:#}")))
}

/// No value fits; leaving something out would not help who asked for it.
pub fn is_unsatisfiable(fault: &str) -> bool {
    fault.contains("Unsatisfiable schema")
}

/// The first line, and not all of a long one. What is wrong with a regex stands in its last line,
/// below a drawing of the place.
fn shortened(message: &str) -> String {
    const MOST: usize = 160;
    let first = message.lines().next().unwrap_or("");
    let cause = message
        .lines()
        .last()
        .and_then(|last| last.strip_prefix("error: "));
    let line = match cause {
        Some(cause) => format!("{first} {cause}"),
        None => first.to_string(),
    };
    match line.char_indices().nth(MOST) {
        Some((end, _)) => format!("{}...", &line[..end]),
        None => line,
    }
}
