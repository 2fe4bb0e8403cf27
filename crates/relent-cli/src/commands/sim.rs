//! `relent sim`: a policy in front of a dependency that gets into trouble. What is simulated, measured and judged is
//! `relent-sim`'s; here stand the choices and the tables.

mod choose;
mod compare;
mod gate;
mod list;
mod paper;
mod progress;
mod run;
mod view;

use crate::{
    args::{SimArgs, SimCommand},
    exit::Exit,
};

/// Carries it out.
pub(crate) async fn run(args: SimArgs) -> anyhow::Result<Exit> {
    match args.command {
        SimCommand::List(args) => list::run(args),
        SimCommand::Run(args) => run::run(args),
        SimCommand::Gate(args) => gate::run(args),
        SimCommand::Compare(args) => compare::run(args),
        SimCommand::Paper(args) => paper::run(args),
    }
}
