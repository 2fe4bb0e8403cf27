//! Many sleeps of all lengths at once, some let go: those that end do so at their instant.

use tokio::task::JoinSet;

use super::*;

/// Numbers in an order of their own.
struct Draw(u64);

impl Draw {
    fn below(&mut self, end: u64) -> u64 {
        // Source: SplitMix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number generators", 2014).
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut drawn = self.0;
        drawn = (drawn ^ (drawn >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        drawn = (drawn ^ (drawn >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (drawn ^ (drawn >> 31)) % end
    }

    /// Lengths as calls have them: at once, of a wait, of an attempt, of a long one, and of one that is not kept.
    fn length(&mut self) -> Duration {
        let longest = match self.below(5) {
            0 => 1,
            1 => 300,
            2 => 2_000,
            3 => 60_000,
            _ => 200_000,
        };
        Duration::from_micros(self.below(longest * 1_000))
    }
}

/// Sleeps one after the other. Some are let go before they have begun, some in the middle, and some go on in another task;
/// the reading that some begin with is old.
async fn sleeps(mut draw: Draw) {
    let mut elsewhere = JoinSet::new();
    for _ in 0..20 {
        let now = TokioClock.now();
        let at = now.after(draw.length());
        if draw.below(4) == 0 {
            tokio::time::sleep(draw.length() / 50).await;
        }
        let sleep = TokioClock.sleep_from_until(now, at);
        match draw.below(8) {
            0 => drop(sleep),
            1..=4 => drop(tokio::time::timeout(draw.length(), sleep).await),
            5 => drop(elsewhere.spawn(ends(sleep, at))),
            _ => ends(sleep, at).await,
        }
    }
    elsewhere.join_all().await;
}

async fn ends(sleep: TokioSleep, at: Timestamp) {
    let last = TokioClock.now().max(at);
    sleep.await;
    let ended = TokioClock.now();
    assert!(ended >= at && ended.since(last) <= Duration::from_millis(2), "{:?}", (at, ended));
}

#[test]
fn thousands_of_sleeps_of_all_lengths_end_at_their_instants() {
    for seed in 0..4 {
        let runtime = paused();
        runtime.block_on(async {
            let mut draw = Draw(seed);
            let mut let_go = Vec::new();
            for _ in 0..KEPT {
                let_go.push(begun(SECOND + draw.length()).await);
            }
            drop(let_go);
            assert!(!kept().is_empty());
            let tasks = (0..500).map(|task| tokio::spawn(sleeps(Draw(seed * 500 + task))));
            for task in tasks.collect::<Vec<_>>() {
                task.await.unwrap();
            }
        });
    }
}
