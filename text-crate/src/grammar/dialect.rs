//! Regexes as Python's re and ECMAScript read them, in the syntax of Rust.

use regex_syntax::hir::Look;
use std::borrow::Cow;

/// A regex that Rust's syntax takes stays as it is. Of others a bracket within a class, a hyphen beside
/// a class such as \w, a brace that repeats nothing and escapes without a meaning in Rust become what
/// they are elsewhere: `[^[\]]`, `[\w-.]`, `{"a": \d}`, `\Z`. What is wrong there, too, stays as well.
pub fn plain(regex: &str) -> Cow<'_, str> {
    if is_taken(regex) {
        return Cow::Borrowed(regex);
    }
    let written = Writer::new(regex).written();
    match is_taken(&written) {
        true => Cow::Owned(written),
        false => Cow::Borrowed(regex),
    }
}

/// `\<` and `\>` are ends of words in Rust, and letters elsewhere.
fn is_taken(regex: &str) -> bool {
    let words = [Look::WordStartUnicode, Look::WordEndUnicode];
    regex_syntax::parse(regex).is_ok_and(|parsed| {
        let looks = parsed.properties().look_set();
        !words.into_iter().any(|look| looks.contains(look))
    })
}

struct Writer<'a> {
    rest: &'a str,
    out: String,
}

impl<'a> Writer<'a> {
    fn new(regex: &'a str) -> Writer<'a> {
        Writer {
            rest: regex,
            out: String::new(),
        }
    }

    fn written(mut self) -> String {
        while let Some(c) = self.take() {
            match c {
                '\\' => drop(self.escape(false)),
                '[' => self.class(),
                '{' => self.brace(),
                c => self.out.push(c),
            }
        }
        self.out
    }

    fn take(&mut self) -> Option<char> {
        let c = self.rest.chars().next()?;
        self.rest = &self.rest[c.len_utf8()..];
        Some(c)
    }

    fn take_text(&mut self, text: &str) -> bool {
        match self.rest.strip_prefix(text) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    /// Where `text` of ASCII begins among the next bytes: names and counts are short, and each bracket of
    /// a regex that has none behind it would look through all that follows.
    fn find_near(&self, text: &str) -> Option<usize> {
        const MOST: usize = 64;
        let mut places = self.rest.as_bytes().windows(text.len()).take(MOST);
        places.position(|place| place == text.as_bytes())
    }

    /// What is behind a backslash; whether it stands for several letters, as \w does.
    fn escape(&mut self, in_class: bool) -> bool {
        let Some(c) = self.take() else {
            self.out.push('\\');
            return false;
        };
        let digit = self.rest.starts_with(|next: char| next.is_ascii_digit());
        let letter = self.rest.chars().next().filter(char::is_ascii_alphabetic);
        match (c, letter) {
            ('Z', _) if !in_class => self.out.push_str("\\z"),
            ('b', _) if in_class => self.code(8),
            ('e', _) => self.code(27),
            ('0', _) if !digit => self.code(0),
            ('c', Some(letter)) => {
                self.take();
                self.code(letter as u32 % 32);
            }
            ('<' | '>', _) => self.out.push(c),
            _ => {
                self.out.push('\\');
                self.out.push(c);
                // Of \x{41} and \p{L} the brace is a part.
                let named = matches!(c, 'p' | 'P' | 'x' | 'u' | 'U') && self.rest.starts_with('{');
                if let Some(end) = self.find_near("}").filter(|_| named) {
                    self.out.push_str(&self.rest[..=end]);
                    self.rest = &self.rest[end + 1..];
                }
            }
        }
        matches!(c, 'd' | 'D' | 'w' | 'W' | 's' | 'S' | 'p' | 'P')
    }

    fn code(&mut self, code: u32) {
        self.out.push_str(&format!("\\x{code:02x}"));
    }

    /// Behind its bracket. A bracket that comes first is of the class, as in Python.
    fn class(&mut self) {
        self.out.push('[');
        if self.take_text("^") {
            self.out.push('^');
        }
        if self.take_text("]") {
            self.out.push_str("\\]");
        }
        while let Some(c) = self.take() {
            let mut several = false;
            match c {
                ']' => {
                    self.out.push(']');
                    return;
                }
                '\\' => several = self.escape(true),
                '[' if self.take_named() => several = true,
                '[' | '&' | '~' | '-' => {
                    self.out.push('\\');
                    self.out.push(c);
                }
                c => self.out.push(c),
            }
            self.hyphen(several);
        }
    }

    /// [:alpha:] and the like, behind the first bracket.
    fn take_named(&mut self) -> bool {
        let Some(end) = self.find_near(":]").filter(|_| self.rest.starts_with(':')) else {
            return false;
        };
        self.out.push('[');
        self.out.push_str(&self.rest[..end + 2]);
        self.rest = &self.rest[end + 2..];
        true
    }

    /// A hyphen that makes a range: between two letters, and not last.
    fn hyphen(&mut self, several: bool) {
        let mut next = self.rest.strip_prefix('-').unwrap_or("").chars();
        let to = next.next();
        let class_behind = to == Some('\\') && next.next().is_some_and(|c| "dDwWsSpP".contains(c));
        if several || class_behind || to.is_none_or(|c| c == ']') || !self.take_text("-") {
            return;
        }
        self.out.push('-');
        if self.take_text("\\") {
            self.escape(true);
        } else if let Some(c) = self.take() {
            if "[&~-".contains(c) {
                self.out.push('\\');
            }
            self.out.push(c);
        }
    }

    /// A brace, of a repetition or not.
    fn brace(&mut self) {
        let inner = self.find_near("}").map(|end| &self.rest[..end]);
        let is_number = |text: &str| text.chars().all(|c| c.is_ascii_digit());
        let counts = inner.map(|inner| inner.split_once(',').unwrap_or((inner, "")));
        match counts {
            Some((least, most)) if is_number(least) && is_number(most) && inner != Some("") => {
                self.out.push('{');
                if least.is_empty() {
                    self.out.push('0');
                }
            }
            _ => self.out.push_str("\\{"),
        }
    }
}
