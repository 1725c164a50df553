//! Chat templates, rendered as Hugging Face transformers renders them.

mod environment;
mod generation;
mod json;
mod python;
mod time;

use crate::ffi::{guard, utf8, Failure, FtText, Outcome};
use environment::Refusal;
use minijinja::{Environment, Error, Value};
use serde_json::Map;
use std::error::Error as _;

pub struct FtTemplate {
    environment: Environment<'static>,
    globals: Map<String, serde_json::Value>,
}

const NAME: &str = "chat template";

fn object(json: &str, what: &str) -> Outcome<Map<String, serde_json::Value>> {
    if json.is_empty() {
        return Ok(Map::new());
    }
    serde_json::from_str(json)
        .map_err(|error| Failure::new(format!("{what} must be a JSON object: {error}")))
}

/// `raise_exception` gives the template's own words, everything else the place and the cause.
fn describe(error: &Error) -> Failure {
    let mut source = error.source();
    while let Some(cause) = source {
        if let Some(refusal) = cause.downcast_ref::<Refusal>() {
            return Failure {
                message: refusal.0.clone(),
                refused: true,
            };
        }
        source = cause.source();
    }
    Failure::new(error)
}

fn compile(source: &str, globals: &str) -> Outcome<FtTemplate> {
    let mut environment = environment::hugging_face();
    environment
        .add_template_owned(NAME, generation::without_markers(source))
        .map_err(|error| describe(&error))?;
    Ok(FtTemplate {
        environment,
        globals: object(globals, "the template's globals")?,
    })
}

impl FtTemplate {
    fn render(&self, messages: &str, arguments: &str, add_prompt: bool) -> Outcome<String> {
        let messages: serde_json::Value = serde_json::from_str(messages)
            .map_err(|error| Failure::new(format!("the messages are not valid JSON: {error}")))?;
        if !messages.is_array() {
            return Err(Failure::new("the messages must be a JSON array"));
        }
        let mut context = self.globals.clone();
        // Templates test these with `is none` as well as `is defined`.
        context.insert("tools".into(), serde_json::Value::Null);
        context.insert("documents".into(), serde_json::Value::Null);
        context.extend(object(arguments, "the template arguments")?);
        context.insert("messages".into(), messages);
        context.insert("add_generation_prompt".into(), add_prompt.into());
        self.environment
            .get_template(NAME)
            .and_then(|template| template.render(Value::from_serialize(&context)))
            .map_err(|error| describe(&error))
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
        out.write(Box::into_raw(Box::new(compile(source, globals)?)));
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
    add_generation_prompt: bool,
    out: *mut FtText,
    error: *mut FtText,
) -> i32 {
    guard(error, || {
        let messages = utf8(messages, messages_size, "the messages")?;
        let arguments = utf8(arguments, arguments_size, "the template arguments")?;
        let text = (*template).render(messages, arguments, add_generation_prompt)?;
        out.write(text.into());
        Ok(())
    })
}
