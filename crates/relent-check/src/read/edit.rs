//! A change of a file: where, what, and the line as people of its format write it.

use serde_json::Value;

use super::node::path;

/// A setting to write into the file.
#[derive(Clone, Debug, PartialEq)]
pub struct Edit {
    /// The keys from the top of the file.
    pub path: Vec<Key>,
    /// The value.
    pub value: Value,
    /// The line as it would be written: `retry.jitter = "full"`.
    pub line: String,
}

/// A step down into a file.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Key {
    /// A key of a table.
    Name(String),
    /// A place in a list.
    Index(usize),
}

impl Edit {
    /// A setting below a place of a file.
    pub(super) fn below(place: &[Key], names: &[&str], value: Value, separator: &str, equals: &str) -> Self {
        let mut keys = place.to_vec();
        keys.extend(names.iter().map(|name| Key::Name((*name).to_owned())));
        let line = format!("{}{equals}{value}", path(&keys, separator));
        Self { path: keys, value, line }
    }
}

/// Puts a value at a path, making the tables on the way.
pub(super) fn set(tree: &mut Value, path: &[Key], value: Value) {
    let Some((key, rest)) = path.split_first() else {
        *tree = value;
        return;
    };
    let below = match key {
        Key::Name(name) => {
            if !tree.is_object() {
                *tree = Value::Object(serde_json::Map::new());
            }
            match tree.as_object_mut() {
                Some(table) => table.entry(name.clone()).or_insert(Value::Null),
                None => return,
            }
        }
        Key::Index(index) => match tree.as_array_mut().and_then(|list| list.get_mut(*index)) {
            Some(below) => below,
            None => return,
        },
    };
    set(below, rest, value);
}
