//! A form that begins where the reasoning before it ends.

use super::gbnf::Tokens;
use super::harmony;
use super::vocabulary::FtGrammarEnv;
use llguidance::api::{GrammarWithLexer, TopLevelGrammar};

/// What ends the reasoning; without any, there is none.
pub struct Reasoning {
    pub ends: Vec<String>,
    /// White space may stand between the end and the form.
    pub space: bool,
}

impl Reasoning {
    /// `form` behind free text that runs up to the first end. The form stays a grammar of its own, so
    /// that it means what it means alone.
    pub fn before(&self, mut form: TopLevelGrammar, env: &FtGrammarEnv) -> TopLevelGrammar {
        const NAME: &str = "form";
        if self.ends.is_empty() {
            return form;
        }
        if let Some(first) = form.grammars.first_mut() {
            first.name = Some(NAME.into());
        }
        if self.ends == [harmony::FINAL] {
            return behind(harmony::rules(env, NAME), form);
        }
        let (tokens, texts): (Vec<&String>, Vec<&String>) =
            self.ends.iter().partition(|end| env.special(end).is_some());
        let mut ways: Vec<String> = Vec::new();
        let mut lark = String::new();
        if !texts.is_empty() {
            let escaped: Vec<String> = texts
                .iter()
                .map(|text| regex_syntax::escape(text))
                .collect();
            let any = llguidance::regex_to_lark(&escaped.join("|"), "");
            lark += &format!("thought[lazy]: /(?s:.*)({any})/\n");
            ways.push("thought".into());
        }
        if !tokens.is_empty() {
            lark += "TEXT: /(?s:.+)/\n";
            let ids = tokens.iter().filter_map(|end| env.special(end));
            let ids: Vec<String> = ids.map(|id| id.to_string()).collect();
            ways.push(format!("TEXT? <[{}]>", ids.join(",")));
        }
        let space = if self.space { "SPACE?" } else { "" };
        lark += &format!("start: ({}) {space} @{NAME}\n", ways.join(" | "));
        if self.space {
            lark += "SPACE: /[ \\t\\r\\n]{1,8}/\n";
        }
        behind(lark, form)
    }
}

/// The form as a grammar of its own behind what the rules in Lark say.
fn behind(lark: String, mut form: TopLevelGrammar) -> TopLevelGrammar {
    let mut whole = TopLevelGrammar::from_grammar(GrammarWithLexer::from_lark(lark));
    whole.grammars.append(&mut form.grammars);
    whole
}

impl FtGrammarEnv {
    pub fn special(&self, name: &str) -> Option<u32> {
        self.factory.tok_env().tok_trie().get_special_token(name)
    }
}

impl Tokens for FtGrammarEnv {
    fn find(&self, text: &str) -> Option<u32> {
        let word = self
            .factory
            .tok_env()
            .tok_trie()
            .token_id_at_bytes(text.as_bytes());
        self.special(text).or(word)
    }

    fn vocab_size(&self) -> usize {
        self.vocab_size
    }

    fn eos_ids(&self) -> &[u32] {
        &self.eos_ids
    }
}
