//! The shapes of values that serde does not derive: a string or a number, a word or a table, an ordered map.

use alloc::{
    format,
    string::{String, ToString},
    vec::Vec,
};
use core::{fmt, marker::PhantomData};

use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{Error, MapAccess, Visitor, value::MapAccessDeserializer},
};

/// A string or a number, as it was written.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Scalar {
    Text(String),
    Whole(i64),
    Real(f64),
}

impl Scalar {
    /// As it stands in the file: a text with its quotes, which may be what is wrong with it.
    pub(super) fn as_written(&self) -> String {
        match self {
            Self::Text(text) => format!("{text:?}"),
            number => number.to_string(),
        }
    }
}

impl fmt::Display for Scalar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => f.write_str(text),
            Self::Whole(number) => number.fmt(f),
            Self::Real(number) => number.fmt(f),
        }
    }
}

impl Serialize for Scalar {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Text(text) => to.serialize_str(text),
            Self::Whole(number) => to.serialize_i64(*number),
            Self::Real(number) => to.serialize_f64(*number),
        }
    }
}

impl<'de> Deserialize<'de> for Scalar {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Written;
        impl Visitor<'_> for Written {
            type Value = Scalar;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string or a number")
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Scalar, E> {
                Ok(Scalar::Text(text.to_string()))
            }

            fn visit_i64<E: Error>(self, number: i64) -> Result<Scalar, E> {
                Ok(Scalar::Whole(number))
            }

            fn visit_u64<E: Error>(self, number: u64) -> Result<Scalar, E> {
                i64::try_from(number).map(Scalar::Whole).map_err(|_| E::custom("the number is too large"))
            }

            fn visit_f64<E: Error>(self, number: f64) -> Result<Scalar, E> {
                Ok(Scalar::Real(number))
            }
        }
        from.deserialize_any(Written)
    }
}

/// A word, or a table where a word does not say enough. Not serde's untagged: that would hide from the user
/// which field of the table is wrong.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum WordOr<T> {
    Word(String),
    Table(T),
}

impl<T: Serialize> Serialize for WordOr<T> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Word(word) => to.serialize_str(word),
            Self::Table(table) => table.serialize(to),
        }
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for WordOr<T> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Either<T>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for Either<T> {
            type Value = WordOr<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a word or a table")
            }

            fn visit_str<E: Error>(self, word: &str) -> Result<WordOr<T>, E> {
                Ok(WordOr::Word(word.to_string()))
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<WordOr<T>, A::Error> {
                T::deserialize(MapAccessDeserializer::new(map)).map(WordOr::Table)
            }
        }
        from.deserialize_any(Either(PhantomData))
    }
}

/// A map in the order in which it came.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Pairs<T>(pub(super) Vec<(String, T)>);

impl<T> Default for Pairs<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T: Serialize> Serialize for Pairs<T> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_map(self.0.iter().map(|(key, value)| (key, value)))
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Pairs<T> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Map<T>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for Map<T> {
            type Value = Pairs<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a table")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Pairs<T>, A::Error> {
                let mut pairs = Vec::new();
                while let Some(pair) = map.next_entry()? {
                    pairs.push(pair);
                }
                Ok(Pairs(pairs))
            }
        }
        from.deserialize_map(Map(PhantomData))
    }
}
