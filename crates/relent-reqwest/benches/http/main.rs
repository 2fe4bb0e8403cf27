//! What relent adds to an HTTP request on the loopback interface: beside the bare clients of hyper-util and reqwest, one
//! request at a time and 32 at once; and a call that is answered 503, 503, 200, beside clients that try again by other
//! means.
//!
//! Rounds take turns: the bare client, the bare client once more, the client with a copy of the request and a time-out by
//! hand, and the client under a policy, each on connections of its own, in an order that changes from round to round. What is judged is the median of the ratios within rounds,
//! against what the bare client shows beside itself.
//!
//! `cargo xtask bench http`, on a machine that does nothing else. It prints, and fails where a bar is missed. For a
//! profiler, one contestant alone: `BENCH CONTESTANT REQUESTS [AT_ONCE]`, of `hyper`, `reqwest`, `hyper-by-hand`,
//! `reqwest-by-hand`, `relent-hyper`, `relent-reqwest`, `own-retries` and `relent-retries`. What is no matter of time, alone:
//! `BENCH allocations`.

#![expect(clippy::disallowed_methods, reason = "a benchmark times real work")]

mod contestants;
mod meter;
mod server;

use std::{env, process::ExitCode};

use contestants::{
    BareHyper, BareReqwest, Contestant, HyperByHand, RelentHyper, RelentReqwest, ReqwestByHand, ReqwestRetry,
    headers,
};
use meter::{Cost, Spread, allocations, cost};
use server::Server;
use tokio::runtime::{Builder, Runtime};

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    if arguments.iter().any(|argument| argument == server::SERVE) {
        server::serve().expect("the server of the bench runs");
        return ExitCode::SUCCESS;
    }
    if arguments == ["allocations"] {
        let server = Server::start().expect("the server of the bench starts");
        return if Bench::new(&server).memory() { ExitCode::SUCCESS } else { ExitCode::FAILURE };
    }
    if let [who, numbers @ ..] = &arguments[..]
        && let [requests, at_once @ ..] =
            &numbers.iter().filter_map(|number| number.parse().ok()).collect::<Vec<_>>()[..]
    {
        let server = Server::start().expect("the server of the bench starts");
        Bench::new(&server).alone(who, *requests, at_once.first().map_or(1, |at_once| *at_once));
        return ExitCode::SUCCESS;
    }
    // `cargo test --benches` runs it too, in a profile that would say nothing.
    if !arguments.iter().any(|argument| argument == "--bench") {
        println!("http: skipped, run it with `cargo xtask bench http`");
        return ExitCode::SUCCESS;
    }
    let server = Server::start().expect("the server of the bench starts");
    let held = Bench::new(&server).run();
    if held { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

struct Bench<'s> {
    server: &'s Server,
    runtime: Runtime,
}

/// Makes so many requests, so many at once.
type Batch<'b> = Box<dyn Fn(u32, u32) + 'b>;

impl<'s> Bench<'s> {
    fn new(server: &'s Server) -> Self {
        Self { server, runtime: Builder::new_current_thread().enable_all().build().expect("a runtime") }
    }

    /// Whether the bars of memory hold.
    fn memory(&self) -> bool {
        let url = self.server.steady();
        let held = [
            self.asks_for_memory("hyper-util", &BareHyper::new(&url), &RelentHyper::new(&url)),
            self.asks_for_memory("reqwest", &BareReqwest::new(&url), &RelentReqwest::new(&url)),
        ];
        held.iter().all(|held| *held)
    }

    /// Whether every bar holds.
    fn run(&self) -> bool {
        let url = self.server.steady();
        let (hyper, reqwest) =
            ([BareHyper::new(&url), BareHyper::new(&url)], [BareReqwest::new(&url), BareReqwest::new(&url)]);
        let (relent_hyper, relent_reqwest) = (RelentHyper::new(&url), RelentReqwest::new(&url));
        let held = [
            self.success("hyper-util", &hyper, &HyperByHand::new(&url), &relent_hyper),
            self.success("reqwest", &reqwest, &ReqwestByHand::new(&url), &relent_reqwest),
            self.memory(),
            self.three_attempts(),
        ];
        held.iter().all(|held| *held)
    }

    fn alone(&self, who: &str, requests: u32, at_once: u32) {
        let url = self.server.steady();
        match who {
            "hyper" => self.fetch(&BareHyper::new(&url), requests, at_once),
            "hyper-by-hand" => self.fetch(&HyperByHand::new(&url), requests, at_once),
            "relent-hyper" => self.fetch(&RelentHyper::new(&url), requests, at_once),
            "reqwest" => self.fetch(&BareReqwest::new(&url), requests, at_once),
            "reqwest-by-hand" => self.fetch(&ReqwestByHand::new(&url), requests, at_once),
            "relent-reqwest" => self.fetch(&RelentReqwest::new(&url), requests, at_once),
            "own-retries" => self.fetch(&BareReqwest::retrying(&self.server.flaky()), requests, at_once),
            "relent-retries" => {
                self.fetch(&RelentReqwest::without_delay(&self.server.flaky()), requests, at_once)
            }
            other => panic!("there is no contestant {other}"),
        }
    }

    fn batch<'b, C: Contestant>(&'b self, contestant: &'b C) -> Batch<'b> {
        Box::new(move |requests, at_once| self.fetch(contestant, requests, at_once))
    }

    fn fetch<C: Contestant>(&self, contestant: &C, requests: u32, at_once: u32) {
        let one_by_one = |mut contestant: C, requests: u32| async move {
            for _ in 0..requests {
                assert_eq!(contestant.fetch().await, 200);
            }
        };
        self.runtime.block_on(async {
            if at_once == 1 {
                return one_by_one(contestant.clone(), requests).await;
            }
            let tasks: Vec<_> = (0..at_once)
                .map(|_| tokio::spawn(one_by_one(contestant.clone(), requests / at_once)))
                .collect();
            for task in tasks {
                task.await.expect("no request fails");
            }
        });
    }

    /// One request at a time, and 32 at once, all of which succeed.
    fn success<A: Contestant, H: Contestant, B: Contestant>(
        &self,
        name: &str,
        bare: &[A; 2],
        by_hand: &H,
        relent: &B,
    ) -> bool {
        let (again, hand) = (format!("{name}, once more"), format!("{name}, by hand"));
        let names = [name, &again, &hand, &format!("relent over {name}")];
        let batches = [self.batch(&bare[0]), self.batch(&bare[1]), self.batch(by_hand), self.batch(relent)];
        let mut held = true;
        for (at_once, requests) in [(1, 4000), (32, 8000)] {
            let rounds = rounds(&batches, requests, at_once);
            println!("\n{at_once} at once, {ROUNDS} rounds of {requests} requests");
            table(&names, &rounds);
            for (what, of) in [("CPU", cpu as fn(&Cost) -> f64), ("wall", wall)] {
                let noise = ratios(&rounds, 1, of).between_quartiles();
                let (ratio, bar) = (ratios(&rounds, 3, of).median, ALLOWED + noise / 2.0);
                let verdict = if ratio <= bar { "holds" } else { "is missed" };
                println!(
                    "{what}: {ratio:.3} against {ALLOWED} + {noise:.3} / 2 = {bar:.3}: the bar {verdict}"
                );
                held &= ratio <= bar;
            }
        }
        held
    }

    /// How often a request asks for memory.
    fn asks_for_memory<A: Contestant, B: Contestant>(&self, name: &str, bare: &A, relent: &B) -> bool {
        let bare = self.allocations_each(bare);
        let relent = self.allocations_each(relent);
        let headers = headers();
        let one_copy = allocations(|| drop(std::hint::black_box(headers.clone()))) as f64;
        let holds = relent - bare <= one_copy + 0.05;
        println!(
            "\nallocations a request: {name} {bare:.2}, relent over it {relent:.2}, {:+.2}; one copy of the headers is \
             {one_copy}: the bar {}",
            relent - bare,
            if holds { "holds" } else { "is missed" },
        );
        holds
    }

    fn allocations_each<C: Contestant>(&self, contestant: &C) -> f64 {
        let count = |requests| allocations(|| self.fetch(contestant, requests, 1)) as f64;
        self.fetch(contestant, 1000, 1);
        // What a batch costs beside its requests falls out.
        (count(3000) - count(1000)) / 2000.0
    }

    /// 503, 503, 200, without a pause.
    fn three_attempts(&self) -> bool {
        let url = self.server.flaky();
        let names =
            ["reqwest's own retries", "reqwest's own, once more", "relent over reqwest", "reqwest-retry"];
        let (own, again) = (BareReqwest::retrying(&url), BareReqwest::retrying(&url));
        let (relent, other) = (RelentReqwest::without_delay(&url), ReqwestRetry::new(&url));
        let batches = [self.batch(&own), self.batch(&again), self.batch(&relent), self.batch(&other)];
        let rounds = rounds(&batches, 500, 1);
        println!("\n503, 503, 200 without a pause, one call at a time, {ROUNDS} rounds of 500 calls");
        table(&names, &rounds);
        let noise = ratios(&rounds, 1, cpu).between_quartiles();
        let (ratio, bar) = (ratios(&rounds, 2, cpu).median, ALLOWED_OF_RETRIES + noise / 2.0);
        println!(
            "CPU: {ratio:.3} against {ALLOWED_OF_RETRIES} + {noise:.3} / 2 = {bar:.3}: the bar {}",
            if ratio <= bar { "holds" } else { "is missed" }
        );
        ratio <= bar
    }
}

/// What each costs in each round. Within a round they take turns, and who begins changes.
fn rounds<const N: usize>(batches: &[Batch<'_>; N], requests: u32, at_once: u32) -> Vec<[Cost; N]> {
    batches.iter().for_each(|batch| batch(requests, at_once));
    let round = |number: usize| {
        let mut costs = [Cost { cpu: 0.0, wall: 0.0 }; N];
        for turn in 0..N {
            let who = (number + if number.is_multiple_of(2) { turn } else { N - turn }) % N;
            costs[who] = cost(requests, || batches[who](requests, at_once));
        }
        costs
    };
    (0..ROUNDS).map(round).collect()
}

fn table<const N: usize>(names: &[&str; N], rounds: &[[Cost; N]]) {
    println!(
        "{:<28} {:>8} {:>8}   ratio to the first: median (quartiles), CPU and wall",
        "median, µs a call", "CPU", "wall"
    );
    for (who, name) in names.iter().enumerate() {
        let median = |of: fn(&Cost) -> f64| Spread::of(rounds.iter().map(|round| of(&round[who]))).median;
        let shown = [cpu as fn(&Cost) -> f64, wall].map(|of| {
            let Spread { median, lower, upper } = ratios(rounds, who, of);
            format!("{median:.3} ({lower:.3} to {upper:.3})")
        });
        println!("{name:<28} {:>8.2} {:>8.2}   {}", median(cpu), median(wall), shown.join("   "));
    }
}

/// How what that one costs compares with what the first costs in the same round.
fn ratios<const N: usize>(rounds: &[[Cost; N]], who: usize, of: fn(&Cost) -> f64) -> Spread {
    Spread::of(rounds.iter().map(|round| of(&round[who]) / of(&round[0])))
}

fn cpu(cost: &Cost) -> f64 {
    cost.cpu
}

fn wall(cost: &Cost) -> f64 {
    cost.wall
}

/// How many times the bare client a request may cost.
const ALLOWED: f64 = 1.03;
/// How many times reqwest's own retries three attempts may cost.
const ALLOWED_OF_RETRIES: f64 = 1.05;
const ROUNDS: usize = 30;
