//! Whether a template wants a message's content as text or as a list of parts, found as vLLM finds
//! it: by a loop over the content of a message.

use minijinja::machinery::ast::{Expr, Stmt};
use std::collections::HashSet;

#[derive(Default)]
struct Names<'t> {
    conversations: HashSet<&'t str>,
    messages: HashSet<&'t str>,
    contents: HashSet<&'t str>,
    walks_content: bool,
}

/// `expression` without filters and slices.
fn plain<'t>(expression: &'t Expr<'t>) -> &'t Expr<'t> {
    match expression {
        Expr::Filter(node) => node.expr.as_ref().map_or(expression, plain),
        Expr::Slice(node) => plain(&node.expr),
        _ => expression,
    }
}

impl<'t> Names<'t> {
    fn is_conversation(&self, expression: &'t Expr<'t>) -> bool {
        matches!(plain(expression), Expr::Var(name) if self.conversations.contains(name.id))
    }

    fn is_message(&self, expression: &'t Expr<'t>) -> bool {
        match plain(expression) {
            Expr::Var(name) => self.messages.contains(name.id),
            Expr::GetItem(node) => self.is_conversation(&node.expr),
            _ => false,
        }
    }

    fn is_content(&self, expression: &'t Expr<'t>) -> bool {
        match plain(expression) {
            Expr::Var(name) => self.contents.contains(name.id),
            Expr::GetAttr(node) => node.name == "content" && self.is_message(&node.expr),
            Expr::GetItem(node) => {
                let name = match &node.subscript_expr {
                    Expr::Const(name) => name.value.as_str(),
                    _ => None,
                };
                name == Some("content") && self.is_message(&node.expr)
            }
            _ => false,
        }
    }

    fn learn(&mut self, target: &'t Expr<'t>, value: &'t Expr<'t>) {
        let Expr::Var(name) = target else { return };
        if self.is_conversation(value) {
            self.conversations.insert(name.id);
        } else if self.is_message(value) {
            self.messages.insert(name.id);
        } else if self.is_content(value) {
            self.contents.insert(name.id);
        }
    }

    fn visit(&mut self, statements: &'t [Stmt<'t>]) {
        for statement in statements {
            match statement {
                Stmt::Template(node) => self.visit(&node.children),
                Stmt::Set(node) => self.learn(&node.target, &node.expr),
                Stmt::IfCond(node) => {
                    self.visit(&node.true_body);
                    self.visit(&node.false_body);
                }
                Stmt::WithBlock(node) => {
                    for (target, value) in &node.assignments {
                        self.learn(target, value);
                    }
                    self.visit(&node.body);
                }
                Stmt::ForLoop(node) => {
                    if let (Expr::Var(name), true) =
                        (&node.target, self.is_conversation(&node.iter))
                    {
                        self.messages.insert(name.id);
                    }
                    self.walks_content |= self.is_content(&node.iter);
                    self.visit(&node.body);
                    self.visit(&node.else_body);
                }
                Stmt::SetBlock(node) => self.visit(&node.body),
                Stmt::FilterBlock(node) => self.visit(&node.body),
                _ => {}
            }
        }
    }
}

pub fn wants_parts(tree: &Stmt<'_>) -> bool {
    let mut names = Names::default();
    names.conversations.insert("messages");
    // Twice, so that an alias defined further down counts too.
    for _ in 0..2 {
        names.visit(std::slice::from_ref(tree));
    }
    names.walks_content
}
