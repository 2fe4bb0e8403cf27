//! What calls cost under relent and under what else there is, in one run: whole calls, refusals, each policy by itself,
//! two threads at once, and a breaker whose window holds more and more.
//!
//! `cargo xtask bench calls` adds the instructions that callgrind counts, and says which bars hold. By hand:
//! `cargo bench -p relent --bench calls`, with the names of tables if not all of them are wanted. One row without the
//! harness: `BENCH make TABLE/ROW CALLS`.

#![expect(clippy::disallowed_methods, reason = "a benchmark times real work")]

mod alone;
mod controls;
#[path = "../../tests/counting/mod.rs"]
mod counting;
mod operation;
mod packed;
mod pair;
mod peers;
mod policy;
mod refused;
mod rounds;
mod shared;
mod table;
mod whole;
mod window;
mod work;

use std::env;

use table::Table;
use work::Work;

fn main() {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let has = |flag| arguments.iter().any(|argument| argument == flag);
    if let ["make", row, calls] = arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        make(row, calls.parse().expect("a number of calls"));
    } else if has("--bench") {
        let print = if has("--facts") { Table::print_facts } else { Table::print };
        let named = tables().into_iter().filter(|table| has(table.name)).collect::<Vec<_>>();
        let wanted = if named.is_empty() { tables() } else { named };
        wanted.iter().for_each(print);
    } else {
        // `cargo test --benches` runs it too, in a profile that would say nothing.
        println!("calls: skipped, run it with `cargo xtask bench calls`");
    }
}

fn tables() -> Vec<Table> {
    [whole::tables(), refused::tables(), alone::tables(), shared::tables(), window::tables()].concat()
}

/// Makes so many calls of one row, by itself.
fn make(row: &str, calls: u32) {
    let tables = tables();
    let build = tables.iter().find_map(|table| table.build(row)).expect("a row that is there");
    let work = build();
    work(10);
    counted_by_callgrind(&work, calls);
}

/// Callgrind is told to count in here only: what makes a row ready is no part of its calls.
#[inline(never)]
fn counted_by_callgrind(work: &Work, calls: u32) {
    work(calls);
}
