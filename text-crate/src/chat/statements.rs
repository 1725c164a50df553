//! Statements of a template.

use super::budget::{Broken, Level, Outcome};
use super::interpreter::{Interpreter, LoopState};
use super::ops;
use super::python;
use super::value::Value;
use minijinja::machinery::ast::{self, Expr, Stmt};

#[derive(PartialEq)]
pub enum Flow {
    Next,
    Break,
    Continue,
}

fn line_of(statement: &Stmt<'_>) -> u32 {
    let span = match statement {
        Stmt::EmitExpr(node) => node.span(),
        Stmt::ForLoop(node) => node.span(),
        Stmt::IfCond(node) => node.span(),
        Stmt::WithBlock(node) => node.span(),
        Stmt::Set(node) => node.span(),
        Stmt::SetBlock(node) => node.span(),
        Stmt::FilterBlock(node) => node.span(),
        Stmt::Macro(node) => node.span(),
        Stmt::CallBlock(node) => node.span(),
        _ => return 0,
    };
    span.start_line.into()
}

impl<'t> Interpreter<'t> {
    pub fn run(&mut self, statements: &'t [Stmt<'t>]) -> Outcome<Flow> {
        for statement in statements {
            let flow = self.statement(statement).map_err(|mut broken| {
                broken.line.get_or_insert(line_of(statement));
                broken
            })?;
            if flow != Flow::Next {
                return Ok(flow);
            }
        }
        Ok(Flow::Next)
    }

    fn statement(&mut self, statement: &'t Stmt<'t>) -> Outcome<Flow> {
        let _level = Level::enter()?;
        match statement {
            Stmt::Template(node) => return self.run(&node.children),
            Stmt::EmitRaw(node) => self.emit(node.raw)?,
            Stmt::EmitExpr(node) => match self.eval(&node.expr)? {
                Value::Str(text) => self.emit(&text)?,
                value => self.emit(&python::to_str(&value))?,
            },
            Stmt::IfCond(node) => {
                let holds = self.eval(&node.expr)?.is_true();
                return self.run(if holds {
                    &node.true_body
                } else {
                    &node.false_body
                });
            }
            Stmt::ForLoop(node) => self.for_statement(node)?,
            Stmt::Set(node) => {
                let value = self.eval(&node.expr)?;
                self.assign(&node.target, value)?;
            }
            Stmt::Break(_) => return Ok(Flow::Break),
            Stmt::Continue(_) => return Ok(Flow::Continue),
            Stmt::Macro(node) => {
                let declared = self.declare(node)?;
                self.set(node.name, declared);
            }
            other => return self.block(other),
        }
        Ok(Flow::Next)
    }

    /// Statements with a body in a scope of its own.
    fn block(&mut self, statement: &'t Stmt<'t>) -> Outcome<Flow> {
        let frame = self.frame();
        match statement {
            Stmt::WithBlock(node) => {
                let mut values = Vec::new();
                for (_, expression) in &node.assignments {
                    values.push(self.eval(expression)?);
                }
                return self.scoped(frame, |inner| {
                    for ((target, _), value) in node.assignments.iter().zip(values) {
                        inner.assign(target, value)?;
                    }
                    inner.run(&node.body)
                });
            }
            Stmt::SetBlock(node) => {
                let mut value = self.captured_block(&node.body)?;
                if let Some(filter) = &node.filter {
                    value = self.filter_chain(filter, value)?;
                }
                self.assign(&node.target, value)?;
            }
            Stmt::FilterBlock(node) => {
                let text = self.captured_block(&node.body)?;
                let filtered = self.filter_chain(&node.filter, text)?;
                self.emit(&python::to_str(&filtered))?;
            }
            Stmt::CallBlock(node) => {
                let caller = self.declare(&node.macro_decl)?;
                let text = self.call_block(&node.call, caller)?;
                self.emit(&python::to_str(&text))?;
            }
            Stmt::Block(node) => return self.scoped(frame, |inner| inner.run(&node.body)),
            _ => return Err(Broken::new("it uses a tag that chat templates do not have")),
        }
        Ok(Flow::Next)
    }

    fn captured_block(&mut self, body: &'t [Stmt<'t>]) -> Outcome<Value> {
        let frame = self.frame();
        self.capture(|inner| inner.scoped(frame, |inner| inner.run(body).map(drop)))
    }

    pub fn assign(&mut self, target: &'t Expr<'t>, value: Value) -> Outcome<()> {
        match target {
            Expr::Var(name) => self.set(name.id, value),
            Expr::List(targets) => {
                let values = ops::iterate(&value)?;
                if values.len() != targets.items.len() {
                    return Err(Broken::new(format!(
                        "cannot unpack {} values into {} names",
                        values.len(),
                        targets.items.len()
                    )));
                }
                for (target, value) in targets.items.iter().zip(values) {
                    self.assign(target, value)?;
                }
            }
            Expr::GetAttr(attribute) => match self.eval(&attribute.expr)? {
                Value::Namespace(id) => self.set_member(id, attribute.name, value)?,
                _ => {
                    return Err(Broken::new(
                        "cannot assign attribute on non-namespace object",
                    ))
                }
            },
            _ => return Err(Broken::new("cannot assign to this expression")),
        }
        Ok(())
    }

    fn set_member(&mut self, id: usize, name: &str, value: Value) -> Outcome<()> {
        super::functions::check_member(name)?;
        self.namespaces[id].insert(name.to_string(), value);
        Ok(())
    }

    fn for_statement(&mut self, node: &'t ast::ForLoop<'t>) -> Outcome<()> {
        let values = self.eval(&node.iter)?;
        self.for_loop(node, &values, 0)
    }

    /// The items that the loop's `if` lets through.
    fn filtered(&mut self, node: &'t ast::ForLoop<'t>, values: &Value) -> Outcome<Vec<Value>> {
        let values = ops::iterate(values)?;
        let Some(condition) = &node.filter_expr else {
            return Ok(values);
        };
        let frame = self.frame();
        let mut kept = Vec::new();
        for value in values {
            let passes = self.scoped(frame, |inner| {
                inner.assign(&node.target, value.clone())?;
                Ok(inner.eval(condition)?.is_true())
            })?;
            if passes {
                kept.push(value);
            }
        }
        Ok(kept)
    }

    pub fn for_loop(
        &mut self,
        node: &'t ast::ForLoop<'t>,
        values: &Value,
        depth: usize,
    ) -> Outcome<()> {
        let frame = self.frame();
        let items = self.filtered(node, values)?;
        if items.is_empty() {
            return self.scoped(frame, |inner| inner.run(&node.else_body).map(drop));
        }
        let id = self.loops.len();
        self.loops.push(LoopState {
            statement: node,
            items,
            index: 0,
            depth,
            changed: None,
        });
        let result = self.iterations(node, id, frame);
        self.loops.truncate(id);
        result
    }

    fn iterations(&mut self, node: &'t ast::ForLoop<'t>, id: usize, frame: usize) -> Outcome<()> {
        for index in 0..self.loops[id].items.len() {
            self.loops[id].index = index;
            let item = self.loops[id].items[index].clone();
            let flow = self.scoped(frame, |inner| {
                inner.assign(&node.target, item)?;
                inner.set("loop", Value::Loop(id));
                inner.run(&node.body)
            })?;
            if flow == Flow::Break {
                break;
            }
        }
        Ok(())
    }
}
