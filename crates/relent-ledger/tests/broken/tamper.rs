//! What faults do to what goes in and comes out.

use std::time::Duration;

use relent_core::{Settlement, StopReason, Timestamp, WaitOrigin};
use relent_ledger::{
    Claimed, Claims, Cursor, Error, Finish, Ledger, ListQuery, Message, Page, State, Summary, Tally, Work,
    suite::MemoryLedger,
};

use crate::{fault::Fault, ledger::A_MINUTE};

/// How the keys begin that nobody sent.
pub(crate) const INVENTED: &str = "invented ";

pub(crate) fn work(fault: Option<Fault>, crashed: bool, work: &mut Work) {
    work.key = work.key.take().filter(|key| !key.starts_with(INVENTED));
    match fault {
        Some(Fault::WorkLosesLabels) if work.cycle == 0 => work.labels.clear(),
        Some(Fault::ForgetsInterrupted) if crashed => work.interrupted = None,
        Some(Fault::RedrivesInTheSameCycle) => work.cycle = 0,
        Some(Fault::RedriveLowersHeaders) if work.cycle > 0 => {
            for (name, _) in &mut work.request.headers {
                *name = name.to_lowercase();
            }
        }
        _ => {}
    }
}

pub(crate) fn claims(fault: Option<Fault>, claims: &mut Claims) {
    match fault {
        Some(Fault::ClaimsInTheOrderOfAcceptance) => claims.claimed.sort_by_key(|claimed| {
            let (Claimed::Work(ticket, _) | Claimed::Unreadable(ticket, _)) = claimed;
            ticket.id
        }),
        Some(Fault::RoundsNextDueUp) => {
            let up = |due: Timestamp| Timestamp::from_secs(due.as_nanos().div_ceil(1_000_000_000));
            claims.next_due = claims.next_due.map(up);
        }
        _ => {}
    }
}

pub(crate) fn finish(fault: Option<Fault>, finish: &mut Finish) {
    let long = Duration::from_secs(30);
    match (fault, &mut finish.settlement) {
        (Some(Fault::RetriesAtOnce), Settlement::Retry { wait }) if wait.length >= long => {
            wait.length = Duration::ZERO;
        }
        (Some(Fault::DefersAtOnce), Settlement::Defer { wait }) if wait.length >= long => {
            wait.length = Duration::ZERO;
        }
        (Some(Fault::LeavesForAMinute), settlement @ Settlement::Leave) => *settlement = A_MINUTE,
        (Some(Fault::CutsTheResponse), _) => {
            if let Some(end) = &mut finish.attempt {
                end.response.truncate(1);
            }
        }
        _ => {}
    }
}

pub(crate) fn message(fault: Option<Fault>, message: &mut Message) {
    message.key = message.key.take().filter(|key| !key.starts_with(INVENTED));
    let line = &mut message.summary;
    match fault {
        Some(Fault::DropsAHeader) if line.cycle == 0 && message.request.headers.len() == 3 => {
            message.request.headers.pop();
        }
        Some(Fault::DueASecondLate) if line.due_at == Some(line.accepted_at) => {
            line.due_at = Some(line.accepted_at.after(Duration::from_secs(1)));
        }
        Some(Fault::ForgetsTheNotBeforeWait) => {
            message.waits.retain(|record| record.wait.origin != WaitOrigin::NotBefore);
        }
        Some(Fault::ForgetsWhenAnAttemptBegan) => {
            message.attempts.iter_mut().for_each(|attempt| attempt.began_at = Timestamp::ZERO);
        }
        Some(Fault::AcksWithoutAnEnd) if line.state == State::Delivered => line.ended_at = None,
        Some(Fault::ForgetsTheAskedWait) => {
            message.waits.iter_mut().for_each(|record| record.wait.asked = None);
        }
        Some(Fault::EveryReasonIsPermanent) if line.last_detail.is_empty() => {
            line.reason = line.reason.map(|_| StopReason::Permanent);
        }
        Some(Fault::RedrivesInTheSameCycle) => line.cycle = 0,
        Some(Fault::RedrivesWithoutAWait) => {
            message.waits.retain(|record| record.wait.origin != WaitOrigin::Redrive);
        }
        Some(Fault::DiscardingClearsTheBody) if line.state == State::Discarded => {
            message.request.body.clear();
        }
        _ => {}
    }
}

pub(crate) fn tally(fault: Option<Fault>, tally: &mut Tally) {
    if fault == Some(Fault::ForgetsTheOldest) {
        tally.oldest_dead = None;
    }
}

/// A page, with whatever the fault makes of it.
pub(crate) async fn tampered_page(
    sound: &MemoryLedger,
    fault: Option<Fault>,
    query: ListQuery,
) -> Result<Page<Summary>, Error> {
    if fault == Some(Fault::PagesByCount) {
        return page_by_count(sound, query).await;
    }
    if fault == Some(Fault::ChoosesFromOnePage) && !query.destinations.is_empty() {
        let mut page = sound.list(ListQuery { destinations: Vec::new(), ..query.clone() }).await?;
        page.items.retain(|line| query.destinations.contains(&line.destination));
        return Ok(page);
    }
    let mut page = sound.list(query).await?;
    match fault {
        Some(Fault::ListsOldestFirst) if page.items.len() == 3 && page.next.is_none() => page.items.reverse(),
        Some(Fault::LinesForgetTheWait) => page.items.iter_mut().for_each(|line| line.wait = None),
        _ => {}
    }
    Ok(page)
}

/// A page that begins after so many of the newest, however many came since.
async fn page_by_count(sound: &MemoryLedger, query: ListQuery) -> Result<Page<Summary>, Error> {
    let seen = query.after.map_or(0, |Cursor(seen)| usize::try_from(seen).unwrap());
    let everything = ListQuery { after: None, limit: usize::MAX, ..query.clone() };
    let items = sound.list(everything).await?.items;
    let more = items.len() > seen + query.limit;
    let items = items.into_iter().skip(seen).take(query.limit).collect();
    Ok(Page { items, next: more.then_some(Cursor((seen + query.limit) as u64)) })
}
