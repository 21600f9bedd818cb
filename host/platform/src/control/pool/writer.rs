//! The writer of the control database, on a thread of its own: it commits groups of writes, answers their callers once a commit is
//! acknowledged, and keeps the write-ahead log short.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender};

use rusqlite::Connection;

use super::ChangeFeed;
use super::group::{MAX_GROUP, UnansweredGroup, WriteJob, run_group};
use super::shared_positions::SharedPositions;
use crate::control::Error;
use crate::control::change::NotedChangeListeners;
use crate::control::residue::WalResidue;
use crate::control::wal::WriterLog;
use svc_base::fault;
use svc_base::positions::{CommitPosition, DeferredCommitEffects};

/// A message to the writer.
pub(super) enum WriterMessage {
    Write(WriteJob),
    /// Commits up to a position are acknowledged elsewhere.
    Acknowledged(CommitPosition),
    /// Asks for a log without deleted secrets.
    EmptyLog(Sender<Result<(), Error>>),
    /// Ends the writer when all its callers are answered.
    Close,
    /// Ends the writer, whose callers are gone.
    Abandon,
}

/// The one connection that writes, with the commits that wait for their acknowledgement.
pub(super) struct ControlWriter {
    pub(super) connection: Connection,
    pub(super) log: WriterLog,
    pub(super) residue: WalResidue,
    pub(super) listeners: Arc<NotedChangeListeners>,
    /// Positions that another one acknowledges; `None` if commits are acknowledged by being synced.
    pub(super) shared: Option<Arc<SharedPositions>>,
    /// Takes the changes for machines that follow, if there are any.
    pub(super) feed: Option<Arc<dyn ChangeFeed>>,
    pub(super) pending: PendingGroups,
}

/// Groups that are not answered yet, and how far the commits have come.
#[derive(Default)]
pub(super) struct PendingGroups {
    groups: DeferredCommitEffects<UnansweredGroup>,
    appended: CommitPosition,
    acknowledged: CommitPosition,
}

impl ControlWriter {
    /// Takes messages until it is closed, or all senders are gone.
    pub(super) fn run(mut self, messages: &Receiver<WriterMessage>) {
        // A migration has made commits.
        self.append_commits();
        self.log.copy_if_long(&self.connection);
        let (mut next, mut closing) = (None, false);
        while !(closing && self.pending.groups.is_empty()) {
            let Some(message) = next.take().or_else(|| messages.recv().ok()) else {
                return;
            };
            match message {
                WriterMessage::Write(first) => {
                    let (group, other) = self.collect_group(first, messages);
                    self.write(group);
                    next = other;
                }
                WriterMessage::Acknowledged(position) => self.acknowledge(position),
                WriterMessage::EmptyLog(answer) => {
                    // The receiver waits, unless its thread has panicked.
                    let _ = answer.send(self.residue.empty_log(&self.connection));
                }
                WriterMessage::Close => closing = true,
                WriterMessage::Abandon => return,
            }
        }
    }

    /// Adds the writes that are in the queue, up to a message of another kind, which is returned.
    fn collect_group(
        &mut self,
        first: WriteJob,
        messages: &Receiver<WriterMessage>,
    ) -> (Vec<WriteJob>, Option<WriterMessage>) {
        let mut group = vec![first];
        while group.len() < MAX_GROUP {
            match messages.try_recv() {
                Ok(WriterMessage::Write(job)) => group.push(job),
                // These callers were before the group.
                Ok(WriterMessage::Acknowledged(position)) => self.acknowledge(position),
                Ok(other) => return (group, Some(other)),
                Err(_) => break,
            }
        }
        (group, None)
    }

    /// Commits a group, which is the first step. With the second, the acknowledgement, its changes are delivered and its callers
    /// answered: on a single machine at once, else the next group may run meanwhile.
    fn write(&mut self, group: Vec<WriteJob>) {
        if let Some(shared) = &self.shared {
            // A group is one commit.
            shared.begin_commit(self.log.position().next());
        }
        let group = run_group(&self.connection, group, &self.residue);
        if group.failure.is_none() {
            fault::point("commit.made");
        }
        if let Some(feed) = &self.feed
            && !group.changes.is_empty()
        {
            // Whoever takes the commit knows its changes.
            feed.note_changes(self.log.position(), &group.changes);
        }
        self.append_commits();
        self.pending.groups.push(self.log.position(), group);
        self.acknowledge(self.pending.acknowledged);
        // The next commit may overwrite a log that is copied: whoever reads commits there has read them in `append`.
        self.log.copy_if_long(&self.connection);
    }

    /// Hands over the new commits, if there are any. A single machine has acknowledged what it has synced.
    fn append_commits(&mut self) {
        let position = self.log.position();
        match &self.shared {
            None => self.pending.acknowledged = position,
            Some(shared) => shared.made(position, position > self.pending.appended),
        }
        self.pending.appended = position;
    }

    /// Delivers the changes of each group up to `position`, and then answers its callers.
    fn acknowledge(&mut self, position: CommitPosition) {
        self.pending.acknowledged = self.pending.acknowledged.max(position);
        let acknowledged = self.pending.acknowledged;
        for group in self.pending.groups.take_acknowledged(acknowledged) {
            self.listeners.deliver(&group.changes);
            fault::point("commit.delivered");
            group.answer_callers();
        }
        if let Some(shared) = &self.shared {
            // After the changes: what a reader has seen by then, memory knows.
            shared.acknowledge(acknowledged);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;
    use std::sync::mpsc::channel;

    use cap_std::ambient_authority;
    use cap_std::fs::Dir;
    use futures_util::FutureExt as _;
    use futures_util::future::LocalBoxFuture;
    use svc_base::clock::Timestamp;
    use svc_base::positions::{AcknowledgeFn, Durable};
    use svc_database::wal::{ALL_FRAMES, WalFile, WalPosition};
    use tempfile::TempDir;

    use super::*;
    use crate::control::{ControlChange, ControlDatabase, Tx};

    const LOG_FILE: &str = "control.db-wal";
    /// Adds almost 500 pages.
    const ADD_PAGES: &str = "INSERT INTO operator_events (kind, subject, at)
        VALUES ('', hex(zeroblob(1000000)), 0)";
    /// Bytes of a thousand pages in the log.
    const LONG: u64 = 1000 * 4120;

    /// Reads each commit from the log, and acknowledges it when the test says so.
    struct LateDurable {
        dir: Dir,
        appended: Sender<CommitPosition>,
        acknowledge: Mutex<Option<AcknowledgeFn>>,
        /// Position in the log up to which it is read, and the number of commits that were.
        read: Mutex<(WalPosition, u64)>,
    }

    impl Durable for LateDurable {
        fn append(&self, position: CommitPosition, _at: Timestamp) {
            let log = WalFile::open(&self.dir, LOG_FILE).unwrap().unwrap();
            let mut read = self.read.lock().unwrap();
            let (at, commits) = *read;
            let continues = log.contains(&at).unwrap();
            let from = if continues { at } else { log.start() };
            let found = log.read_committed(&from, ALL_FRAMES).unwrap();
            *read = (found.end, commits + found.commits.len() as u64);
            self.appended.send(position).unwrap();
        }

        fn on_acknowledged(&self, acknowledge: AcknowledgeFn) {
            *self.acknowledge.lock().unwrap() = Some(acknowledge);
        }
    }

    impl ChangeFeed for LateDurable {
        fn note_changes(&self, _: CommitPosition, _: &[ControlChange]) {}
    }

    struct WriterFixture {
        data: TempDir,
        control: ControlDatabase,
        late: Arc<LateDurable>,
        appended: Receiver<CommitPosition>,
        /// Changes that were delivered, by their slugs.
        delivered: Arc<Mutex<Vec<String>>>,
    }

    impl WriterFixture {
        fn open() -> Self {
            let data = tempfile::tempdir().unwrap();
            let (sender, appended) = channel();
            let late = Arc::new(LateDurable {
                dir: Dir::open_ambient_dir(data.path(), ambient_authority()).unwrap(),
                appended: sender,
                acknowledge: Mutex::default(),
                read: Mutex::default(),
            });
            let opened = ControlDatabase::open_owner(data.path(), late.clone(), late.clone());
            let control = opened.unwrap();
            let delivered = Arc::new(Mutex::new(Vec::new()));
            let followed = Arc::clone(&delivered);
            control.on_change(move |change| {
                let ControlChange::Slug(slug) = change else {
                    panic!("nobody noted {change:?}");
                };
                followed.lock().unwrap().push(slug.clone());
            });
            // The schema is a commit, too.
            assert_eq!(appended.recv().unwrap(), CommitPosition(1));
            Self {
                data,
                control,
                late,
                appended,
                delivered,
            }
        }

        /// Begins a write that is not answered at once. Later writes are in later groups.
        fn begin(
            &self,
            job: impl FnOnce(&Tx<'_>) -> Result<(), Error> + Send + 'static,
        ) -> LocalBoxFuture<'_, Result<(), Error>> {
            let (started, starts) = channel();
            let mut write = Box::pin(self.control.write(move |tx| {
                started.send(()).unwrap();
                job(tx)
            }));
            assert!(write.as_mut().now_or_never().is_none());
            starts.recv().unwrap();
            write
        }

        /// Waits until the next commit is made.
        fn next_appended(&self) -> CommitPosition {
            self.appended.recv().unwrap()
        }

        fn acknowledge(&self, position: CommitPosition) {
            let acknowledge = self.late.acknowledge.lock().unwrap();
            acknowledge.as_ref().unwrap()(position);
        }

        /// Makes so many large commits.
        async fn fill(&self, commits: u32) {
            for _ in 0..commits {
                let add = |tx: &Tx<'_>| {
                    tx.execute(ADD_PAGES, [])?;
                    Ok::<_, Error>(())
                };
                self.control.write(add).await.unwrap();
            }
        }

        fn log_bytes(&self) -> u64 {
            let log = self.data.path().join(LOG_FILE);
            std::fs::metadata(log).unwrap().len()
        }
    }

    fn publish(slug: &'static str) -> impl FnOnce(&Tx<'_>) -> Result<(), Error> + Send {
        move |tx: &Tx<'_>| {
            tx.note(ControlChange::Slug(slug.to_owned()));
            let add = "INSERT INTO operator_events (kind, subject, at) VALUES ('', ?1, 0)";
            tx.execute(add, [slug])?;
            Ok(())
        }
    }

    /// Breaks a rule that is checked by the commit.
    fn fail_to_commit(tx: &Tx<'_>) -> Result<(), Error> {
        tx.note(ControlChange::Slug("failed".to_owned()));
        tx.execute_batch(
            "PRAGMA defer_foreign_keys = ON;
             INSERT INTO memberships (workspace_id, user_id, role, created_at)
             VALUES ('nobody', 'nobody', 'owner', 0)",
        )?;
        Ok(())
    }

    #[tokio::test]
    async fn callers_and_changes_wait_for_an_acknowledgement_from_elsewhere() {
        let fixture = WriterFixture::open();
        let delivered = || fixture.delivered.lock().unwrap().clone();
        let mut one = fixture.begin(publish("one"));
        let first = fixture.next_appended();
        let mut two = fixture.begin(publish("two"));
        // The writer is done with the first group before it makes the second commit.
        let second = fixture.next_appended();
        assert_eq!(second, first.next());
        assert!(one.as_mut().now_or_never().is_none());
        assert_eq!(delivered(), [""; 0]);
        fixture.acknowledge(first);
        one.await.unwrap();
        assert_eq!(delivered(), ["one"]);
        assert!(two.as_mut().now_or_never().is_none());
        fixture.acknowledge(second);
        two.await.unwrap();
        assert_eq!(delivered(), ["one", "two"]);
        fixture.control.close();
    }

    #[tokio::test]
    async fn a_failed_commit_takes_no_position_and_is_answered_in_its_turn() {
        let fixture = WriterFixture::open();
        let mut one = fixture.begin(publish("one"));
        let first = fixture.next_appended();
        let mut undone = fixture.begin(|_| Err(Error::Busy));
        let mut failed = fixture.begin(fail_to_commit);
        let mut two = fixture.begin(publish("two"));
        let second = fixture.next_appended();
        assert_eq!(second, first.next());
        for write in [&mut one, &mut undone, &mut failed] {
            assert!(write.as_mut().now_or_never().is_none());
        }
        fixture.acknowledge(first);
        one.await.unwrap();
        assert!(matches!(undone.await, Err(Error::Busy)));
        assert!(matches!(failed.await, Err(Error::Sqlite(_))));
        assert!(two.as_mut().now_or_never().is_none());
        fixture.acknowledge(second);
        two.await.unwrap();
        assert_eq!(*fixture.delivered.lock().unwrap(), ["one", "two"]);
        fixture.control.close();
    }

    #[tokio::test]
    async fn a_writer_that_is_closed_waits_for_acknowledgements_while_some_may_come() {
        let fixture = WriterFixture::open();
        let write = fixture.begin(publish("one"));
        let first = fixture.next_appended();
        std::thread::scope(|scope| {
            scope.spawn(|| fixture.control.close());
            fixture.acknowledge(first);
        });
        write.await.unwrap();

        let fixture = WriterFixture::open();
        let write = fixture.begin(publish("one"));
        fixture.next_appended();
        drop(fixture.late.acknowledge.lock().unwrap().take());
        fixture.control.close();
        assert!(matches!(write.await, Err(Error::Closed)));
        assert_eq!(*fixture.delivered.lock().unwrap(), [""; 0]);
    }

    #[tokio::test]
    async fn a_long_log_is_copied_after_its_commits_were_read() {
        let fixture = WriterFixture::open();
        // From here on, all commits are acknowledged at once.
        fixture.acknowledge(CommitPosition(u64::MAX));
        fixture.fill(6).await;
        assert!(fixture.log_bytes() < 2 * LONG);
        // A reader only delays it.
        let snapshot = fixture.control.snapshot().unwrap();
        fixture.fill(5).await;
        let held = fixture.log_bytes();
        assert!(held > 2 * LONG);
        drop(snapshot);
        fixture.fill(4).await;
        assert!(fixture.log_bytes() < held + LONG);
        fixture.control.empty_log_if_deleted().unwrap();
        assert_eq!(fixture.log_bytes(), 0);
        fixture.fill(1).await;
        let last = fixture.appended.try_iter().last().unwrap();
        assert_eq!(last, CommitPosition(17));
        assert_eq!(fixture.late.read.lock().unwrap().1, last.0);
        fixture.control.close();
    }
}
