//! WebSockets that another node answers: bytes pass as they are, and a socket is closed with 1012 when that node is gone.
//!
//! Frames are followed only as far as it takes to know where one ends, since a close frame may stand between two others alone.

use std::time::Duration;

use axum::extract::Request;
use axum::response::Response;
use bytes::BufMut as _;
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::sync::watch;
use tokio::time::timeout;

use super::admission::ConnectionPermit;
use crate::http::websocket::CloseReason;

/// Bytes that are taken from one side at once.
const BUFFER_BYTES: usize = 2 << 10;
/// Time that a client has to take a close frame, and to close the connection after it.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(2);
/// Bit of a frame's first byte: no fragment of the message follows.
const FINAL: u8 = 0x80;
/// Opcode of a close frame.
const CLOSE_OPCODE: u8 = 0x8;
/// Bit of a frame's second byte: a mask of four bytes follows the length.
const MASKED: u8 = 0x80;

/// All tunnels of a server.
#[derive(Debug)]
pub(super) struct Tunnels {
    /// Becomes true when the server stops. Each tunnel holds a receiver until it has ended.
    stop: watch::Sender<bool>,
}

impl Default for Tunnels {
    fn default() -> Self {
        Self {
            stop: watch::Sender::new(false),
        }
    }
}

impl Tunnels {
    /// Begins to pass bytes between a client and a node that has accepted its upgrade, until `gone` or the end of one of both; `in_use` is
    /// dropped then.
    pub(super) fn open(
        &self,
        client: OnUpgrade,
        node: OnUpgrade,
        (gone, in_use): (impl Future<Output = ()> + Send + 'static, ConnectionPermit),
    ) {
        let stop = self.stop.subscribe();
        tokio::spawn(async move {
            let _in_use = in_use;
            // The client's connection is free once the answer has been sent to it.
            if let (Ok(client), Ok(node)) = tokio::join!(client, node) {
                relay((TokioIo::new(client), TokioIo::new(node)), gone, stop).await;
            }
        });
    }

    /// Closes all sockets with 1001, and waits until they are gone.
    pub(super) async fn stop(&self) {
        self.stop.send_replace(true);
        self.stop.closed().await;
    }
}

/// Takes the connection of a request for an upgrade, if it asks for one.
pub(super) fn take_upgrade(request: &mut Request) -> Option<OnUpgrade> {
    request.extensions_mut().remove::<OnUpgrade>()
}

/// Takes the connection to a node that has accepted an upgrade.
pub(super) fn take_accepted(response: &mut Response) -> Option<OnUpgrade> {
    response.extensions_mut().remove::<OnUpgrade>()
}

/// Passes bytes between a client and a node.
async fn relay<C, N>(
    (client, node): (C, N),
    gone: impl Future<Output = ()>,
    mut stop: watch::Receiver<bool>,
) where
    C: AsyncRead + AsyncWrite,
    N: AsyncRead + AsyncWrite,
{
    let (mut client_reads, mut client_writes) = tokio::io::split(client);
    let (mut node_reads, mut node_writes) = tokio::io::split(node);
    let mut frames = FrameFollower::default();
    let sending = async {
        pass(&mut client_reads, &mut node_writes).await;
        // The node ends the socket then.
        std::future::pending::<()>().await;
    };
    let reason = tokio::select! {
        is_writable = pass_frames(&mut node_reads, &mut client_writes, &mut frames) => {
            is_writable.then_some(CloseReason::MOVED)
        }
        () = sending => None,
        () = gone => Some(CloseReason::MOVED),
        _ = stop.wait_for(|stop| *stop) => Some(CloseReason::STOPPED),
    };
    let reason = reason.filter(|_| frames.may_close());
    let last = reason.map(close_frame).unwrap_or_default();
    let ending = end(&mut client_reads, &mut client_writes, &last);
    // A client that takes longer finds the connection closed.
    let _ = timeout(CLOSE_TIMEOUT, ending).await;
}

/// Passes bytes on until one side ends, and ends the other then.
async fn pass(from: &mut (impl AsyncRead + Unpin), to: &mut (impl AsyncWrite + Unpin)) {
    let mut buffer = [0; BUFFER_BYTES];
    while let Ok(read @ 1..) = from.read(&mut buffer).await {
        if to.write_all(&buffer[..read]).await.is_err() || to.flush().await.is_err() {
            return;
        }
    }
    // Fails if the other side is gone, too.
    let _ = to.shutdown().await;
}

/// Passes frames of a node to the client until one of them ends. Returns whether the client still takes bytes.
async fn pass_frames(
    node: &mut (impl AsyncRead + Unpin),
    client: &mut (impl AsyncWrite + Unpin),
    frames: &mut FrameFollower,
) -> bool {
    let mut buffer = [0; BUFFER_BYTES];
    while let Ok(read @ 1..) = node.read(&mut buffer).await {
        let bytes = &buffer[..read];
        // Before they are written: a write that is given up may have sent a part of them.
        frames.begin();
        if client.write_all(bytes).await.is_err() || client.flush().await.is_err() {
            return false;
        }
        frames.follow(bytes);
    }
    true
}

/// Sends the last bytes to a client, and waits until it closes the connection, so that they are not lost with it.
async fn end(from: &mut (impl AsyncRead + Unpin), to: &mut (impl AsyncWrite + Unpin), last: &[u8]) {
    if to.write_all(last).await.is_err() || to.shutdown().await.is_err() {
        return;
    }
    let mut buffer = [0; BUFFER_BYTES];
    while matches!(from.read(&mut buffer).await, Ok(1..)) {}
}

/// Encodes a close frame of a server, which is not masked.
fn close_frame(CloseReason { code, reason }: CloseReason) -> Vec<u8> {
    let length = u8::try_from(2 + reason.len()).unwrap_or(2);
    let mut frame = vec![FINAL | CLOSE_OPCODE, length];
    frame.put_u16(code);
    frame.extend(&reason.as_bytes()[..usize::from(length) - 2]);
    frame
}

/// Follower of frames that pass by.
#[derive(Debug, Default)]
struct FrameFollower {
    /// Bytes of the next frame's head that have passed.
    head: Vec<u8>,
    /// Bytes of the frame that are still to pass.
    rest: u64,
    /// Whether bytes are being written that are not followed yet.
    is_writing: bool,
    /// Whether a close frame has passed.
    is_closed: bool,
}

impl FrameFollower {
    /// Notes that bytes are being written.
    fn begin(&mut self) {
        self.is_writing = true;
    }

    /// Follows bytes that were written.
    fn follow(&mut self, mut bytes: &[u8]) {
        self.is_writing = false;
        while let Some((first, others)) = bytes.split_first() {
            if self.rest > 0 {
                let passed =
                    usize::try_from(self.rest).map_or(bytes.len(), |rest| rest.min(bytes.len()));
                self.rest -= passed as u64;
                bytes = &bytes[passed..];
                continue;
            }
            self.head.push(*first);
            bytes = others;
            if let Some(rest) = length_after_head(&self.head) {
                self.is_closed |= self.head[0] & 0xf == CLOSE_OPCODE;
                self.rest = rest;
                self.head.clear();
            }
        }
    }

    /// Whether a close frame may be written now.
    fn may_close(&self) -> bool {
        !self.is_writing && !self.is_closed && self.head.is_empty() && self.rest == 0
    }
}

/// Returns how many bytes follow the head of a frame, once the head is complete (RFC 6455, section 5.2).
fn length_after_head(head: &[u8]) -> Option<u64> {
    let &[_, second, ref long @ ..] = head else {
        return None;
    };
    let (short, mask) = (second & !MASKED, if second & MASKED == 0 { 0 } else { 4 });
    let wanted = match short {
        126 => 2,
        127 => 8,
        _ => 0,
    };
    let long = long.get(..wanted)?;
    let length = match wanted {
        0 => u64::from(short),
        _ => long
            .iter()
            .fold(0, |sum, byte| (sum << 8) | u64::from(*byte)),
    };
    Some(length.saturating_add(mask))
}

#[cfg(test)]
mod tests {
    use std::future::pending;

    use tokio::io::{DuplexStream, duplex};

    use super::*;

    /// A client, a node, and the relay between them.
    fn relayed(
        gone: impl Future<Output = ()> + Send + 'static,
    ) -> (DuplexStream, DuplexStream, watch::Sender<bool>) {
        let (client, near_client) = duplex(1 << 10);
        let (node, near_node) = duplex(1 << 10);
        let (stop, stopped) = watch::channel(false);
        tokio::spawn(relay((near_client, near_node), gone, stopped));
        (client, node, stop)
    }

    async fn read(stream: &mut DuplexStream, bytes: usize) -> Vec<u8> {
        let mut read = vec![0; bytes];
        stream.read_exact(&mut read).await.unwrap();
        read
    }

    async fn rest_of(mut stream: DuplexStream) -> Vec<u8> {
        let mut rest = Vec::new();
        stream.read_to_end(&mut rest).await.unwrap();
        rest
    }

    fn text(length: usize) -> Vec<u8> {
        let mut frame = vec![0x81];
        match length {
            0..126 => frame.push(u8::try_from(length).unwrap()),
            _ => {
                frame.push(126);
                frame.put_u16(u16::try_from(length).unwrap());
            }
        }
        frame.resize(frame.len() + length, b'x');
        frame
    }

    #[tokio::test]
    async fn a_node_that_is_gone_closes_its_sockets_with_1012() {
        let (mut client, mut node, _stop) = relayed(pending());
        client.write_all(b"up").await.unwrap();
        assert_eq!(read(&mut node, 2).await, b"up");
        for length in [0, 5, 300] {
            let frame = text(length);
            node.write_all(&frame).await.unwrap();
            assert_eq!(read(&mut client, frame.len()).await, frame);
        }
        drop(node);
        assert_eq!(read(&mut client, 4).await[2..], 1012_u16.to_be_bytes());
        client.shutdown().await.unwrap();
    }

    #[tokio::test]
    async fn a_paused_node_and_a_stop_are_told_apart() {
        let (gone, is_gone) = tokio::sync::oneshot::channel::<()>();
        let (client, _node, _stop) = relayed(async {
            let _ = is_gone.await;
        });
        drop(gone);
        assert_eq!(rest_of(client).await[2..4], 1012_u16.to_be_bytes());
        let (client, _node, stop) = relayed(pending());
        stop.send_replace(true);
        assert_eq!(rest_of(client).await[2..4], 1001_u16.to_be_bytes());
    }

    #[tokio::test]
    async fn nothing_is_added_within_a_frame_or_after_the_end() {
        let closed = close_frame(CloseReason::ENDED);
        for sent in [&text(5)[..3], &text(300)[..2], &closed] {
            let (client, mut node, _stop) = relayed(pending());
            node.write_all(sent).await.unwrap();
            drop(node);
            assert_eq!(rest_of(client).await, sent);
        }
    }

    #[tokio::test]
    async fn a_client_that_ends_is_told_to_the_node() {
        let (client, node, _stop) = relayed(pending());
        drop(client);
        assert!(rest_of(node).await.is_empty());
    }

    #[test]
    fn frames_are_followed_byte_by_byte() {
        let mut frames = FrameFollower::default();
        let masked = [0x81, 0x82, 1, 2, 3, 4, 5, 6];
        let long = [0x82, 127, 0, 0, 0, 0, 0, 0, 0, 1, 9];
        for frame in [&masked[..], &long, &text(200), &text(0)] {
            let (last, head) = frame.split_last().unwrap();
            for byte in head {
                frames.follow(&[*byte]);
                assert!(!frames.may_close());
            }
            frames.follow(&[*last]);
            assert!(frames.may_close());
        }
        frames.follow(&close_frame(CloseReason::STOPPED));
        assert!(!frames.may_close());
    }

    #[tokio::test]
    async fn a_stop_waits_for_the_tunnels() {
        let tunnels = Tunnels::default();
        tunnels.stop().await;
        assert!(*tunnels.stop.borrow());
    }
}
