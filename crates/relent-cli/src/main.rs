//! The `relent` binary: `args` spells the commands, `commands` carries them out, `server` is what `serve` runs.

#![forbid(unsafe_code)]

#[cfg(not(unix))]
compile_error!("relent runs on Unix: it drains on signals and protects its token by file modes");

mod args;
mod client;
mod commands;
mod exit;
mod nearest;
mod output;
mod server;
mod settings;
mod wire;

use std::process::ExitCode;

use clap::Parser as _;

use crate::{args::Cli, exit::Exit, output::plain_block};

fn main() -> ExitCode {
    let cli = Cli::parse();
    let runtime = match runtime(&cli) {
        Ok(runtime) => runtime,
        Err(error) => {
            eprintln!("relent: the async runtime does not start: {error}");
            return Exit::Failed.into();
        }
    };
    let ended = runtime.block_on(commands::run(cli.command));
    // What still runs after a command has ended (a name that does not resolve) must not hold the process.
    runtime.shutdown_background();
    match ended {
        Ok(exit) => exit.into(),
        Err(error) if is_broken_pipe(&error) => Exit::Done.into(),
        Err(error) => {
            // It may quote a file or a receiver, and a terminal obeys what it is sent.
            eprintln!("relent: {}", plain_block(&format!("{error:#}"), 0).trim_end());
            Exit::of(&error).into()
        }
    }
}

/// A server uses all cores; a client that sends one request starts faster on one.
fn runtime(cli: &Cli) -> std::io::Result<tokio::runtime::Runtime> {
    let mut builder = match cli.command {
        args::Command::Serve(_) | args::Command::Demo(_) => tokio::runtime::Builder::new_multi_thread(),
        _ => tokio::runtime::Builder::new_current_thread(),
    };
    builder.enable_all().build()
}

/// Whoever read our output has seen enough (`relent ls | head`): no failure.
fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error.downcast_ref::<std::io::Error>().is_some_and(|error| error.kind() == std::io::ErrorKind::BrokenPipe)
}
