//! `relent sim list`: the standard scenarios.

use relent_sim::scenario::{Standard, standard};

use super::{choose, view::ListView};
use crate::{
    args::SimListArgs,
    exit::{Exit, Misuse},
    output::{Table, print, print_json, words},
};

/// Carries it out.
pub(super) fn run(args: SimListArgs) -> anyhow::Result<Exit> {
    if let Some(id) = &args.scenario {
        let known = || Standard::ALL.iter().map(|standard| standard.id).collect::<Vec<_>>().join(", ");
        let found = standard(id).ok_or_else(|| {
            Misuse::new(format!("there is no standard scenario \"{id}\"; write one of {}", known()))
        })?;
        match args.json {
            true => print_json(&ListView::new(&[choose::scenario(id, &[])?]))?,
            false => print(found.text)?,
        }
        return Ok(Exit::Done);
    }
    let scenarios = choose::scenarios(&[])?;
    if args.json {
        print_json(&ListView::new(&scenarios))?;
        return Ok(Exit::Done);
    }
    let mut table = Table::new([words("SCENARIO"), words("WHAT GOES WRONG"), words("GATES")]).uncut();
    for scenario in &scenarios {
        let gates = match (&scenario.control, scenario.gates.len()) {
            (Some(_), _) => "a control: no retry policy passes".to_owned(),
            (None, 0) => "none".to_owned(),
            (None, count) => count.to_string(),
        };
        table.row([scenario.id.clone(), scenario.title.clone(), gates]);
    }
    print(&table.render(0))?;
    Ok(Exit::Done)
}
