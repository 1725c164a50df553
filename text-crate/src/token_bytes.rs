//! The bytes that one token stands for, whatever stands around it.

use serde_json::Value;

/// What the decoder of a tokenizer.json does to a single token.
#[derive(Default)]
pub struct TokenBytes {
    byte_level: bool,
    byte_fallback: bool,
    replacements: Vec<(String, String)>,
    continuation: Option<String>,
}

impl TokenBytes {
    pub fn new(decoder: &Value) -> TokenBytes {
        let mut bytes = TokenBytes::default();
        bytes.learn(decoder);
        bytes
    }

    fn learn(&mut self, decoder: &Value) {
        let text = |name: &str| decoder[name].as_str().map(String::from);
        match decoder["type"].as_str() {
            Some("Sequence") => {
                for part in decoder["decoders"].as_array().into_iter().flatten() {
                    self.learn(part);
                }
            }
            Some("ByteLevel") => self.byte_level = true,
            Some("ByteFallback") => self.byte_fallback = true,
            Some("Metaspace") => {
                let mark = text("replacement").unwrap_or_else(|| "\u{2581}".into());
                self.replacements.push((mark, " ".into()));
            }
            Some("Replace") => {
                let pattern = decoder["pattern"]["String"].as_str();
                if let (Some(pattern), Some(content)) = (pattern, text("content")) {
                    self.replacements.push((pattern.into(), content));
                }
            }
            Some("WordPiece") => self.continuation = text("prefix"),
            _ => {}
        }
    }

    /// Whether a text is the bytes of its tokens, one after the other, and nothing else matters.
    pub fn only_joins(decoder: &Value) -> bool {
        match decoder["type"].as_str() {
            Some("ByteLevel") => true,
            Some("Sequence") => decoder["decoders"]
                .as_array()
                .is_some_and(|parts| parts.len() == 1 && TokenBytes::only_joins(&parts[0])),
            _ => false,
        }
    }

    /// The byte of a token such as `<0x0A>`, which the decoder joins with its neighbours.
    pub fn fallback_byte(&self, token: &str) -> Option<u8> {
        let is_byte = self.byte_fallback
            && token.len() == 6
            && token.starts_with("<0x")
            && token.ends_with('>');
        if !is_byte {
            return None;
        }
        u8::from_str_radix(token.get(3..5)?, 16).ok()
    }

    pub fn of(&self, token: String) -> Vec<u8> {
        if let Some(byte) = self.fallback_byte(&token) {
            return vec![byte];
        }
        if self.byte_level {
            if let Some(bytes) = token.chars().map(byte_of).collect() {
                return bytes;
            }
        }
        let mut text = token;
        if let Some(prefix) = &self.continuation {
            text = match text.strip_prefix(prefix.as_str()) {
                Some(rest) => rest.to_string(),
                None => text,
            };
        }
        for (pattern, content) in &self.replacements {
            text = text.replace(pattern.as_str(), content);
        }
        text.into_bytes()
    }
}

/// GPT-2's table backwards: printable characters stand for themselves, the other bytes for U+0100 on.
fn byte_of(c: char) -> Option<u8> {
    let prints = |byte: u8| matches!(byte, b'!'..=b'~' | 0xa1..=0xac | 0xae..=0xff);
    let code = c as u32;
    match u8::try_from(code) {
        Ok(byte) => prints(byte).then_some(byte),
        Err(_) => (0..=255u8)
            .filter(|byte| !prints(*byte))
            .nth(code as usize - 0x100),
    }
}
