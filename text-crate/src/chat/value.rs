//! The values of a template, with the meaning that they have in Python.

use super::budget::{self, Broken, Outcome};
use indexmap::IndexMap;
use std::cell::Cell;
use std::hash::{Hash, Hasher};
use std::rc::Rc;

#[derive(Clone)]
pub enum Value {
    /// What a missing name or attribute gives; most uses raise its message.
    Undefined(Rc<str>),
    None,
    Bool(bool),
    Int(i128),
    Float(f64),
    Str(Text),
    List(Items),
    Tuple(Items),
    /// A generator: it can be walked once.
    Generator(Rc<Generator>),
    Dict(Rc<Dict>),
    /// Namespaces, macros and loops live in the interpreter, so that no cycle outlives a rendering.
    Namespace(usize),
    Macro(usize),
    Loop(usize),
    Function(&'static str),
    Method(Rc<(Value, &'static str)>),
}

/// Shared text whose size is counted while it lives.
#[derive(Clone)]
pub struct Text(Rc<TextBody>);

struct TextBody(Box<str>);

impl Drop for TextBody {
    fn drop(&mut self) {
        budget::give_back(self.0.len());
    }
}

impl Text {
    pub fn new(text: impl Into<Box<str>>) -> Text {
        let text = text.into();
        budget::take(text.len());
        Text(Rc::new(TextBody(text)))
    }
}

impl std::ops::Deref for Text {
    type Target = str;
    fn deref(&self) -> &str {
        &self.0 .0
    }
}

/// A shared list that knows how deep it nests.
#[derive(Clone)]
pub struct Items(Rc<ItemsBody>);

struct ItemsBody {
    values: Vec<Value>,
    depth: u32,
}

impl Drop for ItemsBody {
    fn drop(&mut self) {
        budget::give_back(self.values.len() * std::mem::size_of::<Value>());
    }
}

/// Deeper values would overflow the stack where they are compared, printed or freed.
const MAX_NESTING: u32 = 500;

fn checked_depth<'a>(values: impl Iterator<Item = &'a Value>) -> Outcome<u32> {
    let depth = 1 + values.map(Value::depth).max().unwrap_or(0);
    if depth > MAX_NESTING {
        return Err(Broken::new(format!(
            "a value nests deeper than {MAX_NESTING} levels"
        )));
    }
    Ok(depth)
}

impl Items {
    pub fn new(values: Vec<Value>) -> Outcome<Items> {
        let depth = checked_depth(values.iter())?;
        budget::take(values.len() * std::mem::size_of::<Value>());
        Ok(Items(Rc::new(ItemsBody { values, depth })))
    }
}

impl std::ops::Deref for Items {
    type Target = [Value];
    fn deref(&self) -> &[Value] {
        &self.0.values
    }
}

pub struct Generator {
    items: Items,
    walked: Cell<bool>,
}

impl Generator {
    pub fn take(&self) -> Option<Items> {
        (!self.walked.replace(true)).then(|| self.items.clone())
    }
}

pub type Entries = IndexMap<Key, Value>;

pub struct Dict {
    entries: Entries,
    depth: u32,
}

impl Drop for Dict {
    fn drop(&mut self) {
        budget::give_back(self.entries.len() * ENTRY_BYTES);
    }
}

const ENTRY_BYTES: usize = 2 * std::mem::size_of::<Value>() + 32;

impl std::ops::Deref for Dict {
    type Target = Entries;
    fn deref(&self) -> &Entries {
        &self.entries
    }
}

/// Items of a tuple that is a key.
const MAX_KEY: usize = 64;

/// What can be a key of a dictionary. Numbers that are equal in Python are equal here.
#[derive(Clone)]
pub enum Key {
    None,
    Bool(bool),
    Int(i128),
    Float(f64),
    Str(Text),
    Tuple(Vec<Key>),
}

impl Key {
    pub fn new(value: &Value) -> Outcome<Key> {
        Ok(match value {
            Value::None => Key::None,
            Value::Bool(flag) => Key::Bool(*flag),
            Value::Int(number) => Key::Int(*number),
            Value::Float(number) => Key::Float(*number),
            Value::Str(text) => {
                budget::spend(text.len());
                Key::Str(text.clone())
            }
            Value::Tuple(items) if items.len() > MAX_KEY || value.depth() > 2 => {
                return Err(Broken::new("a tuple is too large for a key"))
            }
            Value::Tuple(items) => Key::Tuple(items.iter().map(Key::new).collect::<Outcome<_>>()?),
            other => {
                return Err(Broken::new(format!(
                    "unhashable type: '{}'",
                    other.type_name()
                )))
            }
        })
    }

    pub fn value(&self) -> Value {
        match self {
            Key::None => Value::None,
            Key::Bool(flag) => Value::Bool(*flag),
            Key::Int(number) => Value::Int(*number),
            Key::Float(number) => Value::Float(*number),
            Key::Str(text) => Value::Str(text.clone()),
            Key::Tuple(keys) => {
                Value::tuple(keys.iter().map(Key::value).collect()).unwrap_or(Value::None)
            }
        }
    }

    fn number(&self) -> Option<f64> {
        match self {
            Key::Bool(flag) => Some(f64::from(u8::from(*flag))),
            Key::Int(number) => Some(*number as f64),
            Key::Float(number) => Some(*number),
            _ => None,
        }
    }
}

impl PartialEq for Key {
    fn eq(&self, other: &Key) -> bool {
        match (self, other) {
            (Key::None, Key::None) => true,
            (Key::Str(a), Key::Str(b)) => **a == **b,
            (Key::Int(a), Key::Int(b)) => a == b,
            (Key::Tuple(a), Key::Tuple(b)) => a == b,
            _ => self.number().is_some() && self.number() == other.number(),
        }
    }
}

impl Eq for Key {}

impl Hash for Key {
    fn hash<H: Hasher>(&self, state: &mut H) {
        match self {
            Key::None => 0u8.hash(state),
            Key::Str(text) => text.hash(state),
            Key::Tuple(keys) => keys.hash(state),
            _ => self.number().unwrap_or_default().to_bits().hash(state),
        }
    }
}

impl indexmap::Equivalent<Key> for str {
    fn equivalent(&self, key: &Key) -> bool {
        matches!(key, Key::Str(text) if **text == *self)
    }
}

impl Value {
    pub fn str(text: impl Into<Box<str>>) -> Value {
        Value::Str(Text::new(text))
    }

    pub fn list(values: Vec<Value>) -> Outcome<Value> {
        Items::new(values).map(Value::List)
    }

    pub fn tuple(values: Vec<Value>) -> Outcome<Value> {
        Items::new(values).map(Value::Tuple)
    }

    pub fn generator(values: Vec<Value>) -> Outcome<Value> {
        Ok(Value::Generator(Rc::new(Generator {
            items: Items::new(values)?,
            walked: Cell::new(false),
        })))
    }

    pub fn dict(entries: Entries) -> Outcome<Value> {
        let depth = checked_depth(entries.values())?;
        budget::take(entries.len() * ENTRY_BYTES);
        Ok(Value::Dict(Rc::new(Dict { entries, depth })))
    }

    pub fn undefined(message: impl Into<Rc<str>>) -> Value {
        Value::Undefined(message.into())
    }

    pub fn method(object: &Value, name: &'static str) -> Value {
        Value::Method(Rc::new((object.clone(), name)))
    }

    fn depth(&self) -> u32 {
        match self {
            Value::List(items) | Value::Tuple(items) => items.0.depth,
            Value::Generator(generator) => generator.items.0.depth,
            Value::Dict(dict) => dict.depth,
            Value::Method(method) => method.0.depth() + 1,
            _ => 0,
        }
    }

    pub fn from_json(json: &serde_json::Value) -> Outcome<Value> {
        use serde_json::Value as Json;
        Ok(match json {
            Json::Null => Value::None,
            Json::Bool(flag) => Value::Bool(*flag),
            Json::Number(number) => match (number.as_i64(), number.as_u64()) {
                (Some(small), _) => Value::Int(small.into()),
                (_, Some(large)) => Value::Int(large.into()),
                _ => Value::Float(number.as_f64().unwrap_or(f64::NAN)),
            },
            Json::String(text) => Value::str(text.as_str()),
            Json::Array(values) => Value::list(
                values
                    .iter()
                    .map(Value::from_json)
                    .collect::<Outcome<_>>()?,
            )?,
            Json::Object(members) => {
                let mut entries = Entries::with_capacity(members.len());
                for (name, member) in members {
                    let key = Key::Str(Text::new(name.as_str()));
                    entries.insert(key, Value::from_json(member)?);
                }
                Value::dict(entries)?
            }
        })
    }

    pub fn as_str(&self) -> Option<&str> {
        match self {
            Value::Str(text) => Some(text),
            _ => None,
        }
    }

    /// Whole numbers, `True` and `False` among them.
    pub fn as_int(&self) -> Option<i128> {
        match self {
            Value::Int(number) => Some(*number),
            Value::Bool(flag) => Some((*flag).into()),
            _ => None,
        }
    }

    pub fn as_float(&self) -> Option<f64> {
        match self {
            Value::Float(number) => Some(*number),
            other => other.as_int().map(|number| number as f64),
        }
    }

    pub fn is_undefined(&self) -> bool {
        matches!(self, Value::Undefined(_))
    }

    pub fn is_true(&self) -> bool {
        match self {
            Value::Undefined(_) | Value::None => false,
            Value::Bool(flag) => *flag,
            Value::Int(number) => *number != 0,
            Value::Float(number) => *number != 0.0,
            Value::Str(text) => !text.is_empty(),
            Value::List(items) | Value::Tuple(items) => !items.is_empty(),
            Value::Dict(dict) => !dict.is_empty(),
            _ => true,
        }
    }

    pub fn type_name(&self) -> &'static str {
        match self {
            Value::Undefined(_) => "Undefined",
            Value::None => "NoneType",
            Value::Bool(_) => "bool",
            Value::Int(_) => "int",
            Value::Float(_) => "float",
            Value::Str(_) => "str",
            Value::List(_) => "list",
            Value::Tuple(_) => "tuple",
            Value::Generator(_) => "generator",
            Value::Dict(_) => "dict",
            Value::Namespace(_) => "Namespace",
            Value::Macro(_) => "Macro",
            Value::Loop(_) => "LoopContext",
            Value::Function(_) => "function",
            Value::Method(_) => "builtin_function_or_method",
        }
    }

    /// Python's `len`; none where there is no length.
    pub fn len(&self) -> Option<usize> {
        Some(match self {
            Value::Undefined(_) => 0,
            Value::Str(text) => {
                budget::spend(text.len());
                text.chars().count()
            }
            Value::List(items) | Value::Tuple(items) => items.len(),
            Value::Dict(dict) => dict.len(),
            _ => return None,
        })
    }

    /// Python's `==`.
    pub fn equals(&self, other: &Value) -> bool {
        match (self, other) {
            (Value::Undefined(_), Value::Undefined(_)) | (Value::None, Value::None) => true,
            (Value::Str(a), Value::Str(b)) => {
                budget::spend(a.len().min(b.len()));
                **a == **b
            }
            // Shared lists may be far larger to walk than to keep.
            (Value::List(_) | Value::Tuple(_) | Value::Dict(_), _) if !budget::may_grow(0) => false,
            (Value::List(a), Value::List(b)) | (Value::Tuple(a), Value::Tuple(b)) => {
                a.len() == b.len() && a.iter().zip(b.iter()).all(|(a, b)| a.equals(b))
            }
            (Value::Dict(a), Value::Dict(b)) => {
                let same = |(key, value): (&Key, &Value)| {
                    b.get(key).is_some_and(|other| value.equals(other))
                };
                a.len() == b.len() && a.iter().all(same)
            }
            (Value::Namespace(a), Value::Namespace(b)) | (Value::Macro(a), Value::Macro(b)) => {
                a == b
            }
            (Value::Function(a), Value::Function(b)) => a == b,
            (Value::Generator(a), Value::Generator(b)) => Rc::ptr_eq(a, b),
            _ => match (self.as_int(), other.as_int()) {
                (Some(a), Some(b)) => a == b,
                _ => matches!((self.as_float(), other.as_float()), (Some(a), Some(b)) if a == b),
            },
        }
    }
}
