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
use http::Response;
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use relent::{Pipeline, Report, Sent, StopReason, Verdict};
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
    let key = request::key(&request);
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
    let exit = exit(&ended, &report, key.is_some());
    match args.json {
        true => tell_in_json(ended, &report, &journal, key, idle, exit).await,
        false => tell(&args, ended, idle, exit).await,
    }
}

/// The layer that the policy asks for.
fn layer(args: &CallArgs, journal: Arc<Journal>) -> anyhow::Result<PipelineLayer> {
    let (name, mut policy) = policy(args.preset.as_deref(), args.policy.as_deref())?;
    if let Some(text) = &args.deadline {
        policy.total_timeout = Some(length("--deadline", text)?);
        policy.business_deadline = None;
    }
    let policy = Policy { budget: None, ..policy };
    let wrong = |invalid: relent::Invalid| Misuse::new(format!("{name}: {invalid}"));
    for warning in policy.validate().map_err(wrong)? {
        if !args.silent {
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

/// What the end means for a script.
fn exit(ended: &Result<Response<Incoming>, Error>, report: &Report, keyed: bool) -> Exit {
    if let Ok(response) = ended
        && response.status().is_success()
    {
        return Exit::Done;
    }
    let maybe = matches!(report.last_verdict, Some(Verdict::Failure { sent: Sent::Maybe, .. }));
    match (report.stop, ended) {
        (StopReason::Ambiguous, _) => Exit::Unknown,
        // A key promises that repeating does no harm, not that it was carried out.
        (_, Err(_)) if maybe && keyed => Exit::Unknown,
        _ => Exit::Failed,
    }
}

/// The body goes out as it comes in.
async fn tell(
    args: &CallArgs,
    ended: Result<Response<Incoming>, Error>,
    idle: Duration,
    exit: Exit,
) -> anyhow::Result<Exit> {
    let response = match ended {
        Ok(response) => response,
        Err(error) => {
            eprintln!("relent: {}", plain(&format!("{:#}", anyhow!(error))));
            return Ok(exit);
        }
    };
    let (head, mut body) = response.into_parts();
    if args.include {
        print(&view::head(&head))?;
    }
    while let Some(piece) = piece(&mut body, idle).await? {
        io::stdout().write_all(&piece)?;
    }
    io::stdout().flush()?;
    Ok(exit)
}

async fn tell_in_json(
    ended: Result<Response<Incoming>, Error>,
    report: &Report,
    journal: &Journal,
    key: Option<String>,
    idle: Duration,
    exit: Exit,
) -> anyhow::Result<Exit> {
    let answer = match ended {
        Ok(response) => {
            let (head, mut body) = response.into_parts();
            let mut whole = BytesMut::new();
            while let Some(piece) = piece(&mut body, idle).await? {
                whole.extend_from_slice(&piece);
            }
            Ok((head, whole.freeze()))
        }
        Err(error) => Err(plain(&format!("{:#}", anyhow!(error)))),
    };
    print_json(&view::CallView::new(answer, report, journal, key, exit))?;
    Ok(exit)
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
