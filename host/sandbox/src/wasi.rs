//! The empty WASI context: imports of every component built for `wasm32-wasip2`, with nothing behind them.
//!
//! There are no files, arguments, environment or network. Clocks stand still; randomness is equal in every instance, so that
//! equal sources give equal pages; waiting is impossible. The last few kilobytes of the standard error are kept for the log of a
//! trap.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use tokio::io::AsyncWrite;
use wasmtime::StoreContextMut;
use wasmtime::component::{HasData, Linker, Resource, ResourceTable};
use wasmtime_wasi::cli::{IsTerminal, StdoutStream, WasiCli, WasiCliView as _};
use wasmtime_wasi::clocks::{WasiClocks, WasiClocksView as _};
use wasmtime_wasi::p2::bindings::sync::io::{poll, streams};
use wasmtime_wasi::p2::bindings::{cli, clocks};
use wasmtime_wasi::p2::{DynPollable, OutputStream, Pollable, StreamResult};
use wasmtime_wasi::{HostWallClock, WasiCtx, WasiCtxBuilder, WasiCtxView, WasiView};
use wasmtime_wasi_io::bindings::wasi::io::error;

use super::limits::MemoryMeter;

/// Interfaces that a guest may import, without their versions. Any other import is refused.
pub(super) const ALLOWED_IMPORTS: [&str; 16] = [
    "wasi:cli/environment",
    "wasi:cli/exit",
    "wasi:cli/stderr",
    "wasi:cli/stdin",
    "wasi:cli/stdout",
    "wasi:cli/terminal-input",
    "wasi:cli/terminal-output",
    "wasi:cli/terminal-stderr",
    "wasi:cli/terminal-stdin",
    "wasi:cli/terminal-stdout",
    "wasi:clocks/monotonic-clock",
    "wasi:clocks/wall-clock",
    "wasi:io/error",
    "wasi:io/poll",
    "wasi:io/streams",
    "wasi:random/insecure-seed",
];

/// Interfaces that are implemented here. They serve guests that import other versions of 0.2, too: each is the only one of its
/// name.
const MONOTONIC_CLOCK: &str = "wasi:clocks/monotonic-clock@0.2.0";
const INSECURE_SEED: &str = "wasi:random/insecure-seed@0.2.0";

/// Seed of randomness, equal in every instance, so that hash tables have the same order in each.
const RANDOM_SEED: (u64, u64) = (0x5eed, 0);

/// Bytes of a guest's output that are kept.
const MAX_OUTPUT_BYTES: usize = 4096;

/// Maximum of streams and other host resources of a call: they cost memory outside of its budget.
const MAX_HANDLES: usize = 1024;

/// State of a store, for one call.
pub(super) struct CallStoreState {
    wasi: WasiCtx,
    table: ResourceTable,
    pub(super) meter: MemoryMeter,
    pub(super) output: CapturedOutput,
}

impl CallStoreState {
    /// Creates the state of a call with a memory limit.
    pub(super) fn new(memory_bytes: usize) -> Self {
        let output = CapturedOutput::default();
        let wasi = WasiCtxBuilder::new()
            .stdout(output.clone())
            .stderr(output.clone())
            .wall_clock(ZeroClock)
            .build();
        let mut table = ResourceTable::new();
        table.set_max_capacity(MAX_HANDLES);
        Self {
            wasi,
            table,
            meter: MemoryMeter::new(memory_bytes),
            output,
        }
    }
}

impl WasiView for CallStoreState {
    fn ctx(&mut self) -> WasiCtxView<'_> {
        WasiCtxView {
            ctx: &mut self.wasi,
            table: &mut self.table,
        }
    }
}

/// Gives the stream functions access to the resource table.
struct ResourceTableAccess;

impl HasData for ResourceTableAccess {
    type Data<'a> = &'a mut ResourceTable;
}

/// Defines the interfaces of [`ALLOWED_IMPORTS`] in `linker`, and no others.
pub(super) fn add_to_linker(linker: &mut Linker<CallStoreState>) -> wasmtime::Result<()> {
    error::add_to_linker::<_, ResourceTableAccess>(linker, |state: &mut CallStoreState| {
        &mut state.table
    })?;
    poll::add_to_linker::<_, ResourceTableAccess>(linker, |state: &mut CallStoreState| {
        &mut state.table
    })?;
    streams::add_to_linker::<_, ResourceTableAccess>(linker, |state: &mut CallStoreState| {
        &mut state.table
    })?;
    clocks::wall_clock::add_to_linker::<_, WasiClocks>(linker, CallStoreState::clocks)?;
    cli::environment::add_to_linker::<_, WasiCli>(linker, CallStoreState::cli)?;
    cli::exit::add_to_linker::<_, WasiCli>(linker, CallStoreState::cli)?;
    cli::stdin::add_to_linker::<_, WasiCli>(linker, CallStoreState::cli)?;
    cli::stdout::add_to_linker::<_, WasiCli>(linker, CallStoreState::cli)?;
    cli::stderr::add_to_linker::<_, WasiCli>(linker, CallStoreState::cli)?;
    cli::terminal_input::add_to_linker::<_, WasiCli>(linker, CallStoreState::cli)?;
    cli::terminal_output::add_to_linker::<_, WasiCli>(linker, CallStoreState::cli)?;
    cli::terminal_stdin::add_to_linker::<_, WasiCli>(linker, CallStoreState::cli)?;
    cli::terminal_stdout::add_to_linker::<_, WasiCli>(linker, CallStoreState::cli)?;
    cli::terminal_stderr::add_to_linker::<_, WasiCli>(linker, CallStoreState::cli)?;
    let mut seed = linker.instance(INSECURE_SEED)?;
    seed.func_wrap(
        "insecure-seed",
        |_: StoreContextMut<'_, CallStoreState>, (): ()| wasmtime::Result::Ok((RANDOM_SEED,)),
    )?;
    let mut clock = linker.instance(MONOTONIC_CLOCK)?;
    for (name, answer) in [("now", 0_u64), ("resolution", 1_000_000_000)] {
        clock.func_wrap(
            name,
            move |_: StoreContextMut<'_, CallStoreState>, (): ()| wasmtime::Result::Ok((answer,)),
        )?;
    }
    // A sleeping guest would hold its thread beyond its deadline, which is checked only while it computes.
    for name in ["subscribe-instant", "subscribe-duration"] {
        clock.func_wrap(
            name,
            |_: StoreContextMut<'_, CallStoreState>, (_,): (u64,)| {
                let refused = wasmtime::Error::msg("a guest has nothing to wait for");
                wasmtime::Result::<(Resource<DynPollable>,)>::Err(refused)
            },
        )?;
    }
    Ok(())
}

/// A clock that stands still at zero.
struct ZeroClock;

impl HostWallClock for ZeroClock {
    fn resolution(&self) -> Duration {
        Duration::from_secs(1)
    }

    fn now(&self) -> Duration {
        Duration::ZERO
    }
}

/// End of a guest's standard output and error.
#[derive(Clone, Debug, Default)]
pub(super) struct CapturedOutput(Arc<Mutex<VecDeque<u8>>>);

impl CapturedOutput {
    fn lock(&self) -> MutexGuard<'_, VecDeque<u8>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn append(&self, bytes: &[u8]) {
        let mut kept = self.lock();
        let new = &bytes[bytes.len().saturating_sub(MAX_OUTPUT_BYTES)..];
        let excess = (kept.len() + new.len()).saturating_sub(MAX_OUTPUT_BYTES);
        kept.drain(..excess);
        kept.extend(new);
    }

    /// Returns the last few kilobytes, for the log.
    pub(super) fn tail(&self) -> String {
        let mut kept = self.lock();
        String::from_utf8_lossy(kept.make_contiguous())
            .trim()
            .to_owned()
    }
}

impl IsTerminal for CapturedOutput {
    fn is_terminal(&self) -> bool {
        false
    }
}

impl StdoutStream for CapturedOutput {
    fn p2_stream(&self) -> Box<dyn OutputStream> {
        Box::new(self.clone())
    }

    fn async_stream(&self) -> Box<dyn AsyncWrite + Send + Sync> {
        Box::new(self.clone())
    }
}

impl OutputStream for CapturedOutput {
    fn write(&mut self, bytes: Bytes) -> StreamResult<()> {
        self.append(&bytes);
        Ok(())
    }

    fn flush(&mut self) -> StreamResult<()> {
        Ok(())
    }

    fn check_write(&mut self) -> StreamResult<usize> {
        Ok(MAX_OUTPUT_BYTES)
    }
}

impl Pollable for CapturedOutput {
    fn ready<'a, 'b>(&'a mut self) -> Pin<Box<dyn Future<Output = ()> + Send + 'b>>
    where
        'a: 'b,
        Self: 'b,
    {
        Box::pin(std::future::ready(()))
    }
}

impl AsyncWrite for CapturedOutput {
    fn poll_write(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<std::io::Result<usize>> {
        self.append(bytes);
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_the_output_is_kept() {
        let output = CapturedOutput::default();
        output.append(b"first\n");
        output.append(&vec![b'x'; MAX_OUTPUT_BYTES - 5]);
        output.append(b"last\n");
        assert_eq!(output.lock().len(), MAX_OUTPUT_BYTES);
        let tail = output.tail();
        assert!(tail.starts_with("xx") && tail.ends_with("xxlast"));
        output.append(&vec![b'y'; 3 * MAX_OUTPUT_BYTES]);
        assert_eq!(output.tail(), "y".repeat(MAX_OUTPUT_BYTES));
    }
}
