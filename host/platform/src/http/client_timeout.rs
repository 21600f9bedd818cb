//! Timeouts of HTTP/2 clients that do not read their answers, or are idle. With flow control a client could keep answers in memory for
//! ever while it answers pings, and pings alone would keep its connection open.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::response::Response;
use hyper::body::{Frame, SizeHint};
use tokio::time::{Sleep, sleep};

use svc_base::Stopwatch;

/// Most bytes of a chunk: even a slow client reads one within the timeout.
const CHUNK_BYTES: usize = 16 << 10;
/// Bytes of an answer that HTTP/2 may take ahead of its client. The time of a chunk begins when it is taken, so the last one taken
/// waits for all before it: with more, a steady reader would be cut off for its queue.
pub const SEND_BUFFER_BYTES: usize = CHUNK_BYTES;

/// Counts of a connection's answers and of their chunks; a chunk is sent when hyper drops it.
#[derive(Clone, Debug, Default)]
pub struct AnswerTracker(Arc<AnswerCounts>);

#[derive(Debug, Default)]
struct AnswerCounts {
    asked: AtomicU64,
    ended: AtomicU64,
    /// Chunks that are not sent yet, by number, with the time of their creation.
    waiting: Mutex<BTreeMap<u64, Duration>>,
    given: AtomicU64,
    clock: Stopwatch,
}

impl AnswerCounts {
    fn waiting(&self) -> MutexGuard<'_, BTreeMap<u64, Duration>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl AnswerTracker {
    /// Counts a request until its answer has ended or is dropped.
    pub fn track(&self) -> TrackedAnswerGuard {
        self.0.asked.fetch_add(1, Ordering::Relaxed);
        TrackedAnswerGuard(self.clone())
    }
}

/// A counted request, until this is dropped.
#[derive(Debug)]
pub struct TrackedAnswerGuard(AnswerTracker);

impl Drop for TrackedAnswerGuard {
    fn drop(&mut self) {
        self.0.0.ended.fetch_add(1, Ordering::Relaxed);
    }
}

impl TrackedAnswerGuard {
    /// Splits the answer of a counted request into counted chunks.
    #[must_use]
    pub fn wrap(tracked: Option<Self>, answer: Response) -> Response {
        let Some(tracked) = tracked else {
            return answer;
        };
        answer.map(|body| {
            Body::new(ChunkedBody {
                body,
                rest: Bytes::new(),
                tracked,
            })
        })
    }

    fn track_chunk(&self, bytes: Bytes) -> Bytes {
        let answers = self.0.clone();
        let number = answers.0.given.fetch_add(1, Ordering::Relaxed);
        let now = answers.0.clock.elapsed();
        answers.0.waiting().insert(number, now);
        Bytes::from_owner(TrackedChunk {
            bytes,
            number,
            answers,
        })
    }
}

/// A chunk that counts as unsent until it is dropped.
struct TrackedChunk {
    bytes: Bytes,
    number: u64,
    answers: AnswerTracker,
}

impl AsRef<[u8]> for TrackedChunk {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for TrackedChunk {
    fn drop(&mut self) {
        self.answers.0.waiting().remove(&self.number);
    }
}

/// A body that is split into counted chunks.
struct ChunkedBody {
    body: Body,
    rest: Bytes,
    tracked: TrackedAnswerGuard,
}

impl hyper::body::Body for ChunkedBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        if self.rest.is_empty() {
            let frame = ready!(Pin::new(&mut self.body).poll_frame(context));
            match frame.map(|frame| frame.map(Frame::into_data)) {
                Some(Ok(Ok(bytes))) => self.rest = bytes,
                Some(Ok(Err(other))) => return Poll::Ready(Some(Ok(other))),
                Some(Err(error)) => return Poll::Ready(Some(Err(error))),
                None => return Poll::Ready(None),
            }
        }
        let length = self.rest.len().min(CHUNK_BYTES);
        let piece = self.rest.split_to(length);
        Poll::Ready(Some(Ok(Frame::data(self.tracked.track_chunk(piece)))))
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let (rest, of_body) = (self.rest.len() as u64, self.body.size_hint());
        let mut hint = SizeHint::new();
        hint.set_lower(of_body.lower() + rest);
        if let Some(upper) = of_body.upper() {
            hint.set_upper(upper + rest);
        }
        hint
    }
}

/// Reason for closing a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeoutReason {
    /// The client does not read its answers.
    Stalled,
    /// The client has sent no request for too long.
    Idle,
}

/// Timeouts of a connection's client.
#[derive(Debug)]
pub struct SlowClientTimeout {
    answers: AnswerTracker,
    stall: Duration,
    idle: Duration,
    /// Running timer: its reason, the chunk or the number of requests that it began with, and the sleep.
    wait: Option<(TimeoutReason, u64, Pin<Box<Sleep>>)>,
    /// The chunk whose timeout expired last.
    late: Option<u64>,
}

impl SlowClientTimeout {
    /// Makes the timeouts: `stall` for each chunk, whatever is sent of others, and `idle` for the next request.
    pub fn new(answers: AnswerTracker, stall: Duration, idle: Duration) -> Self {
        Self {
            answers,
            stall,
            idle,
            wait: None,
            late: None,
        }
    }

    /// Ready once a timeout has expired; the timer then starts again. Must be polled whenever the connection is: an end is noticed then, at
    /// the latest when the connection pings its client.
    pub fn poll_timeout(&mut self, context: &mut Context<'_>) -> Poll<TimeoutReason> {
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        let counts = &self.answers.0;
        let asked = read(&counts.asked);
        // An HTTP/1 connection counts nothing, and has timeouts of its own.
        if asked == 0 {
            return Poll::Pending;
        }
        let oldest = counts.waiting().first_key_value().map(|(n, at)| (*n, *at));
        let (ending, which, most) = match oldest {
            Some((piece, _)) if self.late == Some(piece) => {
                (TimeoutReason::Stalled, piece, self.stall)
            }
            Some((piece, given)) => {
                let waited = counts.clock.elapsed().saturating_sub(given);
                let left = self.stall.saturating_sub(waited);
                (TimeoutReason::Stalled, piece, left)
            }
            None if read(&counts.ended) == asked => (TimeoutReason::Idle, asked, self.idle),
            None => {
                self.wait = None;
                return Poll::Pending;
            }
        };
        let is_same = |(what, had, _): &(TimeoutReason, u64, _)| *what == ending && *had == which;
        let wait = self.wait.take().filter(is_same);
        let (_, _, mut pause) = wait.unwrap_or_else(|| (ending, which, Box::pin(sleep(most))));
        let ended = pause.as_mut().poll(context);
        if ended.is_pending() {
            self.wait = Some((ending, which, pause));
            return Poll::Pending;
        }
        self.late = (ending == TimeoutReason::Stalled).then_some(which);
        Poll::Ready(ending)
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::future::poll_fn;
    use std::pin::pin;

    use http::Request;
    use hyper::body::Incoming;
    use hyper::service::service_fn;
    use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
    use hyper_util::server::conn::auto::Builder;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream};

    use super::*;

    const DATA: u8 = 0;
    const SETTINGS: u8 = 4;
    const PING: u8 = 6;
    const WINDOW_UPDATE: u8 = 8;
    const ACK: u8 = 1;
    const END_STREAM: u8 = 1;

    fn frame(kind: u8, flags: u8, stream: u8, payload: &[u8]) -> Vec<u8> {
        let length = u8::try_from(payload.len()).unwrap();
        [&[0, 0, length, kind, flags, 0, 0, 0, stream], payload].concat()
    }

    fn speaker() -> Builder<TokioExecutor> {
        let mut speaker = Builder::new(TokioExecutor::new()).http2_only();
        speaker
            .http2()
            .timer(TokioTimer::new())
            .keep_alive_interval(Some(Duration::from_millis(50)))
            .max_send_buf_size(SEND_BUFFER_BYTES);
        speaker
    }

    /// Asks for a page with a window of so many bytes for its answer.
    fn hello(window: u32) -> Vec<u8> {
        let setting = [&[0, 4][..], &window.to_be_bytes()].concat();
        let mut hello = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
        hello.extend(frame(SETTINGS, 0, 0, &setting));
        // GET http://x/, by HPACK's static table.
        hello.extend(frame(1, 5, 1, &[0x82, 0x86, 0x84, 0x41, 1, b'x']));
        hello
    }

    /// Serves one connection, each of whose answers has so many bytes; returns why patience ended it.
    async fn serve(
        stream: DuplexStream,
        bytes: usize,
        (stall, idle): (Duration, Duration),
    ) -> Option<TimeoutReason> {
        let answers = AnswerTracker::default();
        let mut patience = SlowClientTimeout::new(answers.clone(), stall, idle);
        let service = service_fn(move |_: Request<Incoming>| {
            let answer = Response::new(Body::from(vec![b'x'; bytes]));
            let answer = TrackedAnswerGuard::wrap(Some(answers.track()), answer);
            async move { Ok::<_, Infallible>(answer) }
        });
        let speaker = speaker();
        let connection = speaker.serve_connection(TokioIo::new(stream), service);
        let mut connection = pin!(connection);
        poll_fn(|context| match connection.as_mut().poll(context) {
            Poll::Ready(_) => Poll::Ready(None),
            Poll::Pending => patience.poll_timeout(context).map(Some),
        })
        .await
    }

    /// Asks for a page with a window of so many bytes, answers pings, and reads until the connection ends, or until the answer does if
    /// it is to go then; returns the bytes of the answer.
    async fn ask(mut stream: DuplexStream, window: u32, goes: bool) -> usize {
        stream.write_all(&hello(window)).await.unwrap();
        let (mut head, mut read) = ([0; 9], 0);
        while stream.read_exact(&mut head).await.is_ok() {
            let length = usize::from(head[1]) << 8 | usize::from(head[2]);
            let mut payload = vec![0; length];
            stream.read_exact(&mut payload).await.unwrap();
            match (head[3], head[4]) {
                (PING, 0) => {
                    // A closed connection does not take it.
                    let _ = stream.write_all(&frame(PING, ACK, 0, &payload)).await;
                }
                (DATA, flags) => {
                    read += length;
                    if goes && flags & END_STREAM != 0 {
                        break;
                    }
                }
                _ => {}
            }
        }
        read
    }

    const SOON: Duration = Duration::from_millis(200);
    const NEVER: Duration = Duration::from_secs(60);

    #[tokio::test]
    async fn who_takes_nothing_is_given_up_though_it_answers_pings() {
        for (window, bytes) in [(0, 10), (1, 10), (20_000, 60_000)] {
            let (ours, theirs) = tokio::io::duplex(1 << 20);
            let served = serve(ours, bytes, (SOON, NEVER));
            let (ended, read) = tokio::join!(served, ask(theirs, window, false));
            assert_eq!(
                ended,
                Some(TimeoutReason::Stalled),
                "{window} of {bytes} bytes"
            );
            assert_eq!(read, usize::try_from(window).unwrap());
        }
    }

    #[tokio::test]
    async fn little_is_taken_ahead_of_a_slow_reader_with_a_large_window() {
        let answers = AnswerTracker::default();
        let tracker = answers.clone();
        let service = service_fn(move |_: Request<Incoming>| {
            let answer = Response::new(Body::from(vec![b'x'; 40 * CHUNK_BYTES]));
            let answer = TrackedAnswerGuard::wrap(Some(tracker.track()), answer);
            async move { Ok::<_, Infallible>(answer) }
        });
        let (ours, mut theirs) = tokio::io::duplex(CHUNK_BYTES);
        let speaker = speaker();
        let connection = speaker.serve_connection(TokioIo::new(ours), service);
        let asked = async {
            let window = 1_u32 << 20;
            theirs.write_all(&hello(window)).await.unwrap();
            let whole = frame(WINDOW_UPDATE, 0, 0, &window.to_be_bytes());
            theirs.write_all(&whole).await.unwrap();
            // The server goes as far as it can.
            for _ in 0..1_000 {
                tokio::task::yield_now().await;
            }
        };
        let is_over = tokio::select! {
            _ = connection => true,
            () = asked => false,
        };
        assert!(!is_over);
        // One is written, one is next, and one is at hand.
        let taken = answers.0.given.load(Ordering::Relaxed);
        assert!((1..=4).contains(&taken), "{taken}");
    }

    #[tokio::test]
    async fn what_is_taken_of_others_excuses_nobody() {
        let answers = AnswerTracker::default();
        let mut patience = SlowClientTimeout::new(answers.clone(), SOON, NEVER);
        let stalled = answers.track();
        let piece = stalled.track_chunk(Bytes::from_static(b"x"));
        // Once it is told, it is waited for as long again.
        for _ in 0..2 {
            let trickle = async {
                loop {
                    drop(answers.track().track_chunk(Bytes::from_static(b"y")));
                    sleep(SOON / 10).await;
                }
            };
            let ended = tokio::select! {
                ended = poll_fn(|context| patience.poll_timeout(context)) => Some(ended),
                () = trickle => None,
            };
            assert_eq!(ended, Some(TimeoutReason::Stalled));
        }
        drop(piece);
    }

    #[tokio::test]
    async fn who_asks_for_nothing_more_is_given_up_though_it_answers_pings() {
        let (ours, theirs) = tokio::io::duplex(1 << 20);
        let served = serve(ours, 50_000, (NEVER, SOON));
        let (ended, read) = tokio::join!(served, ask(theirs, 60_000, false));
        assert_eq!((ended, read), (Some(TimeoutReason::Idle), 50_000));
    }

    #[tokio::test]
    async fn who_takes_all_and_goes_is_not_waited_for() {
        let (ours, theirs) = tokio::io::duplex(1 << 20);
        let served = serve(ours, 50_000, (NEVER, NEVER));
        let (ended, read) = tokio::join!(served, ask(theirs, 60_000, true));
        assert_eq!((ended, read), (None, 50_000));
    }
}
