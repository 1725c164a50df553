//! Bounds with decimals. llguidance reads a number against a bound digit by digit and wants as many
//! decimals as the bound has where those before are its own: 0.9 is no number up to 0.95 for it.

use super::convert::{and_all, Fields};
use serde_json::{json, Value};

/// Adds a bound of "maximum" and "exclusiveMaximum" above 0, "minimum" and "exclusiveMinimum" below it,
/// and with it the shorter numbers that the bound begins with: "maximum": 2.25 also as 2.2.
pub fn bound(keyword: &str, value: &Value, out: &mut Fields) {
    let shorter = match value.as_f64() {
        Some(number) if keyword.to_ascii_lowercase().ends_with("maximum") == (number > 0.0) => {
            beginnings(number)
        }
        _ => Vec::new(),
    };
    if shorter.is_empty() {
        out.insert(keyword.into(), value.clone());
        return;
    }
    // What is shorter is nearer to 0, and so within an exclusive bound, too.
    let inclusive = match keyword.to_ascii_lowercase().ends_with("maximum") {
        true => "maximum",
        false => "minimum",
    };
    let mut options = vec![json!({ keyword: value })];
    options.extend(shorter.into_iter().map(|one| json!({ inclusive: one })));
    and_all(out, vec![json!({ "anyOf": options })]);
}

/// 2.253 gives 2.25 and 2.2; numbers of at most one decimal none.
fn beginnings(number: f64) -> Vec<f64> {
    const MOST: usize = 8;
    let text = format!("{number}");
    let Some((_, decimals)) = text.split_once('.') else {
        return Vec::new();
    };
    let cuts = 1..decimals.len().min(MOST);
    let shorter = cuts.map(|cut| &text[..text.len() - cut]);
    shorter
        .filter_map(|one| one.parse().ok())
        .filter(|one| *one != 0.0)
        .collect()
}
