//! Just enough of structured fields (RFC 9651) for `RateLimit`: a list of items with parameters, or a dictionary.
//!
//! What does not follow the grammar is no list at all: a quota that was half understood is worse than none.

/// One member: `"burst";r=0;t=30`, or `reset=30`.
#[derive(Debug, Eq, PartialEq)]
pub(super) struct Member<'a> {
    /// The key, if this is a member of a dictionary.
    pub(super) key: Option<&'a str>,
    /// The value.
    pub(super) value: Value,
    parameters: Vec<(&'a str, Value)>,
}

/// A value, as far as anybody asks.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Value {
    Integer(i64),
    Other,
}

impl Member<'_> {
    /// The integer of that parameter.
    pub(super) fn integer(&self, name: &str) -> Option<i64> {
        // Of a parameter that stands twice the last counts.
        let (_, value) = self.parameters.iter().rfind(|(key, _)| *key == name)?;
        value.integer()
    }
}

impl Value {
    pub(super) const fn integer(self) -> Option<i64> {
        match self {
            Self::Integer(number) => Some(number),
            Self::Other => None,
        }
    }
}

/// The members of a field, or `None` if it does not follow the grammar.
pub(super) fn members(text: &str) -> Option<Vec<Member<'_>>> {
    let mut rest = Rest(text.trim_matches(' '));
    let mut members = Vec::new();
    while !rest.0.is_empty() {
        members.push(rest.member()?);
        rest.skip(&[' ', '\t']);
        if rest.0.is_empty() {
            break;
        }
        rest.take(',')?;
        rest.skip(&[' ', '\t']);
        if rest.0.is_empty() {
            return None; // a comma and nothing after it
        }
    }
    Some(members)
}

/// What has not been read yet.
struct Rest<'a>(&'a str);

impl<'a> Rest<'a> {
    fn member(&mut self) -> Option<Member<'a>> {
        let before = self.0;
        let key = self.key().filter(|_| self.take('=').is_some());
        if key.is_none() {
            self.0 = before;
        }
        let value = self.value()?;
        let mut parameters = Vec::new();
        while self.take(';').is_some() {
            self.skip(&[' ']);
            let key = self.key()?;
            let value = if self.take('=').is_some() { self.value()? } else { Value::Other };
            parameters.push((key, value));
        }
        Some(Member { key, value, parameters })
    }

    fn key(&mut self) -> Option<&'a str> {
        let start = self.0.starts_with(|first: char| first.is_ascii_lowercase() || first == '*');
        let key =
            self.run(|char| char.is_ascii_lowercase() || char.is_ascii_digit() || "_-.*".contains(char));
        key.filter(|_| start)
    }

    fn value(&mut self) -> Option<Value> {
        match self.0.chars().next()? {
            '"' => self.string(),
            ':' => self.bytes(),
            '?' => {
                self.take('?')?;
                self.take('0').or_else(|| self.take('1')).map(|()| Value::Other)
            }
            '-' | '0'..='9' => self.number(),
            first if first.is_ascii_alphabetic() || first == '*' => {
                self.run(|char| char.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~:/".contains(char))?;
                Some(Value::Other)
            }
            _ => None,
        }
    }

    /// Up to 15 digits, or a decimal of up to 12 and 3.
    fn number(&mut self) -> Option<Value> {
        let negative = self.take('-').is_some();
        let digits = self.run(|char| char.is_ascii_digit())?;
        if self.take('.').is_some() {
            let fraction = self.run(|char| char.is_ascii_digit())?;
            return (digits.len() <= 12 && fraction.len() <= 3).then_some(Value::Other);
        }
        let number: i64 = digits.parse().ok().filter(|_| digits.len() <= 15)?;
        Some(Value::Integer(if negative { -number } else { number }))
    }

    fn string(&mut self) -> Option<Value> {
        self.take('"')?;
        let mut chars = self.0.char_indices();
        while let Some((at, char)) = chars.next() {
            match char {
                '"' => {
                    self.0 = &self.0[at + 1..];
                    return Some(Value::Other);
                }
                '\\' if !matches!(chars.next(), Some((_, '"' | '\\'))) => return None,
                ' '..='~' => {}
                _ => return None,
            }
        }
        None
    }

    fn bytes(&mut self) -> Option<Value> {
        self.take(':')?;
        self.run(|char| char.is_ascii_alphanumeric() || "+/=".contains(char));
        self.take(':').map(|()| Value::Other)
    }

    fn run(&mut self, belongs: impl Fn(char) -> bool) -> Option<&'a str> {
        let end = self.0.find(|char| !belongs(char)).unwrap_or(self.0.len());
        let (run, rest) = self.0.split_at(end);
        self.0 = rest;
        (!run.is_empty()).then_some(run)
    }

    fn take(&mut self, char: char) -> Option<()> {
        self.0 = self.0.strip_prefix(char)?;
        Some(())
    }

    fn skip(&mut self, space: &[char]) {
        self.0 = self.0.trim_start_matches(space);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_have_their_parameters() {
        let read = members(r#""burst;\"x\"";r=0;t=30;qu="requests";pk=:YWI=:, day ; r=-1;x, 7.5;r=?1"#);
        assert!(read.is_none(), "no space before a semicolon");
        let read =
            members(r#""burst;\"x\"";r=0;t=30;qu="requests";pk=:YWI=:,	 day; r=-1;x, 7.5;r=?1"#).unwrap();
        assert_eq!(read.len(), 3);
        assert_eq!(
            (read[0].integer("r"), read[0].integer("t"), read[0].integer("qu")),
            (Some(0), Some(30), None)
        );
        assert_eq!((read[1].integer("r"), read[1].integer("x")), (Some(-1), None));
        assert_eq!((read[2].value, read[2].integer("r")), (Value::Other, None));
    }

    #[test]
    fn a_dictionary_has_keys() {
        let read = members("limit=100, remaining=0;w=1, reset=30").unwrap();
        let pairs: Vec<_> = read.iter().map(|member| (member.key.unwrap(), member.value.integer())).collect();
        assert_eq!(pairs, [("limit", Some(100)), ("remaining", Some(0)), ("reset", Some(30))]);
    }

    #[test]
    fn what_does_not_follow_the_grammar_is_no_list() {
        for junk in [
            ",",
            "a,",
            "a,,b",
            "a b",
            "\"open",
            "\"bad\\escape\"",
            "a;",
            "a;R=1",
            "a;r=",
            "=1",
            "1234567890123456",
            "1.",
            "-",
            "?2",
            ":YWI",
            "é",
            "a;r=é",
            "(1 2)",
            "\u{7f}",
        ] {
            assert_eq!(members(junk), None, "{junk:?}");
        }
        assert_eq!(members(""), Some(Vec::new()));
    }
}
