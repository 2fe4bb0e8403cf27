//! How a call reaches its pipeline: by reference, or by a clone of its own where it must outlive whoever began it.

use std::sync::Arc;

use crate::{clock::Clock, pipeline::Pipeline};

/// What holds on to a pipeline for as long as a call lasts: `&Pipeline`, a [`Pipeline`] (a clone is one count), or
/// an `Arc<Pipeline>`. Nobody else can: what a call takes from a pipeline must go back to the same one.
pub trait Reach: sealed::Sealed {
    /// The pipeline's clock.
    type Clock: Clock;
    /// The pipeline's classifier.
    type Classifier;

    /// The pipeline.
    fn pipeline(&self) -> &Pipeline<Self::Clock, Self::Classifier>;
}

impl<C: Clock, K> Reach for Pipeline<C, K> {
    type Clock = C;
    type Classifier = K;

    #[inline]
    fn pipeline(&self) -> &Self {
        self
    }
}

impl<P: Reach> Reach for &P {
    type Clock = P::Clock;
    type Classifier = P::Classifier;

    #[inline]
    fn pipeline(&self) -> &Pipeline<P::Clock, P::Classifier> {
        P::pipeline(self)
    }
}

impl<P: Reach> Reach for Arc<P> {
    type Clock = P::Clock;
    type Classifier = P::Classifier;

    #[inline]
    fn pipeline(&self) -> &Pipeline<P::Clock, P::Classifier> {
        P::pipeline(self)
    }
}

mod sealed {
    use super::{Arc, Pipeline};

    pub trait Sealed {}

    impl<C, K> Sealed for Pipeline<C, K> {}
    impl<P: Sealed> Sealed for &P {}
    impl<P: Sealed> Sealed for Arc<P> {}
}
