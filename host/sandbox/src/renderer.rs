//! Rendering of pages: one call for the page, and one for each of its diagrams.

use std::sync::Arc;

use bytes::Bytes;
use wasmtime::Store;

use super::SharedSandboxState;
use super::bindings::render::exports::svc::render::renderer as wit;
use super::bindings::render::svc::render::types;
use super::drawings::{diagram_spans, replace_ranges, undrawn_note};
use super::engine::{self, CallFailure, GuestFunction};
use super::lane::{JobCancellation, LaneBusy};
use super::limits::{SharedBudget, SharedLimits};
use super::metrics::CallUsage;
use super::slot::{GuestNotReady, LoadedGuest};
use super::trial::{AttemptOutcome, GuestAttempt, resolve_attempt};
use super::values::{
    BudgetKind, MalformedSource, RenderFailure, RenderSource, RenderedPage, SourcePosition,
    UndrawnDiagram,
};
use super::versions::PreparedRenderer;
use super::wasi::CallStoreState;
use svc_sources::ContentType;

/// Maximum of drawn diagrams in a page; further ones show their source.
pub const MAX_DIAGRAMS: usize = 20;

/// Size limit of a drawn diagram, in bytes of its source.
pub const MAX_DIAGRAM_BYTES: usize = 50 << 10;

/// Message for a diagram that the guest does not draw.
const UNSUPPORTED_DIAGRAM: &str = "Diagrams of this kind are not drawn here.";

/// Maximum length of a guest's message to an author, in characters.
pub(super) const MAX_MESSAGE_CHARS: usize = 1000;

/// Counts a page in memory, in bytes, whose drawings wait for threads; refuses it for want of room.
pub type PageReservation<'a> = &'a (dyn Fn(usize) -> Result<(), LaneBusy> + Send + Sync);

type RenderGuestHandle = Arc<LoadedGuest<PreparedRenderer>>;

impl From<LaneBusy> for RenderFailure {
    fn from(_: LaneBusy) -> Self {
        Self::Busy
    }
}

impl From<CallFailure> for RenderFailure {
    fn from(failure: CallFailure) -> Self {
        match failure {
            CallFailure::Budget(budget) => Self::Budget(budget),
            CallFailure::Abandoned => Self::Busy,
            CallFailure::Broken(error) => Self::Broken(error),
        }
    }
}

impl From<GuestNotReady> for RenderFailure {
    fn from(unready: GuestNotReady) -> Self {
        match unready {
            GuestNotReady::Loading => Self::Preparing,
            GuestNotReady::Failed(error) => Self::Broken(error),
        }
    }
}

/// Renders a page within a budget, with the serving guest, or with the previous one if the serving one fails.
pub(super) async fn render(
    inner: &SharedSandboxState,
    source: RenderSource,
    budget: SharedLimits,
    reserve: PageReservation<'_>,
) -> Result<RenderedPage, RenderFailure> {
    let is_diagram = source.content_type == ContentType::Mermaid;
    if is_diagram && source.text.len() > MAX_DIAGRAM_BYTES {
        return Err(RenderFailure::Budget(BudgetKind::SourceBytes));
    }
    let serving = inner.registry.render.serving().await?;
    let source = Arc::new(source);
    let budget = &SharedBudget::new(budget);
    let guest = Arc::clone(&serving.guest);
    let first = render_with_guest(inner, guest, Arc::clone(&source), budget, reserve).await;
    let again = |guest| {
        // Enough to tell whose fault it is: a guest is to blame if half of its usage suffices for the other.
        budget.raise_to_half();
        render_with_guest(inner, guest, source, budget, reserve)
    };
    resolve_attempt(inner, &serving, first, again).await
}

/// Renders a source with one guest: the page with its diagrams.
async fn render_with_guest(
    inner: &SharedSandboxState,
    guest: RenderGuestHandle,
    source: Arc<RenderSource>,
    left: &SharedBudget,
    reserve: PageReservation<'_>,
) -> GuestAttempt<Result<RenderedPage, RenderFailure>> {
    let mut calls = PageCallSession {
        inner,
        guest,
        left,
        reserve,
        end: AttemptOutcome::Answered,
        used: CallUsage::default(),
    };
    let outcome = calls.render_page(&source).await;
    if calls.end == AttemptOutcome::Answered {
        match outcome {
            Err(RenderFailure::Broken(_)) => {
                calls.guest.tally.count_rejected();
                calls.end = AttemptOutcome::Broken;
            }
            Err(RenderFailure::Unsupported(_)) => calls.end = AttemptOutcome::Unsupported,
            _ => {}
        }
    }
    GuestAttempt {
        outcome,
        end: calls.end,
        used: calls.used,
    }
}

/// Calls of one guest for one page.
struct PageCallSession<'a> {
    inner: &'a SharedSandboxState,
    guest: RenderGuestHandle,
    /// Rest of the page's budget.
    left: &'a SharedBudget,
    reserve: PageReservation<'a>,
    /// End of the first failed call. If that call drew a diagram, the page can be complete all the same.
    end: AttemptOutcome,
    used: CallUsage,
}

impl PageCallSession<'_> {
    async fn render_page(
        &mut self,
        source: &Arc<RenderSource>,
    ) -> Result<RenderedPage, RenderFailure> {
        let rendered = self.call_render(source).await?;
        let page = rendered.map_err(|error| match error {
            types::RenderError::Malformed(malformed) => {
                RenderFailure::Malformed(malformed_from_wit(malformed))
            }
            types::RenderError::TooLarge => RenderFailure::Budget(BudgetKind::PageBytes),
            types::RenderError::Unsupported => RenderFailure::Unsupported(source.content_type),
        })?;
        let wit::Page {
            html,
            diagrams,
            title,
        } = page;
        let spans = diagram_spans(&html, &diagrams)?;
        // Lower bound of the page's size: drawings replace their fallbacks.
        let replaced: usize = spans.iter().map(|span| span.len()).sum();
        let mut least = html.len() - replaced;
        let bounded = |least: usize| match least > source.page_bytes {
            true => Err(RenderFailure::Budget(BudgetKind::PageBytes)),
            false => Ok(()),
        };
        bounded(least)?;
        let mut held = html.len();
        let (mut pieces, mut undrawn) = (Vec::new(), Vec::new());
        for (number, (diagram, span)) in (0..).zip(diagrams.into_iter().zip(spans)) {
            self.reserve_page(held)?;
            match self.draw_or_explain(source, diagram, number).await? {
                Ok(svg) => {
                    least += svg.len();
                    bounded(least)?;
                    held += svg.len();
                    pieces.push((span, svg));
                }
                Err(why) => {
                    pieces.push((span.start..span.start, undrawn_note(&why)));
                    undrawn.push(why);
                }
            }
        }

        let drawn = pieces.len() - undrawn.len();
        let html = replace_ranges(html, &pieces);
        if html.len() > source.page_bytes {
            return Err(RenderFailure::Budget(BudgetKind::PageBytes));
        }
        Ok(RenderedPage {
            html: Bytes::from(html),
            title: title.filter(|title| !title.is_empty()),
            fuel: self.used.fuel,
            drawn,
            undrawn,
            guest: self.guest.digest,
        })
    }

    /// Counts the page while its drawings wait for threads: the more pages wait, the longer each is in memory.
    fn reserve_page(&mut self, bytes: usize) -> Result<(), RenderFailure> {
        let reserved = (self.reserve)(bytes);
        reserved.map_err(|busy| {
            self.end = AttemptOutcome::Busy;
            busy.into()
        })
    }

    /// Draws a diagram. If it cannot be drawn, a page of text shows its source, and a Mermaid page fails.
    async fn draw_or_explain(
        &mut self,
        source: &RenderSource,
        diagram: types::Diagram,
        number: usize,
    ) -> Result<Result<String, UndrawnDiagram>, RenderFailure> {
        let undrawn = |reason: String, line| Ok(Err(UndrawnDiagram { reason, line }));
        let first = diagram.line;
        let Some(number) = u32::try_from(number).ok().filter(|_| number < MAX_DIAGRAMS) else {
            return undrawn(
                format!("A page has at most {MAX_DIAGRAMS} diagrams that are drawn."),
                first,
            );
        };
        let drawing = if diagram.text.len() > MAX_DIAGRAM_BYTES {
            Err(RenderFailure::Budget(BudgetKind::SourceBytes))
        } else if let Some(budget) = self.left.exhausted() {
            Err(RenderFailure::Budget(budget))
        } else {
            self.draw(diagram.text, number).await
        };
        let is_diagram = source.content_type == ContentType::Mermaid;
        match drawing {
            Ok(Some(svg)) => Ok(Ok(svg)),
            Ok(None) if is_diagram => undrawn(UNSUPPORTED_DIAGRAM.to_owned(), first),
            Err(
                failure @ (RenderFailure::Busy
                | RenderFailure::Preparing
                | RenderFailure::Unsupported(_)),
            ) => Err(failure),
            Err(failure) if is_diagram => Err(failure),
            Ok(None) => undrawn(UNSUPPORTED_DIAGRAM.to_owned(), first),
            // A page of text with a diagram's source is still a page.
            Err(RenderFailure::Malformed(malformed)) => {
                let below = malformed
                    .place
                    .map_or(0, |place| place.line.saturating_sub(1));
                undrawn(malformed.message, first.saturating_add(below))
            }
            Err(RenderFailure::Budget(budget)) if self.left.exhausted() == Some(budget) => undrawn(
                format!(
                    "The page has used up its budget of {budget}: use fewer or smaller diagrams."
                ),
                first,
            ),
            Err(RenderFailure::Budget(budget)) => undrawn(
                format!(
                    "Drawing it takes more than its budget of {budget}: make the diagram smaller."
                ),
                first,
            ),
            Err(RenderFailure::Broken(error)) => {
                tracing::warn!(
                    error = format!("{error:#}"),
                    "a guest failed to draw a diagram; its source is shown"
                );
                undrawn("It could not be drawn.".to_owned(), first)
            }
        }
    }

    async fn call_render(
        &mut self,
        source: &Arc<RenderSource>,
    ) -> Result<Result<wit::Page, types::RenderError>, RenderFailure> {
        let source = Arc::clone(source);
        self.call(GuestFunction::Render, move |world, store| {
            let source = source_to_wit(&source);
            let world = world.instantiate(&mut *store)?;
            world.render(store, &source)
        })
        .await
    }

    /// Draws the diagram with an index, from 0; `None` if the guest does not draw this kind.
    async fn draw(&mut self, text: String, number: u32) -> Result<Option<String>, RenderFailure> {
        // Each diagram is a job of its own: a page of twenty does not hold a thread for the time of twenty.
        let drawn = self.call(GuestFunction::Draw, move |world, store| {
            let world = world.instantiate(&mut *store)?;
            world.draw(store, &text, number)
        });
        match drawn.await? {
            Ok(svg) => Ok(Some(svg)),
            Err(types::DrawError::Unsupported) => Ok(None),
            Err(types::DrawError::Malformed(malformed)) => {
                Err(RenderFailure::Malformed(malformed_from_wit(malformed)))
            }
            Err(types::DrawError::TooLarge(_)) => {
                Err(RenderFailure::Budget(BudgetKind::SourceBytes))
            }
            Err(types::DrawError::TooComplex) => Err(RenderFailure::Budget(BudgetKind::Parts)),
        }
    }

    /// Makes one call in the lane for pages, with the rest of the page's budget.
    async fn call<T: Send + 'static>(
        &mut self,
        function: GuestFunction,
        body: impl FnOnce(&PreparedRenderer, &mut Store<CallStoreState>) -> wasmtime::Result<T>
        + Send
        + 'static,
    ) -> Result<T, RenderFailure> {
        let guest = Arc::clone(&self.guest);
        let span = engine::call_span(function, guest.digest);
        let allowance = self
            .left
            .allowance(*self.inner.engine.limits(function.world()));
        let job = move |stop: &JobCancellation| {
            let code = guest.code();
            span.in_scope(|| {
                let engine = &code.engine;
                engine.call((function, &guest.tally), allowance, stop, |store| {
                    body(&code.world, store)
                })
            })
        };
        let called = match self.inner.pages.run(job).await {
            Ok(called) => called,
            Err(busy) => {
                self.end = AttemptOutcome::Busy;
                return Err(busy.into());
            }
        };
        self.left.charge(&called.used);
        self.used.fuel = self.used.fuel.saturating_add(called.used.fuel);
        self.used.memory = self.used.memory.max(called.used.memory);
        self.used.duration += called.used.duration;
        self.used.processor += called.used.processor;
        called.outcome.map_err(|failure| {
            if self.end == AttemptOutcome::Answered {
                self.end = AttemptOutcome::from(&failure);
            }
            failure.into()
        })
    }
}

/// Converts a source for the guest.
pub(super) fn source_to_wit(source: &RenderSource) -> types::Source {
    types::Source {
        content_type: source.content_type.as_str().to_owned(),
        title: source.title.clone(),
        name: source.name.clone(),
        text: source.text.clone(),
        runtime: source.runtime.as_ref().map(|script| types::RuntimeScript {
            src: script.src.clone(),
            slug: script.slug.clone(),
        }),
        page_bytes: u32::try_from(source.page_bytes).unwrap_or(u32::MAX),
        foot: source.foot.as_ref().map(|foot| types::Foot {
            raw: foot.raw.clone(),
            expires_at: foot.expires_at.clone(),
            report: foot.report.clone(),
        }),
        is_private: source.is_private,
    }
}

/// Converts a guest's message about a source, and shortens it.
fn malformed_from_wit(malformed: types::Malformed) -> MalformedSource {
    MalformedSource {
        message: truncate_message(malformed.message),
        place: malformed.place.map(|place| SourcePosition {
            line: place.line,
            column: place.column,
        }),
    }
}

/// Cuts a message that is too long.
pub(super) fn truncate_message(mut message: String) -> String {
    if let Some((end, _)) = message.char_indices().nth(MAX_MESSAGE_CHARS) {
        message.truncate(end);
    }
    message
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_message_is_cut_between_characters() {
        assert_eq!(truncate_message("short".to_owned()), "short");
        let long = truncate_message("é".repeat(5000));
        assert_eq!(long.chars().count(), MAX_MESSAGE_CHARS);
    }
}
