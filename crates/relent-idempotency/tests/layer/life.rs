//! How long a key lives, and how many there are.

use http::{Method, StatusCode};
use relent_idempotency::{
    Answer, Caller, Claim, ClaimId, Claimed, End, Fingerprint, Finished, IfLost, Key, RecordId, Settings,
    Store, UnsharedMemory,
};

use crate::world::*;

#[tokio::test(start_paused = true)]
async fn an_expired_key_is_not_carried_out_silently_again() {
    // ID-17: 24 h of life, 1 h as a tombstone; repeats at 24 h + 1 s and 25 h + 1 s.
    let runs = Runs::default();
    let service = counting(&usual(), &runs, millis(0));
    assert_eq!(send(&service, post("/orders", "k", "{}")).await.text(), "run 1");
    sleep(secs(24 * 3600 - 1)).await;
    assert!(send(&service, post("/orders", "k", "{}")).await.is_replay());
    sleep(secs(2)).await;
    assert_eq!(send(&service, post("/orders", "k", "{}")).await.refusal(), (410, "key-expired".into()));
    assert_eq!(runs.get(), 1);
    sleep(secs(3600)).await;
    let anew = send(&service, post("/orders", "k", "{}")).await;
    assert_eq!((anew.status, anew.text(), anew.is_replay()), (201, "run 2", false));
}

#[tokio::test(start_paused = true)]
async fn records_do_not_grow_without_bound() {
    // ID-15: room for 10,000, and 100,000 keys; a recent one is replayed by another server on the same store.
    let store = UnsharedMemory::new(relent::TokioClock);
    let runs = Runs::default();
    for number in 0..99_900_u32 {
        let claim = claim(&number.to_string());
        let Claimed::Mine(lease) = store.claim(&claim).await.unwrap() else { panic!("{number} is new") };
        let answer = Answer::new(StatusCode::CREATED, "by another server");
        assert_eq!(store.finish(&lease, End::Answered(answer)).await.unwrap(), Finished::Done);
        assert!(store.len() <= 10_000, "{} after {number}", store.len());
    }
    let service = counting(&layer(store.clone(), Settings::default()), &runs, millis(0));
    for number in 99_900..100_000_u32 {
        assert_eq!(send(&service, post("/orders", &number.to_string(), "{}")).await.status, 201);
    }
    assert_eq!((store.len(), runs.get()), (10_000, 100));
    let other = counting(&layer(store, Settings::default()), &runs, millis(0));
    for (number, text) in [(99_901, "run 2"), (90_001, "by another server")] {
        let recent = send(&other, post("/orders", &number.to_string(), "{}")).await;
        assert_eq!((recent.text(), recent.is_replay()), (text, true));
    }
    assert_eq!(runs.get(), 100);
}

fn claim(key: &str) -> Claim {
    let caller = Caller::secret(b"Bearer one");
    let record = RecordId { key: Key::new(key).unwrap(), caller: caller.clone() };
    let settings = Settings::default();
    Claim {
        record,
        fingerprint: Fingerprint::of(&caller, &Method::POST, "/orders", b"{}"),
        id: ClaimId::draw().unwrap(),
        lease: settings.lease,
        lifetime: settings.lifetime,
        tombstone: settings.tombstone,
        if_lost: IfLost::Unknown,
    }
}
