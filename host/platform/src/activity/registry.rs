//! The activity of all projects that are in memory.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicIsize, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use super::clients::ClientKey;
use super::flush::HourFlush;
use super::log::{LogEntry, LoggedRequest};
use super::project::{PageActivity, ProjectActivity, lock};
use crate::control::ControlDatabase;
use svc_base::clock::{Clock, Timestamp};
use svc_base::ids::{LogEntryId, ProjectId};
use svc_base::random::{Random, RandomSourceError};

/// Most bytes of all logs.
const MAX_LOG_BYTES: isize = 64 << 20;
/// Part of them that is left free when they are used up, so that this is rare.
const FREED_PART: usize = 8;

/// Activity of projects.
#[derive(Debug)]
pub struct Activity {
    pub(super) control: ControlDatabase,
    pub(super) clock: Clock,
    projects: Mutex<HashMap<ProjectId, Arc<ProjectActivity>>>,
    /// Bytes of all logs; for moments a little less than there are.
    log_bytes: AtomicIsize,
    most_log_bytes: isize,
    /// Whether somebody makes room.
    making_room: AtomicBool,
    /// Number of the last entry.
    entries: AtomicU64,
    client_key: ClientKey,
    /// Id of the next flush.
    pub(super) flushed: AtomicI64,
    /// Counts that are on their way, or failed on it.
    pub(super) flushing: tokio::sync::Mutex<VecDeque<HourFlush>>,
}

impl Activity {
    /// Makes the activity of a server, with nothing in it.
    ///
    /// # Errors
    /// When there is no randomness.
    pub fn new(
        control: ControlDatabase,
        clock: Clock,
        random: &Random,
    ) -> Result<Self, RandomSourceError> {
        Ok(Self {
            control,
            clock,
            projects: Mutex::default(),
            log_bytes: AtomicIsize::new(0),
            most_log_bytes: MAX_LOG_BYTES,
            making_room: AtomicBool::new(false),
            entries: AtomicU64::new(0),
            client_key: ClientKey::new(random)?,
            // Half of the numbers, so that counting on never passes the end.
            flushed: AtomicI64::new(i64::from_le_bytes(random.bytes()?) >> 1),
            flushing: tokio::sync::Mutex::default(),
        })
    }

    /// Returns the counters of a page, for who serves it.
    pub fn page(&self, project: ProjectId, slug: &str) -> Arc<PageActivity> {
        // Under the lock, so that nobody forgets the project meanwhile.
        let mut projects = lock(&self.projects);
        let project = projects
            .entry(project)
            .or_insert_with(|| Arc::new(ProjectActivity::new(project)));
        project.page(slug)
    }

    /// Returns the activity of a project, made if there is none.
    pub fn project(&self, id: ProjectId) -> Arc<ProjectActivity> {
        let mut projects = lock(&self.projects);
        let project = projects
            .entry(id)
            .or_insert_with(|| Arc::new(ProjectActivity::new(id)));
        Arc::clone(project)
    }

    /// Returns the activity of a project, if there was any.
    pub fn find(&self, id: &ProjectId) -> Option<Arc<ProjectActivity>> {
        lock(&self.projects).get(id).map(Arc::clone)
    }

    pub(super) fn all(&self) -> Vec<Arc<ProjectActivity>> {
        lock(&self.projects).values().map(Arc::clone).collect()
    }

    /// Writes a request into the log of its page's project, and counts it if it failed.
    pub fn record(&self, page: &PageActivity, request: LoggedRequest<'_>) {
        let project = &page.project;
        if project.has_ended() {
            return;
        }
        let at = request.at;
        if request.outcome.is_failure() {
            project.count_failure(at, request.outcome.status);
        }
        let of_project = (&self.client_key, project.id);
        let grown = project.log.push(at, |at, clients| LogEntry {
            // Under the lock of the log, so that ids follow each other there.
            id: LogEntryId::numbered(at, self.entries.fetch_add(1, Ordering::Relaxed)),
            at,
            kind: request.kind,
            action: request.action,
            slug: Arc::clone(&page.slug),
            outcome: request.outcome,
            took: request.took,
            user_id: request.user_id.map(Into::into),
            client: request
                .client
                .map(|client| clients.hash(of_project, client, at)),
            request_id: request.request_id.into(),
        });
        let all = self.log_bytes.fetch_add(grown, Ordering::Relaxed) + grown;
        if all > self.most_log_bytes {
            self.make_room(at);
        }
    }

    /// Drops entries of those logs that have most, down to one level.
    fn make_room(&self, now: Timestamp) {
        if self.making_room.swap(true, Ordering::Acquire) {
            return;
        }
        let logs = self.all();
        let wanted = self.most_log_bytes.unsigned_abs();
        let wanted = wanted - wanted / FREED_PART;
        let level = fair_level(logs.iter().map(|project| project.log.bytes()), wanted);
        for project in logs {
            let dropped = project.log.shrink(level, now);
            self.log_bytes
                .fetch_sub(dropped.cast_signed(), Ordering::Relaxed);
        }
        self.making_room.store(false, Ordering::Release);
    }

    /// Forgets what is old, and projects that nothing is left of. Runs once in a while.
    pub fn tidy(&self) {
        let now = self.clock.now();
        for project in self.all() {
            let dropped = project.log.shrink(usize::MAX, now);
            self.log_bytes
                .fetch_sub(dropped.cast_signed(), Ordering::Relaxed);
        }
        lock(&self.projects).retain(|_, project| {
            // Whoever holds a project may still count or follow.
            !project.tidy() || Arc::strong_count(project) > 1
        });
    }

    /// Ends the activity of a project.
    pub(super) fn end(&self, id: &ProjectId) {
        let removed = lock(&self.projects).remove(id);
        if let Some(project) = removed {
            project.end();
            let dropped = project.log.shrink(0, self.clock.now());
            self.log_bytes
                .fetch_sub(dropped.cast_signed(), Ordering::Relaxed);
        }
    }

    /// Sends everybody away who follows a log: the server stops.
    pub fn stop_following(&self) {
        for project in self.all() {
            project.log.end();
        }
    }
}

/// Returns the level down to which logs give their entries, so that `wanted` bytes are left: those below it keep theirs.
fn fair_level(logs: impl Iterator<Item = usize>, wanted: usize) -> usize {
    let mut logs: Vec<usize> = logs.collect();
    logs.sort_unstable();
    let (mut left, mut sharing) = (wanted, logs.len());
    for bytes in logs {
        let share = left / sharing.max(1);
        if bytes > share {
            return share;
        }
        left -= bytes;
        sharing -= 1;
    }
    usize::MAX
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::activity::{EntryKind, LogFilter, LoggedOutcome};
    use crate::http::client_ip::ClientIp;

    #[test]
    fn the_level_is_what_is_left_for_each_who_has_more() {
        for (logs, wanted, level) in [
            (vec![], 10, usize::MAX),
            (vec![5, 5], 10, usize::MAX),
            (vec![100, 100], 10, 5),
            (vec![2, 100, 1], 10, 7),
            (vec![2, 3, 100, 90], 25, 10),
        ] {
            assert_eq!(fair_level(logs.iter().copied(), wanted), level, "{logs:?}");
        }
    }

    fn activity(data: &std::path::Path, most: isize) -> (Activity, Clock) {
        let clock = Clock::manual(Timestamp(1_795_262_400_000));
        let control = ControlDatabase::open(data).unwrap();
        let made = Activity::new(control, clock.clone(), &Random::system()).unwrap();
        let made = Activity {
            most_log_bytes: most,
            ..made
        };
        (made, clock)
    }

    fn request<'r>(at: Timestamp, id: &'r str) -> LoggedRequest<'r> {
        LoggedRequest {
            kind: EntryKind::Call,
            at,
            took: Duration::from_millis(3),
            client: Some(ClientIp("192.0.2.7".parse().unwrap())),
            request_id: id,
            action: Some("list".into()),
            user_id: None,
            outcome: LoggedOutcome::ok(200),
        }
    }

    #[tokio::test]
    async fn a_flood_takes_no_entry_of_a_neighbour() {
        let data = tempfile::tempdir().unwrap();
        let (activity, clock) = activity(data.path(), 200_000);
        let [quiet, loud, other] = [1, 2, 3].map(|_| {
            let id = ProjectId::new(&clock, &Random::system()).unwrap();
            activity.page(id, "page")
        });
        for n in 0..20 {
            activity.record(&quiet, request(clock.now(), &n.to_string()));
        }
        for n in 0..10_000 {
            activity.record(&loud, request(clock.now(), &n.to_string()));
            activity.record(&other, request(clock.now(), &n.to_string()));
            assert!(activity.log_bytes.load(Ordering::Relaxed) <= 201_000);
        }
        let now = clock.now();
        let count = |page: &PageActivity| {
            let page = page
                .project
                .log_page(&LogFilter::default(), None, 5000, now);
            page.entries.len()
        };
        assert_eq!(count(&quiet), 20);
        assert!(count(&loud) > 100 && count(&other) > 100);
        // What is said to be there is there.
        let bytes: usize = activity.all().iter().map(|one| one.log.bytes()).sum();
        assert_eq!(
            bytes.cast_signed(),
            activity.log_bytes.load(Ordering::Relaxed)
        );
        clock.advance(Duration::from_secs(86_401));
        activity.tidy();
        assert_eq!(activity.log_bytes.load(Ordering::Relaxed), 0);
    }

    #[tokio::test]
    async fn the_newest_of_a_day_are_kept_and_pages_follow_each_other() {
        let data = tempfile::tempdir().unwrap();
        let (activity, clock) = activity(data.path(), MAX_LOG_BYTES);
        let id = ProjectId::new(&clock, &Random::system()).unwrap();
        let page = activity.page(id, "page");
        for n in 0..2100 {
            activity.record(&page, request(clock.now(), &n.to_string()));
        }
        let (mut before, mut seen) = (None, Vec::new());
        loop {
            let filter = LogFilter::default();
            let found = page.project.log_page(&filter, before, 300, clock.now());
            seen.extend(found.entries.iter().map(|entry| entry.request_id.clone()));
            before = found.entries.last().map(|entry| entry.id);
            if !found.more {
                break;
            }
        }
        let expected = (100..2100).rev().map(|n| n.to_string().into());
        assert_eq!(seen, expected.collect::<Vec<Box<str>>>());
        clock.advance(Duration::from_secs(86_401));
        let old = page
            .project
            .log_page(&LogFilter::default(), None, 300, clock.now());
        assert!(old.entries.is_empty() && !old.more);
    }

    #[tokio::test]
    async fn counts_are_read_once_written_or_not() {
        let data = tempfile::tempdir().unwrap();
        let (activity, clock) = activity(data.path(), MAX_LOG_BYTES);
        let id = ProjectId::new(&clock, &Random::system()).unwrap();
        let page = activity.page(id, "page");
        let action = page.project.action("list").unwrap();
        let hour = super::super::hour_of(clock.now());
        for round in 0..3_u64 {
            for _ in 0..5 {
                page.count_view(clock.now());
            }
            let took = Duration::from_millis(2);
            page.project
                .count_call(Some(&*action), clock.now(), took, Ok(7));
            page.project
                .count_call(Some(&*action), clock.now(), took, Err(()));
            for _ in 0..2 {
                let sums = activity.sums(id, (hour, hour + 10), 1).await.unwrap();
                assert_eq!(sums.points.len() as u64, round + 1);
                for counts in sums.points.values() {
                    assert_eq!((counts.views, counts.totals.calls), (5, 2));
                }
                let (list, times) = (&sums.all.actions["list"], round + 1);
                let expected = (2 * times, times, 7 * times);
                assert_eq!((list.calls, list.errors, list.rows), expected);
                assert_eq!(sums.all.pages["page"], 5 * times);
                assert!(list.times.percentile_ms(50).is_some());
                // Hours that are not asked for are left out, written or not.
                let first = activity.sums(id, (hour, hour + 1), 24).await.unwrap();
                assert_eq!((first.points.len(), first.all.views()), (1, 5));
                activity.flush().await.unwrap();
            }
            clock.advance(Duration::from_secs(3600));
        }
        activity.tidy();
        assert!(activity.find(&id).is_some());
        drop((page, action));
        activity.tidy();
        assert!(activity.find(&id).is_none());
        let sums = activity.sums(id, (hour, hour + 10), 1).await.unwrap();
        assert_eq!(sums.points.len(), 3);
        clock.advance(Duration::from_secs(90 * 86_400 - 3600));
        activity.forget_old(false).await.unwrap();
        let sums = activity.sums(id, (hour, hour + 10), 1).await.unwrap();
        assert_eq!(sums.points.len(), 1);
        activity.remove(id).await.unwrap();
        let sums = activity.sums(id, (hour, hour + 10), 1).await.unwrap();
        assert!(sums.points.is_empty());
    }
}
