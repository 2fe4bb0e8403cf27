//! What may cross threads, and what is small enough to copy: checked by the compiler.

#![cfg(feature = "tokio")]

use std::{cell::Cell, io, rc::Rc};

use relent::{
    Attempt, Call, Calls, Classifier, Clock, Error, ManualClock, Pipeline, Report, Stopped, TokioClock,
    UnixClock,
};

fn is_send<T: Send>(_: &T) {}
fn is_send_and_sync<T: Send + Sync>() {}
fn is_static<T: Send + Sync + Unpin + 'static>() {}
fn is_copy<T: Copy>() {}

#[test]
fn public_types_may_cross_threads() {
    is_static::<Pipeline>();
    is_static::<Pipeline<ManualClock>>();
    is_static::<ManualClock>();
    is_static::<Error<io::Error>>();
    is_static::<Stopped>();
    is_static::<Report>();
    is_send_and_sync::<Call<&'static Pipeline<TokioClock, relent::ByError>>>();
    is_copy::<Calls<&'static Pipeline<ManualClock>>>();
    is_copy::<Attempt>();
    is_copy::<TokioClock>();
    is_copy::<UnixClock>();
}

#[test]
fn a_calls_future_is_send_when_the_operations_is() {
    fn check<C: Clock, K: Classifier<String, io::Error> + Sync>(pipeline: &Pipeline<C, K>) {
        is_send(&pipeline.run(|_| async { Ok(String::new()) }));
        is_send(&pipeline.safe().run_with_report(|_| async { Ok(String::new()) }));
        is_send(&pipeline.clock().sleep(std::time::Duration::ZERO));
    }
    check(&Pipeline::new(relent::Policy::live()).unwrap());
    check(&Pipeline::on(ManualClock::new(), relent::Policy::live()).unwrap());
}

#[tokio::test]
async fn a_call_can_be_spawned_with_what_it_captures() {
    let clock = ManualClock::new();
    let pipeline = Pipeline::on(clock.clone(), relent::Policy::live()).unwrap();
    let names = vec![String::from("a"), String::from("b")];
    let task = tokio::spawn(async move {
        pipeline
            .safe()
            .run(|attempt| {
                let names = &names;
                async move { Ok::<_, io::Error>(names[attempt.number as usize].clone()) }
            })
            .await
    });
    assert_eq!(clock.drive(task).await.unwrap().unwrap(), "b");
}

#[test]
fn an_operation_that_stays_on_its_thread_may_be_run_there() {
    let clock = ManualClock::new();
    let pipeline = Pipeline::on(clock.clone(), relent::Policy::live()).unwrap();
    let count = Rc::new(Cell::new(0));
    let counted = clock.block_on(pipeline.run(|_| {
        let count = Rc::clone(&count);
        async move {
            count.set(count.get() + 1);
            Ok::<_, io::Error>(count.get())
        }
    }));
    assert_eq!(counted.unwrap(), 1);
}

#[test]
fn errors_stay_small_enough_to_return_by_value() {
    // Clippy warns from 128 bytes on.
    assert!(size_of::<Error<io::Error>>() < 128, "{}", size_of::<Error<io::Error>>());
    assert!(size_of::<Stopped>() < 128, "{}", size_of::<Stopped>());
}
