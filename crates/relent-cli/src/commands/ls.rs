//! `relent ls`, and the lists of `relent dead ls`.

use http::Method;
use relent::{Clock as _, Timestamp, UnixClock};

use super::words;
use crate::{
    args::{ClientArgs, ListArgs, PageArgs},
    client::{Answer, Client, escape},
    exit::{Exit, Misuse},
    output::{Table, numbers, print, print_json, relative, words as text},
    wire::{PageView, SummaryView},
};

/// Carries it out.
pub(crate) async fn run(args: ListArgs) -> anyhow::Result<Exit> {
    let states = args.state.join(",");
    if let Some(unknown) = args.state.iter().find(|name| relent_ledger::State::from_name(name).is_none()) {
        let known: Vec<&str> =
            relent_ledger::State::ALL.into_iter().map(relent_ledger::State::name).collect();
        return Err(Misuse::new(format!(
            "--state: there is no state \"{unknown}\"; write {}",
            known.join(", ")
        )));
    }
    let query = if states.is_empty() { String::new() } else { format!("state={states}&") };
    list(&args.client, &format!("/v1/messages?{query}"), &args.page, |_| String::new()).await
}

/// Lists what `path` names, a page or all pages, and beneath it what `sums` says of the items.
pub(super) async fn list(
    client: &ClientArgs,
    path: &str,
    page: &PageArgs,
    sums: impl Fn(&[SummaryView]) -> String,
) -> anyhow::Result<Exit> {
    let json = client.json;
    let client = Client::new(client)?;
    if json && !page.all {
        print(&ask(&client, &place(path, page.limit, page.cursor.as_deref())).await?.line())?;
        return Ok(Exit::Done);
    }
    let view = pages(&client, path, page).await?;
    match json {
        true => print_json(&view)?,
        false => print(&(describe(&view, UnixClock::new().now()) + &sums(&view.items)))?,
    }
    Ok(Exit::Done)
}

/// Asks for a page. A place or a filter that the server does not know was typed.
pub(super) async fn ask(client: &Client, path: &str) -> anyhow::Result<Answer> {
    client.ask(Method::GET, path).await.map_err(|failure| {
        failure.typed(|field| {
            let flag = match field {
                "reason" => "--reason",
                "destination" => "--to",
                "cursor" => "--cursor",
                _ => return None,
            };
            Some(flag.to_owned())
        })
    })
}

/// One page, or with `--all` every page from there on as one.
async fn pages(client: &Client, path: &str, page: &PageArgs) -> anyhow::Result<PageView<SummaryView>> {
    let limit = if page.all { LARGEST_PAGE } else { page.limit };
    let mut view: PageView<SummaryView> =
        ask(client, &place(path, limit, page.cursor.as_deref())).await?.read()?;
    while page.all
        && let Some(cursor) = view.next.take()
    {
        let more: PageView<SummaryView> = ask(client, &place(path, limit, Some(&cursor))).await?.read()?;
        view.items.extend(more.items);
        view.next = more.next;
    }
    Ok(view)
}

pub(super) fn place(path: &str, limit: u16, cursor: Option<&str>) -> String {
    let cursor = cursor.map(|cursor| format!("&cursor={}", escape(cursor))).unwrap_or_default();
    format!("{path}limit={limit}{cursor}")
}

fn describe(view: &PageView<SummaryView>, now: Timestamp) -> String {
    if view.items.is_empty() {
        return "nothing here\n".to_owned();
    }
    let columns =
        [text("ID"), text("STATE"), numbers("TRIES"), text("LAST"), text("WHY AND WHEN"), text("TO")];
    let mut table = Table::new(columns);
    for item in &view.items {
        table.row([
            item.id.clone(),
            item.state.to_string(),
            item.attempts.to_string(),
            item.last_outcome.clone().unwrap_or_else(|| "-".to_owned()),
            why_and_when(item, now),
            format!("{} {}", item.method, item.url),
        ]);
    }
    let mut shown = table.render(0);
    if let Some(next) = &view.next {
        shown += &format!("there is more: go on with --cursor {next}, or list everything with --all\n");
    }
    shown
}

fn why_and_when(item: &SummaryView, now: Timestamp) -> String {
    let ended = || item.ended_at.map_or_else(String::new, |at| relative(at, now));
    match (&*item.state, &item.reason, &item.wait, item.due_at) {
        ("dead", Some(reason), ..) => format!("{reason}, {}", ended()),
        ("waiting", _, Some(wait), Some(at)) => format!("{}, due {}", words::origin(wait), relative(at, now)),
        ("waiting", _, None, Some(at)) => format!("due {}", relative(at, now)),
        _ => ended(),
    }
}

/// The most that the API gives in one page.
pub(super) const LARGEST_PAGE: u16 = 250;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_is_escaped_where_it_must_be() {
        assert_eq!(place("/v1/dead?", 20, Some("a+/=9")), "/v1/dead?limit=20&cursor=a%2B%2F%3D9");
        assert_eq!(place("/v1/messages?state=dead&", 1, None), "/v1/messages?state=dead&limit=1");
    }
}
