//! A bound on how long a client may take nothing of what is written to it: what it has asked for waits in memory.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Sleep, sleep};

/// A stream whose writes fail once the other side has taken nothing for so long.
#[derive(Debug)]
pub struct StallTimeout<S> {
    stream: S,
    most: Duration,
    /// Runs while a write waits.
    stalled: Option<Pin<Box<Sleep>>>,
}

impl<S> StallTimeout<S> {
    /// Of a stream whose other side may pause for `most`.
    pub fn new(stream: S, most: Duration) -> Self {
        Self {
            stream,
            most,
            stalled: None,
        }
    }

    /// The stream itself, for whoever bounds its writes otherwise.
    pub fn into_inner(self) -> S {
        self.stream
    }

    /// Bounds the pause of a write: one that goes on ends the pause, and one that waits is waited for no longer than
    /// allowed.
    fn enforce_timeout<T>(
        &mut self,
        context: &mut Context<'_>,
        written: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.stalled = None;
            return written;
        }
        let most = self.most;
        let pause = self.stalled.get_or_insert_with(|| Box::pin(sleep(most)));
        ready!(pause.as_mut().poll(context));
        let error = "the client takes nothing of what is written to it";
        Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, error)))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for StallTimeout<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for StallTimeout<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.enforce_timeout(context, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, parts);
        self.enforce_timeout(context, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use tokio::net::{TcpListener, TcpStream};

    use super::*;

    #[tokio::test]
    async fn who_takes_nothing_is_given_up() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let _idle = TcpStream::connect(listener.local_addr().unwrap())
            .await
            .unwrap();
        let (stream, _) = listener.accept().await.unwrap();
        let mut stream = StallTimeout::new(stream, Duration::from_millis(50));
        let filling = async {
            loop {
                let write =
                    poll_fn(|context| Pin::new(&mut stream).poll_write(context, &[0; 4096]));
                if let Err(error) = write.await {
                    return error;
                }
            }
        };
        let ended = tokio::time::timeout(Duration::from_secs(10), filling).await;
        assert_eq!(ended.unwrap().kind(), io::ErrorKind::TimedOut);
    }
}
