//! What somebody probably meant who wrote a name that does not exist.

/// Adds to serde's sentence about an unknown field the nearest field that it lists, if one is near:
/// ``unknown field `lisen`, expected one of `listen`, `data`; did you mean `listen`?`` The sentence may stand under the
/// line that it is about, as TOML's errors have it.
pub(crate) fn with_suggestion(sentence: &str) -> String {
    let said = sentence.lines().next_back().unwrap_or_default();
    let mut quoted = said.split('`').skip(1).step_by(2);
    let unknown = quoted.next().filter(|_| said.starts_with("unknown "));
    match unknown.and_then(|unknown| nearest(unknown, quoted)) {
        Some(meant) => format!("{sentence}; did you mean `{meant}`?"),
        None => sentence.to_owned(),
    }
}

/// The candidate with the fewest edits, if these are few for the length of the name.
pub(crate) fn nearest<'a>(name: &str, candidates: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    candidates
        .map(|candidate| (edits(name, candidate), candidate))
        .min()
        .filter(|(edits, candidate)| *edits <= candidate.len().div_ceil(3))
        .map(|(_, candidate)| candidate)
}

/// The Levenshtein distance of two short names (Wagner and Fischer, one row at a time).
fn edits(one: &str, other: &str) -> usize {
    let other: Vec<char> = other.chars().collect();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (above, letter) in one.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = above + 1;
        for (column, opposite) in other.iter().enumerate() {
            let swap = diagonal + usize::from(letter != *opposite);
            diagonal = row[column + 1];
            row[column + 1] = swap.min(diagonal + 1).min(row[column] + 1);
        }
    }
    row[other.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_near_name_is_suggested_and_a_far_one_is_not() {
        let said = "unknown field `lisen`, expected one of `data`, `listen`";
        assert_eq!(with_suggestion(said), format!("{said}; did you mean `listen`?"));
        let far = "unknown field `colour`, expected one of `data`, `listen`";
        assert_eq!(with_suggestion(far), far);
        let under_its_line = format!("TOML parse error at line 1, column 1\n1 | lisen = `x`\n{said}");
        assert_eq!(with_suggestion(&under_its_line), format!("{under_its_line}; did you mean `listen`?"));
        let other = "missing field `data`";
        assert_eq!(with_suggestion(other), other);
    }

    #[test]
    fn edits_are_counted() {
        for (one, other, count) in
            [("", "", 0), ("a", "", 1), ("kitten", "sitting", 3), ("drian", "drain", 2)]
        {
            assert_eq!(edits(one, other), count);
            assert_eq!(edits(other, one), count);
        }
    }
}
