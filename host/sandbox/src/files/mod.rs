//! Files of visitors, recognised and cleaned by the renderer that serves, with checks of what it answers.

mod checked;
mod values;

use std::sync::Arc;

use bytes::Bytes;
use wasmtime::Store;

use super::SharedSandboxState;
use super::bindings::files::exports::svc::files::cleaner as wit;
use super::engine::{self, CallFailure, GuestFunction};
use super::lane::{JobCancellation, LaneBusy};
use super::limits::SharedBudget;
use super::renderer::truncate_message;
use super::slot::{GuestNotReady, LoadedGuest};
use super::trial::{AttemptOutcome, GuestAttempt, resolve_attempt};
use super::versions::PreparedRenderer;
use super::wasi::CallStoreState;

pub use values::{
    CleanedPicture, FileFailure, FileHead, FilePiece, FileRecognition, MAX_HEAD_BYTES, PictureCopy,
    PictureFault,
};

type RenderGuestHandle = Arc<LoadedGuest<PreparedRenderer>>;

impl From<LaneBusy> for FileFailure {
    fn from(_: LaneBusy) -> Self {
        Self::Busy
    }
}

impl From<CallFailure> for FileFailure {
    fn from(failure: CallFailure) -> Self {
        match failure {
            CallFailure::Budget(budget) => Self::Budget(budget),
            CallFailure::Abandoned => Self::Busy,
            CallFailure::Broken(error) => Self::Broken(error),
        }
    }
}

impl From<GuestNotReady> for FileFailure {
    fn from(unready: GuestNotReady) -> Self {
        match unready {
            GuestNotReady::Loading => Self::Preparing,
            GuestNotReady::Failed(error) => Self::Broken(error),
        }
    }
}

/// Answer of a guest: what it says, or a fault of the file.
type Said<T> = Result<T, wit::Fault>;

/// Recognises a file by its first bytes.
pub(super) async fn recognise(
    inner: &SharedSandboxState,
    head: FileHead,
) -> Result<FileRecognition, FileFailure> {
    let FileHead(head) = head;
    let ask = move |guest: &wit::Guest, store: &mut Store<CallStoreState>| -> wasmtime::Result<_> {
        Ok(Ok(guest.call_recognise(store, &head)?))
    };
    ask_guest(inner, GuestFunction::Recognise, ask, checked::recognition).await
}

/// Whether a file is a text.
pub(super) async fn is_text(inner: &SharedSandboxState, file: Bytes) -> Result<bool, FileFailure> {
    let ask = move |guest: &wit::Guest, store: &mut Store<CallStoreState>| -> wasmtime::Result<_> {
        Ok(Ok(guest.call_is_text(store, &file)?))
    };
    ask_guest(inner, GuestFunction::Recognise, ask, Ok).await
}

/// Takes out of a picture what does not draw.
pub(super) async fn clean(
    inner: &SharedSandboxState,
    file: Bytes,
    keep_metadata: bool,
) -> Result<CleanedPicture, FileFailure> {
    let length = file.len();
    let ask = move |guest: &wit::Guest, store: &mut Store<CallStoreState>| {
        guest.call_clean(store, &file, keep_metadata)
    };
    ask_guest(inner, GuestFunction::Clean, ask, move |said| {
        checked::cleaned(said, length)
    })
    .await
}

/// Makes a copy of a picture that fits a square.
pub(super) async fn resize(
    inner: &SharedSandboxState,
    file: Bytes,
    size: u32,
) -> Result<PictureCopy, FileFailure> {
    let ask = move |guest: &wit::Guest, store: &mut Store<CallStoreState>| {
        guest.call_resize(store, &file, size)
    };
    ask_guest(inner, GuestFunction::Resize, ask, checked::copy).await
}

/// Asks the serving guest, or the previous one if the serving one fails.
async fn ask_guest<T, U>(
    inner: &SharedSandboxState,
    function: GuestFunction,
    ask: impl Fn(&wit::Guest, &mut Store<CallStoreState>) -> wasmtime::Result<Said<T>>
    + Send
    + Sync
    + 'static,
    check: impl Fn(T) -> anyhow::Result<U> + Send + Sync,
) -> Result<U, FileFailure>
where
    T: Send + 'static,
{
    let serving = inner.registry.render.serving().await?;
    let budget = &SharedBudget::new(inner.engine.page_limits());
    let (ask, check) = (Arc::new(ask), &check);
    let guest = Arc::clone(&serving.guest);
    let first = ask_one(inner, function, guest, Arc::clone(&ask), budget, check).await;
    let again = |guest| {
        budget.raise_to_half();
        ask_one(inner, function, guest, ask, budget, check)
    };
    resolve_attempt(inner, &serving, first, again).await
}

/// Asks one guest.
async fn ask_one<T, U, A>(
    inner: &SharedSandboxState,
    function: GuestFunction,
    guest: RenderGuestHandle,
    ask: Arc<A>,
    budget: &SharedBudget,
    check: &(impl Fn(T) -> anyhow::Result<U> + Sync),
) -> GuestAttempt<Result<U, FileFailure>>
where
    T: Send + 'static,
    A: Fn(&wit::Guest, &mut Store<CallStoreState>) -> wasmtime::Result<Said<T>>
        + Send
        + Sync
        + 'static,
{
    let allowance = budget.allowance(*inner.engine.limits(function.world()));
    let span = engine::call_span(function, guest.digest);
    let called = Arc::clone(&guest);
    let job = move |stop: &JobCancellation| {
        let code = called.code();
        span.in_scope(|| {
            let engine = &code.engine;
            engine.call((function, &called.tally), allowance, stop, |store| {
                let Some(cleaner) = code.world.cleaner(&mut *store)? else {
                    return Ok(None);
                };
                ask(&cleaner, store).map(Some)
            })
        })
    };
    let called = match inner.pages.run(job).await {
        Ok(called) => called,
        Err(busy) => return GuestAttempt::busy(busy),
    };
    budget.charge(&called.used);
    let (outcome, end) = match called.outcome {
        Ok(Some(Ok(said))) => match check(said) {
            Ok(answer) => (Ok(answer), AttemptOutcome::Answered),
            Err(error) => {
                guest.tally.count_rejected();
                let error = error.context("the guest has answered what no file has");
                (Err(FileFailure::Broken(error)), AttemptOutcome::Broken)
            }
        },
        Ok(Some(Err(fault))) => (
            Err(FileFailure::Refused(fault_from_wit(fault))),
            AttemptOutcome::Answered,
        ),
        Ok(None) => (Err(FileFailure::Unsupported), AttemptOutcome::Unsupported),
        Err(failure) => {
            let end = AttemptOutcome::from(&failure);
            (Err(failure.into()), end)
        }
    };
    GuestAttempt {
        outcome,
        end,
        used: called.used,
    }
}

/// Converts a fault, and shortens what it says.
fn fault_from_wit(fault: wit::Fault) -> PictureFault {
    match fault {
        wit::Fault::Broken(reason) => PictureFault::Broken(truncate_message(reason)),
        wit::Fault::TooLarge => PictureFault::TooLarge,
        wit::Fault::Unsupported => PictureFault::Unsupported,
    }
}
