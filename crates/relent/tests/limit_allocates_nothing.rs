//! The limits take no memory from the heap unless somebody waits.

mod counting;

use std::{
    future::Future,
    pin::pin,
    task::{Context, Poll, Waker},
    time::Duration,
};

use relent::{
    ConcurrencyPolicy, RatePolicy, Timestamp,
    control::{Concurrency, Rate},
};

use counting::counted;

fn at_once<F: Future>(future: F) -> F::Output {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(output) => output,
        Poll::Pending => panic!("it waits"),
    }
}

#[test]
fn permits_and_refusals_of_a_concurrency_limit_allocate_nothing() {
    let limit = Concurrency::new(&ConcurrencyPolicy { limit: 1, queue: 0 }).unwrap();
    let ((), used) = counted(|| {
        let permit = limit.try_acquire().unwrap().keep();
        assert!(limit.try_acquire().is_err() && at_once(limit.acquire()).is_err());
        drop(permit);
        assert!(at_once(limit.acquire()).is_ok());
    });
    assert_eq!(used, 0);
}

#[test]
fn permits_and_refusals_of_a_rate_limit_allocate_nothing() {
    let rate = Rate::new(&RatePolicy { permits: 3, per: Duration::from_secs(1), burst: 1 }).unwrap();
    let now = Timestamp::from_secs(1);
    let ((), used) = counted(|| {
        drop(rate.try_take(now).unwrap());
        rate.reserve(now, now).unwrap().claim(now).unwrap().spend();
        assert!(rate.try_take(now).is_err() && rate.reserve(now, now).is_err());
    });
    assert_eq!(used, 0);
}
