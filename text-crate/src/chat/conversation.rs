//! What transformers does to messages before and after a template.

use super::python;
use crate::ffi::{Failure, Outcome};
use serde_json::Value as Json;

const REASONING_FIELDS: [&str; 3] = ["reasoning_content", "thinking", "reasoning"];
const MARK: &str = "CONTINUE_FINAL_MESSAGE_TAG ";

/// A message's reasoning goes by several names; templates read one of two.
pub fn alias_reasoning(messages: &mut [Json]) {
    for message in messages.iter_mut().filter_map(Json::as_object_mut) {
        let known = |name: &&str| message.get(*name).filter(|value| !value.is_null()).cloned();
        let Some(reasoning) = REASONING_FIELDS.iter().find_map(known) else {
            continue;
        };
        let rest = std::mem::take(message);
        message.insert("thinking".into(), reasoning.clone());
        message.extend(rest);
        message.insert("reasoning_content".into(), reasoning);
    }
}

/// Marks the end of the last message's text, which is returned.
pub fn mark_end(messages: &mut [Json]) -> Outcome<String> {
    let last = messages.last_mut().ok_or_else(|| {
        Failure::new("continue_final_message is set but the conversation is empty")
    })?;
    let text = match last.get_mut("content") {
        Some(Json::String(text)) => Some(text),
        Some(Json::Array(parts)) => {
            parts
                .iter_mut()
                .rev()
                .find_map(|part| match part.get_mut("text") {
                    Some(Json::String(text)) => Some(text),
                    _ => None,
                })
        }
        _ => None,
    };
    let text = text.ok_or_else(|| {
        Failure::new("continue_final_message is set but the final message has no text to continue")
    })?;
    let whole = text.clone();
    text.push_str(MARK);
    Ok(whole)
}

/// The rendering up to the mark.
pub fn cut_at_mark(mut rendered: String, last_text: &str) -> Outcome<String> {
    let shown = rendered.contains(last_text.trim_matches(python::is_space));
    let Some(at) = rendered.rfind(MARK.trim_end()).filter(|_| shown) else {
        return Err(Failure::new(
            "continue_final_message is set but the chat template does not show the end of the \
             final message; send another message instead",
        ));
    };
    let kept = match rendered[at..].starts_with(MARK) {
        true => at,
        false => rendered[..at].trim_end_matches(python::is_space).len(),
    };
    rendered.truncate(kept);
    Ok(rendered)
}
