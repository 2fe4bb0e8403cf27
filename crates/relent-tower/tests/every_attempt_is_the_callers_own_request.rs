//! A request that is sent again is the same in all its parts, in the same order: what a copy of the caller's own would
//! have been.

#[path = "support/policy.rs"]
mod policy;

use std::{
    convert::Infallible,
    sync::{Arc, Mutex},
};

use bytes::Bytes;
use http::{HeaderName, HeaderValue, Method, Request, Response, Version};
use http_body_util::Full;
use relent::{ManualClock, Pipeline, SplitMix64};
use relent_tower::{CallTerms, PipelineLayer, Wire};
use tower::{ServiceExt, layer::Layer, service_fn};

use self::policy::policy;

/// A request with something about it that only a copy has, too.
#[derive(Clone, Debug, Eq, PartialEq)]
struct Note(u64);

fn pick<T: Clone>(chance: &mut SplitMix64, from: &[T]) -> T {
    from[usize::try_from(chance.bits() % from.len() as u64).unwrap()].clone()
}

/// Headers that were added, replaced and taken away again, as those who make requests do.
fn request(chance: &mut SplitMix64) -> Request<Full<Bytes>> {
    let mut request = Request::new(Full::from("hello world"));
    *request.method_mut() =
        pick(chance, &[Method::GET, Method::POST, Method::CONNECT, "SEARCH".parse().unwrap()]);
    *request.version_mut() = pick(chance, &[Version::HTTP_10, Version::HTTP_11, Version::HTTP_2]);
    let uris = ["/", "*", "stock.example:80", "http://a%20b@stock.example:80/apples;x?ripe&ripe=1"];
    *request.uri_mut() = pick(chance, &uris).parse().unwrap();
    request.extensions_mut().insert(Note(chance.bits()));
    let headers = request.headers_mut();
    for _ in 0..chance.bits() % 40 {
        let name = HeaderName::try_from(format!("x-{}", chance.bits() % 12)).unwrap();
        let mut value =
            HeaderValue::from_bytes(pick::<&[u8]>(chance, &[b"", b" a", b"\xff", b"b,c"])).unwrap();
        value.set_sensitive(chance.bits().is_multiple_of(2));
        match chance.bits() % 4 {
            0 => drop(headers.remove(name)),
            1 => drop(headers.insert(name, value)),
            _ => drop(headers.append(name, value)),
        }
    }
    request
}

/// All that can be told of a request's head. (What is sensitive does not count where values are compared.)
fn told<B>(request: &Request<B>) -> String {
    let lines: Vec<_> =
        request.headers().iter().map(|(name, value)| (name, value.as_bytes(), value)).collect();
    let (method, uri, version) = (request.method(), request.uri(), request.version());
    format!("{method} {uri} {version:?} {:?} {lines:?}", request.extensions().get::<Note>())
}

#[test]
fn every_attempt_has_every_part_of_the_request_in_its_place() {
    for seed in 0..500 {
        let clock = ManualClock::new();
        let pipeline = Pipeline::on(clock.clone(), policy()).unwrap();
        let layer = PipelineLayer::new(pipeline).unwrap().with_wire(Wire::new().without_attempt_header());
        let received = Arc::new(Mutex::new(Vec::new()));
        let service = service_fn(|request: Request<Full<Bytes>>| {
            received.lock().unwrap().push((told(&request), request.into_body()));
            let response = Response::builder().status(503).body(Full::<Bytes>::default()).unwrap();
            async { Ok::<_, Infallible>(response) }
        });
        let mut request = request(&mut SplitMix64::new(seed));
        request.extensions_mut().insert(CallTerms::new().safe());
        let own = told(&request);
        let _last = clock.block_on(layer.layer(service).oneshot(request)).unwrap();
        let received = received.lock().unwrap();
        assert_eq!(received.len(), 4);
        assert!(received.iter().all(|(attempt, _)| *attempt == own), "{own}\n{received:#?}");
    }
}
