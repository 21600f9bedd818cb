//! Replay of everything stored, with the guest that serves and with a new one: the pages and verdicts that would
//! differ, and the cost.
//!
//! Only reads, beside a server that may be at work: a hold keeps the collector away, so that a source which a row names stays. What
//! belongs to few, protected and one-time shares, is compared in memory and counted, and never written anywhere. A one-time share has
//! no source but for HTML, whose page it is; the others cannot be replayed.

use std::sync::Arc;

use anyhow::{Context as _, bail};
use bytes::Bytes;
use futures_util::{StreamExt as _, stream};
use serde::Serialize;

use super::check::Watch;
use crate::backends::stored_sql;
use crate::content::{Content, ContentLock, OneTimeFiles};
use crate::control::Control;
use crate::deployments::operators::{self, StoredPage};
use crate::deployments::publication::runtime;
use svc_base::clock::Timestamp;
use svc_sandbox::{
    ContentType, GateFailure, GuestDigest, RenderFailure, RuntimeScript, Sandbox, SandboxConfig,
    Source, Statement, Total, World,
};

pub use differences::Differences;

mod differences;

/// How many rows are read at once.
const STEP: u32 = 200;

/// Result of a replay with two guests.
#[derive(Clone, Debug, Serialize)]
pub struct Replayed {
    /// The guest that serves.
    pub installed: GuestDigest,
    /// Counts of pages that everybody may see.
    pub open: Counts,
    /// Protected and one-time shares.
    pub private: Counts,
    /// One-time shares, of which there is no source.
    pub without_source: u64,
    /// Budgets that the calls used.
    pub used: Used,
}

impl Replayed {
    /// How often the new guest fails where the one that serves does not.
    pub fn newly_failing(&self) -> u64 {
        self.open.newly_failing + self.private.newly_failing
    }
}

/// How answers compare.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// Byte for byte the same.
    pub identical: u64,
    /// Both are answers, and not the same.
    pub differing: u64,
    /// Only the guest that serves has an answer.
    pub newly_failing: u64,
    /// Only the new guest has one.
    pub newly_working: u64,
    /// Neither has.
    pub failing: u64,
}

/// Budgets that two guests used on the same input.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Used {
    /// The guest that serves.
    pub installed: Total,
    /// The new one.
    pub new: Total,
}

/// How two answers compare.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Compared {
    Identical,
    Differing,
    NewlyFailing,
    NewlyWorking,
    Failing,
}

impl Counts {
    fn add(&mut self, compared: Compared) {
        *match compared {
            Compared::Identical => &mut self.identical,
            Compared::Differing => &mut self.differing,
            Compared::NewlyFailing => &mut self.newly_failing,
            Compared::NewlyWorking => &mut self.newly_working,
            Compared::Failing => &mut self.failing,
        } += 1;
    }
}

fn compared<T: PartialEq, E>(old: &Result<T, E>, new: &Result<T, E>) -> Compared {
    match (old, new) {
        (Ok(old), Ok(new)) if old == new => Compared::Identical,
        (Ok(_), Ok(_)) => Compared::Differing,
        (Ok(_), Err(_)) => Compared::NewlyFailing,
        (Err(_), Ok(_)) => Compared::NewlyWorking,
        (Err(_), Err(_)) => Compared::Failing,
    }
}

/// An installation, and the two guests.
#[derive(Debug)]
pub struct Replay {
    /// Control database.
    pub control: Control,
    /// Content store, which has the sources.
    pub content: Content,
    /// One-time shares.
    pub once: OneTimeFiles,
    /// When it is: what has expired is nobody's concern.
    pub now: Timestamp,
    /// The guest that serves, and the new one.
    pub guests: [Sandbox; 2],
    /// The largest page, in bytes.
    pub page_bytes: usize,
}

impl Replay {
    /// Gives everything that is stored for a world to both guests. `hold` keeps it there meanwhile.
    ///
    /// # Errors
    /// The database's, the store's or the disk's; or guests that cannot be asked at all.
    pub async fn run(
        &self,
        world: World,
        _hold: &ContentLock,
        differences: &mut Differences,
        watch: Watch<'_>,
    ) -> anyhow::Result<Replayed> {
        let mut found = Replayed {
            installed: GuestDigest::from_bytes([0; 32]),
            open: Counts::default(),
            private: Counts::default(),
            without_source: 0,
            used: Used {
                installed: Total::default(),
                new: Total::default(),
            },
        };
        match world {
            World::Render => self.pages(&mut found, differences, watch).await?,
            World::Gate => self.verdicts(&mut found, differences, watch).await?,
        }
        let [installed, new] = &self.guests;
        found.used = Used {
            installed: installed.total(world),
            new: new.total(world),
        };
        if let Some((digest, _)) = installed.usage(world) {
            found.installed = digest;
        }
        Ok(found)
    }

    async fn pages(
        &self,
        found: &mut Replayed,
        differences: &mut Differences,
        watch: Watch<'_>,
    ) -> anyhow::Result<()> {
        let now = self.now;
        let all = operators::count_pages(&self.control, now).await?;
        let (mut done, mut after) = (0, None);
        watch(done, all);
        loop {
            let step = operators::stored_pages(&self.control, now, after, STEP).await?;
            let Some(last) = step.last() else {
                return Ok(());
            };
            after = Some(last.id);
            let mut answers = stream::iter(step)
                .map(|page| self.page(page))
                .buffer_unordered(SandboxConfig::default_threads());
            while let Some(answer) = answers.next().await {
                done += 1;
                watch(done.min(all), all);
                let Some((page, old, new)) = answer? else {
                    found.without_source += 1;
                    continue;
                };
                let compared = compared(&old, &new);
                if page.is_private() {
                    found.private.add(compared);
                    continue;
                }
                found.open.add(compared);
                if compared != Compared::Identical {
                    differences.page(&page, &old, &new)?;
                }
            }
        }
    }

    /// A page with what both guests make of its source; `None` where there is no source.
    async fn page(
        &self,
        page: StoredPage,
    ) -> anyhow::Result<Option<(StoredPage, PageAnswer, PageAnswer)>> {
        let Some(text) = self.text(&page).await? else {
            return Ok(None);
        };
        let runtime = page.is_frontend.then(|| RuntimeScript {
            src: runtime::newest_path(),
            slug: page.slug.clone(),
        });
        let source = Source {
            content_type: page.content_type,
            title: Some(page.title.clone()).filter(|title| !title.is_empty()),
            name: None,
            text,
            runtime,
            page_bytes: self.page_bytes,
            foot: None,
            is_private: page.is_private(),
        };
        let old = rendered(&self.guests[0], source.clone()).await?;
        let new = rendered(&self.guests[1], source).await?;
        Ok(Some((page, old, new)))
    }

    async fn text(&self, page: &StoredPage) -> anyhow::Result<Option<String>> {
        let bytes = match page.source {
            Some(digest) => self.content.get(&digest).await?.map(Vec::from),
            None if page.content_type == ContentType::Html => {
                let (files, id) = (self.once.clone(), page.id);
                tokio::task::spawn_blocking(move || files.read(&id)).await??
            }
            None => None,
        };
        // What was deleted or read meanwhile has none either.
        Ok(bytes.and_then(|bytes| String::from_utf8(bytes).ok()))
    }

    async fn verdicts(
        &self,
        found: &mut Replayed,
        differences: &mut Differences,
        watch: Watch<'_>,
    ) -> anyhow::Result<()> {
        let backends = stored_sql::backends(&self.control).await?;
        let all = backends.len() as u64;
        for (done, id) in (0..).zip(backends) {
            watch(done, all);
            let stored = stored_sql::of_backend(&self.control, id).await?;
            let mut answers = stream::iter(stored)
                .map(async |piece| {
                    let old = judged(&self.guests[0], &piece).await?;
                    let new = judged(&self.guests[1], &piece).await?;
                    anyhow::Ok((piece, old, new))
                })
                .buffered(SandboxConfig::default_threads());
            while let Some(answer) = answers.next().await {
                let (piece, old, new) = answer?;
                let compared = compared(&old, &new);
                found.open.add(compared);
                if compared != Compared::Identical {
                    differences.verdict(id, &piece, &old, &new)?;
                }
            }
        }
        watch(all, all);
        Ok(())
    }
}

/// A page, or why there is none.
type PageAnswer = Result<Bytes, String>;
/// A verdict, or why there is none that allows.
type VerdictAnswer = Result<Vec<Statement>, String>;

async fn rendered(guest: &Sandbox, source: Source) -> anyhow::Result<PageAnswer> {
    match guest.render(source).await {
        Ok(page) => Ok(Ok(page.html)),
        Err(failure @ (RenderFailure::Busy | RenderFailure::Preparing)) => bail!("{failure}"),
        Err(failure) => Ok(Err(failure.to_string())),
    }
}

async fn judged(guest: &Sandbox, piece: &stored_sql::StoredSql) -> anyhow::Result<VerdictAnswer> {
    match guest.check_sql(piece.sql.as_str(), piece.purpose).await {
        Ok(statements) => Ok(Ok(statements)),
        Err(failure @ (GateFailure::Busy | GateFailure::Preparing)) => bail!("{failure}"),
        Err(failure) => Ok(Err(failure.to_string())),
    }
}

/// Keeps the content of a data directory where it is. Blocks.
///
/// # Errors
/// The disk's, or a restore that has the content.
pub fn hold(data: &std::path::Path) -> anyhow::Result<Arc<ContentLock>> {
    let hold = ContentLock::shared(data)?;
    hold.map(Arc::new)
        .context("the content is being restored: try again when that is done")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_told_apart() {
        let (one, two): (Result<_, ()>, _) = (Ok("a"), Ok("b"));
        let none = Err(());
        let mut counts = Counts::default();
        for (old, new, expected) in [
            (&one, &one, Compared::Identical),
            (&one, &two, Compared::Differing),
            (&one, &none, Compared::NewlyFailing),
            (&none, &one, Compared::NewlyWorking),
            (&none, &none, Compared::Failing),
        ] {
            let compared = compared(old, new);
            assert_eq!(compared, expected);
            counts.add(compared);
        }
        let one_each = Counts {
            identical: 1,
            differing: 1,
            newly_failing: 1,
            newly_working: 1,
            failing: 1,
        };
        assert_eq!(counts, one_each);
    }
}
