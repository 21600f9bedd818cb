//! The load: keep-alive connections, each of which sends the next request as soon as it gets an answer.
//!
//! It shares two cores with the server that it measures, so it does as little as it can: one thread, requests made
//! beforehand, and of an answer only the status and the length are read.

use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

use super::client::{Length, head_end, status};

/// Result of a run of load.
#[derive(Debug)]
pub(crate) struct Outcome {
    /// Answers a second.
    pub(crate) rate: f64,
    /// Number of answers.
    pub(crate) answers: usize,
    /// Microseconds from request to answer, of each.
    pub(crate) latencies: Vec<f64>,
}

/// Status of most answers.
const OK: u16 = 200;

/// Sends requests for `time` over `connections`: each connection sends the requests in turn, from a different start.
pub(crate) fn run(
    address: SocketAddr,
    requests: &[Vec<u8>],
    connections: usize,
    time: Duration,
) -> anyhow::Result<Outcome> {
    run_expecting(address, requests, connections, time, OK)
}

/// Does what [`run`] does where the answers have another status.
pub(crate) fn run_expecting(
    address: SocketAddr,
    requests: &[Vec<u8>],
    connections: usize,
    time: Duration,
    status: u16,
) -> anyhow::Result<Outcome> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let requests: Arc<[Vec<u8>]> = requests.into();
    runtime.block_on(async {
        let mut streams = Vec::with_capacity(connections);
        for _ in 0..connections {
            let stream = TcpStream::connect(address).await?;
            stream.set_nodelay(true)?;
            streams.push(stream);
        }
        let began = Instant::now();
        let until = began + time;
        let tasks: Vec<_> = streams
            .into_iter()
            .enumerate()
            .map(|(number, stream)| {
                let first = number * requests.len() / connections;
                tokio::spawn(send_request(
                    stream,
                    Arc::clone(&requests),
                    first,
                    until,
                    status,
                ))
            })
            .collect();
        let mut latencies = Vec::new();
        for task in tasks {
            latencies.extend(task.await??);
        }
        let took = began.elapsed().as_secs_f64();
        Ok(Outcome {
            rate: latencies.len() as f64 / took,
            answers: latencies.len(),
            latencies,
        })
    })
}

/// Sends each request once over `connections`, as fast as they are answered, or at most `rate` a second together.
pub(crate) fn once(
    address: SocketAddr,
    requests: &[Vec<u8>],
    connections: usize,
    rate: Option<u32>,
) -> anyhow::Result<Outcome> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let share = requests.len().div_ceil(connections).max(1);
    let pause =
        rate.map(|rate| Duration::from_secs(1) * u32::try_from(connections).unwrap_or(1) / rate);
    runtime.block_on(async {
        let mut streams = Vec::with_capacity(connections);
        for _ in 0..connections {
            let stream = TcpStream::connect(address).await?;
            stream.set_nodelay(true)?;
            streams.push(stream);
        }
        let began = Instant::now();
        let tasks: Vec<_> = streams
            .into_iter()
            .zip(requests.chunks(share))
            .map(|(stream, share)| tokio::spawn(send(stream, share.to_vec(), pause)))
            .collect();
        let mut latencies = Vec::new();
        for task in tasks {
            latencies.extend(task.await??);
        }
        let took = began.elapsed().as_secs_f64();
        Ok(Outcome {
            rate: latencies.len() as f64 / took,
            answers: latencies.len(),
            latencies,
        })
    })
}

/// Sends requests one after the other, each `pause` after the one before where there is one; returns the microseconds that each took.
pub(crate) async fn send(
    mut stream: impl AsyncRead + AsyncWrite + Unpin,
    requests: Vec<Vec<u8>>,
    pause: Option<Duration>,
) -> anyhow::Result<Vec<f64>> {
    let mut buffer = vec![0; 64 * 1024];
    let mut latencies = Vec::with_capacity(requests.len());
    let mut next = Instant::now();
    for request in &requests {
        if let Some(pause) = pause {
            tokio::time::sleep_until(next.into()).await;
            next += pause;
        }
        let began = Instant::now();
        write_all(&mut stream, request).await?;
        read_answer(&mut stream, &mut buffer, OK).await?;
        latencies.push(began.elapsed().as_secs_f64() * 1e6);
    }
    Ok(latencies)
}

async fn send_request(
    mut stream: TcpStream,
    requests: Arc<[Vec<u8>]>,
    first: usize,
    until: Instant,
    status: u16,
) -> anyhow::Result<Vec<f64>> {
    let mut buffer = vec![0; 64 * 1024];
    let mut latencies = Vec::with_capacity(4096);
    let mut requests = requests.iter().cycle().skip(first);
    let mut began = Instant::now();
    while began < until {
        let request = requests.next().context("nothing to ask for")?;
        write_all(&mut stream, request).await?;
        read_answer(&mut stream, &mut buffer, status).await?;
        let ended = Instant::now();
        latencies.push((ended - began).as_secs_f64() * 1e6);
        began = ended;
    }
    Ok(latencies)
}

async fn write_all(stream: &mut (impl AsyncWrite + Unpin), mut bytes: &[u8]) -> anyhow::Result<()> {
    while !bytes.is_empty() {
        let written =
            std::future::poll_fn(|cx| Pin::new(&mut *stream).poll_write(cx, bytes)).await?;
        bytes = &bytes[written..];
    }
    Ok(())
}

async fn read_answer(
    stream: &mut (impl AsyncRead + Unpin),
    buffer: &mut [u8],
    expected: u16,
) -> anyhow::Result<()> {
    let mut filled = 0;
    let end = loop {
        filled += read(stream, &mut buffer[filled..]).await?;
        if let Some(end) = head_end(&buffer[..filled]) {
            break end;
        }
    };
    if status(buffer) != Some(expected) {
        bail!(
            "an answer was {}",
            String::from_utf8_lossy(&buffer[..filled])
        );
    }
    match Length::parse(&buffer[..end])? {
        Length::Bytes(length) => {
            let mut missing = (end + length).saturating_sub(filled);
            while missing > 0 {
                missing -= read(stream, buffer).await?.min(missing);
            }
        }
        // The end of the answer must be complete in the buffer, which is larger than any requested answer.
        length => {
            while !length.is_whole(&buffer[..filled], end) {
                filled += read(stream, &mut buffer[filled..]).await?;
            }
        }
    }
    Ok(())
}

async fn read(stream: &mut (impl AsyncRead + Unpin), buffer: &mut [u8]) -> anyhow::Result<usize> {
    let mut into = ReadBuf::new(buffer);
    std::future::poll_fn(|cx| Pin::new(&mut *stream).poll_read(cx, &mut into)).await?;
    match into.filled().len() {
        0 => bail!("the server closed a connection"),
        read => Ok(read),
    }
}
