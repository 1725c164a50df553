//! The state of one rendering: variables, namespaces, macros, loops and the text so far.

use super::budget::{self, Broken, Outcome};
use super::value::{Text, Value};
use super::{methods, ops};
use minijinja::machinery::ast;
use std::collections::HashMap;

/// Variables of one scope. A scope that a macro can still see outlives its block.
#[derive(Default)]
pub struct Frame<'t> {
    names: HashMap<&'t str, Value>,
    parent: Option<usize>,
    captured: bool,
}

#[derive(Clone, Copy)]
pub struct Macro<'t> {
    pub declaration: &'t ast::Macro<'t>,
    /// The scope that its body sees.
    pub frame: usize,
}

pub struct LoopState<'t> {
    pub statement: &'t ast::ForLoop<'t>,
    pub items: Vec<Value>,
    pub index: usize,
    pub depth: usize,
    pub changed: Option<Vec<Value>>,
}

pub struct Interpreter<'t> {
    context: &'t HashMap<String, Value>,
    pub source: &'t str,
    frames: Vec<Frame<'t>>,
    frame: usize,
    pub namespaces: Vec<HashMap<String, Value>>,
    pub macros: Vec<Macro<'t>>,
    pub loops: Vec<LoopState<'t>>,
    out: String,
    /// Seconds since 1970 that `strftime_now` takes for the present; none takes the clock.
    pub now: Option<i64>,
    /// Whether macros may get more arguments than they name.
    pub extra_arguments: bool,
}

/// Bytes that a scope, namespace or macro is counted with.
const OBJECT_BYTES: usize = 256;

impl<'t> Interpreter<'t> {
    pub fn new(context: &'t HashMap<String, Value>, source: &'t str, now: Option<i64>) -> Self {
        Interpreter {
            context,
            source,
            frames: vec![Frame::default()],
            frame: 0,
            namespaces: Vec::new(),
            macros: Vec::new(),
            loops: Vec::new(),
            out: String::new(),
            now,
            extra_arguments: source.contains("varargs") || source.contains("kwargs"),
        }
    }

    pub fn into_text(self) -> String {
        self.out
    }

    pub fn emit(&mut self, text: &str) -> Outcome<()> {
        if self.out.len() + text.len() > budget::MAX_OUTPUT {
            return Err(Broken::new(format!(
                "its text is longer than {} MiB",
                budget::MAX_OUTPUT >> 20
            )));
        }
        budget::take(text.len());
        self.out.push_str(text);
        Ok(())
    }

    /// What `body` writes, instead of writing it.
    pub fn capture(&mut self, body: impl FnOnce(&mut Self) -> Outcome<()>) -> Outcome<Value> {
        let before = std::mem::take(&mut self.out);
        let result = body(self);
        let text = std::mem::replace(&mut self.out, before);
        budget::give_back(text.len());
        result?;
        Ok(Value::Str(Text::new(text)))
    }

    /// Runs `body` in a new scope inside `parent`.
    pub fn scoped<R>(
        &mut self,
        parent: usize,
        body: impl FnOnce(&mut Self) -> Outcome<R>,
    ) -> Outcome<R> {
        let (outer, inner) = (self.frame, self.frames.len());
        budget::reserve(OBJECT_BYTES)?;
        self.frames.push(Frame {
            parent: Some(parent),
            ..Frame::default()
        });
        self.frame = inner;
        let result = body(self);
        self.frame = outer;
        if self.frames.len() == inner + 1 && !self.frames[inner].captured {
            self.frames.pop();
        } else {
            budget::take(OBJECT_BYTES);
        }
        result
    }

    pub fn frame(&self) -> usize {
        self.frame
    }

    pub fn set(&mut self, name: &'t str, value: Value) {
        self.frames[self.frame].names.insert(name, value);
    }

    pub fn lookup(&self, name: &str) -> Value {
        let mut at = Some(self.frame);
        while let Some(frame) = at.map(|at| &self.frames[at]) {
            if let Some(value) = frame.names.get(name) {
                return value.clone();
            }
            at = frame.parent;
        }
        if let Some(value) = self.context.get(name) {
            return value.clone();
        }
        match super::functions::NAMES.iter().find(|known| **known == name) {
            Some(name) => Value::Function(name),
            None => Value::undefined(format!("'{name}' is undefined")),
        }
    }

    pub fn declare(&mut self, declaration: &'t ast::Macro<'t>) -> Outcome<Value> {
        budget::reserve(OBJECT_BYTES)?;
        budget::take(OBJECT_BYTES);
        let mut at = Some(self.frame);
        while let Some(frame) = at.map(|at| &mut self.frames[at]) {
            frame.captured = true;
            at = frame.parent;
        }
        self.macros.push(Macro {
            declaration,
            frame: self.frame,
        });
        Ok(Value::Macro(self.macros.len() - 1))
    }

    pub fn new_namespace(&mut self, members: HashMap<String, Value>) -> Outcome<Value> {
        budget::reserve(OBJECT_BYTES)?;
        budget::take(OBJECT_BYTES);
        self.namespaces.push(members);
        Ok(Value::Namespace(self.namespaces.len() - 1))
    }
}

fn missing(object: &Value, kind: &str, name: &str) -> Value {
    let owner = match object {
        Value::None => "None".to_string(),
        Value::Namespace(_) => "namespace object".to_string(),
        other => format!("{} object", other.type_name()),
    };
    Value::undefined(format!("'{owner}' has no {kind} '{name}'"))
}

fn loop_attribute(state: &LoopState<'_>, object: &Value, name: &str) -> Option<Value> {
    let number = |number: usize| Some(Value::Int(number as i128));
    let (index, length) = (state.index, state.items.len());
    let neighbour = |at: Option<usize>, which: &str| {
        let item = at.and_then(|at| state.items.get(at)).cloned();
        Some(item.unwrap_or_else(|| Value::undefined(format!("there is no {which} item"))))
    };
    match name {
        "index" => number(index + 1),
        "index0" => number(index),
        "revindex" => number(length - index),
        "revindex0" => number(length - index - 1),
        "first" => Some(Value::Bool(index == 0)),
        "last" => Some(Value::Bool(index + 1 == length)),
        "length" => number(length),
        "depth" => number(state.depth + 1),
        "depth0" => number(state.depth),
        "previtem" => neighbour(index.checked_sub(1), "previous"),
        "nextitem" => neighbour(Some(index + 1), "next"),
        "cycle" => Some(Value::method(object, "cycle")),
        "changed" => Some(Value::method(object, "changed")),
        _ => None,
    }
}

fn own_attribute(interpreter: &Interpreter<'_>, object: &Value, name: &str) -> Option<Value> {
    match object {
        Value::Namespace(id) => interpreter.namespaces[*id].get(name).cloned(),
        Value::Loop(id) => loop_attribute(interpreter.loops.get(*id)?, object, name),
        Value::Macro(id) if name == "name" => {
            Some(Value::str(interpreter.macros[*id].declaration.name))
        }
        // A group of `groupby`.
        Value::Tuple(pair) if pair.len() == 2 && name == "grouper" => Some(pair[0].clone()),
        Value::Tuple(pair) if pair.len() == 2 && name == "list" => Some(pair[1].clone()),
        _ => methods::attribute(object, name),
    }
}

/// `object.name`: Python's attribute first, then an entry.
pub fn get_attribute(interpreter: &Interpreter<'_>, object: &Value, name: &str) -> Outcome<Value> {
    ops::defined(object)?;
    if let Some(value) = own_attribute(interpreter, object, name) {
        return Ok(value);
    }
    let entry = match object {
        Value::Dict(dict) => dict.get(name).cloned(),
        _ => None,
    };
    Ok(entry.unwrap_or_else(|| missing(object, "attribute", name)))
}

/// `object[index]`: an entry first, then an attribute.
pub fn get_item(interpreter: &Interpreter<'_>, object: &Value, index: &Value) -> Outcome<Value> {
    ops::defined(object)?;
    if let Some(value) = ops::item(object, index) {
        return Ok(value);
    }
    let Some(name) = index.as_str() else {
        return Ok(missing(object, "element", &super::python::to_str(index)));
    };
    let found = own_attribute(interpreter, object, name);
    Ok(found.unwrap_or_else(|| missing(object, "attribute", name)))
}
