//! The arguments of a call, picked by position or name as Python functions do.

use super::budget::{Broken, Outcome};
use super::value::{Entries, Value};

#[derive(Default)]
pub struct Arguments {
    pub positional: Vec<Value>,
    pub named: Entries,
}

impl Arguments {
    /// The values for `names`, in their order. Too many, unknown or doubled ones are an error.
    pub fn bind<const N: usize>(
        &self,
        function: &str,
        names: [&str; N],
    ) -> Outcome<[Option<Value>; N]> {
        let mut bound = [const { None }; N];
        if self.positional.len() > N {
            return Err(Broken::new(format!(
                "{function}() takes at most {N} arguments ({} given)",
                self.positional.len()
            )));
        }
        for (slot, value) in bound.iter_mut().zip(&self.positional) {
            *slot = Some(value.clone());
        }
        for (key, value) in &self.named {
            let name = key.value();
            let at = names
                .iter()
                .position(|known| Some(*known) == name.as_str() && !known.is_empty())
                .filter(|at| bound[*at].is_none());
            let at = at.ok_or_else(|| {
                Broken::new(format!(
                    "{function}() got an unexpected keyword argument '{}'",
                    name.as_str().unwrap_or_default()
                ))
            })?;
            bound[at] = Some(value.clone());
        }
        Ok(bound)
    }
}

pub fn missing(function: &str, name: &str) -> Broken {
    Broken::new(format!("{function}() misses its argument '{name}'"))
}

/// A whole number, or `default` where it is absent.
pub fn whole(value: &Option<Value>, default: i128) -> Outcome<i128> {
    match value {
        None => Ok(default),
        Some(value) => value.as_int().ok_or_else(|| {
            Broken::new(format!(
                "'{}' object cannot be interpreted as an integer",
                value.type_name()
            ))
        }),
    }
}

/// A size that Python takes from a whole number; negative ones are 0.
pub fn size(value: &Option<Value>, default: i128) -> Outcome<usize> {
    Ok(usize::try_from(whole(value, default)?.max(0)).unwrap_or(usize::MAX))
}

pub fn truth(value: &Option<Value>) -> bool {
    value.as_ref().is_some_and(Value::is_true)
}

pub fn text<'a>(value: &'a Option<Value>, function: &str) -> Outcome<&'a str> {
    let found = value.as_ref().and_then(Value::as_str);
    found.ok_or_else(|| {
        Broken::new(format!(
            "{function}() needs a str, not {}",
            value.as_ref().map_or("nothing", Value::type_name)
        ))
    })
}
