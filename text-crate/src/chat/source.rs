//! From the source of a template to its syntax tree.

use super::budget::{Broken, Outcome};
use minijinja::machinery::{ast::Stmt, parse, tokenize, Token, WhitespaceConfig};
use minijinja::syntax::SyntaxConfig;

/// A parsed template together with the text that its tree points into.
pub struct Parsed {
    // Borrows from `source`: dropped before it, and lent out no longer than `self` lives.
    tree: Stmt<'static>,
    source: Box<str>,
}

const WHITESPACE: WhitespaceConfig = WhitespaceConfig {
    keep_trailing_newline: false,
    lstrip_blocks: true,
    trim_blocks: true,
};

/// What recursion over the tree, in parsing and freeing too, can bear.
const MAX_TOKENS_OF_A_TAG: usize = 5000;
const MAX_ELIFS: usize = 1000;
const MAX_SOURCE: usize = 4 << 20;

const NAME: &str = "chat template";

fn syntax_error(error: minijinja::Error) -> Broken {
    Broken {
        message: match error.detail() {
            Some(detail) => format!("syntax error: {detail}"),
            None => error.kind().to_string(),
        },
        refused: false,
        line: error.line().map(|line| line as u32),
    }
}

fn too_complex(line: u32) -> Broken {
    Broken {
        message: "the template is too large or too complex".into(),
        refused: false,
        line: Some(line),
    }
}

/// Refuses what would overflow the stack of the parser.
fn check_size(source: &str) -> Outcome<()> {
    if source.len() > MAX_SOURCE {
        return Err(too_complex(1));
    }
    let (mut in_tag, mut elifs) = (0, 0);
    for token in tokenize(source, false, SyntaxConfig, WHITESPACE) {
        let (token, span) = token.map_err(syntax_error)?;
        in_tag = match token {
            Token::VariableStart | Token::BlockStart | Token::TemplateData(_) => 0,
            _ => in_tag + 1,
        };
        elifs += usize::from(matches!(token, Token::Ident("elif")));
        if in_tag > MAX_TOKENS_OF_A_TAG || elifs > MAX_ELIFS {
            return Err(too_complex(span.start_line.into()));
        }
    }
    Ok(())
}

/// `{% generation %} ... {% endgeneration %}` marks the assistant's tokens for training; here it is
/// a scope and nothing else. Whitespace control stays as written.
fn without_generation_markers(source: &str) -> String {
    let mut out = String::with_capacity(source.len());
    let mut rest = source;
    while let Some(start) = rest.find("{%") {
        let (before, tag) = rest.split_at(start + 2);
        out.push_str(before);
        rest = tag;
        let Some(end) = tag.find("%}") else { break };
        let word = tag[..end].trim_matches(|c: char| c.is_whitespace() || c == '-' || c == '+');
        let replacement = match word {
            "generation" => "with",
            "endgeneration" => "endwith",
            _ => continue,
        };
        out.push_str(&tag[..end].replacen(word, replacement, 1));
        rest = &tag[end..];
    }
    out.push_str(rest);
    out
}

impl Parsed {
    pub fn new(source: &str) -> Outcome<Parsed> {
        // Jinja reads every kind of line end as one.
        let source = source.replace("\r\n", "\n").replace('\r', "\n");
        let source = without_generation_markers(&source).into_boxed_str();
        check_size(&source)?;
        // The tree points into the heap block of `source`, which moves of the box leave in place.
        let text: &'static str = unsafe { &*std::ptr::from_ref::<str>(&source) };
        let tree = parse(text, NAME, SyntaxConfig, WHITESPACE).map_err(syntax_error)?;
        Ok(Parsed { tree, source })
    }

    pub fn tree(&self) -> &Stmt<'_> {
        &self.tree
    }

    pub fn source(&self) -> &str {
        &self.source
    }
}
