//! Retries beneath the policy, which nobody can ask about.
//!
//! hyper-util's client sends again by itself what a closing connection gave back unwritten, unless it was built not
//! to; a client that is built does not say which. So a face that stands on one tells the observer once, unless it was
//! told that its user knows.

use std::{
    any::type_name,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use relent::{Clock, Pipeline};

/// Whether it is still to be told that a service may retry by itself. Clones share the answer.
#[derive(Clone, Debug)]
pub(crate) struct Doubt(Option<Arc<AtomicBool>>);

impl Doubt {
    /// It is to be told once, by whichever service comes first.
    pub(crate) fn new() -> Self {
        Self(Some(Arc::new(AtomicBool::new(true))))
    }

    /// There is nothing to tell.
    pub(crate) const fn none() -> Self {
        Self(None)
    }

    /// The doubt about this type of service: none, if hyper-util's client is no part of it.
    ///
    /// The compiler's name for a type is for people to read and promises nothing, so no more hangs on it than whether
    /// an event is told.
    pub(crate) fn about<S>(&self) -> Self {
        match &self.0 {
            Some(open) if open.load(Ordering::Relaxed) && type_name::<S>().contains(CLIENT) => self.clone(),
            _ => Self::none(),
        }
    }

    /// Tells the pipeline's observer, the first time.
    pub(crate) fn tell<C: Clock, K>(&self, pipeline: &Pipeline<C, K>) {
        if let Some(open) = &self.0
            && open.load(Ordering::Relaxed)
            && open.swap(false, Ordering::Relaxed)
        {
            pipeline.tell_of_retries_beneath("hyper-util");
        }
    }
}

const CLIENT: &str = "hyper_util::client::legacy::client::Client<";

#[cfg(test)]
mod tests {
    use std::{convert::Infallible, sync::Mutex};

    use bytes::Bytes;
    use http::{Request, Response};
    use http_body_util::Empty;
    use hyper_util::{
        client::legacy::{Client, connect::HttpConnector},
        rt::TokioExecutor,
    };
    use relent::{Event, ManualClock, Observe, Policy, Scene};
    use tower::{Service, layer::Layer, limit::ConcurrencyLimit, service_fn, util::BoxCloneService};

    use super::*;
    use crate::PipelineLayer;

    #[derive(Default)]
    struct Told(Mutex<Vec<&'static str>>);

    impl Observe for Told {
        fn observe(&self, _: Scene<'_>, event: &Event<'_>) {
            if let Event::MayRetryBeneath { what } = event {
                self.0.lock().unwrap().push(what);
            }
        }
    }

    fn layer() -> (PipelineLayer<ManualClock>, Arc<Told>) {
        let told = Arc::new(Told::default());
        let pipeline = Pipeline::on(ManualClock::new(), Policy::live()).unwrap().observed_by(told.clone());
        (PipelineLayer::new(pipeline).unwrap(), told)
    }

    fn client() -> Client<HttpConnector, Empty<Bytes>> {
        Client::builder(TokioExecutor::new()).build_http()
    }

    fn get() -> Request<Empty<Bytes>> {
        Request::new(Empty::new())
    }

    #[test]
    fn hyper_utils_client_is_told_of_once_by_itself_or_in_a_stack() {
        for limited in [false, true] {
            let (layer, told) = layer();
            for _ in 0..2 {
                match limited {
                    false => drop(layer.layer(client()).call(get())),
                    true => drop(layer.layer(ConcurrencyLimit::new(client(), 1)).call(get())),
                }
            }
            assert_eq!(*told.0.lock().unwrap(), ["hyper-util"]);
        }
    }

    #[test]
    fn nothing_is_told_of_what_is_known_or_cannot_be_seen() {
        let (trusting, told) = layer();
        drop(trusting.trusting_clients().layer(client()).call(get()));
        let (layer, heard) = layer();
        drop(layer.layer(BoxCloneService::new(client())).call(get()));
        let own = service_fn(|_: Request<Empty<Bytes>>| async {
            Ok::<_, Infallible>(Response::new(Empty::<Bytes>::new()))
        });
        drop(layer.layer(own).call(get()));
        assert!(told.0.lock().unwrap().is_empty() && heard.0.lock().unwrap().is_empty());
        drop(layer.layer(client()).call(get()));
        assert_eq!(
            *heard.0.lock().unwrap(),
            ["hyper-util"],
            "what was told of others is not told of this one"
        );
    }
}
