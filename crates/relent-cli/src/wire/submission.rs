//! What a sender says: the body of `POST /v1/messages`.

use std::{collections::BTreeMap, fmt};

use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{self, MapAccess, SeqAccess, Visitor},
};

/// A message as its sender writes it. Everything but the URL may be left out; an unknown field is refused,
/// since a misspelt `deadline` must not become a message without one.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields, expecting = "an object")]
pub(crate) struct SubmissionText {
    /// Where it goes. Never absent in what is accepted; optional here so that its absence can be named.
    pub(crate) url: Option<String>,
    /// The HTTP method; `POST` if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) method: Option<String>,
    /// Headers.
    #[serde(default, skip_serializing_if = "HeaderList::is_empty")]
    pub(crate) headers: HeaderList,
    /// The body as text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) body: Option<String>,
    /// The body in base64, instead of `body`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) body_base64: Option<String>,
    /// The idempotency key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) key: Option<String>,
    /// Not to be sent before: RFC 3339, or a duration from now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) not_before: Option<String>,
    /// Of no use after: RFC 3339, or a duration from now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) deadline: Option<String>,
    /// The policy's name; `durable` if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) policy: Option<String>,
    /// `safe`, `keyed`, `unsafe` or `never`; the policy's if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) repeat: Option<String>,
    /// The sender's own labels.
    #[serde(default, deserialize_with = "distinct", skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) labels: BTreeMap<String, String>,
}

/// A map in which no name stands twice: of two values one would be lost without a word.
fn distinct<'de, D: Deserializer<'de>>(deserializer: D) -> Result<BTreeMap<String, String>, D::Error> {
    deserializer.deserialize_map(LabelVisitor)
}

struct LabelVisitor;

impl<'de> Visitor<'de> for LabelVisitor {
    type Value = BTreeMap<String, String>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object of strings")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Self::Value, A::Error> {
        let mut labels = BTreeMap::new();
        while let Some((name, value)) = entries.next_entry::<String, String>()? {
            if labels.contains_key(&name) {
                return Err(de::Error::custom(format_args!(
                    "the label {name:?} is there twice; send it once"
                )));
            }
            labels.insert(name, value);
        }
        Ok(labels)
    }
}

/// Headers in order. Read from an object whose values are strings or arrays of strings, or from an array of
/// pairs; written as an array of pairs, which keeps everything.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(crate) struct HeaderList(pub(crate) Vec<(String, String)>);

impl HeaderList {
    /// Whether there is none.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl Serialize for HeaderList {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for HeaderList {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(HeaderVisitor)
    }
}

struct HeaderVisitor;

impl<'de> Visitor<'de> for HeaderVisitor {
    type Value = HeaderList;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object of strings or arrays of strings, or an array of [name, value] pairs")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut pairs: A) -> Result<HeaderList, A::Error> {
        let mut headers = Vec::new();
        while let Some(pair) = pairs.next_element()? {
            headers.push(pair);
        }
        Ok(HeaderList(headers))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<HeaderList, A::Error> {
        let mut headers = Vec::new();
        while let Some(name) = entries.next_key::<String>()? {
            match entries.next_value::<OneOrMore>()? {
                OneOrMore::One(value) => headers.push((name, value)),
                OneOrMore::More(values) => {
                    headers.extend(values.into_iter().map(|value| (name.clone(), value)))
                }
            }
        }
        Ok(HeaderList(headers))
    }
}

#[derive(Deserialize)]
#[serde(untagged, expecting = "a string or an array of strings")]
enum OneOrMore {
    One(String),
    More(Vec<String>),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_may_be_an_object_or_pairs() {
        let object: HeaderList = serde_json::from_str(r#"{"b": "2", "a": ["1", "3"]}"#).unwrap();
        let pairs: HeaderList = serde_json::from_str(r#"[["b", "2"], ["a", "1"], ["a", "3"]]"#).unwrap();
        assert_eq!(object, pairs);
        let written = serde_json::to_string(&object).unwrap();
        assert_eq!(serde_json::from_str::<HeaderList>(&written).unwrap(), object);
        for wrong in [r#""a: 1""#, "7", r#"{"a": 1}"#, r#"[["a"]]"#, r#"[["a", "1", "2"]]"#] {
            assert!(serde_json::from_str::<HeaderList>(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_label_that_is_there_twice_is_refused() {
        let said = |text| serde_json::from_str::<SubmissionText>(text);
        let error = said(r#"{"url": "http://a/", "labels": {"a": "1", "b": "2", "a": "1"}}"#).unwrap_err();
        assert!(error.to_string().contains("the label \"a\" is there twice"), "{error}");
        assert_eq!(said(r#"{"url": "http://a/", "labels": {"a": "1", "b": "2"}}"#).unwrap().labels.len(), 2);
    }

    #[test]
    fn a_misspelt_field_is_refused() {
        let error = serde_json::from_str::<SubmissionText>(r#"{"url": "http://a/", "dead_line": "1h"}"#);
        assert!(error.unwrap_err().to_string().contains("unknown field `dead_line`"));
    }
}
