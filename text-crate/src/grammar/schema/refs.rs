//! Where a "$ref" leads within one document.

use super::notes::Place;
use serde_json::Value;
use std::collections::HashMap;

/// Keywords whose value maps names to schemas, and those whose value is plain data.
pub const MAPS: [&str; 6] = [
    "properties",
    "patternProperties",
    "$defs",
    "definitions",
    "dependentSchemas",
    "dependencies",
];
pub const DATA: [&str; 5] = ["enum", "const", "default", "examples", "required"];

/// A schema of the document and the address that its references start from.
#[derive(Clone)]
pub struct Target<'a> {
    pub schema: &'a Value,
    pub place: Place,
}

pub struct Refs<'a> {
    root: &'a Value,
    /// By address, with "#name" for anchors.
    known: HashMap<String, Target<'a>>,
}

/// Drafts before 2019-09, where a "$ref" hides its neighbours and "$id": "#name" is an anchor.
pub fn is_old(root: &Value) -> bool {
    let named = root.get("$schema").and_then(Value::as_str);
    named.is_some_and(|name| {
        ["draft-03", "draft-04", "draft-06", "draft-07"]
            .iter()
            .any(|old| name.contains(old))
    })
}

fn scheme_len(uri: &str) -> Option<usize> {
    let colon = uri.find(':')?;
    let mut letters = uri[..colon].chars();
    let starts = letters.next().is_some_and(|c| c.is_ascii_alphabetic());
    (starts && letters.all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c))).then_some(colon)
}

/// An address seen from another one; neither has a fragment.
fn joined(base: &str, to: &str) -> String {
    if to.is_empty() {
        return base.to_string();
    }
    if scheme_len(to).is_some() {
        return to.to_string();
    }
    let start = scheme_len(base).map_or(0, |colon| colon + 1);
    if to.starts_with("//") {
        return format!("{}{to}", &base[..start]);
    }
    let host = if base[start..].starts_with("//") {
        start + 2
    } else {
        start
    };
    let path = base[host..]
        .find('/')
        .map_or(base.len(), |slash| host + slash);
    if to.starts_with('/') {
        return format!("{}{to}", &base[..path]);
    }
    let folder = base
        .rfind('/')
        .filter(|slash| *slash >= path)
        .map_or(path, |slash| slash + 1);
    let mut whole = base[..folder].to_string();
    if folder == path && !whole.is_empty() && host > start {
        whole.push('/');
    }
    whole + to
}

/// One segment of a JSON pointer in a fragment.
fn decoded(segment: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = segment.as_bytes();
    while let Some((first, tail)) = rest.split_first() {
        let hex = tail.get(..2).and_then(|hex| std::str::from_utf8(hex).ok());
        match hex.and_then(|hex| u8::from_str_radix(hex, 16).ok()) {
            Some(byte) if *first == b'%' => {
                bytes.push(byte);
                rest = &tail[2..];
            }
            _ => {
                bytes.push(*first);
                rest = tail;
            }
        }
    }
    String::from_utf8_lossy(&bytes)
        .replace("~1", "/")
        .replace("~0", "~")
}

/// The address that a schema gives itself; all below it begin with it.
pub fn id_of(schema: &Value) -> Option<&str> {
    const MOST_BYTES: usize = 2000;
    let id = schema.get("$id")?.as_str()?;
    (id.len() <= MOST_BYTES).then_some(id)
}

impl<'a> Refs<'a> {
    pub fn new(root: &'a Value) -> Self {
        let mut refs = Refs {
            root,
            known: HashMap::new(),
        };
        let place = Place::root();
        refs.known.insert(
            String::new(),
            Target {
                schema: root,
                place: place.clone(),
            },
        );
        refs.collect(root, place, is_old(root));
        refs
    }

    fn collect(&mut self, schema: &'a Value, mut place: Place, old: bool) {
        let Some(fields) = schema.as_object() else {
            return;
        };
        // What is behind it is the document, whose address holds whatever stands beside it.
        let hides = old && fields.contains_key("$ref") && !std::ptr::eq(schema, self.root);
        if let (Some(id), false) = (id_of(schema), hides) {
            place.base = match id.strip_prefix('#') {
                Some(name) => {
                    self.add(format!("{}#{name}", place.base), schema, &place);
                    place.base
                }
                None => joined(&place.base, id.trim_end_matches('#')).into(),
            };
            self.add(place.base.to_string(), schema, &place);
        }
        for keyword in ["$anchor", "$dynamicAnchor"] {
            if let Some(name) = fields.get(keyword).and_then(Value::as_str) {
                self.add(format!("{}#{name}", place.base), schema, &place);
            }
        }
        for (keyword, value) in fields {
            let at = place.child(keyword);
            match value {
                _ if DATA.contains(&keyword.as_str()) => {}
                Value::Object(map) if MAPS.contains(&keyword.as_str()) => map
                    .iter()
                    .for_each(|(name, one)| self.collect(one, at.child(name), old)),
                Value::Array(items) => {
                    let each = items.iter().enumerate();
                    each.for_each(|(index, one)| self.collect(one, at.index(index), old))
                }
                one => self.collect(one, at, old),
            }
        }
    }

    fn add(&mut self, address: String, schema: &'a Value, place: &Place) {
        self.known.entry(address).or_insert_with(|| Target {
            schema,
            place: place.clone(),
        });
    }

    /// What `reference` means at a place whose address is `base`.
    pub fn find(&self, base: &str, reference: &str) -> Option<Target<'a>> {
        let (address, fragment) = reference.split_once('#').unwrap_or((reference, ""));
        let address = joined(base, address);
        if !fragment.is_empty() && !fragment.starts_with('/') {
            return self.known.get(&format!("{address}#{fragment}")).cloned();
        }
        let start = self.known.get(&address)?.clone();
        match fragment.strip_prefix('/') {
            Some(pointer) if !pointer.is_empty() => self.step(start, pointer),
            _ => Some(start),
        }
    }

    fn step(&self, start: Target<'a>, pointer: &str) -> Option<Target<'a>> {
        let Target {
            mut schema,
            mut place,
        } = start;
        for segment in pointer.split('/').map(decoded) {
            match schema {
                Value::Object(fields) => {
                    schema = fields.get(&segment)?;
                    place = place.child(&segment);
                }
                Value::Array(items) => {
                    let index = segment.parse().ok()?;
                    schema = items.get(index)?;
                    place = place.index(index);
                }
                _ => return None,
            }
            if let Some(id) = id_of(schema) {
                if !std::ptr::eq(schema, self.root) && !id.starts_with('#') {
                    place.base = joined(&place.base, id.trim_end_matches('#')).into();
                }
            }
        }
        Some(Target { schema, place })
    }
}
