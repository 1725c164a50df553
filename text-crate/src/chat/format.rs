//! Python's `%` and `str.format`.

use super::budget::{self, Broken, Outcome};
use super::ops;
use super::python;
use super::value::{Entries, Value};

/// How one value is laid out: `[[fill]align][sign][#][0][width][,][.precision][type]`.
#[derive(Default)]
struct Spec {
    fill: Option<char>,
    align: Option<char>,
    sign: Option<char>,
    alternate: bool,
    width: usize,
    grouped: bool,
    precision: Option<usize>,
    kind: Option<char>,
}

fn digits(text: &[char], at: &mut usize) -> Option<usize> {
    let start = *at;
    while text.get(*at).is_some_and(char::is_ascii_digit) {
        *at += 1;
    }
    let number: String = text[start..*at].iter().collect();
    (start < *at).then(|| number.parse().unwrap_or(usize::MAX))
}

fn bad_spec() -> Broken {
    Broken::new("Invalid format specifier")
}

impl Spec {
    fn parse(text: &str) -> Outcome<Spec> {
        let text: Vec<char> = text.chars().collect();
        let mut spec = Spec::default();
        let mut at = 0;
        let is_align = |c: Option<&char>| c.is_some_and(|c| "<>^=".contains(*c));
        if is_align(text.get(1)) {
            (spec.fill, spec.align, at) = (Some(text[0]), Some(text[1]), 2);
        } else if is_align(text.first()) {
            (spec.align, at) = (Some(text[0]), 1);
        }
        if let Some(sign) = text.get(at).filter(|c| "+- ".contains(**c)) {
            spec.sign = Some(*sign);
            at += 1;
        }
        if text.get(at) == Some(&'#') {
            spec.alternate = true;
            at += 1;
        }
        if text.get(at) == Some(&'0') && spec.align.is_none() {
            (spec.fill, spec.align) = (Some('0'), Some('='));
        }
        spec.width = digits(&text, &mut at).unwrap_or(0);
        if text.get(at) == Some(&',') {
            spec.grouped = true;
            at += 1;
        }
        if text.get(at) == Some(&'.') {
            at += 1;
            spec.precision = Some(digits(&text, &mut at).ok_or_else(bad_spec)?);
        }
        spec.kind = text.get(at).copied();
        if text.len() > at + 1 {
            return Err(bad_spec());
        }
        Ok(spec)
    }

    fn pad(&self, sign: &str, body: &str, default_align: char) -> Outcome<String> {
        let length = sign.chars().count() + body.chars().count();
        let missing = self.width.saturating_sub(length);
        budget::reserve(missing.saturating_mul(4))?;
        let fill = |count: usize| self.fill.unwrap_or(' ').to_string().repeat(count);
        Ok(match self.align.unwrap_or(default_align) {
            '<' => format!("{sign}{body}{}", fill(missing)),
            '^' => format!(
                "{}{sign}{body}{}",
                fill(missing / 2),
                fill(missing - missing / 2)
            ),
            '=' => format!("{sign}{}{body}", fill(missing)),
            _ => format!("{}{sign}{body}", fill(missing)),
        })
    }

    fn signed(&self, negative: bool) -> &'static str {
        match (negative, self.sign) {
            (true, _) => "-",
            (_, Some('+')) => "+",
            (_, Some(' ')) => " ",
            _ => "",
        }
    }

    fn text(&self, text: &str) -> Outcome<String> {
        let cut: String = match self.precision {
            Some(length) => text.chars().take(length).collect(),
            None => text.to_string(),
        };
        self.pad("", &cut, '<')
    }

    fn whole(&self, number: i128) -> Outcome<String> {
        let size = number.unsigned_abs();
        let (prefix, body) = match self.kind {
            Some('x') => ("0x", format!("{size:x}")),
            Some('X') => ("0X", format!("{size:X}")),
            Some('o') => ("0o", format!("{size:o}")),
            Some('b') => ("0b", format!("{size:b}")),
            Some('c') => {
                let c = char::from_u32(u32::try_from(size).unwrap_or(u32::MAX));
                return self.pad("", &c.ok_or_else(bad_spec)?.to_string(), '<');
            }
            _ => ("", size.to_string()),
        };
        let prefix = if self.alternate { prefix } else { "" };
        let body = if self.grouped { grouped(&body) } else { body };
        self.pad(&format!("{}{prefix}", self.signed(number < 0)), &body, '>')
    }

    fn real(&self, number: f64) -> Outcome<String> {
        let size = number.abs();
        let precision = self.precision.unwrap_or(6);
        budget::reserve(precision)?;
        let body = match self.kind {
            Some('f' | 'F') => format!("{size:.precision$}"),
            Some('%') => format!("{:.precision$}%", size * 100.0),
            Some('e') => exponent(&format!("{size:.precision$e}")),
            Some('E') => exponent(&format!("{size:.precision$e}")).to_uppercase(),
            Some('g' | 'G') => general(size, precision.max(1)),
            _ if self.precision.is_some() => with_fraction(general(size, precision.max(1))),
            _ => python::float(size),
        };
        let body = match (self.grouped, body.split_once('.')) {
            (true, Some((whole, rest))) => format!("{}.{rest}", grouped(whole)),
            (true, None) => grouped(&body),
            _ => body,
        };
        self.pad(self.signed(number.is_sign_negative()), &body, '>')
    }

    fn apply(&self, value: &Value) -> Outcome<String> {
        match (value, self.kind) {
            (Value::Str(text), None | Some('s')) => self.text(text),
            (Value::Float(number), None | Some('f' | 'F' | 'e' | 'E' | 'g' | 'G' | '%')) => {
                self.real(*number)
            }
            (Value::Int(number), None | Some('d' | 'x' | 'X' | 'o' | 'b' | 'c' | 'n')) => {
                self.whole(*number)
            }
            (Value::Bool(flag), Some('d' | 'x' | 'X' | 'o' | 'b')) => self.whole((*flag).into()),
            (Value::Bool(flag), None) if self.width > 0 => self.whole((*flag).into()),
            (Value::Int(_) | Value::Bool(_), Some('f' | 'F' | 'e' | 'E' | 'g' | 'G' | '%')) => {
                self.real(value.as_float().unwrap_or(0.0))
            }
            (Value::Bool(_), None) => self.text(&python::to_str(value)),
            _ => Err(Broken::new(format!(
                "unsupported format string passed to {}.__format__",
                value.type_name()
            ))),
        }
    }
}

fn grouped(whole: &str) -> String {
    let mut out = String::new();
    for (index, digit) in whole.chars().enumerate() {
        if index > 0 && (whole.len() - index) % 3 == 0 {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// Rust's `1e5` as Python's `1e+05`.
fn exponent(text: &str) -> String {
    let Some((mantissa, power)) = text.split_once('e') else {
        return text.to_string();
    };
    let (sign, power) = match power.strip_prefix('-') {
        Some(power) => ('-', power),
        None => ('+', power),
    };
    format!("{mantissa}e{sign}{power:0>2}")
}

fn without_trailing_zeros(text: &str) -> &str {
    if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.')
    } else {
        text
    }
}

fn general(size: f64, precision: usize) -> String {
    let scientific = format!("{size:.*e}", precision - 1);
    let (mantissa, power) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let power_value: i64 = power.parse().unwrap_or(0);
    if size != 0.0 && (power_value < -4 || power_value >= precision as i64) {
        return exponent(&format!("{}e{power}", without_trailing_zeros(mantissa)));
    }
    let decimals = (precision as i64 - 1 - power_value).max(0) as usize;
    without_trailing_zeros(&format!("{size:.decimals$}")).to_string()
}

fn with_fraction(text: String) -> String {
    if text.contains(['.', 'e']) {
        text
    } else {
        text + ".0"
    }
}

/// The arguments of `str.format` as its fields name them.
struct Fields<'a> {
    positional: &'a [Value],
    named: &'a Entries,
    next: usize,
}

impl Fields<'_> {
    fn first(&mut self, name: &str) -> Outcome<Value> {
        let missing = || Broken::new(format!("str.format has no argument for '{{{name}}}'"));
        if name.is_empty() || name.bytes().all(|b| b.is_ascii_digit()) {
            let at = name.parse().unwrap_or(self.next);
            self.next += usize::from(name.is_empty());
            return self.positional.get(at).cloned().ok_or_else(missing);
        }
        self.named.get(name).cloned().ok_or_else(missing)
    }

    /// `name`, then any number of `.attribute` and `[index]`.
    fn find(&mut self, field: &str) -> Outcome<Value> {
        let end = field.find(['.', '[']).unwrap_or(field.len());
        let mut value = self.first(&field[..end])?;
        let mut rest = &field[end..];
        while !rest.is_empty() {
            let close = rest.find(']').filter(|_| rest.starts_with('['));
            let close =
                close.ok_or_else(|| Broken::new("str.format reaches no attributes here"))?;
            let name = &rest[1..close];
            let index = name.parse().map_or_else(|_| Value::str(name), Value::Int);
            value = ops::item(&value, &index)
                .ok_or_else(|| Broken::new(format!("str.format finds no '{name}'")))?;
            rest = &rest[close + 1..];
        }
        Ok(value)
    }

    fn replacement(&mut self, inside: &str) -> Outcome<String> {
        let (field, spec) = inside.split_once(':').unwrap_or((inside, ""));
        let (name, conversion) = field.split_once('!').unwrap_or((field, ""));
        let mut value = self.find(name)?;
        match conversion {
            "" => {}
            "s" => value = Value::str(python::to_str(&value)),
            "r" | "a" => value = Value::str(repr(&value)),
            _ => return Err(Broken::new("unknown conversion in str.format")),
        }
        if spec.is_empty() {
            return Ok(python::to_str(&value));
        }
        let spec = if spec.contains('{') {
            self.format(spec)?
        } else {
            spec.to_string()
        };
        Spec::parse(&spec)?.apply(&value)
    }

    fn format(&mut self, pattern: &str) -> Outcome<String> {
        let mut out = String::new();
        let mut rest = pattern;
        while let Some(at) = rest.find(['{', '}']) {
            out.push_str(&rest[..at]);
            let brace = &rest[at..at + 1];
            rest = &rest[at + 1..];
            if let Some(after) = rest.strip_prefix(brace) {
                out.push_str(brace);
                rest = after;
                continue;
            }
            if brace == "}" {
                return Err(Broken::new("Single '}' encountered in format string"));
            }
            let end = matching_brace(rest)
                .ok_or_else(|| Broken::new("expected '}' before end of string"))?;
            let piece = self.replacement(&rest[..end])?;
            budget::room(out.len() + piece.len())?;
            out.push_str(&piece);
            rest = &rest[end + 1..];
        }
        out.push_str(rest);
        Ok(out)
    }
}

fn matching_brace(text: &str) -> Option<usize> {
    let mut depth = 0;
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'{' => depth += 1,
            b'}' if depth == 0 => return Some(at),
            b'}' => depth -= 1,
            _ => {}
        }
        if depth > 2 {
            return None;
        }
    }
    None
}

pub fn braces(pattern: &str, positional: &[Value], named: &Entries) -> Outcome<String> {
    let mut fields = Fields {
        positional,
        named,
        next: 0,
    };
    fields.format(pattern)
}

fn repr(value: &Value) -> String {
    let mut out = String::new();
    python::write_repr(&mut out, value);
    out
}

fn number_needed(kind: char, value: &Value) -> Broken {
    Broken::new(format!(
        "%{kind} format: a real number is required, not {}",
        value.type_name()
    ))
}

fn convert(kind: char, spec: &Spec, value: &Value) -> Outcome<String> {
    match kind {
        's' => spec.text(&python::to_str(value)),
        'r' | 'a' => spec.text(&repr(value)),
        'd' | 'i' | 'u' => match value {
            Value::Float(number) => spec.whole(number.trunc() as i128),
            _ => spec.whole(value.as_int().ok_or_else(|| number_needed(kind, value))?),
        },
        'x' | 'X' | 'o' | 'c' => match value {
            Value::Str(text) if kind == 'c' => spec.text(text),
            _ => spec.whole(value.as_int().ok_or_else(|| number_needed(kind, value))?),
        },
        'f' | 'F' | 'e' | 'E' | 'g' | 'G' => {
            spec.real(value.as_float().ok_or_else(|| number_needed(kind, value))?)
        }
        _ => Err(Broken::new(format!(
            "unsupported format character '{kind}'"
        ))),
    }
}

/// One `%` directive: flags, width, precision and letter, from `text[*at]` on.
fn directive(text: &[char], at: &mut usize) -> Outcome<(Spec, char)> {
    let mut spec = Spec {
        align: Some('>'),
        ..Spec::default()
    };
    while let Some(flag) = text.get(*at).filter(|c| "-+ #0".contains(**c)) {
        match flag {
            '-' => (spec.align, spec.fill) = (Some('<'), None),
            '#' => spec.alternate = true,
            '0' if spec.align != Some('<') => (spec.align, spec.fill) = (Some('='), Some('0')),
            '0' => {}
            sign => spec.sign = Some(*sign),
        }
        *at += 1;
    }
    spec.width = digits(text, at).unwrap_or(0);
    if text.get(*at) == Some(&'.') {
        *at += 1;
        spec.precision = Some(digits(text, at).unwrap_or(0));
    }
    let kind = *text
        .get(*at)
        .ok_or_else(|| Broken::new("incomplete format"))?;
    *at += 1;
    if matches!(kind, 's' | 'r' | 'a') && spec.align == Some('=') {
        (spec.align, spec.fill) = (Some('>'), None);
    }
    spec.kind = Some(kind);
    Ok((spec, kind))
}

/// `pattern % values`.
pub fn percent(pattern: &str, values: &Value) -> Outcome<String> {
    let text: Vec<char> = pattern.chars().collect();
    let single = [values.clone()];
    let values_list: &[Value] = match values {
        Value::Tuple(items) => items,
        _ => &single,
    };
    let (mut out, mut at, mut used, mut by_name) = (String::new(), 0, 0, false);
    while at < text.len() {
        let c = text[at];
        at += 1;
        if c != '%' {
            out.push(c);
            continue;
        }
        let mut named = None;
        if text.get(at) == Some(&'(') {
            let end = text[at..].iter().position(|c| *c == ')');
            let end = at + end.ok_or_else(|| Broken::new("incomplete format key"))?;
            named = Some(text[at + 1..end].iter().collect::<String>());
            at = end + 1;
        }
        let (spec, kind) = directive(&text, &mut at)?;
        if kind == '%' {
            out.push('%');
            continue;
        }
        let value = match &named {
            Some(name) => {
                by_name = true;
                ops::item(values, &Value::str(name.as_str()))
                    .ok_or_else(|| Broken::new(format!("format has no value named '{name}'")))?
            }
            None => {
                used += 1;
                let value = values_list.get(used - 1).cloned();
                value.ok_or_else(|| Broken::new("not enough arguments for format string"))?
            }
        };
        let piece = convert(kind, &spec, &value)?;
        budget::room(out.len() + piece.len())?;
        out.push_str(&piece);
    }
    let leftover = used < values_list.len() && !by_name;
    if leftover && !matches!(values, Value::Dict(_) | Value::List(_)) {
        return Err(Broken::new(
            "not all arguments converted during string formatting",
        ));
    }
    Ok(out)
}
