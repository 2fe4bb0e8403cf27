//! What the bench of calls has measured: tables of rows, by name.

/// All tables of one run.
#[derive(Debug, Default)]
pub(crate) struct Facts {
    pub(crate) tables: Vec<Table>,
}

#[derive(Debug)]
pub(crate) struct Table {
    pub(crate) title: String,
    pub(crate) rows: Vec<Row>,
}

/// Per call.
#[derive(Debug)]
pub(crate) struct Row {
    /// `TABLE/ROW`.
    pub(crate) name: String,
    /// Nanoseconds by one thread, in the best round.
    pub(crate) ns: f64,
    pub(crate) allocations: f64,
    /// Counted by callgrind, where it is there.
    pub(crate) instructions: Option<f64>,
    pub(crate) together: Option<Together>,
}

/// Two threads at once.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Together {
    /// Nanoseconds that pass for each call of either.
    pub(crate) ns: f64,
    /// How many rounds were undisturbed; only those count.
    pub(crate) rounds: f64,
}

impl Facts {
    /// From what the bench prints for programs.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let mut facts = Self::default();
        for line in text.lines() {
            match line.split('\t').collect::<Vec<_>>()[..] {
                ["table", _, title] => facts.tables.push(Table { title: title.into(), rows: Vec::new() }),
                ["row", name, ref figures @ ..] => {
                    let table = facts.tables.last_mut().ok_or("a row before the first table")?;
                    table.rows.push(Row::parse(name, figures)?);
                }
                _ => return Err(format!("the bench prints a line that nobody knows: {line}")),
            }
        }
        Ok(facts)
    }

    /// The row of that name. A bar that names another is a mistake of ours.
    pub(crate) fn row(&self, name: &str) -> Result<&Row, String> {
        let mut rows = self.tables.iter().flat_map(|table| &table.rows);
        rows.find(|row| row.name == name).ok_or_else(|| format!("the bench has no row {name}"))
    }

    /// The rows whose names begin so.
    pub(crate) fn rows_of(&self, table: &str) -> Vec<&Row> {
        let rows = self.tables.iter().flat_map(|table| &table.rows);
        rows.filter(|row| row.name.split_once('/').is_some_and(|(its, _)| its == table)).collect()
    }
}

impl Row {
    fn parse(name: &str, figures: &[&str]) -> Result<Self, String> {
        let read = |word: &&str| word.parse::<f64>().map_err(|error| format!("{name}: {word}: {error}"));
        let figures = figures.iter().map(read).collect::<Result<Vec<_>, _>>()?;
        let (ns, allocations, together) = match figures[..] {
            [ns, allocations] => (ns, allocations, None),
            [ns, allocations, both, rounds] => (ns, allocations, Some(Together { ns: both, rounds })),
            _ => return Err(format!("{name}: {} figures", figures.len())),
        };
        Ok(Self { name: name.into(), ns, allocations, instructions: None, together })
    }

    /// Its name within its table.
    pub(crate) fn short_name(&self) -> &str {
        self.name.split_once('/').map_or(&self.name, |(_, row)| row)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PRINTED: &str = "table\tready\tA whole call\nrow\tready/relent\t119.5\t0\n\
                           table\tshared\tShared\nrow\tshared/relent\t20\t0\t11\t57\n";

    #[test]
    fn what_the_bench_prints_is_understood() {
        let facts = Facts::parse(PRINTED).unwrap();
        let relent = facts.row("ready/relent").unwrap();
        assert_eq!((relent.ns, relent.allocations, relent.short_name()), (119.5, 0.0, "relent"));
        assert!(relent.together.is_none());
        let shared = facts.rows_of("shared");
        let together = shared[0].together.unwrap();
        assert_eq!((shared.len(), together.ns, together.rounds), (1, 11.0, 57.0));
    }

    #[test]
    fn what_nobody_knows_is_an_error_and_so_is_a_row_that_is_not_there() {
        for line in
            ["calls: skipped", "row\tready/relent\t1\t0", "table\tready\tA\nrow\tready/relent\tfast\t0"]
        {
            assert!(Facts::parse(line).is_err(), "{line}");
        }
        assert!(Facts::parse(PRINTED).unwrap().row("ready/tower").is_err());
    }
}
