//! What Python's `str` says and makes of the kinds and cases of letters.

use super::python;

fn capitalize(word: &str) -> String {
    let mut characters = word.chars();
    match characters.next() {
        Some(first) => titled(first) + &characters.as_str().to_lowercase(),
        None => String::new(),
    }
}

/// One letter in title case.
fn titled(c: char) -> String {
    match c {
        'ß' => "Ss".into(),
        'ǆ' | 'ǅ' => "ǅ".into(),
        'ǉ' | 'ǈ' => "ǈ".into(),
        'ǌ' | 'ǋ' => "ǋ".into(),
        'ǳ' | 'ǲ' => "ǲ".into(),
        'ﬀ'..='ﬆ' => capitalize_letters(&c.to_uppercase().to_string()),
        _ => c.to_uppercase().collect(),
    }
}

fn capitalize_letters(upper: &str) -> String {
    let mut characters = upper.chars();
    let first = characters.next().map(String::from).unwrap_or_default();
    first + &characters.as_str().to_lowercase()
}

fn is_cased(c: char) -> bool {
    c.is_lowercase() || c.is_uppercase()
}

fn title(value: &str) -> String {
    let (mut out, mut inside) = (String::new(), false);
    for c in value.chars() {
        if inside {
            out.extend(c.to_lowercase());
        } else {
            out.push_str(&titled(c));
        }
        inside = is_cased(c);
    }
    out
}

pub fn cased(value: &str, name: &str) -> Option<String> {
    Some(match name {
        "upper" => value.to_uppercase(),
        "lower" => value.to_lowercase(),
        "casefold" => value.to_lowercase().replace('ß', "ss"),
        "capitalize" => capitalize(value),
        "title" => title(value),
        "swapcase" => value
            .chars()
            .flat_map(|c| -> Vec<char> {
                match c.is_uppercase() {
                    true => c.to_lowercase().collect(),
                    false => c.to_uppercase().collect(),
                }
            })
            .collect(),
        _ => return None,
    })
}

/// The zeros of Unicode's decimal digits, each followed by its one to nine.
const ZEROS: &[u32] = &[
    0x30, 0x660, 0x6f0, 0x7c0, 0x966, 0x9e6, 0xa66, 0xae6, 0xb66, 0xbe6, 0xc66, 0xce6, 0xd66,
    0xde6, 0xe50, 0xed0, 0xf20, 0x1040, 0x1090, 0x17e0, 0x1810, 0x1946, 0x19d0, 0x1a80, 0x1a90,
    0x1b50, 0x1bb0, 0x1c40, 0x1c50, 0xa620, 0xa8d0, 0xa900, 0xa9d0, 0xa9f0, 0xaa50, 0xabf0, 0xff10,
    0x104a0, 0x11066, 0x1d7ce, 0x1d7d8, 0x1d7e2, 0x1d7ec, 0x1d7f6, 0x1fbf0,
];

fn is_decimal(c: char) -> bool {
    ZEROS
        .iter()
        .any(|zero| (*zero..zero + 10).contains(&(c as u32)))
}

/// Raised, lowered and circled digits.
fn is_other_digit(c: char) -> bool {
    matches!(c, '²' | '³' | '¹' | '⁰' | '⁴'..='⁹' | '₀'..='₉' | '①'..='⑨' | '⓪')
}

pub fn is(value: &str, name: &str) -> bool {
    let all = |test: fn(char) -> bool| !value.is_empty() && value.chars().all(test);
    let any_cased = value.chars().any(is_cased);
    match name {
        "isascii" => value.is_ascii(),
        "isspace" => all(python::is_space),
        "isalpha" => all(char::is_alphabetic),
        "isalnum" => all(char::is_alphanumeric),
        "isnumeric" => all(char::is_numeric),
        "isdigit" => all(|c| is_decimal(c) || is_other_digit(c)),
        "isdecimal" => all(is_decimal),
        "islower" => any_cased && !value.chars().any(char::is_uppercase),
        "isupper" => any_cased && !value.chars().any(char::is_lowercase),
        "istitle" => any_cased && title(value) == *value,
        "isidentifier" => {
            let mut characters = value.chars();
            let letter = |c: char| c == '_' || c.is_alphabetic();
            characters.next().is_some_and(letter)
                && characters.all(|c| letter(c) || c.is_alphanumeric())
        }
        _ => value
            .chars()
            .all(|c| !c.is_control() && (c == ' ' || !c.is_whitespace())),
    }
}
