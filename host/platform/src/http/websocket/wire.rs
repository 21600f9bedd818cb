//! The connection of a socket: TCP, or TLS over it, with non-blocking reads and writes through a shared reference.

use std::io::{self, IoSlice, Read as _, Write as _};
use std::net::Shutdown;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use rustls::ServerConnection;
use socket2::SockRef;
use tokio::net::TcpStream;

/// Most plaintext bytes that a TLS session buffers.
const SESSION_BUFFER_BYTES: usize = 16 * 1024;

/// Connection of a socket.
#[derive(Debug)]
pub(super) enum SocketTransport {
    /// TCP as it is.
    Plain(TcpStream),
    /// TLS over TCP.
    Tls(Box<TlsTransport>),
}

/// A TLS session over TCP.
#[derive(Debug)]
pub(super) struct TlsTransport {
    stream: TcpStream,
    session: Mutex<ServerConnection>,
}

impl SocketTransport {
    /// Wraps a TLS session after its handshake.
    pub(super) fn tls(stream: TcpStream, mut session: ServerConnection) -> Self {
        session.set_buffer_limit(Some(SESSION_BUFFER_BYTES));
        Self::Tls(Box::new(TlsTransport {
            stream,
            session: Mutex::new(session),
        }))
    }

    fn tcp(&self) -> &TcpStream {
        match self {
            Self::Plain(stream) => stream,
            Self::Tls(tls) => &tls.stream,
        }
    }

    /// Sets the size of the kernel's send buffer.
    pub(super) fn limit_send_buffer(&self, bytes: usize) {
        // A socket that refuses the option works anyway.
        let _ = SockRef::from(self.tcp()).set_send_buffer_size(bytes);
    }

    /// Ready once the connection is readable. One task waits for that at a time.
    pub(super) fn poll_readable(&self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self {
            Self::Tls(tls) if tls.has_plaintext() => Poll::Ready(Ok(())),
            wire => wire.tcp().poll_read_ready(context),
        }
    }

    /// Ready once the connection is writable. One task waits for that at a time.
    pub(super) fn poll_writable(&self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.tcp().poll_write_ready(context)
    }

    /// Reads the available bytes; `WouldBlock` if there are none.
    pub(super) fn try_read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Plain(stream) => stream.try_read(buffer),
            Self::Tls(tls) => tls.try_read(buffer),
        }
    }

    /// Writes as much as is accepted; `WouldBlock` if nothing is.
    pub(super) fn try_write(&self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Plain(stream) => stream.try_write(bytes),
            Self::Tls(tls) => tls.try_write_vectored(&[IoSlice::new(bytes)]),
        }
    }

    /// Writes as much of several buffers as is accepted; `WouldBlock` if nothing is.
    pub(super) fn try_write_vectored(&self, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        match self {
            Self::Plain(stream) => stream.try_write_vectored(parts),
            Self::Tls(tls) => tls.try_write_vectored(parts),
        }
    }

    /// Writes the buffered TLS records; `WouldBlock` if the kernel does not accept all.
    pub(super) fn try_flush(&self) -> io::Result<()> {
        match self {
            Self::Plain(_) => Ok(()),
            Self::Tls(tls) => tls.flush_session(&mut tls.session()),
        }
    }

    /// Whether TLS records are buffered.
    pub(super) fn has_buffered_records(&self) -> bool {
        match self {
            Self::Plain(_) => false,
            Self::Tls(tls) => tls.session().wants_write(),
        }
    }

    /// Shuts down the writing side.
    pub(super) fn shut_down(&self) {
        if let Self::Tls(tls) = self {
            let mut session = tls.session();
            session.send_close_notify();
            // If it is not sent, the end of the connection says the same.
            let _ = tls.flush_session(&mut session);
        }
        // Fails if the connection is gone.
        let _ = SockRef::from(self.tcp()).shutdown(Shutdown::Write);
    }
}

impl TlsTransport {
    fn session(&self) -> MutexGuard<'_, ServerConnection> {
        self.session.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the session has buffered plaintext, or an error to report.
    fn has_plaintext(&self) -> bool {
        let state = self.session().process_new_packets();
        state.map_or(true, |state| state.plaintext_bytes_to_read() > 0)
    }

    fn try_read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut session = self.session();
        loop {
            match session.reader().read(buffer) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                // An end without `close_notify` is an end: frames have their own lengths.
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(0),
                read => return read,
            }
            session.read_tls(&mut NonBlockingStream(&self.stream))?;
            let processed = session.process_new_packets();
            // Received records may need an answer, such as a key update or an alert.
            match self.flush_session(&mut session) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                sent => sent?,
            }
            processed.map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
        }
    }

    fn try_write_vectored(&self, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        let mut session = self.session();
        // Nothing more is accepted before all earlier records are written, so that a slow client is noticed.
        self.flush_session(&mut session)?;
        let taken = session.writer().write_vectored(parts)?;
        match self.flush_session(&mut session) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            sent => sent?,
        }
        Ok(taken)
    }

    /// Writes the session's records to the socket.
    fn flush_session(&self, session: &mut ServerConnection) -> io::Result<()> {
        while session.wants_write() {
            session.write_tls(&mut NonBlockingStream(&self.stream))?;
        }
        Ok(())
    }
}

/// Non-blocking reads and writes of a TCP stream.
struct NonBlockingStream<'a>(&'a TcpStream);

impl io::Read for NonBlockingStream<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.try_read(buffer)
    }
}

impl io::Write for NonBlockingStream<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.try_write(bytes)
    }

    fn write_vectored(&mut self, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        self.0.try_write_vectored(parts)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
