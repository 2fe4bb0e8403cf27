use super::*;

fn dependency() -> Dependency {
    Dependency {
        workers: 2,
        service: Duration::from_millis(10),
        spread: Spread::Constant,
        queue: 1,
        reject_cost: Duration::from_millis(4),
        answer: Duration::ZERO,
        drop_expired: false,
        cache: None,
        fail_status: 503,
        reject_status: 429,
    }
}

const fn ms(millis: u64) -> Timestamp {
    Timestamp::from_millis(millis)
}

fn request(call: u32) -> Request {
    Request { call, epoch: 1, give_up_at: ms(1000) }
}

/// Runs until nothing is left to do; which calls' work was done when.
fn run(server: &mut Server, agenda: &mut Agenda, effects: &[Effect]) -> Vec<(u64, Option<u32>)> {
    let mut done = Vec::new();
    while let Some(event) = agenda.next() {
        match event.kind() {
            Kind::Boundary => server.change(effects, event.at, agenda),
            _ => {
                let Some(finished) = server.done(event.whom, event.epoch) else { continue };
                done.push((event.at.as_nanos() / 1_000_000, finished.request.map(|request| request.call)));
                server.go_on(event.whom, event.at, agenda);
            }
        }
    }
    done
}

#[test]
fn requests_are_worked_on_in_order_and_a_full_queue_rejects() {
    let (mut server, mut agenda) = (Server::new(&dependency(), 1), Agenda::default());
    for call in 0..3 {
        assert_eq!(server.receive(request(call), ms(0), &mut agenda), Reception::Silence);
    }
    let rejected = Reception::Answer(Answer::Rejected(None));
    assert_eq!(server.receive(request(3), ms(0), &mut agenda), rejected);
    assert_eq!(server.queued(), 1);
    // The rejection is paid for ahead of the queue, by the worker that is free first.
    let expected = [(10, Some(0)), (10, Some(1)), (14, None), (20, Some(2))];
    assert_eq!(run(&mut server, &mut agenda, &[]), expected);
}

#[test]
fn a_worker_that_slows_down_or_stands_still_does_the_rest_of_its_work_afterwards() {
    let (mut server, mut agenda) = (Server::new(&dependency(), 1), Agenda::default());
    let slow = Effect { from: ms(5), until: ms(11), kind: EffectKind::Speed(500_000) };
    let still = Effect { from: ms(11), until: ms(100), kind: EffectKind::Speed(0) };
    for at in [5, 11, 100] {
        agenda.put(ms(at), Kind::Boundary, 0, 0);
    }
    let _ = server.receive(request(0), ms(0), &mut agenda);
    // Five of ten at full speed, three at half, the other two after the standstill.
    assert_eq!(run(&mut server, &mut agenda, &[slow, still]), [(102, Some(0))]);
}

#[test]
fn who_knows_the_deadline_drops_what_has_expired_and_who_does_not_works_on_it() {
    for (drop_expired, expected) in [(false, vec![Some(0), Some(1), Some(2)]), (true, vec![Some(0), Some(2)])]
    {
        let dependency = Dependency { workers: 1, queue: 9, drop_expired, ..dependency() };
        let (mut server, mut agenda) = (Server::new(&dependency, 1), Agenda::default());
        let _ = server.receive(request(0), ms(0), &mut agenda);
        let _ = server.receive(Request { give_up_at: ms(10), ..request(1) }, ms(0), &mut agenda);
        let _ = server.receive(request(2), ms(0), &mut agenda);
        let done: Vec<_> = run(&mut server, &mut agenda, &[]).into_iter().map(|(_, call)| call).collect();
        assert_eq!(done, expected);
    }
}

#[test]
fn each_effect_answers_in_its_own_way_and_ends_at_its_end() {
    let (mut server, mut agenda) = (Server::new(&dependency(), 1), Agenda::default());
    for (kind, reception) in [
        (EffectKind::Refuse, Reception::Answer(Answer::Refused)),
        (EffectKind::Hang(1.0), Reception::Silence),
        (EffectKind::Fail(1.0), Reception::Answer(Answer::Failed)),
        (EffectKind::Maintenance, Reception::Answer(Answer::Rejected(Some(Duration::from_millis(15))))),
    ] {
        let effects = [Effect { from: ms(10), until: ms(25), kind }];
        server.change(&effects, ms(10), &mut agenda);
        assert_eq!(server.receive(request(0), ms(10), &mut agenda), reception);
        assert_eq!(agenda.next(), None, "{kind:?} gives no work");
        server.change(&effects, ms(25), &mut agenda);
    }
    let _ = server.receive(request(0), ms(25), &mut agenda);
    assert!(agenda.next().is_some(), "it is worked on again");
}

#[test]
fn a_flush_empties_the_cache_and_only_what_is_waited_for_fills_it() {
    let cache =
        Cache { hit: Duration::from_millis(1), miss: Duration::from_millis(20), ratio: 1.0, fill: 0.5 };
    let dependency = Dependency { cache: Some(cache), ..dependency() };
    let (mut server, mut agenda) = (Server::new(&dependency, 1), Agenda::default());
    let _ = server.receive(request(0), ms(0), &mut agenda);
    assert_eq!(run(&mut server, &mut agenda, &[]), [(1, Some(0))]);
    server.change(&[Effect { from: ms(5), until: ms(5), kind: EffectKind::Flush }], ms(5), &mut agenda);
    let _ = server.receive(request(1), ms(5), &mut agenda);
    let event = agenda.next().expect("it is worked on");
    assert_eq!(event.at, ms(25));
    assert!(server.done(event.whom, event.epoch).expect("it is its own").miss);
    for ratio in [0.5, 0.75] {
        server.fill();
        assert!((server.hit_ratio - ratio).abs() < 1e-12);
    }
}
