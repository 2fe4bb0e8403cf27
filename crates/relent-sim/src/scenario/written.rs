//! The values of a scenario's file as people write them. serde's own reading names a type of Rust where another one was
//! written; this says what to write, with an example.

use std::{fmt, marker::PhantomData};

use serde::{
    Deserialize, Deserializer,
    de::{Error, SeqAccess, Unexpected, Visitor},
};

/// A length of time, which has a unit.
pub(super) fn length<'de, D: Deserializer<'de>, T: From<String>>(from: D) -> Result<T, D::Error> {
    from.deserialize_any(Text("a length with its unit, such as \"25ms\"")).map(T::from)
}

/// A name, a word out of a list, a sentence.
pub(super) fn text<'de, D: Deserializer<'de>, T: From<String>>(from: D) -> Result<T, D::Error> {
    from.deserialize_any(Text("a text in quotes, such as \"open\"")).map(T::from)
}

/// How many.
pub(super) fn count<'de, D: Deserializer<'de>, T: From<u32>>(from: D) -> Result<T, D::Error> {
    from.deserialize_any(Whole("a whole number from 0 to 4294967295, such as 10", PhantomData::<u32>))
        .map(T::from)
}

/// A status of HTTP.
pub(super) fn status<'de, D: Deserializer<'de>, T: From<u16>>(from: D) -> Result<T, D::Error> {
    from.deserialize_any(Whole("a status, such as 503", PhantomData::<u16>)).map(T::from)
}

/// A rate, a share, a bound.
pub(super) fn number<'de, D: Deserializer<'de>, T: From<f64>>(from: D) -> Result<T, D::Error> {
    from.deserialize_any(Number).map(T::from)
}

/// Whether it is so.
pub(super) fn truth<'de, D: Deserializer<'de>, T: From<bool>>(from: D) -> Result<T, D::Error> {
    from.deserialize_any(Truth).map(T::from)
}

/// Tables of the same name.
pub(super) fn tables<'de, D: Deserializer<'de>, T: Deserialize<'de>>(from: D) -> Result<Vec<T>, D::Error> {
    from.deserialize_any(Tables(PhantomData))
}

struct Text(&'static str);

impl Visitor<'_> for Text {
    type Value = String;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<String, E> {
        Ok(text.to_owned())
    }
}

struct Whole<T>(&'static str, PhantomData<T>);

impl<T: TryFrom<i64>> Visitor<'_> for Whole<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<T, E> {
        T::try_from(number).map_err(|_| E::invalid_value(Unexpected::Signed(number), &self.0))
    }
}

struct Number;

impl Visitor<'_> for Number {
    type Value = f64;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a number, such as 850 or 0.5")
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<f64, E> {
        let small = i32::try_from(number).map_err(|_| E::invalid_value(Unexpected::Signed(number), &self))?;
        Ok(f64::from(small))
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<f64, E> {
        Ok(number)
    }
}

struct Truth;

impl Visitor<'_> for Truth {
    type Value = bool;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("true or false, without quotes")
    }

    fn visit_bool<E: Error>(self, truth: bool) -> Result<bool, E> {
        Ok(truth)
    }
}

struct Tables<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for Tables<T> {
    type Value = Vec<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any number of tables, each under its name in double brackets, such as [[effect]]")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Vec<T>, A::Error> {
        let mut tables = Vec::new();
        while let Some(table) = list.next_element()? {
            tables.push(table);
        }
        Ok(tables)
    }
}

#[cfg(test)]
mod tests {
    use super::super::Scenario;

    const SOUND: &str = "\
        id = 'mine'\nduration = '10s'\n[dependency]\nworkers = 10\nservice = '25ms'\nqueue = 100\n\
        [callers]\nkind = 'open'\nrate = 100\n[[effect]]\nkind = 'speed'\nto = 0.5\nfrom = '1s'\n\
        [[gate]]\nmeasure = 'success'\nat_least = 50\nbreaker = false\n";

    #[test]
    fn a_value_of_another_kind_says_what_to_write() {
        let base = Scenario::parse(SOUND, &[]).expect("it is sound");
        assert_eq!(
            base,
            Scenario::parse(SOUND, &[("callers.rate", "100.0")]).expect("a whole number is a number")
        );
        for (path, value, says) in [
            ("dependency.service", "25", "integer `25`, expected a length with its unit, such as \"25ms\""),
            ("dependency.workers", "-8", "integer `-8`, expected a whole number from 0"),
            ("dependency.workers", "1.5", "`1.5`, expected a whole number"),
            ("callers.rate", "abc", "string \"abc\", expected a number, such as 850 or 0.5"),
            ("callers.rate", "5000000000", "expected a number"),
            ("dependency.drop_expired", "maybe", "expected true or false, without quotes"),
            ("dependency.fail_status", "70000", "expected a status, such as 503"),
            ("callers.kind", "7", "expected a text in quotes"),
            ("duration", "true", "expected a length"),
            ("effect.0.from", "1", "expected a length"),
            ("effect", "1", "double brackets"),
            ("gate.0.breaker", "'no'", "true or false"),
        ] {
            let error = Scenario::parse(SOUND, &[(path, value)]).expect_err(path).to_string();
            let rust = ["u32", "u16", "f64", "expected a string", "a boolean", "sequence"];
            assert!(error.contains(says), "{path}={value}: {error}");
            assert!(!rust.iter().any(|word| error.contains(word)), "{path}={value}: {error}");
        }
    }
}
