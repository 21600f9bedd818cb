//! Clients of a relay, as cheap as they can be: what they cost is taken from the machine that the server has.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::Semaphore;

/// Filling of a message beside its time, so that it is as long as one of a page.
const FILLING: &str = "0123456789012345678901234567890123456789012345678901234567890123456789";
/// Before the digits of a message's time.
const MARK: &[u8] = b"\"data\":\"t";

/// Counts of a run.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    /// Messages that were received.
    pub(crate) delivered: AtomicU64,
    /// Sockets that the server has closed.
    pub(crate) closed: AtomicU64,
}

/// Pace of the senders.
#[derive(Clone, Debug)]
pub(crate) enum Pace {
    /// Again, as soon as another member has an earlier message: so many are on their way.
    Window(usize),
    /// At this distance from one to the next, whatever becomes of them.
    Every(Duration),
}

/// Opens a socket.
pub(crate) async fn open(address: SocketAddr, path: &str) -> anyhow::Result<TcpStream> {
    let mut stream = TcpStream::connect(address).await?;
    stream.set_nodelay(true)?;
    let request = format!(
        "GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).await?;
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.context("no answer")?);
    }
    ensure!(
        head.starts_with(b"HTTP/1.1 101"),
        "{}",
        String::from_utf8_lossy(&head)
    );
    Ok(stream)
}

/// A client's frame; a mask of zeros is a mask.
pub(crate) fn frame(first: u8, payload: &[u8]) -> Vec<u8> {
    let mut frame = vec![first];
    match u16::try_from(payload.len()) {
        Ok(short @ ..=125) => frame.push(0x80 | short.to_le_bytes()[0]),
        Ok(long) => {
            frame.push(0xfe);
            frame.extend(long.to_be_bytes());
        }
        Err(_) => frame.clear(),
    }
    frame.extend([0; 4]);
    frame.extend(payload);
    frame
}

/// Frames of a server, as they come.
#[derive(Debug, Default)]
pub(crate) struct Frames(Vec<u8>);

impl Frames {
    /// Takes what has come; `on` gets the opcode and the payload of each whole frame.
    pub(crate) fn take(&mut self, bytes: &[u8], mut on: impl FnMut(u8, &[u8])) {
        self.0.extend_from_slice(bytes);
        let mut at = 0;
        while let Some((opcode, start, end)) = head(&self.0[at..]) {
            on(opcode, &self.0[at + start..at + end]);
            at += end;
        }
        self.0.drain(..at);
    }
}

fn head(bytes: &[u8]) -> Option<(u8, usize, usize)> {
    let (start, length) = match *bytes.get(1)? {
        126 => (
            4,
            usize::from(u16::from_be_bytes([*bytes.get(2)?, *bytes.get(3)?])),
        ),
        short => (2, usize::from(short)),
    };
    let end = start + length;
    (bytes.len() >= end).then_some((bytes[0] & 0x0f, start, end))
}

/// The time that a message carries, in nanoseconds of the run.
fn time_of(payload: &[u8]) -> Option<u64> {
    let at = payload.windows(MARK.len()).position(|part| part == MARK)?;
    let digits = payload[at + MARK.len()..]
        .iter()
        .take_while(|b| b.is_ascii_digit());
    Some(digits.fold(0, |time, digit| time * 10 + u64::from(digit - b'0')))
}

/// One run: members of rooms, some of whom send.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) began: Instant,
    pub(crate) over: AtomicBool,
    pub(crate) counts: Counts,
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// Receives, counts, and measures if it is to; returns latencies in milliseconds.
pub(crate) async fn receive(
    run: Arc<Run>,
    mut stream: tokio::net::tcp::OwnedReadHalf,
    measures: bool,
    heard: Option<Arc<Semaphore>>,
) -> Vec<f64> {
    let mut frames = Frames::default();
    let mut latencies = Vec::new();
    let mut buffer = vec![0; 16 * 1024];
    while !run.over.load(Ordering::Relaxed) {
        let read = tokio::time::timeout(Duration::from_millis(200), stream.read(&mut buffer));
        let length = match read.await {
            Err(_) => continue,
            Ok(Ok(length)) if length > 0 => length,
            Ok(_) => {
                run.counts.closed.fetch_add(1, Ordering::Relaxed);
                break;
            }
        };
        let mut delivered = 0;
        frames.take(&buffer[..length], |opcode, payload| {
            if opcode == 8 {
                run.counts.closed.fetch_add(1, Ordering::Relaxed);
            }
            // Events of the platform's are no messages.
            if opcode != 1 || payload.starts_with(br#"{"v":1,"type":"svc:"#) {
                return;
            }
            delivered += 1;
            if measures && let Some(sent) = time_of(payload) {
                let now = nanos(run.began.elapsed());
                latencies.push(Duration::from_nanos(now.saturating_sub(sent)).as_secs_f64() * 1e3);
            }
        });
        run.counts.delivered.fetch_add(delivered, Ordering::Relaxed);
        if let Some(heard) = &heard {
            heard.add_permits(usize::try_from(delivered).unwrap_or(0));
        }
    }
    latencies
}

/// Sends until the run is over.
pub(crate) async fn send(
    run: Arc<Run>,
    mut stream: tokio::net::tcp::OwnedWriteHalf,
    pace: Pace,
    heard: Arc<Semaphore>,
) -> anyhow::Result<()> {
    let mut next = tokio::time::Instant::now();
    while !run.over.load(Ordering::Relaxed) {
        match pace {
            Pace::Window(_) => {
                let turn = tokio::time::timeout(Duration::from_millis(200), heard.acquire());
                match turn.await {
                    Ok(permit) => permit?.forget(),
                    Err(_) => continue,
                }
            }
            Pace::Every(distance) => {
                next += distance;
                tokio::time::sleep_until(next).await;
            }
        }
        let time = nanos(run.began.elapsed());
        let text = format!(r#"{{"v":1,"type":"move","data":"t{time} {FILLING}"}}"#);
        if stream
            .write_all(&frame(0x81, text.as_bytes()))
            .await
            .is_err()
        {
            bail!("a sender was cut off");
        }
    }
    Ok(())
}

/// Sits there, and answers pings; returns when the server closes or the run is over.
pub(crate) async fn sit(run: Arc<Run>, mut stream: TcpStream) {
    let mut frames = Frames::default();
    let mut buffer = [0; 1024];
    loop {
        let length = match stream.read(&mut buffer).await {
            Ok(length) if length > 0 => length,
            _ => break,
        };
        let mut pings = 0;
        frames.take(&buffer[..length], |opcode, _| {
            pings += u32::from(opcode == 9);
        });
        for _ in 0..pings {
            if stream.write_all(&frame(0x8a, b"")).await.is_err() {
                break;
            }
        }
    }
    run.counts.closed.fetch_add(1, Ordering::Relaxed);
}
