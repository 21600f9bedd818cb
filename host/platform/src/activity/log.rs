//! The log of a project in memory: its newest requests, for its owner.
//!
//! Projects share the memory of all logs: where it is used up, those that have most give theirs first, down to one level, so that no
//! project loses an entry to the flood of another. Who follows a log reads it at their own pace, and keeps nothing of it.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::Notify;

use super::clients::DayClients;
use super::outcome::LoggedOutcome;
use super::project::{ProjectActivity, lock};
use crate::http::client_ip::ClientIp;
use svc_base::clock::Timestamp;
use svc_base::ids::LogEntryId;

/// Most entries of a project.
pub(super) const MAX_ENTRIES: usize = 2000;
/// Time for which entries are kept, in milliseconds.
const KEPT_MS: i64 = 86_400_000;
/// Most followers of a project.
const MAX_FOLLOWERS: usize = 10;
/// Most entries that a follower takes at once.
const ENTRIES_AT_ONCE: usize = 100;
/// Pause of a follower after entries that it does not look for, in which others gather: a flood wakes it no more often.
const PAUSE: Duration = Duration::from_millis(50);

macro_rules! kinds {
    ($($(#[$doc:meta])* $kind:ident $name:literal,)+) => {
        /// Kind of a request in the log.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum EntryKind {
            $($(#[$doc])* $kind,)+
        }

        impl EntryKind {
            /// Names of all kinds.
            pub const NAMES: &'static [&'static str] = &[$($name,)+];

            /// Returns the name.
            pub fn name(self) -> &'static str {
                match self { $(Self::$kind => $name,)+ }
            }

            /// Returns the kind of a name.
            pub fn find_by_name(name: &str) -> Option<Self> {
                match name {
                    $($name => Some(Self::$kind),)+
                    _ => None,
                }
            }
        }
    };
}

kinds! {
    /// Call of an action, or a batch of calls.
    Call "call",
    /// Query of an owner at a page.
    Query "query",
    /// Live query.
    Live "live",
    /// Socket in a room.
    Room "room",
    /// Sign-in of a visitor.
    SignIn "sign_in",
    /// Begun checkout.
    Payment "payment",
    /// Upload of a file.
    Upload "upload",
    /// Call of an app's tool.
    Tool "tool",
}

/// A request that was answered.
#[derive(Debug)]
pub struct LoggedRequest<'r> {
    pub kind: EntryKind,
    pub at: Timestamp,
    pub took: Duration,
    pub client: Option<ClientIp>,
    pub request_id: &'r str,
    /// Name of the action; if there is no such action, a name that could be one's.
    pub action: Option<Arc<str>>,
    /// Id of the visitor, if signed in.
    pub user_id: Option<&'r str>,
    pub outcome: LoggedOutcome,
}

/// Entry of the log.
#[derive(Debug)]
pub struct LogEntry {
    pub id: LogEntryId,
    pub at: Timestamp,
    pub kind: EntryKind,
    pub action: Option<Arc<str>>,
    pub slug: Arc<str>,
    pub outcome: LoggedOutcome,
    pub took: Duration,
    pub user_id: Option<Box<str>>,
    /// Keyed hash of the client's address, another one each day.
    pub client: Option<u64>,
    pub request_id: Box<str>,
}

impl LogEntry {
    /// Returns the bytes that the entry takes in memory, about.
    fn bytes(&self) -> usize {
        let text = |text: &Option<Box<str>>| text.as_deref().map_or(0, str::len);
        // The name of the page is others', too, and mostly that of the action: one that no action has is the entry's alone.
        let action = self.action.as_deref().map_or(0, str::len);
        let texts = text(&self.user_id) + text(&self.outcome.detail) + self.request_id.len();
        // Each allocation has some bytes of its own, and the list a pointer.
        size_of::<Self>() + action + texts + 96
    }
}

/// Entries of the log that are looked for.
#[derive(Clone, Debug, Default)]
pub struct LogFilter {
    pub kind: Option<EntryKind>,
    pub status: Option<u16>,
    pub action: Option<String>,
}

impl LogFilter {
    /// Whether an entry is looked for.
    pub fn matches(&self, entry: &LogEntry) -> bool {
        let kind = self.kind.is_none_or(|kind| kind == entry.kind);
        let status = self
            .status
            .is_none_or(|status| status == entry.outcome.status);
        let action = self.action.as_deref();
        kind && status && action.is_none_or(|action| entry.action.as_deref() == Some(action))
    }
}

/// Page of the log, newest first.
#[derive(Debug, Default)]
pub struct LogPage {
    pub entries: Vec<Arc<LogEntry>>,
    /// Whether there are older ones.
    pub more: bool,
}

/// Entries of a project, oldest first, and the hashes of their clients.
#[derive(Debug, Default)]
struct LogEntries {
    list: VecDeque<Arc<LogEntry>>,
    clients: DayClients,
}

/// Entries of a project, and those who follow them.
#[derive(Debug, Default)]
pub(super) struct ProjectLog {
    entries: Mutex<LogEntries>,
    bytes: AtomicUsize,
    followers: AtomicUsize,
    news: Notify,
    /// Whether nobody may follow any more.
    ended: AtomicBool,
}

impl ProjectLog {
    /// Adds an entry, whose id `make` gives it; returns the bytes that the log has grown by, which may be less than none.
    pub(super) fn push(
        &self,
        at: Timestamp,
        make: impl FnOnce(Timestamp, &mut DayClients) -> LogEntry,
    ) -> isize {
        let mut entries = lock(&self.entries);
        // Under the lock: whoever ends the log empties it after that, and nothing is added to a log that nobody can find.
        if self.ended.load(Ordering::Acquire) {
            return 0;
        }
        let LogEntries { list, clients } = &mut *entries;
        // A clock that is set back must not lead to an id before the last one.
        let last = list.back().map_or(at, |last| last.at.max(at));
        let entry = Arc::new(make(last, clients));
        let mut grown = entry.bytes().cast_signed();
        list.push_back(entry);
        let kept_since = at.plus_seconds(-KEPT_MS / 1000);
        while list.len() > MAX_ENTRIES || list.front().is_some_and(|first| first.at < kept_since) {
            let dropped = list.pop_front();
            grown -= dropped.map_or(0, |entry| entry.bytes().cast_signed());
        }
        self.bytes
            .fetch_add(grown.cast_unsigned(), Ordering::Relaxed);
        drop(entries);
        if self.followers.load(Ordering::Relaxed) > 0 {
            self.news.notify_waiters();
        }
        grown
    }

    /// Returns the bytes of the entries.
    pub(super) fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Drops the oldest entries until `most` bytes are left, and those that are too old; returns the bytes that were dropped.
    pub(super) fn shrink(&self, most: usize, now: Timestamp) -> usize {
        let mut entries = lock(&self.entries);
        let list = &mut entries.list;
        let kept_since = now.plus_seconds(-KEPT_MS / 1000);
        let mut dropped = 0;
        while list.front().is_some_and(|first| {
            first.at < kept_since || self.bytes().saturating_sub(dropped) > most
        }) {
            dropped += list.pop_front().map_or(0, |entry| entry.bytes());
        }
        list.shrink_to(2 * list.len());
        self.bytes.fetch_sub(dropped, Ordering::Relaxed);
        dropped
    }

    /// Returns the newest entries that are looked for, at most `most`: those before an entry, if one is named.
    fn page(
        &self,
        filter: &LogFilter,
        before: Option<LogEntryId>,
        most: usize,
        now: Timestamp,
    ) -> LogPage {
        let kept_since = now.plus_seconds(-KEPT_MS / 1000);
        let entries = lock(&self.entries);
        let mut found = entries
            .list
            .iter()
            .rev()
            .skip_while(|entry| before.is_some_and(|before| entry.id >= before))
            .take_while(|entry| entry.at >= kept_since)
            .filter(|entry| filter.matches(entry));
        LogPage {
            entries: found.by_ref().take(most).map(Arc::clone).collect(),
            more: found.next().is_some(),
        }
    }

    /// Returns the next entries after one, oldest first.
    fn after(&self, last: LogEntryId) -> Vec<Arc<LogEntry>> {
        let entries = lock(&self.entries);
        let begin = entries.list.partition_point(|entry| entry.id <= last);
        let some = entries.list.range(begin..).take(ENTRIES_AT_ONCE);
        some.map(Arc::clone).collect()
    }

    /// Whether there are no entries and no followers.
    pub(super) fn is_unused(&self) -> bool {
        lock(&self.entries).list.is_empty() && self.followers.load(Ordering::Relaxed) == 0
    }

    /// Sends all followers away.
    pub(super) fn end(&self) {
        self.ended.store(true, Ordering::Release);
        self.news.notify_waiters();
    }
}

/// Somebody who follows the log of a project.
#[derive(Debug)]
pub struct LogFollower {
    project: Arc<ProjectActivity>,
    filter: LogFilter,
    last: LogEntryId,
}

impl Drop for LogFollower {
    fn drop(&mut self) {
        self.project.log.followers.fetch_sub(1, Ordering::Relaxed);
    }
}

impl LogFollower {
    /// Returns the next entries that are looked for, oldest first; waits for them. `None` if the log has ended.
    pub async fn next(&mut self) -> Option<Vec<Arc<LogEntry>>> {
        let log = &self.project.log;
        loop {
            let mut news = std::pin::pin!(log.news.notified());
            // From here on an entry wakes it.
            news.as_mut().enable();
            if log.ended.load(Ordering::Acquire) {
                return None;
            }
            let mut some = log.after(self.last);
            match some.last() {
                Some(last) => self.last = last.id,
                None => {
                    news.await;
                    continue;
                }
            }
            some.retain(|entry| self.filter.matches(entry));
            if !some.is_empty() {
                return Some(some);
            }
            tokio::time::sleep(PAUSE).await;
        }
    }
}

impl ProjectActivity {
    /// Returns a page of the log, newest first.
    pub fn log_page(
        &self,
        filter: &LogFilter,
        before: Option<LogEntryId>,
        most: usize,
        now: Timestamp,
    ) -> LogPage {
        self.log.page(filter, before, most, now)
    }

    /// Begins to follow the log: after an entry, if one is named, else after the newest. `None` if too many do so already.
    pub fn follow_log(
        self: &Arc<Self>,
        filter: LogFilter,
        after: Option<LogEntryId>,
    ) -> Option<LogFollower> {
        let log = &self.log;
        let added = log
            .followers
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |count| {
                (count < MAX_FOLLOWERS).then_some(count + 1)
            });
        added.ok()?;
        let newest = lock(&log.entries).list.back().map(|entry| entry.id);
        let newest = newest.unwrap_or_else(|| LogEntryId::numbered(Timestamp(0), 0));
        Some(LogFollower {
            project: Arc::clone(self),
            filter,
            // An id of another server's clock may be one of the future, behind which nothing would ever come.
            last: after.map_or(newest, |after| after.min(newest)),
        })
    }
}
