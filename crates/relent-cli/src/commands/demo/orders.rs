//! The demo's side of the API: sending the orders, waiting for their ends, reading what became of them.

use std::{future::Future, time::Duration};

use anyhow::{Context as _, bail};
use http::Method;
use relent::{Clock as _, TokioClock};
use tokio::task::JoinSet;

use super::progress::Progress;
use crate::{
    client::Client,
    output::thousands,
    wire::{HeaderList, MessageView, PageView, StateView, StatusView, SubmissionText, SummaryView},
};

/// Sends `orders` orders and returns their ids.
pub(super) async fn send(client: &Client, url: &str, orders: u32) -> anyhow::Result<Vec<String>> {
    let orders: Vec<u32> = (1..=orders).collect();
    let (client, url) = (client.clone(), url.to_owned());
    each(orders, move |order| {
        let (client, submission) = (client.clone(), submission(&url, order));
        async move {
            let answer = client.post("/v1/messages", serde_json::to_vec(&submission)?).await?;
            Ok(answer.read::<StateView>()?.id)
        }
    })
    .await
}

/// Waits until nothing waits and nothing is in flight.
pub(super) async fn settled(client: &Client, progress: &Progress) -> anyhow::Result<StatusView> {
    let give_up = TokioClock.now().after(PATIENCE);
    loop {
        let status: StatusView = client.ask(Method::GET, "/v1/status").await?.read()?;
        let left = status.waiting + status.in_flight + status.held;
        if left == 0 {
            progress.clear();
            return Ok(status);
        }
        progress.show(&format!(
            "delivered {}, waiting for another try {}, in flight {}, dead {}",
            thousands(status.delivered),
            thousands(status.waiting),
            thousands(status.in_flight),
            thousands(status.dead)
        ));
        if TokioClock.now() > give_up {
            bail!("{left} orders have not ended after {PATIENCE:?}; this should not be");
        }
        TokioClock.sleep(Duration::from_millis(200)).await;
    }
}

/// Everything about every order.
pub(super) async fn read(client: &Client, ids: &[String]) -> anyhow::Result<Vec<MessageView>> {
    let client = client.clone();
    each(ids.to_vec(), move |id| {
        let client = client.clone();
        async move { client.ask(Method::GET, &format!("/v1/messages/{id}")).await?.read() }
    })
    .await
}

/// The ids on the list of dead letters.
pub(super) async fn dead(client: &Client) -> anyhow::Result<Vec<String>> {
    let mut ids = Vec::new();
    let mut cursor = String::new();
    loop {
        let page: PageView<SummaryView> =
            client.ask(Method::GET, &format!("/v1/dead?limit=250{cursor}")).await?.read()?;
        ids.extend(page.items.into_iter().map(|item| item.id));
        match page.next {
            None => return Ok(ids),
            Some(next) => cursor = format!("&cursor={}", crate::client::escape(&next)),
        }
    }
}

/// Sends dead letters again.
pub(super) async fn redrive(client: &Client, ids: Vec<String>) -> anyhow::Result<Vec<String>> {
    let client = client.clone();
    each(ids, move |id| {
        let client = client.clone();
        async move {
            let answer = client.post(&format!("/v1/dead/{id}/redrive"), Vec::new()).await?;
            Ok(answer.read::<StateView>()?.id)
        }
    })
    .await
}

fn submission(url: &str, order: u32) -> SubmissionText {
    SubmissionText {
        url: Some(url.to_owned()),
        headers: HeaderList(vec![("content-type".to_owned(), "application/json".to_owned())]),
        body: Some(format!("{{\"order\":{order},\"gift_wrap\":{}}}", order.is_multiple_of(3))),
        key: Some(format!("order-{order}")),
        policy: Some("demo".to_owned()),
        ..SubmissionText::default()
    }
}

/// Does `work` on every item, [`HANDS`] at a time, and returns the results in no order.
///
/// # Cancellation safety
///
/// Dropping it ends all of it.
async fn each<Item, Out, Work, Doing>(items: Vec<Item>, work: Work) -> anyhow::Result<Vec<Out>>
where
    Item: Send + 'static,
    Out: Send + 'static,
    Work: Fn(Item) -> Doing,
    Doing: Future<Output = anyhow::Result<Out>> + Send + 'static,
{
    let mut results = Vec::with_capacity(items.len());
    let mut running = JoinSet::new();
    let mut items = items.into_iter();
    loop {
        while running.len() < HANDS
            && let Some(item) = items.next()
        {
            running.spawn(work(item));
        }
        match running.join_next().await {
            Some(result) => results.push(result.context("a part of the demo panicked")??),
            None => return Ok(results),
        }
    }
}

/// How many requests are under way at a time.
const HANDS: usize = 32;

/// An order's policy gives it a minute; a redrive another.
const PATIENCE: Duration = Duration::from_secs(90);
