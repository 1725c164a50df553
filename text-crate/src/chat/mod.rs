//! Chat templates, rendered as Hugging Face transformers renders them: parsed by minijinja,
//! evaluated here, because Python's meaning of attributes, operators and printing, and bounds on
//! memory, reach into every operation.

mod arguments;
mod budget;
mod conversation;
mod expressions;
mod filters;
mod format;
mod functions;
mod interpreter;
mod json;
mod letters;
mod methods;
mod ops;
mod predicates;
mod python;
mod sequences;
mod source;
mod splitting;
mod statements;
mod time;
mod value;

use crate::ffi::{guard, utf8, Failure, FtText, Outcome};
use budget::Broken;
use serde_json::{Map, Value as Json};
use source::Parsed;
use std::collections::HashMap;
use value::Value;

pub struct FtTemplate {
    parsed: Parsed,
    globals: Map<String, Json>,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct FtRenderOptions {
    add_generation_prompt: bool,
    continue_final_message: bool,
    now: i64,
}

impl From<Broken> for Failure {
    /// `raise_exception` gives the template's own words, everything else the cause and the place.
    fn from(broken: Broken) -> Failure {
        let place = match broken.line {
            Some(line) if !broken.refused && line > 0 => format!(" (in chat template:{line})"),
            _ => String::new(),
        };
        Failure {
            message: broken.message + &place,
            refused: broken.refused,
        }
    }
}

fn object(json: &str, what: &str) -> Outcome<Map<String, Json>> {
    if json.is_empty() {
        return Ok(Map::new());
    }
    serde_json::from_str(json)
        .map_err(|error| Failure::new(format!("{what} must be a JSON object: {error}")))
}

fn messages_of(json: &str) -> Outcome<Vec<Json>> {
    match serde_json::from_str(json) {
        Ok(Json::Array(messages)) => Ok(messages),
        Ok(_) => Err(Failure::new("the messages must be a JSON array")),
        Err(error) => Err(Failure::new(format!(
            "the messages are not valid JSON: {error}"
        ))),
    }
}

impl FtTemplate {
    fn compile(source: &str, globals: &str) -> Outcome<FtTemplate> {
        Ok(FtTemplate {
            parsed: Parsed::new(source)?,
            globals: object(globals, "the template's globals")?,
        })
    }

    fn evaluate(&self, context: &Map<String, Json>, now: Option<i64>) -> budget::Outcome<String> {
        budget::start();
        let mut names = HashMap::new();
        for (name, value) in context {
            names.insert(name.clone(), Value::from_json(value)?);
        }
        let source = self.parsed.source();
        let mut interpreter = interpreter::Interpreter::new(&names, source, now);
        interpreter.run(std::slice::from_ref(self.parsed.tree()))?;
        budget::work(0)?;
        Ok(interpreter.into_text())
    }

    fn render(&self, messages: &str, arguments: &str, options: FtRenderOptions) -> Outcome<String> {
        let mut messages = messages_of(messages)?;
        conversation::alias_reasoning(&mut messages);
        let tail = match options.continue_final_message {
            true => Some(conversation::mark_end(&mut messages)?),
            false => None,
        };
        let mut context = self.globals.clone();
        // Templates test these with `is none` as well as `is defined`.
        context.insert("tools".into(), Json::Null);
        context.insert("documents".into(), Json::Null);
        context.extend(object(arguments, "the template arguments")?);
        context.insert("messages".into(), messages.into());
        context.insert(
            "add_generation_prompt".into(),
            options.add_generation_prompt.into(),
        );
        let text = self.evaluate(&context, (options.now >= 0).then_some(options.now))?;
        match tail {
            Some(tail) => conversation::cut_at_mark(text, &tail),
            None => Ok(text),
        }
    }
}

#[no_mangle]
pub unsafe extern "C" fn ft_template_new(
    source: *const u8,
    source_size: usize,
    globals: *const u8,
    globals_size: usize,
    out: *mut *mut FtTemplate,
    error: *mut FtText,
) -> i32 {
    guard(error, || {
        let source = utf8(source, source_size, "the chat template")?;
        let globals = utf8(globals, globals_size, "the template's globals")?;
        out.write(Box::into_raw(Box::new(FtTemplate::compile(
            source, globals,
        )?)));
        Ok(())
    })
}

#[no_mangle]
pub unsafe extern "C" fn ft_template_free(template: *mut FtTemplate) {
    if !template.is_null() {
        drop(Box::from_raw(template));
    }
}

#[no_mangle]
pub unsafe extern "C" fn ft_template_render(
    template: *const FtTemplate,
    messages: *const u8,
    messages_size: usize,
    arguments: *const u8,
    arguments_size: usize,
    options: FtRenderOptions,
    out: *mut FtText,
    error: *mut FtText,
) -> i32 {
    guard(error, || {
        let messages = utf8(messages, messages_size, "the messages")?;
        let arguments = utf8(arguments, arguments_size, "the template arguments")?;
        let text = (*template).render(messages, arguments, options)?;
        out.write(text.into());
        Ok(())
    })
}
