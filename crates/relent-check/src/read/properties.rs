//! Java's properties as Spring reads them: a dot leads one level down, `[0]` to a place of a list, `[a.b]` to a key that
//! holds dots.
//!
//! # Source
//!
//! `java.util.Properties.load` (comments, separators, continued lines, escapes); Spring Boot, "Externalized
//! Configuration" (documents between `#---` lines, the form of keys).

use serde_json::{Map, Value};

use super::edit::{Edit, Key};

pub(super) fn parse(text: &str) -> Result<Value, String> {
    let mut documents = vec![Value::Object(Map::new())];
    let mut lines = (1..).zip(text.lines());
    while let Some((number, line)) = lines.next() {
        let line = line.trim_start();
        if matches!(line.trim_end(), "#---" | "!---") {
            documents.push(Value::Object(Map::new()));
            continue;
        }
        if line.is_empty() || line.starts_with(['#', '!']) {
            continue;
        }
        let mut whole = line.to_owned();
        while is_continued(&whole) {
            whole.pop();
            whole += lines.next().map_or("", |(_, next)| next.trim_start());
        }
        let wrong = |why: &str| format!("line {number}: {why}");
        let (key, value) = split(&whole);
        let keys = keys(&unescaped(key).map_err(wrong)?).ok_or_else(|| wrong("the key cannot be read"))?;
        let value = Value::String(unescaped(value).map_err(wrong)?.trim_end().to_owned());
        let document = documents.last_mut().ok_or_else(|| wrong("there is no document"))?;
        put(document, &keys, value).map_err(|why| wrong(&why))?;
    }
    Ok(if documents.len() == 1 { documents.remove(0) } else { Value::Array(documents) })
}

/// The change as lines of a file of properties.
pub(super) fn written(edit: Edit) -> Edit {
    let mut lines = Vec::new();
    settings(&super::node::path(&edit.path, "."), &edit.value, &mut lines);
    Edit { line: lines.join("\n"), ..edit }
}

fn settings(path: &str, value: &Value, lines: &mut Vec<String>) {
    match value {
        Value::Object(table) => {
            table.iter().for_each(|(key, value)| settings(&format!("{path}.{key}"), value, lines))
        }
        Value::Array(list) => {
            let texts: Vec<String> = list.iter().map(plain).collect();
            lines.push(format!("{path}={}", texts.join(",")));
        }
        single => lines.push(format!("{path}={}", plain(single))),
    }
}

fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// An odd number of backslashes at the end goes on in the next line.
fn is_continued(line: &str) -> bool {
    line.bytes().rev().take_while(|byte| *byte == b'\\').count() % 2 == 1
}

/// The key ends at the first `=`, `:` or blank that no backslash stands before.
fn split(line: &str) -> (&str, &str) {
    let mut escaped = false;
    let end = line.find(|letter: char| match letter {
        '\\' => {
            escaped = !escaped;
            false
        }
        '=' | ':' | ' ' | '\t' if !escaped => true,
        _ => {
            escaped = false;
            false
        }
    });
    let (key, rest) = line.split_at(end.unwrap_or(line.len()));
    let rest = rest.trim_start();
    (key, rest.strip_prefix(['=', ':']).unwrap_or(rest).trim_start())
}

fn unescaped(text: &str) -> Result<String, &'static str> {
    let mut out = String::new();
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        if letter != '\\' {
            out.push(letter);
            continue;
        }
        match letters.next() {
            Some('n') => out.push('\n'),
            Some('t') => out.push('\t'),
            Some('r') => out.push('\r'),
            Some('f') => out.push('\u{c}'),
            Some('u') => {
                let code: String = letters.by_ref().take(4).collect();
                let code = u32::from_str_radix(&code, 16)
                    .map_err(|_| "\\u is followed by four hexadecimal digits")?;
                out.push(char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER));
            }
            Some(other) => out.push(other),
            None => {}
        }
    }
    Ok(out)
}

/// `a.b[0]` and `a[b.c].d`. `None` where a bracket does not close.
fn keys(text: &str) -> Option<Vec<Key>> {
    let mut keys = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        rest = rest.strip_prefix('.').unwrap_or(rest);
        if let Some(inside) = rest.strip_prefix('[') {
            let (inside, after) = inside.split_once(']')?;
            keys.push(inside.parse().map_or_else(|_| Key::Name(inside.to_owned()), Key::Index));
            rest = after;
            continue;
        }
        let (name, after) = rest.split_at(rest.find(['.', '[']).unwrap_or(rest.len()));
        keys.push(Key::Name(name.to_owned()));
        rest = after;
    }
    (!keys.is_empty()).then_some(keys)
}

/// A later setting wins over an earlier one.
fn put(tree: &mut Value, keys: &[Key], value: Value) -> Result<(), String> {
    let Some((key, rest)) = keys.split_first() else {
        *tree = value;
        return Ok(());
    };
    let below = match key {
        Key::Name(name) => {
            if !tree.is_object() {
                *tree = Value::Object(Map::new());
            }
            tree.as_object_mut().map(|table| table.entry(name.clone()).or_insert(Value::Null))
        }
        Key::Index(index) if *index < MOST_ENTRIES => {
            if !tree.is_array() {
                *tree = Value::Array(Vec::new());
            }
            tree.as_array_mut().and_then(|list| {
                list.resize(list.len().max(index + 1), Value::Null);
                list.get_mut(*index)
            })
        }
        Key::Index(index) => return Err(format!("a list of {index} entries is no list of settings")),
    };
    below.map_or(Ok(()), |below| put(below, rest, value))
}

/// No list in a configuration is longer.
const MOST_ENTRIES: usize = 10_000;

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn keys_lead_down_and_values_are_texts() {
        let text = "# note\n! note\na.b = 1\na.c:two words  \na.list[0]=x\na.list[1]=y\na[d.e].f 3\nempty=\n";
        let inside = json!({ "b": "1", "c": "two words", "list": ["x", "y"], "d.e": { "f": "3" } });
        assert_eq!(parse(text).unwrap(), json!({ "a": inside, "empty": "" }));
        assert_eq!(parse("a=1\n#---\na=2\n").unwrap(), json!([{ "a": "1" }, { "a": "2" }]));
        assert_eq!(parse("a=1\na=2\na.b=3\n").unwrap(), json!({ "a": { "b": "3" } }), "the later wins");
    }

    #[test]
    fn lines_go_on_and_letters_are_escaped() {
        let text = "a=one, \\\n   two\nb=c\\\\\nd\\=e=\\u0041\\:\n";
        assert_eq!(parse(text).unwrap(), json!({ "a": "one, two", "b": "c\\", "d=e": "A:" }));
        assert!(parse("a=1\nb=\\u00zz\n").unwrap_err().contains("line 2"));
        assert!(parse("a[0=1\n").unwrap_err().contains("line 1"));
        assert!(parse("a[99999999999]=1\n").unwrap_err().contains("line 1"));
    }

    #[test]
    fn a_change_of_several_settings_is_several_lines() {
        let value = json!({ "x": 1, "y": ["a", "b"], "z": true });
        let edit = Edit::below(&[Key::Name("r".into()), Key::Index(0)], &["s"], value, ".", ": ");
        assert_eq!(written(edit).line, "r[0].s.x=1\nr[0].s.y=a,b\nr[0].s.z=true");
    }
}
