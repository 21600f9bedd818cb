//! Least rate of a client that reads its answers slowly, or not at all: they wait in memory.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Sleep, sleep};

/// Least rate at which a peer takes what waits for it, or sends what is waited for, in bytes a second. The slowest mobile plans carry twice as much: the kernel
/// takes bytes in lumps, so a period may show half of the rate at which a steady peer reads.
pub(super) const LEAST_RATE: u64 = 2 << 10;

/// A stream whose writes fail once the peer reads too little of what waits for it.
///
/// The rule is for bytes that the kernel does not take. A stream that is quiet, such as one of events without news, has none.
#[derive(Debug)]
pub struct StallTimeoutStream<S> {
    stream: S,
    /// Length of a period.
    period: Duration,
    /// Bytes that the peer must take in a period.
    least: u64,
    /// Present while bytes wait.
    backlog: Option<Backlog>,
}

/// Bytes that wait for the peer, since a write was pending.
#[derive(Debug)]
struct Backlog {
    /// Timer of the current period.
    ends: Pin<Box<Sleep>>,
    /// Bytes that the peer has taken in the current period.
    taken: u64,
}

impl Backlog {
    fn begin(period: Duration) -> Self {
        Self {
            ends: Box::pin(sleep(period)),
            taken: 0,
        }
    }
}

impl<S> StallTimeoutStream<S> {
    /// Wraps a stream whose peer takes at least so much in each `period` in which something waits for it.
    pub fn new(stream: S, period: Duration) -> Self {
        let least = u128::from(LEAST_RATE) * period.as_millis() / 1000;
        Self {
            stream,
            period,
            least: u64::try_from(least).unwrap_or(u64::MAX).max(1),
            backlog: None,
        }
    }

    /// Unwraps the stream.
    pub fn into_inner(self) -> S {
        self.stream
    }

    /// Counts what the peer takes, and fails a pending write when a period ends in which that was too little. What was taken of one
    /// answer does not reset the timer: a byte now and then would keep the rest in memory for ever.
    fn enforce_rate(
        &mut self,
        context: &mut Context<'_>,
        written: Poll<io::Result<usize>>,
    ) -> Poll<io::Result<usize>> {
        if let Poll::Ready(written) = written {
            if let (Ok(bytes), Some(backlog)) = (&written, &mut self.backlog) {
                backlog.taken = backlog.taken.saturating_add(*bytes as u64);
            }
            return Poll::Ready(written);
        }
        let period = self.period;
        let backlog = self.backlog.get_or_insert_with(|| Backlog::begin(period));
        while backlog.ends.as_mut().poll(context).is_ready() {
            if backlog.taken < self.least {
                let error = "the client takes too little of what is written to it";
                return Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, error)));
            }
            *backlog = Backlog::begin(period);
        }
        Poll::Pending
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for StallTimeoutStream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for StallTimeoutStream<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.enforce_rate(context, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, parts);
        self.enforce_rate(context, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.stream).poll_flush(context);
        if flushed.is_ready() {
            // A writer flushes when it has written everything: nothing waits any more.
            self.backlog = None;
        }
        flushed
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream, duplex};
    use tokio::net::{TcpListener, TcpStream};
    use tokio::time::timeout;

    use super::*;

    const SOON: Duration = Duration::from_millis(50);
    const DEADLINE: Duration = Duration::from_secs(10);

    /// Writes until that fails.
    async fn fill<S: AsyncWrite + Unpin>(stream: &mut StallTimeoutStream<S>) -> io::ErrorKind {
        loop {
            let write = poll_fn(|context| Pin::new(&mut *stream).poll_write(context, &[0; 4096]));
            if let Err(error) = write.await {
                return error.kind();
            }
        }
    }

    /// Reads byte after byte without end.
    async fn trickle(mut stream: DuplexStream) {
        while stream.read_u8().await.is_ok() {}
    }

    /// A stream that holds one byte of what its peer has not read yet.
    fn narrow_stream(least: u64) -> (StallTimeoutStream<DuplexStream>, DuplexStream) {
        let (ours, theirs) = duplex(1);
        let mut stream = StallTimeoutStream::new(ours, SOON);
        stream.least = least;
        (stream, theirs)
    }

    #[tokio::test]
    async fn who_takes_nothing_is_given_up() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let _idle = TcpStream::connect(listener.local_addr().unwrap())
            .await
            .unwrap();
        let (stream, _) = listener.accept().await.unwrap();
        let mut stream = StallTimeoutStream::new(stream, SOON);
        let ended = timeout(DEADLINE, fill(&mut stream)).await;
        assert_eq!(ended.unwrap(), io::ErrorKind::TimedOut);
    }

    #[tokio::test]
    async fn who_takes_a_byte_now_and_then_is_given_up() {
        let (mut stream, theirs) = narrow_stream(u64::MAX);
        let reading = tokio::spawn(trickle(theirs));
        let ended = timeout(DEADLINE, fill(&mut stream)).await;
        assert_eq!(ended.unwrap(), io::ErrorKind::TimedOut);
        reading.abort();
    }

    #[tokio::test]
    async fn who_takes_enough_in_each_period_is_waited_for() {
        let (mut stream, theirs) = narrow_stream(1);
        let reading = tokio::spawn(trickle(theirs));
        let ended = timeout(SOON * 4, fill(&mut stream)).await;
        assert!(ended.is_err(), "it is still written to: {ended:?}");
        reading.abort();
    }

    #[tokio::test]
    async fn a_stream_without_a_backlog_may_be_quiet() {
        let (mut stream, theirs) = narrow_stream(3);
        let reading = tokio::spawn(trickle(theirs));
        for _ in 0..3 {
            // Two bytes wait at first, as an event does; what comes next finds a new period.
            stream.write_all(b"ab").await.unwrap();
            stream.flush().await.unwrap();
            assert!(stream.backlog.is_none());
            sleep(SOON).await;
        }
        reading.abort();
    }
}
