//! Bound on the bytes of request bodies that are still arriving: each is in memory until its client has sent the rest, however slowly.

use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Poll;

use axum::body::{Body, Bytes};

use super::byte_budget::{ByteBudget, ByteBudgetFull, BytePermit};
use super::client_ip::ClientIp;
use super::mapped_body::{MappedBody, PolledFrame};
use crate::config::Limits;
use svc_base::flow::CallerFlow;

/// Most bytes of a body that are not counted: so few cost no more than the request itself.
const UNCOUNTED_BYTES: usize = 1 << 10;

/// Budget of the bodies that arrive slowly. Clones share it.
#[derive(Clone, Debug)]
pub struct RequestBodyBudget(Arc<ByteBudget>);

impl RequestBodyBudget {
    /// Makes the budget: half of what pages in work have.
    pub fn new(limits: &Limits) -> Self {
        let cap = limits.divide_cap("page_work_bytes", limits.page_work_bytes / 2);
        Self(ByteBudget::new(cap))
    }

    /// Counts a client's body while the server waits for more of it. For want of room it ends with an error. A reader that does not
    /// keep the bytes until the end says so to the meter.
    pub fn count(&self, client: ClientIp, body: Body) -> (Body, BodyMeter) {
        let meter = BodyMeter::default();
        let mut arrived = ArrivedBytes {
            count: 0,
            meter: meter.clone(),
            client,
            budget: Arc::clone(&self.0),
            permit: None,
        };
        let body = MappedBody::new(body, move |polled| arrived.see(polled));
        (Body::new(body), meter)
    }
}

/// Bytes of an arriving body that are not in memory any more. Clones count the same body.
#[derive(Clone, Debug, Default)]
pub struct BodyMeter(Arc<AtomicUsize>);

impl BodyMeter {
    /// Takes bytes off the count, because they were written elsewhere.
    pub fn release(&self, bytes: usize) {
        self.0.fetch_add(bytes, Ordering::Relaxed);
    }

    fn released(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

/// Whether a body has ended with an error for want of room.
pub(super) fn is_out_of_room(error: &(dyn Error + 'static)) -> bool {
    // Each body around it has wrapped the error once more.
    std::iter::successors(Some(error), |&error| error.source())
        .any(|error| error.is::<ByteBudgetFull>())
}

/// Bytes of a body that have arrived.
struct ArrivedBytes {
    count: usize,
    meter: BodyMeter,
    client: ClientIp,
    budget: Arc<ByteBudget>,
    /// Present once the body was waited for with bytes that count.
    permit: Option<BytePermit>,
}

impl ArrivedBytes {
    /// Looks at the answer of the body, and has the body fail if more is waited for and there is no room.
    fn see(&mut self, polled: PolledFrame) -> PolledFrame {
        match polled {
            // What arrives without a wait is read in one go, and needs no look at the budget.
            Poll::Pending => match self.take_room() {
                Ok(()) => Poll::Pending,
                Err(full) => Poll::Ready(Some(Err(axum::Error::new(full)))),
            },
            Poll::Ready(frame) => {
                if let Some(Ok(frame)) = &frame {
                    self.count += frame.data_ref().map_or(0, Bytes::len);
                }
                Poll::Ready(frame)
            }
        }
    }

    /// Takes room for what has arrived.
    fn take_room(&mut self) -> Result<(), ByteBudgetFull> {
        let held = self.count.saturating_sub(self.meter.released());
        if held <= UNCOUNTED_BYTES {
            self.permit = None;
            return Ok(());
        }
        match &mut self.permit {
            Some(permit) => permit.resize(held),
            None => {
                // A route that requires a credential has changed the flow to the owner's by now.
                let flow = match CallerFlow::current() {
                    owner @ CallerFlow::Owner(_) => owner,
                    _ => CallerFlow::stranger(self.client.0),
                };
                self.permit = Some(self.budget.try_take(flow, held)?);
                Ok(())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use futures_util::stream::{self, StreamExt as _};
    use futures_util::{FutureExt as _, Stream};
    use http_body_util::{BodyExt as _, Limited};

    use super::*;

    /// A budget of 100,000 bytes, of which strangers have 80,000.
    fn budget() -> RequestBodyBudget {
        RequestBodyBudget::new(&Limits {
            page_work_bytes: 200_000,
            ..Limits::default()
        })
    }

    fn client(number: u8) -> ClientIp {
        ClientIp([192, 0, 2, number].into())
    }

    fn pieces(bytes: &'static [usize]) -> impl Stream<Item = Result<Bytes, Infallible>> + Send {
        stream::iter(
            bytes
                .iter()
                .map(|bytes| Ok(Bytes::from(vec![b'x'; *bytes]))),
        )
    }

    /// A body whose client sends these pieces, and then nothing.
    fn stalled(bytes: &'static [usize]) -> Body {
        Body::from_stream(pieces(bytes).chain(stream::pending()))
    }

    #[test]
    fn a_body_counts_while_it_is_waited_for() {
        let budget = budget();
        let count = |number, body| budget.count(client(number), body).0;
        let mut first = Box::pin(count(1, stalled(&[30_000, 40_000])).collect());
        assert!(first.as_mut().now_or_never().is_none());
        let refused = count(2, stalled(&[20_000]));
        let refused = Limited::new(refused, 1 << 20).collect().now_or_never();
        let refused = refused.unwrap().unwrap_err();
        assert!(is_out_of_room(&*refused), "{refused}");
        // Few bytes do not count, nor does what arrives at once.
        for small in [stalled(&[]), stalled(&[1_000])] {
            let small = count(2, small).collect();
            assert!(small.now_or_never().is_none(), "it is waited for");
        }
        let whole = count(2, Body::from_stream(pieces(&[50_000, 50_000])));
        let whole = whole.collect().now_or_never().unwrap().unwrap();
        assert_eq!(whole.to_bytes().len(), 100_000);
        drop(first);
        let other = count(2, stalled(&[20_000])).collect();
        assert!(other.now_or_never().is_none(), "there is room again");
    }

    #[test]
    fn what_was_written_elsewhere_does_not_count() {
        let budget = budget();
        let (mut body, meter) = budget.count(client(1), stalled(&[50_000, 20_000]));
        for bytes in [50_000, 20_000] {
            let frame = body.frame().now_or_never().unwrap().unwrap().unwrap();
            assert_eq!(frame.data_ref().map(Bytes::len), Some(bytes));
        }
        assert!(body.frame().now_or_never().is_none());
        let another = || budget.count(client(2), stalled(&[60_000])).0.collect();
        assert!(another().now_or_never().unwrap().is_err());
        meter.release(60_000);
        assert!(body.frame().now_or_never().is_none());
        assert!(another().now_or_never().is_none(), "there is room");
        meter.release(10_000);
        assert!(body.frame().now_or_never().is_none());
    }

    #[test]
    fn owners_have_a_part_of_their_own() {
        let budget = budget();
        let held = [1, 2].map(|number| {
            let (body, _) = budget.count(client(number), stalled(&[40_000]));
            let mut arriving = Box::pin(body.collect());
            assert!(arriving.as_mut().now_or_never().is_none());
            arriving
        });
        let another = || budget.count(client(3), stalled(&[10_000])).0.collect();
        assert!(another().now_or_never().unwrap().is_err());
        let owner = CallerFlow::Owner("usr_1".into());
        assert!(owner.scope(another()).now_or_never().is_none());
        drop(held);
    }
}
