//! A form within the channel of gpt-oss's messages that is the answer.

use super::vocabulary::FtGrammarEnv;

/// The header of the answer, which ends the reasoning.
pub const FINAL: &str = "<|channel|>final<|message|>";

/// The rules of what stands before a form, where the prompt ends with the role: perhaps a message of
/// reasoning, then the header, whose type of content may be named. What a model could repeat without
/// end is bounded, so that it comes to the form. `start` ends with the form.
pub fn rules(env: &FtGrammarEnv, form: &str) -> String {
    let marker = |name: &str| match env.special(name) {
        Some(id) => format!("<[{id}]>"),
        None => format!("\"{name}\""),
    };
    let (channel, message, start) = (
        marker("<|channel|>"),
        marker("<|message|>"),
        marker("<|start|>"),
    );
    let constrain = marker("<|constrain|>");
    let body = match env.special("<|end|>") {
        Some(id) => format!("thought: TEXT? <[{id}]>\nTEXT: /(?s:.+)/\n"),
        None => "thought[lazy]: /(?s:.*)<\\|end\\|>/\n".to_string(),
    };
    format!(
        "start: reasoning? {channel} \"final\" (BLANK? {constrain} TYPE)? {message} @{form}\n\
         reasoning: {channel} \"analysis\" {message} thought {start} \"assistant\"\n\
         BLANK: \" \"\nTYPE: /[A-Za-z]{{1,12}}/\n{body}"
    )
}
