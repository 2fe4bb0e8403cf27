//! Single values over a scenario's file: `callers.rate=700`.

use toml::{Table, Value};

use super::Unusable;

/// Replaces, or adds, the value at a dotted path. A number in the path is a place in a list, counted from 0.
pub(super) fn set(table: &mut Table, path: &str, value: &str) -> Result<(), Unusable> {
    let missing = |step: &str| {
        let way_out = "a setting is a path of the scenario's file, such as callers.rate or effect.0.for";
        Unusable::new(path, format!("there is no \"{step}\" to set; {way_out}"))
    };
    let (first, rest) = match path.split_once('.') {
        None => (path, None),
        Some((first, rest)) => (first, Some(rest)),
    };
    if first.is_empty() {
        return Err(missing(first));
    }
    let Some(rest) = rest else {
        table.insert(first.to_owned(), read(value));
        return Ok(());
    };
    let mut place = table.entry(first).or_insert_with(|| Value::Table(Table::new()));
    let mut steps: Vec<&str> = rest.split('.').collect();
    let last = steps.pop().unwrap_or_default();
    for step in steps {
        place = descend(place, step).ok_or_else(|| missing(step))?;
    }
    match place {
        Value::Table(table) if !last.is_empty() => {
            table.insert(last.to_owned(), read(value));
            Ok(())
        }
        _ => Err(missing(last)),
    }
}

fn descend<'a>(place: &'a mut Value, step: &str) -> Option<&'a mut Value> {
    match place {
        Value::Table(table) => table.get_mut(step),
        Value::Array(list) => list.get_mut(step.parse::<usize>().ok()?),
        _ => None,
    }
}

/// A value of TOML where it is one (a number, a truth, a quoted text), otherwise the text itself.
fn read(value: &str) -> Value {
    let document = format!("value = {value}");
    let read = document.parse::<Table>().ok().and_then(|mut table| table.remove("value"));
    read.filter(|value| !matches!(value, Value::Datetime(_)))
        .unwrap_or_else(|| Value::String(value.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table {
        "[callers]\nrate = 5\n[[effect]]\nfor = '3s'\n[[effect]]\nfor = '4s'\n".parse().expect("it is TOML")
    }

    #[test]
    fn a_setting_replaces_or_adds_one_value() {
        let mut table = table();
        for (path, value) in
            [("callers.rate", "7.5"), ("effect.1.for", "20s"), ("id", "mine"), ("layers.count", "3")]
        {
            set(&mut table, path, value).unwrap_or_else(|error| panic!("{path}: {error}"));
        }
        let expected = "id = 'mine'\n[callers]\nrate = 7.5\n[[effect]]\nfor = '3s'\n[[effect]]\nfor = '20s'\n\
                        [layers]\ncount = 3\n";
        assert_eq!(table, expected.parse::<Table>().expect("it is TOML"));
    }

    #[test]
    fn a_path_that_leads_nowhere_is_refused_by_name() {
        for path in ["effect.2.for", "effect.x.for", "callers.rate.more", "callers.", "", ".rate"] {
            let error = set(&mut table(), path, "1").expect_err(path);
            assert!(error.field == path && error.reason.contains("no \""), "{path}: {error}");
        }
    }
}
