//! `relent call`: one request under a policy, for scripts and CI jobs. It is the library's own layer over an ordinary
//! client; nothing is decided here.

mod client;
mod journal;
mod request;
mod view;

use std::{
    io::{self, Write as _},
    sync::Arc,
    time::Duration,
};

use anyhow::{Context as _, anyhow};
use bytes::{Bytes, BytesMut};
use http::{Method, Response};
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use relent::{Pipeline, Report, StopReason};
use relent_core::{Idempotency, Policy, parse_duration};
use relent_tower::{CallTerms, Error, PipelineLayer, Wire, report};
use tower_layer::Layer as _;
use tower_service::Service as _;

use self::journal::{Journal, Telling, Witness};
use super::explain::policy;
use crate::{
    args::CallArgs,
    exit::{Exit, Misuse},
    output::{plain, print, print_json},
};

/// Carries it out.
pub(crate) async fn run(args: CallArgs) -> anyhow::Result<Exit> {
    let idle = length("--idle", &args.idle)?;
    let mut request = request::build(&args)?;
    let method = request.method().clone();
    let repeat = request::repeat(&args)?;
    let telling = if args.silent || args.json { Telling::Nobody } else { Telling::Stderr };
    let journal = Arc::new(Journal::new(telling));
    let layer = layer(&args, Arc::clone(&journal))?;
    request.extensions_mut().insert(terms(&args, repeat));
    let mut service = layer.layer(Witness::new(client::https(args.cacert.as_deref())?, Arc::clone(&journal)));
    std::future::poll_fn(|cx| service.poll_ready(cx)).await.map_err(|error| anyhow!(error))?;
    let ended = service.call(request).await;
    let report = match &ended {
        Ok(response) => report(response).cloned().context("the layer reports on every response")?,
        Err(error) => error.report().clone(),
    };
    journal.ended(&report);
    let unfinished = unfinished(&method, &report, &journal);
    let exits = match &ended {
        Ok(response) if response.status().is_success() => Exits { answered: Exit::Done, unfinished },
        _ => Exits { answered: unfinished, unfinished },
    };
    match args.json {
        true => tell_in_json(ended, &report, &journal, idle, exits).await,
        false => {
            let exit = tell(&args, ended, idle, exits).await?;
            if let (Exit::Unknown, Some(key)) = (exit, journal.key()) {
                let key = plain(&key);
                eprintln!(
                    "relent: it may have been carried out; repeat it under its key: --idempotency-key '{key}'"
                );
            }
            Ok(exit)
        }
    }
}

/// What the end means for a script.
#[derive(Clone, Copy)]
struct Exits {
    /// The answer came, if there was one, and its body to the end.
    answered: Exit,
    /// There was an answer, but its body broke off.
    unfinished: Exit,
}

/// The layer that the policy asks for.
fn layer(args: &CallArgs, journal: Arc<Journal>) -> anyhow::Result<PipelineLayer> {
    let (name, mut policy) = policy(args.preset.as_deref(), args.policy.as_deref())?;
    if let Some(text) = &args.deadline {
        policy.total_timeout = Some(length("--deadline", text)?);
        policy.business_deadline = None;
    }
    let policy = Policy { budget: None, ..policy };
    let wrong = |invalid: relent::Invalid| match (&args.deadline, invalid.field.as_str()) {
        (Some(_), "total_timeout") => Misuse::new(format!("--deadline: {}", invalid.reason)),
        _ => Misuse::new(format!("{name}: {invalid}")),
    };
    for warning in policy.validate().map_err(wrong)? {
        // Whoever took a built-in policy wrote nothing that could be doubted, and a script calls a thousand times.
        if args.policy.is_some() && !args.silent {
            eprintln!("relent: {}: {name}: {warning}", warning.severity().name());
        }
    }
    let pipeline = Pipeline::new(policy).map_err(wrong)?.observed_by(journal);
    Ok(PipelineLayer::new(pipeline).map_err(wrong)?.trusting_clients().with_wire(Wire::new().reporting_all()))
}

fn terms(args: &CallArgs, repeat: Option<Idempotency>) -> CallTerms {
    let mut terms = CallTerms::new();
    if let Some(repeat) = repeat {
        terms = terms.with_repeat(repeat);
    }
    if let Some(seed) = args.seed {
        terms = terms.with_seed(seed);
    }
    terms
}

fn length(flag: &str, text: &str) -> anyhow::Result<Duration> {
    parse_duration(text).map_err(|why| Misuse::new(format!("{flag}: {why}")))
}

/// What an end that is no success means for a script. A key promises that repeating does no harm, not that nothing was
/// done; and one attempt of which nobody knows is enough, whatever the last one said.
fn unfinished(method: &Method, report: &Report, journal: &Journal) -> Exit {
    let harmless = matches!(*method, Method::GET | Method::HEAD | Method::OPTIONS | Method::TRACE);
    let unknown = report.stop == StopReason::Ambiguous || (!harmless && journal.may_have_been_carried_out());
    if unknown { Exit::Unknown } else { Exit::Failed }
}

/// The body goes out as it comes in.
async fn tell(
    args: &CallArgs,
    ended: Result<Response<Incoming>, Error>,
    idle: Duration,
    exits: Exits,
) -> anyhow::Result<Exit> {
    let response = match ended {
        Ok(response) => response,
        Err(error) => {
            eprintln!("relent: {}", in_words(error));
            return Ok(exits.answered);
        }
    };
    let (head, mut body) = response.into_parts();
    if args.include {
        print(&view::head(&head))?;
    }
    loop {
        match piece(&mut body, idle).await {
            Ok(Some(piece)) => io::stdout().write_all(&piece)?,
            Ok(None) => break,
            Err(error) => {
                io::stdout().flush()?;
                eprintln!("relent: {}", in_words(error));
                return Ok(exits.unfinished);
            }
        }
    }
    io::stdout().flush()?;
    Ok(exits.answered)
}

async fn tell_in_json(
    ended: Result<Response<Incoming>, Error>,
    report: &Report,
    journal: &Journal,
    idle: Duration,
    exits: Exits,
) -> anyhow::Result<Exit> {
    let (answer, exit) = match ended {
        Ok(response) => {
            let (head, body) = response.into_parts();
            match whole(body, idle).await {
                Ok(body) => (Ok((head, body)), exits.answered),
                Err(error) => (Err(in_words(error)), exits.unfinished),
            }
        }
        Err(error) => (Err(in_words(error)), exits.answered),
    };
    print_json(&view::CallView::new(answer, report, journal, exit))?;
    Ok(exit)
}

async fn whole(mut body: Incoming, idle: Duration) -> anyhow::Result<Bytes> {
    let mut whole = BytesMut::new();
    while let Some(piece) = piece(&mut body, idle).await? {
        whole.extend_from_slice(&piece);
    }
    Ok(whole.freeze())
}

fn in_words(error: impl Into<anyhow::Error>) -> String {
    plain(&format!("{:#}", error.into()))
}

/// The next piece of the body.
///
/// # Errors
///
/// It broke off, or nothing came for too long.
async fn piece(body: &mut Incoming, idle: Duration) -> anyhow::Result<Option<Bytes>> {
    loop {
        let frame = tokio::time::timeout(idle, body.frame()).await;
        let frame = frame.with_context(|| format!("the answer's body paused for {idle:?} (--idle)"))?;
        match frame.transpose().context("the answer's body broke off")? {
            None => return Ok(None),
            Some(frame) => {
                if let Ok(data) = frame.into_data() {
                    return Ok(Some(data));
                }
            }
        }
    }
}
