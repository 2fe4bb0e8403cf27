//! From text to a tree: TOML, JSON with comments, YAML, Java's properties, and the files of the AWS SDKs.

use std::collections::BTreeSet;

use jsonc_parser::{CollectOptions, ast};
use serde_json::{Map, Value};

use crate::{read::Key, subject::Format};

/// How a file is written.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Notation {
    /// TOML.
    Toml,
    /// JSON, with the comments and the last commas that .NET allows in its settings.
    Json,
    /// YAML, of which each document is one entry of a list where there are several.
    Yaml,
    /// Java's properties, of which each document (`#---`) is one entry of a list where there are several.
    Properties,
    /// Sections and settings as in `~/.aws/config`, or `NAME=value` as in an environment.
    Ini,
}

impl Notation {
    /// How files of that format are written, where nothing else is said.
    pub(crate) const fn of(format: Format) -> Self {
        match format {
            Format::Relent => Self::Toml,
            Format::Microsoft | Format::Azure | Format::Grpc => Self::Json,
            Format::Envoy | Format::Istio | Format::Resilience4j => Self::Yaml,
            Format::Aws => Self::Ini,
        }
    }
}

/// Reads a text in that notation.
pub(super) fn parse(text: &str, notation: Notation) -> Result<Value, String> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    match notation {
        Notation::Toml => {
            let table: toml::Table =
                toml::from_str(text).map_err(|error| error.to_string().trim_end().to_owned())?;
            let odd = table.iter().find_map(|(key, value)| not_finite(key, value));
            match odd {
                Some(path) => Err(format!("{path} is not a number that anything can be")),
                None => serde_json::to_value(table).map_err(|error| error.to_string()),
            }
        }
        Notation::Json => json(text),
        Notation::Yaml => yaml(text),
        Notation::Properties => super::properties::parse(text),
        Notation::Ini => ini(text),
    }
}

/// A key that is there twice is refused, as .NET and TOML refuse it: which of the two counts is anybody's guess.
fn json(text: &str) -> Result<Value, String> {
    let parsed = jsonc_parser::parse_to_ast(text, &CollectOptions::default(), &AS_DOTNET);
    let twice = parsed.map_err(|error| error.to_string())?.value.as_ref().and_then(|value| twice("", value));
    match twice {
        Some(path) => Err(format!("{path} is there twice")),
        None => jsonc_parser::parse_to_serde_value(text, &AS_DOTNET).map_err(|error| error.to_string()),
    }
}

/// The path of a key that is there twice.
fn twice(path: &str, value: &ast::Value<'_>) -> Option<String> {
    let mut names = BTreeSet::new();
    match value {
        ast::Value::Object(object) => object.properties.iter().find_map(|property| {
            let before = if path.is_empty() { String::new() } else { format!("{path}:") };
            let path = format!("{before}{}", property.name.as_str());
            if names.insert(property.name.as_str()) { twice(&path, &property.value) } else { Some(path) }
        }),
        ast::Value::Array(list) => (0..)
            .zip(&list.elements)
            .find_map(|(index, element): (usize, _)| twice(&format!("{path}:{index}"), element)),
        _ => None,
    }
}

/// The path of a number that is none, or without end: JSON has no word for it and would take it for nothing.
fn not_finite(path: &str, value: &toml::Value) -> Option<String> {
    match value {
        toml::Value::Float(number) if !number.is_finite() => Some(path.to_owned()),
        toml::Value::Table(table) => {
            table.iter().find_map(|(key, value)| not_finite(&format!("{path}.{key}"), value))
        }
        toml::Value::Array(list) => {
            list.iter().enumerate().find_map(|(index, value)| not_finite(&format!("{path}[{index}]"), value))
        }
        _ => None,
    }
}

/// The library bounds how deep, how large and how often repeated (by aliases) a document may be.
fn yaml(text: &str) -> Result<Value, String> {
    let mut documents: Vec<Value> = serde_saphyr::from_multiple(text).map_err(|error| error.to_string())?;
    match documents.len() {
        1 => Ok(documents.remove(0)),
        _ => Ok(Value::Array(documents)),
    }
}

/// Settings of a section stand below its name; those before any section, as in an environment, at the top. An
/// indented setting belongs to the one above it.
fn ini(text: &str) -> Result<Value, String> {
    let mut top = Value::Object(Map::new());
    let (mut section, mut above): (Option<String>, Option<String>) = (None, None);
    for (number, line) in (1..).zip(text.lines()) {
        let bare = line.trim();
        if bare.is_empty() || bare.starts_with(['#', ';']) {
            continue;
        }
        if let Some(name) = bare.strip_prefix('[').and_then(|rest| rest.split(']').next()) {
            (section, above) = (Some(name.trim().to_owned()), None);
            let key = Key::Name(name.trim().to_owned());
            if top.get(name.trim()).is_none() {
                super::edit::set(&mut top, &[key], Value::Object(Map::new()));
            }
            continue;
        }
        let bare = bare.strip_prefix("export ").unwrap_or(bare);
        let (key, value) =
            bare.split_once('=').ok_or_else(|| format!("line {number}: \"{bare}\" is no setting"))?;
        let (key, value) = (key.trim(), value.trim().trim_matches('"'));
        let nested = line.starts_with(char::is_whitespace).then(|| above.clone()).flatten();
        if nested.is_none() {
            above = Some(key.to_owned());
        }
        let path = [section.clone(), nested, Some(key.to_owned())];
        let path: Vec<Key> = path.into_iter().flatten().map(Key::Name).collect();
        super::edit::set(&mut top, &path, Value::String(value.to_owned()));
    }
    Ok(top)
}

/// What .NET's configuration allows beyond JSON; gRPC and Envoy allow less, and lose nothing by it.
const AS_DOTNET: jsonc_parser::ParseOptions = jsonc_parser::ParseOptions {
    allow_comments: true,
    allow_trailing_commas: true,
    allow_loose_object_property_names: false,
    allow_missing_commas: false,
    allow_single_quoted_strings: false,
    allow_hexadecimal_numbers: false,
    allow_unary_plus_numbers: false,
    allow_bare_decimal_point_numbers: false,
    allow_non_finite_numbers: false,
    allow_extended_string_escapes: false,
};

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn each_notation_gives_the_same_tree() {
        let tree = json!({ "a": { "b": "1", "c": [true, null] } });
        let json = "\u{feff}{ // note\n \"a\": { \"b\": \"1\", /* more */ \"c\": [true, null,], } }";
        assert_eq!(parse(json, Notation::Json).unwrap(), tree);
        assert_eq!(parse("a:\n  b: '1'\n  c: [true, ~]\n", Notation::Yaml).unwrap(), tree);
        assert_eq!(parse("[a]\nb = '1'", Notation::Toml).unwrap(), json!({ "a": { "b": "1" } }));
        assert_eq!(parse("---\na: 1\n---\na: 2\n", Notation::Yaml).unwrap(), json!([{ "a": 1 }, { "a": 2 }]));
    }

    #[test]
    fn the_files_of_aws_nest_by_indentation_and_may_have_no_section() {
        let text = "# mine\n[default]\nregion = us-east-1\ns3 =\n  max_queue_size = 10\nmax_attempts=3\n[profile x]\n";
        let inside = json!({ "region": "us-east-1", "s3": { "max_queue_size": "10" }, "max_attempts": "3" });
        assert_eq!(parse(text, Notation::Ini).unwrap(), json!({ "default": inside, "profile x": {} }));
        assert_eq!(parse("export A=\"b\"\n", Notation::Ini).unwrap(), json!({ "A": "b" }));
        assert!(parse("what is this", Notation::Ini).unwrap_err().contains("line 1"));
    }

    /// A few lines that would be gigabytes.
    #[test]
    fn a_bomb_of_aliases_is_refused() {
        let mut bomb = String::from("a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n");
        for level in 1..9 {
            let before = level - 1;
            let aliases = vec![format!("*a{before}"); 10].join(", ");
            bomb += &format!("a{level}: &a{level} [{aliases}]\n");
        }
        assert!(parse(&bomb, Notation::Yaml).is_err());
    }
}
