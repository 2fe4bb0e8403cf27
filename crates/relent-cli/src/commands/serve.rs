//! `relent serve`.

use crate::{args::ServeArgs, exit::Exit};

/// Carries it out.
pub(crate) async fn run(_args: ServeArgs) -> anyhow::Result<Exit> {
    anyhow::bail!("this command is not built yet")
}
