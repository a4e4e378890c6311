//! Decoding what has arrived: in one of a few places, and then held until the store may have it, so that memory has a
//! bound whatever clients do. Must not know what is decoded.

use std::sync::Arc;

use domain::{Attempt, ItemHash, Outcome, Outcomes, ProblemCode};
use tokio::sync::OwnedSemaphorePermit;

use super::body::Received;
use crate::points::{Operation, Step, point};
use crate::problem::Failure;
use crate::state::App;

/// Something decoded, which counts as held until this is dropped.
#[derive(Debug)]
pub(crate) struct Held<T> {
    pub(crate) content: T,
    pub(crate) permit: Option<OwnedSemaphorePermit>,
}

/// Decodes a body by `work`, which gives the content and about how many bytes it takes.
pub(super) async fn decode<T: Send + 'static>(
    app: &Arc<App>,
    operation: Operation,
    received: Received,
    work: impl FnOnce(&Received) -> Result<(T, usize), Failure> + Send + 'static,
) -> Result<Held<T>, Failure> {
    // A closed semaphore would mean that nobody owns the app any more.
    let place = Arc::clone(&app.decoders).acquire_owned().await.map_err(|_| crashed())?;
    point(operation, Step::Placed);
    let work = move || {
        let decoded = work(&received);
        // The body is not needed any longer.
        drop(received);
        (decoded, place)
    };
    let (decoded, place) = if app.limits.inline_decoding {
        work()
    } else {
        tokio::task::spawn_blocking(work).await.map_err(|error| {
            tracing::error!(%error, "decoding a body crashed");
            crashed()
        })?
    };
    point(operation, Step::Decoded);
    let (content, bytes) = decoded?;
    // In the place still: no more wait here than there are places.
    let permit = app.hold_decoded(bytes).await;
    point(operation, Step::Held);
    drop(place);
    Ok(Held { content, permit })
}

/// About how many bytes outcomes take in memory.
pub(super) fn weight(outcomes: &Outcomes) -> usize {
    let text = |text: &Option<String>| text.as_ref().map_or(0, String::len);
    let of = |outcome: &Outcome| {
        let attempts: usize = outcome.attempts.iter().map(|a| size_of::<Attempt>() + text(&a.message)).sum();
        let ids: usize = outcome.external_ids.iter().map(|id| size_of_val(id) + id.text_bytes()).sum();
        let own = size_of::<Outcome>() + size_of::<ItemHash>();
        own + outcome.item.encoded().len() + text(&outcome.message) + attempts + ids
    };
    outcomes.as_slice().iter().map(of).sum()
}

fn crashed() -> Failure {
    Failure::new(
        ProblemCode::Internal,
        "Decoding the body crashed, which is an error of this server. Keep the push and tell who runs the server; repeating \
         it with the same key is safe.",
    )
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    use super::*;
    use crate::config::BodyLimits;

    fn app(limits: BodyLimits) -> Arc<App> {
        let (store, clock) = (Arc::new(store::MemoryStore::new()), Arc::new(delivery::SystemClock::new()));
        App::new(store, clock, limits)
    }

    fn poll<T>(future: std::pin::Pin<&mut impl Future<Output = T>>) -> Poll<T> {
        future.poll(&mut Context::from_waker(Waker::noop()))
    }

    #[test]
    fn what_waits_for_the_store_is_bounded_by_its_bytes() {
        let limits = BodyLimits { decoded_bytes: 100, decoders: 1, inline_decoding: true, ..BodyLimits::default() };
        let app = app(limits);
        let decoding = || decode(&app, Operation::Put, Received::default(), |_| Ok(("content", 60)));
        let Poll::Ready(Ok(first)) = poll(pin!(decoding())) else { panic!("there is room for the first") };
        let mut second = pin!(decoding());
        assert!(poll(second.as_mut()).is_pending(), "60 and 60 are more than 100");
        assert_eq!(app.decoders.available_permits(), 0, "it waits in its decoder's place");
        let mut third = pin!(decoding());
        assert!(poll(third.as_mut()).is_pending());
        drop(first);
        assert!(poll(second.as_mut()).is_ready());
        assert_eq!(app.decoders.available_permits(), 0, "the third has it now");
    }

    #[test]
    fn what_is_larger_than_the_bound_waits_alone() {
        let app = app(BodyLimits { decoded_bytes: 100, inline_decoding: true, ..BodyLimits::default() });
        let decoding = |bytes| decode(&app, Operation::Put, Received::default(), move |_| Ok(((), bytes)));
        let Poll::Ready(Ok(large)) = poll(pin!(decoding(usize::MAX))) else { panic!("it is taken") };
        let mut small = pin!(decoding(1));
        assert!(poll(small.as_mut()).is_pending());
        drop(large);
        assert!(poll(small.as_mut()).is_ready());
    }
}
