//! Clients of a relay, as cheap as possible, because they use the same machine as the server.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpSocket, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;

use super::relay_protocol::{Frames, RelayEvent, RelayProtocol, RelayReader};
use super::server::Running;

/// Time until all clients of a large room are members.
const SETTLING: Duration = Duration::from_millis(1_500);
/// Interval at which a client checks whether the run is over.
const STOP_CHECK_INTERVAL: Duration = Duration::from_millis(200);
/// Bytes that the kernel may hold for a client that reads slowly: as few as it allows.
const SMALL_BUFFER_BYTES: u32 = 4 * 1024;

/// A relay that is measured.
#[derive(Debug)]
pub(crate) struct Relay {
    pub(crate) name: &'static str,
    pub(crate) server: Running,
    pub(crate) protocol: RelayProtocol,
    /// The path of a room on it.
    pub(crate) path: fn(usize) -> String,
}

/// Shape of the rooms: numbers of rooms, members and senders.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    pub(crate) name: &'static str,
    pub(crate) rooms: usize,
    pub(crate) members: usize,
    pub(crate) senders: usize,
}

/// Pace of the senders.
#[derive(Clone, Copy, Debug)]
pub(crate) enum SendPace {
    /// Each sender sends again once another member has received an earlier message; contains the number of messages in flight.
    Window(usize),
    /// Each sender sends at this fixed interval.
    Every(Duration),
}

/// Latencies and closed sockets of a run.
#[derive(Debug)]
pub(crate) struct RelayOutcome {
    /// Latencies in milliseconds.
    pub(crate) latencies: Vec<f64>,
    /// Sockets that the server has closed.
    pub(crate) closed: u64,
}

/// Counts of a run.
#[derive(Debug, Default)]
struct Counts {
    /// Messages that were received.
    delivered: AtomicU64,
    /// Sockets that the server has closed.
    closed: AtomicU64,
}

/// One run: members of rooms, some of whom send.
#[derive(Debug)]
struct Run {
    began: Instant,
    over: AtomicBool,
    counts: Counts,
}

impl Run {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            began: Instant::now(),
            over: AtomicBool::new(false),
            counts: Counts::default(),
        })
    }
}

/// Members of rooms that send and receive.
#[derive(Debug)]
pub(crate) struct RelayRun {
    run: Arc<Run>,
    receivers: Vec<JoinHandle<Vec<f64>>>,
    senders: Vec<JoinHandle<anyhow::Result<()>>>,
    /// Without these halves, the other ones would end.
    _silent: Vec<OwnedWriteHalf>,
}

impl RelayRun {
    /// Joins all members, and starts the senders.
    pub(crate) async fn begin(relay: &Relay, shape: Shape, pace: SendPace) -> anyhow::Result<Self> {
        let run = Run::new();
        let (mut receivers, mut senders, mut silent) = (Vec::new(), Vec::new(), Vec::new());
        for room in 0..shape.rooms {
            // One listener lets the senders of its room go on.
            let turns = match pace {
                SendPace::Window(window) => window * shape.senders,
                SendPace::Every(_) => 0,
            };
            let heard = Arc::new(Semaphore::new(turns));
            for member in 0..shape.members {
                let (reading, writing) = relay.join(room).await?.into_split();
                let listens = member + 1 == shape.members;
                let turns = listens.then(|| Arc::clone(&heard));
                let ear = RelayReader::new(relay.protocol, listens);
                let receiving = receive(Arc::clone(&run), reading, ear, listens, turns);
                receivers.push(tokio::spawn(receiving));
                if member < shape.senders {
                    senders.push((room, writing, Arc::clone(&heard)));
                } else {
                    silent.push(writing);
                }
            }
        }
        tokio::time::sleep(SETTLING).await;
        let send = |(room, writing, heard)| {
            let says = (relay.protocol, room);
            tokio::spawn(send(Arc::clone(&run), writing, says, pace, heard))
        };
        let senders = senders.into_iter().map(send).collect();
        Ok(Self {
            run,
            receivers,
            senders,
            _silent: silent,
        })
    }

    /// Number of messages delivered so far.
    pub(crate) fn delivered(&self) -> u64 {
        self.run.counts.delivered.load(Ordering::Relaxed)
    }

    /// Stops the run; returns latencies in milliseconds.
    ///
    /// # Errors
    /// When the server has closed a socket meanwhile.
    pub(crate) async fn end(self) -> anyhow::Result<Vec<f64>> {
        let RelayOutcome { latencies, closed } = self.finish().await?;
        ensure!(closed == 0, "{closed} sockets were closed");
        Ok(latencies)
    }

    /// Stops the run; sockets may have been closed.
    ///
    /// # Errors
    /// When a client fails otherwise.
    pub(crate) async fn finish(self) -> anyhow::Result<RelayOutcome> {
        let closed = self.run.counts.closed.load(Ordering::Relaxed);
        self.run.over.store(true, Ordering::Relaxed);
        let mut latencies = Vec::new();
        for sender in self.senders {
            sender.await??;
        }
        for receiver in self.receivers {
            latencies.extend(receiver.await?);
        }
        Ok(RelayOutcome { latencies, closed })
    }
}

impl Relay {
    /// Opens a socket to a room.
    pub(crate) async fn join(&self, room: usize) -> anyhow::Result<TcpStream> {
        let mut stream = open(self.server.address, &(self.path)(room)).await?;
        if let Some(first) = self.protocol.join_frame(room) {
            stream.write_all(&first).await?;
        }
        Ok(stream)
    }
}

/// Opens a WebSocket.
pub(crate) async fn open(address: SocketAddr, path: &str) -> anyhow::Result<TcpStream> {
    upgrade(TcpStream::connect(address).await?, path).await
}

/// Opens a socket for which the kernel holds little that its client has not read.
pub(crate) async fn open_with_small_buffer(
    address: SocketAddr,
    path: &str,
) -> anyhow::Result<TcpStream> {
    let socket = TcpSocket::new_v4()?;
    socket.set_recv_buffer_size(SMALL_BUFFER_BYTES)?;
    upgrade(socket.connect(address).await?, path).await
}

async fn upgrade(mut stream: TcpStream, path: &str) -> anyhow::Result<TcpStream> {
    stream.set_nodelay(true)?;
    let address = stream.peer_addr()?;
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

fn to_nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// Receives and counts messages, and measures if asked; returns latencies in milliseconds.
async fn receive(
    run: Arc<Run>,
    mut stream: OwnedReadHalf,
    mut ear: RelayReader,
    measures: bool,
    turns: Option<Arc<Semaphore>>,
) -> Vec<f64> {
    let mut latencies = Vec::new();
    let mut buffer = vec![0; 16 * 1024];
    while !run.over.load(Ordering::Relaxed) {
        let read = tokio::time::timeout(STOP_CHECK_INTERVAL, stream.read(&mut buffer));
        let length = match read.await {
            Err(_) => continue,
            Ok(Ok(length)) if length > 0 => length,
            Ok(_) => {
                run.counts.closed.fetch_add(1, Ordering::Relaxed);
                break;
            }
        };
        let mut delivered = 0;
        ear.take(&buffer[..length], |heard| match heard {
            RelayEvent::Closed => {
                run.counts.closed.fetch_add(1, Ordering::Relaxed);
            }
            // A run ends before any ping must be answered.
            RelayEvent::Ping => {}
            RelayEvent::Message(time) => {
                delivered += 1;
                if measures && let Some(sent) = time {
                    let now = to_nanos(run.began.elapsed());
                    let took = Duration::from_nanos(now.saturating_sub(sent));
                    latencies.push(took.as_secs_f64() * 1e3);
                }
            }
        });
        run.counts.delivered.fetch_add(delivered, Ordering::Relaxed);
        if let Some(turns) = &turns {
            turns.add_permits(usize::try_from(delivered).unwrap_or(0));
        }
    }
    latencies
}

/// Sends until the run is over.
async fn send(
    run: Arc<Run>,
    mut stream: OwnedWriteHalf,
    (protocol, room): (RelayProtocol, usize),
    pace: SendPace,
    turns: Arc<Semaphore>,
) -> anyhow::Result<()> {
    let mut next = tokio::time::Instant::now();
    while !run.over.load(Ordering::Relaxed) {
        match pace {
            SendPace::Window(_) => {
                let turn = tokio::time::timeout(STOP_CHECK_INTERVAL, turns.acquire());
                match turn.await {
                    Ok(permit) => permit?.forget(),
                    Err(_) => continue,
                }
            }
            SendPace::Every(distance) => {
                next += distance;
                tokio::time::sleep_until(next).await;
            }
        }
        let message = protocol.message_frame(room, to_nanos(run.began.elapsed()));
        if stream.write_all(&message).await.is_err() {
            // The sender's own receiver counts it as closed.
            break;
        }
    }
    Ok(())
}

/// Keeps a socket open and answers pings; counts it in `lost` when the server closes it.
pub(crate) async fn stay_idle(
    protocol: RelayProtocol,
    mut stream: TcpStream,
    lost: Arc<AtomicU64>,
) {
    let mut ear = RelayReader::new(protocol, false);
    let mut buffer = [0; 1024];
    loop {
        let length = match stream.read(&mut buffer).await {
            Ok(length) if length > 0 => length,
            _ => break,
        };
        let mut pings = 0;
        ear.take(&buffer[..length], |heard| {
            pings += u32::from(heard == RelayEvent::Ping);
        });
        for _ in 0..pings {
            if stream.write_all(&protocol.pong_frame()).await.is_err() {
                break;
            }
        }
    }
    lost.fetch_add(1, Ordering::Relaxed);
}

/// Joins a room without reading for a while; returns the close code, if the server has closed the socket.
pub(crate) async fn join_without_reading(
    relay: &Relay,
    room: usize,
    time: Duration,
) -> anyhow::Result<Option<u16>> {
    let mut stream = open_with_small_buffer(relay.server.address, &(relay.path)(room)).await?;
    tokio::time::sleep(time).await;
    let (mut frames, mut buffer) = (Frames::default(), vec![0; 16 * 1024]);
    let mut code = None;
    while code.is_none() {
        let read = tokio::time::timeout(time, stream.read(&mut buffer));
        let Ok(Ok(length @ 1..)) = read.await else {
            return Ok(None);
        };
        frames.take(&buffer[..length], |opcode, payload| {
            if let (8, [high, low, ..]) = (opcode, payload) {
                code = Some(u16::from_be_bytes([*high, *low]));
            }
        });
    }
    Ok(code)
}
