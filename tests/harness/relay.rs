//! A relay between two ends, switched by the test: what a network does to connections.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, split};
use tokio::net::{TcpListener, TcpStream, UnixStream};
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};

/// Time by which [`RelayMode::Delay`] delays bytes.
const DELAY: Duration = Duration::from_millis(50);
/// Most bytes that are passed on at once.
const PIECE_BYTES: usize = 64 << 10;

/// Behaviour of a relay. Connections that exist follow a switch at once. Bytes that are held arrive after it, as those of a network
/// that sends them again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RelayMode {
    /// Passes everything on.
    Pass,
    /// Closes all connections, and each new one.
    Refuse,
    /// Keeps connections, takes new ones, and passes nothing on.
    Hang,
    /// Passes on what servers send, and nothing of clients.
    HoldRequests,
    /// Passes on what clients send, and nothing of servers: answers are lost.
    HoldAnswers,
    /// Passes everything on, later.
    Delay,
}

impl RelayMode {
    fn passes_requests(self) -> bool {
        matches!(self, Self::Pass | Self::Delay | Self::HoldAnswers)
    }

    fn passes_answers(self) -> bool {
        matches!(self, Self::Pass | Self::Delay | Self::HoldRequests)
    }
}

/// Server behind a relay.
#[derive(Clone, Debug)]
pub enum RelayTarget {
    Tcp(SocketAddr),
    Unix(PathBuf),
}

/// A relay at an address of its own. Dropping it closes its connections.
#[derive(Debug)]
pub struct Relay {
    address: SocketAddr,
    mode: watch::Sender<RelayMode>,
    target: Arc<Mutex<Option<RelayTarget>>>,
    task: JoinHandle<()>,
}

impl Relay {
    /// Starts a relay on a free port. Without a target it closes connections.
    pub async fn start(target: Option<RelayTarget>) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let mode = watch::Sender::new(RelayMode::Pass);
        let target = Arc::new(Mutex::new(target));
        let task = tokio::spawn(accept(listener, mode.subscribe(), Arc::clone(&target)));
        Self {
            address,
            mode,
            target,
            task,
        }
    }

    /// Address for clients.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Changes the behaviour.
    pub fn switch(&self, mode: RelayMode) {
        self.mode.send_replace(mode);
    }

    /// Has new connections lead to another server, or to none.
    pub fn turn_to(&self, target: Option<RelayTarget>) {
        *self.target.lock().unwrap() = target;
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn accept(
    listener: TcpListener,
    mode: watch::Receiver<RelayMode>,
    target: Arc<Mutex<Option<RelayTarget>>>,
) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => {
                // A client may have gone again.
                let Ok((client, _)) = accepted else { continue };
                connections.spawn(serve(client, mode.clone(), Arc::clone(&target)));
            }
            Some(_) = connections.join_next() => {}
        }
    }
}

/// Serves a connection until an end closes it, or a switch does.
async fn serve(
    client: TcpStream,
    mode: watch::Receiver<RelayMode>,
    target: Arc<Mutex<Option<RelayTarget>>>,
) {
    tokio::select! {
        () = wait_for_refusal(mode.clone()) => {}
        () = connect(client, mode, &target) => {}
    }
}

async fn wait_for_refusal(mut mode: watch::Receiver<RelayMode>) {
    // A relay that is dropped refuses, too.
    let _ = mode.wait_for(|mode| *mode == RelayMode::Refuse).await;
}

/// Waits until bytes of one direction pass.
async fn wait_to_pass(mode: &mut watch::Receiver<RelayMode>, passes: fn(RelayMode) -> bool) {
    let _ = mode.wait_for(|mode| passes(*mode)).await;
}

async fn connect(
    client: TcpStream,
    mut mode: watch::Receiver<RelayMode>,
    target: &Mutex<Option<RelayTarget>>,
) {
    // A connection that is made is a message, too.
    wait_to_pass(&mut mode, RelayMode::passes_requests).await;
    let _ = client.set_nodelay(true);
    let target = target.lock().unwrap().clone();
    match target {
        Some(RelayTarget::Tcp(address)) => {
            if let Ok(server) = TcpStream::connect(address).await {
                let _ = server.set_nodelay(true);
                join(client, server, mode).await;
            }
        }
        Some(RelayTarget::Unix(path)) => {
            if let Ok(server) = UnixStream::connect(path).await {
                join(client, server, mode).await;
            }
        }
        None => {}
    }
}

/// Passes bytes on until one end closes.
async fn join<S>(client: TcpStream, server: S, mode: watch::Receiver<RelayMode>)
where
    S: AsyncRead + AsyncWrite,
{
    let (from_client, to_client) = split(client);
    let (from_server, to_server) = split(server);
    tokio::select! {
        () = pass_on(from_client, to_server, mode.clone(), RelayMode::passes_requests) => {}
        () = pass_on(from_server, to_client, mode, RelayMode::passes_answers) => {}
    }
}

async fn pass_on(
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    mut mode: watch::Receiver<RelayMode>,
    passes: fn(RelayMode) -> bool,
) {
    let mut piece = vec![0; PIECE_BYTES];
    loop {
        let read = from.read(&mut piece).await.unwrap_or(0);
        let is_delayed = *mode.borrow() == RelayMode::Delay;
        if is_delayed {
            tokio::time::sleep(DELAY).await;
        }
        // The end of a connection is held, too.
        wait_to_pass(&mut mode, passes).await;
        if read == 0 || to.write_all(&piece[..read]).await.is_err() {
            return;
        }
    }
}
