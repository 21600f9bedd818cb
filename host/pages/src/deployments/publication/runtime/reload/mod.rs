//! Pages of `svc dev` that load themselves again after a save: what their script has beside the runtime, and the events that it hears.

pub mod routes;

use std::convert::Infallible;
use std::time::Duration;

use bytes::Bytes;
use futures_util::Stream;
use futures_util::stream::{StreamExt as _, iter, unfold};
use serde_json::json;

use crate::config::{PageVersions, PageVersionsReceiver};

/// Part of the script, within the scope of the others.
pub(super) const SCRIPT_PART: &str = include_str!("../../../../../../assets/runtime/reload.js");
/// First chunk of a stream: a page asks again soon, since `svc dev` is back in a moment.
const FIRST_CHUNK: Bytes = Bytes::from_static(b"retry: 500\n\n");
/// Chunk of a stream that has nothing to say; without it nobody would notice a page that has gone.
const COMMENT: Bytes = Bytes::from_static(b": still here\n\n");
/// Time between two comments.
const COMMENT_INTERVAL: Duration = Duration::from_secs(25);

/// State of the stream of a page.
#[derive(Debug)]
struct PageListener {
    versions: PageVersionsReceiver,
    slug: String,
    /// Version that was told last.
    told: Option<String>,
}

/// Returns the stream of a page: its version now, and each other one that it has later. It ends with `svc dev`.
fn events(
    mut versions: PageVersionsReceiver,
    slug: String,
) -> impl Stream<Item = Result<Bytes, Infallible>> {
    versions.mark_changed();
    let listener = PageListener {
        versions,
        slug,
        told: None,
    };
    let chunks = unfold(listener, |mut listener| async move {
        let chunk = listener.next_chunk().await?;
        Some((Ok(chunk), listener))
    });
    iter([Ok(FIRST_CHUNK)]).chain(chunks)
}

impl PageListener {
    /// Returns the next chunk, once there is one; `None` at the end.
    async fn next_chunk(&mut self) -> Option<Bytes> {
        loop {
            match tokio::time::timeout(COMMENT_INTERVAL, self.versions.changed()).await {
                Err(_) => return Some(COMMENT),
                Ok(changed) => changed.ok()?,
            }
            let versions = self.versions.borrow_and_update();
            // A change of another page is none of this one, and nothing is told before the folder was first applied.
            let version = versions.by_slug.get(&self.slug);
            if version.is_some() && version != self.told.as_ref() {
                self.told = version.cloned();
                return version.map(|version| encode_event(&versions, version));
            }
        }
    }
}

fn encode_event(versions: &PageVersions, version: &str) -> Bytes {
    let event = json!({ "version": version, "at": versions.told_at.0 });
    format!("data: {event}\n\n").into()
}
