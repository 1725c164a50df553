//! What of a schema is not enforced, and where it stands.

use std::rc::Rc;

/// A place in a schema: its path for people, and the address that references start from.
#[derive(Clone)]
pub struct Place {
    pub path: String,
    pub base: Rc<str>,
}

impl Place {
    pub fn root() -> Place {
        Place {
            path: "$".into(),
            base: "".into(),
        }
    }

    pub fn child(&self, name: &str) -> Place {
        let starts = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_' || c == '$');
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '$';
        match starts && name.chars().all(plain) {
            true => self.longer(format!(".{name}")),
            false => self.longer(format!("[{}]", serde_json::Value::from(name))),
        }
    }

    pub fn index(&self, index: usize) -> Place {
        self.longer(format!("[{index}]"))
    }

    /// Nobody reads the end of a path as long as a page.
    fn longer(&self, more: String) -> Place {
        const MOST: usize = 500;
        let path = match self.path.ends_with("...") {
            true => self.path.clone(),
            false if self.path.len() + more.len() > MOST => format!("{}...", self.path),
            false => format!("{}{more}", self.path),
        };
        Place {
            path,
            base: self.base.clone(),
        }
    }
}

/// Sentences such as `'uniqueItems' at $.properties.tags is not enforced`, each once.
#[derive(Default)]
pub struct Notes {
    pub texts: Vec<String>,
    pub count: usize,
}

impl Notes {
    pub fn add(&mut self, place: &Place, keyword: &str, why: &str) {
        const MOST: usize = 64;
        self.count += 1;
        if self.texts.len() > MOST {
            return;
        }
        let tail = if why.is_empty() {
            String::new()
        } else {
            format!(": {why}")
        };
        let mut text = format!("'{keyword}' at {} is not enforced{tail}", place.path);
        if self.texts.len() == MOST {
            text += "; and there is more that is not";
        }
        if !self.texts.contains(&text) {
            self.texts.push(text);
        }
    }

    /// Forgets what came since there were so many sentences.
    pub fn forget(&mut self, num_texts: usize, count: usize) {
        self.texts.truncate(num_texts);
        self.count = count;
    }
}
