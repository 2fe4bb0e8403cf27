//! What relent's calls are held to: bars, which are promised, and aims, which would be good to reach.
//!
//! Every figure is of one run. Ratios compare best rounds that took turns; two threads are compared by the median of
//! undisturbed rounds.

mod list;

use super::facts::{Facts, Row};

pub(crate) use list::all;

/// Something to hold a figure to.
#[derive(Clone)]
pub(crate) struct Bar {
    pub(crate) what: &'static str,
    pub(crate) kind: Kind,
    pub(crate) limit: Limit,
    figure: Figure,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Kind {
    Bar,
    Aim,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Limit {
    AtMost(f64),
    Below(f64),
    AtLeast(f64),
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Verdict {
    Passes,
    FallsShort,
    /// Callgrind is not there, or the machine left no round alone.
    NotMeasured,
}

/// What is held to it, by the names of rows.
#[derive(Clone, Copy)]
enum Figure {
    Ns(&'static str),
    Instructions(&'static str),
    /// The first row's instructions beyond the second's.
    InstructionsBeyond(&'static str, &'static str),
    Allocations(&'static str),
    /// The first row's nanoseconds by the second's.
    Times(&'static str, &'static str),
    /// The first row's instructions by the second's.
    TimesInstructions(&'static str, &'static str),
    /// How many times as many calls the first row makes by two threads as the fastest of the others.
    Faster(&'static str, &'static [&'static str]),
    /// How many times as many calls two threads make as one.
    Scale(&'static str),
    /// Millions of calls a second, by two threads.
    Millions(&'static str),
    /// Half of what the first row takes longer than the second: one of two further attempts, and the wait before it.
    HalfMore(&'static str, &'static str),
    /// The dearest row of a table by its cheapest.
    Spread(&'static str),
    /// The same in instructions.
    SpreadInstructions(&'static str),
}

impl Bar {
    /// The figure, if there is one, and what it comes to.
    pub(crate) fn judge(&self, facts: &Facts) -> Result<(Option<f64>, Verdict), String> {
        let figure = self.figure.of(facts)?.filter(|figure| figure.is_finite());
        let verdict = match figure {
            None => Verdict::NotMeasured,
            Some(figure) if self.limit.allows(figure) => Verdict::Passes,
            Some(_) => Verdict::FallsShort,
        };
        Ok((figure, verdict))
    }
}

impl Limit {
    fn allows(self, figure: f64) -> bool {
        match self {
            Self::AtMost(most) => figure <= most,
            Self::Below(bound) => figure < bound,
            Self::AtLeast(least) => figure >= least,
        }
    }

    pub(crate) fn words(self) -> String {
        match self {
            Self::AtMost(most) => format!("at most {most}"),
            Self::Below(bound) => format!("below {bound}"),
            Self::AtLeast(least) => format!("at least {least}"),
        }
    }
}

impl Verdict {
    pub(crate) const fn words(self) -> &'static str {
        match self {
            Self::Passes => "passes",
            Self::FallsShort => "**falls short**",
            Self::NotMeasured => "not measured",
        }
    }
}

impl Figure {
    fn of(self, facts: &Facts) -> Result<Option<f64>, String> {
        let row = |name| facts.row(name);
        let told = |row: &Row| row.together.filter(|two| two.rounds >= FEWEST_ROUNDS).map(|two| two.ns);
        let both = |name| row(name).map(told);
        Ok(match self {
            Self::Ns(name) => Some(row(name)?.ns),
            Self::Instructions(name) => row(name)?.instructions,
            Self::InstructionsBeyond(name, than) => {
                row(name)?.instructions.zip(row(than)?.instructions).map(|(all, its)| all - its)
            }
            Self::Allocations(name) => Some(row(name)?.allocations),
            Self::Times(name, by) => Some(row(name)?.ns / row(by)?.ns),
            Self::TimesInstructions(name, by) => ratio(row(name)?.instructions, row(by)?.instructions),
            Self::Faster(name, than) => {
                let times = than.iter().map(|name| both(name)).collect::<Result<Option<Vec<_>>, _>>()?;
                ratio(times.map(|times| times.into_iter().fold(f64::INFINITY, f64::min)), both(name)?)
            }
            Self::Scale(name) => ratio(Some(row(name)?.ns), both(name)?),
            Self::Millions(name) => ratio(Some(1_000.0), both(name)?),
            Self::HalfMore(name, than) => Some((row(name)?.ns - row(than)?.ns) / 2.0),
            Self::Spread(table) => spread(&facts.rows_of(table), |row| Some(row.ns)),
            Self::SpreadInstructions(table) => spread(&facts.rows_of(table), |row| row.instructions),
        })
    }
}

/// The median of fewer undisturbed rounds says nothing.
const FEWEST_ROUNDS: f64 = 20.0;

fn ratio(of: Option<f64>, by: Option<f64>) -> Option<f64> {
    Some(of? / by?)
}

fn spread(rows: &[&Row], figure: impl Fn(&Row) -> Option<f64>) -> Option<f64> {
    let figures = rows.iter().map(|row| figure(row)).collect::<Option<Vec<_>>>()?;
    let least = figures.iter().copied().fold(f64::INFINITY, f64::min);
    ratio(figures.into_iter().reduce(f64::max), Some(least))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts() -> Facts {
        let printed = "table\tready\tReady\nrow\tready/a\t30\t0\nrow\tready/b\t20\t2\ntable\tshared\tShared\n\
                       row\tshared/a\t10\t0\t6\t40\nrow\tshared/b\t10\t0\t12\t40\nrow\tshared/c\t10\t0\tNaN\t0\n";
        Facts::parse(printed).unwrap()
    }

    fn judged(figure: Figure, limit: Limit) -> (Option<f64>, Verdict) {
        Bar { what: "", kind: Kind::Bar, limit, figure }.judge(&facts()).unwrap()
    }

    #[test]
    fn a_figure_is_held_to_its_limit() {
        use Figure::{Allocations, Faster, HalfMore, Millions, Scale, Spread, Times};
        use Limit::{AtLeast, AtMost, Below};
        use Verdict::{FallsShort, Passes};
        for (figure, limit, is, verdict) in [
            (Times("ready/a", "ready/b"), AtMost(1.5), 1.5, Passes),
            (Times("ready/a", "ready/b"), Below(1.5), 1.5, FallsShort),
            (Allocations("ready/b"), AtMost(0.0), 2.0, FallsShort),
            (HalfMore("ready/a", "ready/b"), Below(6.0), 5.0, Passes),
            (Spread("ready"), AtMost(1.25), 1.5, FallsShort),
            (Faster("shared/a", &["shared/b"]), AtLeast(2.0), 2.0, Passes),
            (Faster("shared/b", &["shared/a", "shared/b"]), AtLeast(1.0), 0.5, FallsShort),
            (Scale("shared/a"), AtLeast(1.6), 10.0 / 6.0, Passes),
            (Millions("shared/b"), AtLeast(84.0), 1_000.0 / 12.0, FallsShort),
        ] {
            assert_eq!(judged(figure, limit), (Some(is), verdict));
        }
    }

    #[test]
    fn what_was_not_measured_neither_passes_nor_falls_short() {
        for figure in [Figure::Instructions("ready/a"), Figure::Scale("shared/c"), Figure::Scale("ready/a")] {
            assert_eq!(judged(figure, Limit::AtMost(0.0)), (None, Verdict::NotMeasured));
        }
    }

    #[test]
    fn a_bar_about_a_row_that_is_not_there_is_an_error() {
        let bar = Bar { what: "", kind: Kind::Bar, limit: Limit::AtMost(1.0), figure: Figure::Ns("ready/z") };
        assert!(bar.judge(&facts()).is_err());
    }
}
