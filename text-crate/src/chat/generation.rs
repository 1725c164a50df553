//! `{% generation %} ... {% endgeneration %}` marks the assistant's tokens for training.

/// Replaces the markers by blocks without effect, so that whitespace control stays as written.
pub fn without_markers(source: &str) -> String {
    let mut out = String::with_capacity(source.len());
    let mut rest = source;
    while let Some(start) = rest.find("{%") {
        let (before, tag) = rest.split_at(start + 2);
        out.push_str(before);
        rest = tag;
        let Some(end) = tag.find("%}") else { break };
        let word = tag[..end].trim_matches(|c: char| c.is_whitespace() || c == '-' || c == '+');
        let replacement = match word {
            "generation" => "if true",
            "endgeneration" => "endif",
            _ => continue,
        };
        out.push_str(&tag[..end].replacen(word, replacement, 1));
        rest = &tag[end..];
    }
    out.push_str(rest);
    out
}
