//! Tables of rows: what they are called, how each is built, and how they are printed.

use crate::{
    pair,
    rounds::{self, Figures},
    work::{Work, kept},
};

/// Rows that are measured in turn, so that whatever slows the machine down slows all of them down.
#[derive(Clone)]
pub(crate) struct Table {
    /// One word, for programs.
    pub(crate) name: &'static str,
    pub(crate) title: &'static str,
    pub(crate) threads: Threads,
    pub(crate) rows: Vec<Row>,
}

/// What is measured, and how to make it ready.
pub(crate) type Row = (&'static str, fn() -> Work);

/// How many threads work on what a row shares.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Threads {
    One,
    /// One, and then two at once.
    Two,
}

impl Table {
    /// How to build the row of that name, which is `TABLE/ROW`.
    pub(crate) fn build(&self, name: &str) -> Option<fn() -> Work> {
        let (table, row) = name.split_once('/')?;
        let found = self.rows.iter().find(|(name, _)| *name == row)?;
        (self.name == table).then_some(found.1)
    }

    /// For people.
    pub(crate) fn print(&self) {
        println!("\n{}", self.title);
        match self.threads {
            Threads::One => println!("{:<52} {:>10} {:>12}", "", "ns", "allocations"),
            Threads::Two => println!("{:<52} {:>10} {:>12} {:>10}", "", "1 thread", "2 threads", "rounds"),
        }
        for (name, figures) in self.measure() {
            let Figures { ns, allocations, together } = figures;
            match together {
                None => println!("{name:<52} {ns:>10.1} {allocations:>12.2}"),
                Some(two) => println!("{name:<52} {ns:>10.1} {:>12.1} {:>10}", two.ns, two.undisturbed),
            }
        }
    }

    /// For programs: lines of words between tabs.
    pub(crate) fn print_facts(&self) {
        println!("table\t{}\t{}", self.name, self.title);
        for (name, figures) in self.measure() {
            let Figures { ns, allocations, together } = figures;
            print!("row\t{}/{name}\t{ns}\t{allocations}", self.name);
            match together {
                None => println!(),
                Some(two) => println!("\t{}\t{}", two.ns, two.undisturbed),
            }
        }
    }

    fn measure(&self) -> Vec<(&'static str, Figures)> {
        // A row lives as long as the process: threads of their own look at it.
        let work = self.rows.iter().map(|(_, build)| kept(build())).collect::<Vec<&'static Work>>();
        let figures = match self.threads {
            Threads::One => rounds::measure(&work),
            Threads::Two => pair::measure(&work),
        };
        self.rows.iter().map(|(name, _)| *name).zip(figures).collect()
    }
}
