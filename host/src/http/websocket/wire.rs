//! The connection below a socket: TCP, or TLS over it. Both are read and written without waiting, by the kernel's readiness.

use std::io::{self, IoSlice, Read as _, Write as _};
use std::net::Shutdown;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use rustls::ServerConnection;
use socket2::SockRef;
use tokio::net::TcpStream;

/// Plain bytes that a TLS session takes before the kernel has taken what came of those before, in bytes.
const SESSION_BUFFER_BYTES: usize = 16 * 1024;

/// Connection of a socket, which is read and written through a shared reference.
#[derive(Debug)]
pub(super) enum Wire {
    /// TCP as it is.
    Plain(TcpStream),
    /// TLS over TCP.
    Tls(Box<TlsWire>),
}

/// A TLS session over TCP.
#[derive(Debug)]
pub(super) struct TlsWire {
    stream: TcpStream,
    session: Mutex<ServerConnection>,
}

impl Wire {
    /// A TLS session whose handshake is over.
    pub(super) fn tls(stream: TcpStream, mut session: ServerConnection) -> Self {
        session.set_buffer_limit(Some(SESSION_BUFFER_BYTES));
        Self::Tls(Box::new(TlsWire {
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

    /// Bounds what the kernel holds of what a client has not taken.
    pub(super) fn limit_send_buffer(&self, bytes: usize) {
        // A socket that refuses works anyway.
        let _ = SockRef::from(self.tcp()).set_send_buffer_size(bytes);
    }

    /// Ready once there is something to read. One task waits for that at a time.
    pub(super) fn poll_readable(&self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self {
            Self::Tls(tls) if tls.has_plaintext() => Poll::Ready(Ok(())),
            wire => wire.tcp().poll_read_ready(context),
        }
    }

    /// Ready once the kernel takes bytes again. One task waits for that at a time.
    pub(super) fn poll_writable(&self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.tcp().poll_write_ready(context)
    }

    /// Reads what is there; `WouldBlock` if nothing is.
    pub(super) fn try_read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Plain(stream) => stream.try_read(buffer),
            Self::Tls(tls) => tls.try_read(buffer),
        }
    }

    /// Writes as much as is taken; `WouldBlock` if nothing is.
    pub(super) fn try_write(&self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Plain(stream) => stream.try_write(bytes),
            Self::Tls(tls) => tls.try_write_vectored(&[IoSlice::new(bytes)]),
        }
    }

    /// Writes as much of several parts as is taken; `WouldBlock` if nothing is.
    pub(super) fn try_write_vectored(&self, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        match self {
            Self::Plain(stream) => stream.try_write_vectored(parts),
            Self::Tls(tls) => tls.try_write_vectored(parts),
        }
    }

    /// Hands the kernel what was taken and waits for it; `WouldBlock` if it does not take all of that.
    pub(super) fn try_flush(&self) -> io::Result<()> {
        match self {
            Self::Plain(_) => Ok(()),
            Self::Tls(tls) => tls.flush_session(&mut tls.session()),
        }
    }

    /// Whether something that was taken waits for the kernel.
    pub(super) fn is_holding(&self) -> bool {
        match self {
            Self::Plain(_) => false,
            Self::Tls(tls) => tls.session().wants_write(),
        }
    }

    /// Tells the client that nothing comes any more.
    pub(super) fn shut_down(&self) {
        if let Self::Tls(tls) = self {
            let mut session = tls.session();
            session.send_close_notify();
            // The end of the connection says it, too.
            let _ = tls.flush_session(&mut session);
        }
        // A connection that is gone already needs no end.
        let _ = SockRef::from(self.tcp()).shutdown(Shutdown::Write);
    }
}

impl TlsWire {
    fn session(&self) -> MutexGuard<'_, ServerConnection> {
        self.session.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether something is there to read that the kernel does not know of any more, be it only an error.
    fn has_plaintext(&self) -> bool {
        let state = self.session().process_new_packets();
        state.map_or(true, |state| state.plaintext_bytes_to_read() > 0)
    }

    fn try_read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut session = self.session();
        loop {
            match session.reader().read(buffer) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                // An end without a farewell is an end: frames say by themselves whether they are whole.
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(0),
                read => return read,
            }
            session.read_tls(&mut NonBlockingStream(&self.stream))?;
            let processed = session.process_new_packets();
            // There may be something to answer: new keys, or what was wrong. The rest of it is written as other bytes are.
            match self.flush_session(&mut session) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                sent => sent?,
            }
            processed.map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
        }
    }

    fn try_write_vectored(&self, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        let mut session = self.session();
        // Nothing more is taken before the kernel has all of what was: a slow client is known by that.
        self.flush_session(&mut session)?;
        let taken = session.writer().write_vectored(parts)?;
        match self.flush_session(&mut session) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            sent => sent?,
        }
        Ok(taken)
    }

    /// Hands the kernel what the session has for it.
    fn flush_session(&self, session: &mut ServerConnection) -> io::Result<()> {
        while session.wants_write() {
            session.write_tls(&mut NonBlockingStream(&self.stream))?;
        }
        Ok(())
    }
}

/// The kernel's side of a connection, which never waits.
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
