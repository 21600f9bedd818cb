//! The control database, shipped commit by commit and loaded elsewhere.

use std::fs::File;

use svc_base::clock::Timestamp;
use svc_base::disk;
use svc_base::positions::{AcknowledgeFn, CommitPosition, Entry};
use svc_database::{BaseSnapshot, DatabaseLoader, LogShipper};

use super::*;

/// Number of the last commit in the base.
const FIRST: u64 = 40;
const COUNT: &str =
    "SELECT (SELECT count(*) FROM operator_events), (SELECT count(*) FROM deployments)";
const INSERT_SECRET: &str =
    "INSERT INTO deployments (id, slug, content_type, title, password_hash, created_at)
    VALUES ('id', 'slug', 'html', '', 'secret', 0)";
const INSERT_LONG: &str =
    "INSERT INTO operator_events (kind, subject, at) VALUES ('', hex(zeroblob(500000)), 0)";

/// Acknowledger that ships each commit.
pub(super) struct ShippingDurable {
    /// Position at which those of the writer begin.
    offset: CommitPosition,
    shipper: Mutex<LogShipper>,
    entries: Mutex<Vec<Entry>>,
    /// Changes that the next commit takes along.
    noted: Mutex<Arc<[u8]>>,
    acknowledge: Mutex<Option<AcknowledgeFn>>,
}

impl ShippingDurable {
    /// Ships what comes after the shipper's state.
    pub(super) fn new(shipper: LogShipper) -> Arc<Self> {
        Arc::new(Self {
            offset: shipper.state().position(),
            shipper: Mutex::new(shipper),
            entries: Mutex::default(),
            noted: Mutex::default(),
            acknowledge: Mutex::default(),
        })
    }

    /// Returns everything that was shipped.
    pub(super) fn entries(&self) -> Vec<Entry> {
        self.entries.lock().unwrap().clone()
    }
}

impl Durable for ShippingDurable {
    fn append(&self, position: CommitPosition, at: Timestamp) {
        // The writer counts from its start.
        let number = CommitPosition(self.offset.0 + position.0);
        let mut entries = self.shipper.lock().unwrap().ship(number, at).unwrap();
        if let Some(last) = entries.last_mut() {
            last.changes = std::mem::take(&mut *self.noted.lock().unwrap());
        }
        self.entries.lock().unwrap().extend(entries);
        self.acknowledge.lock().unwrap().as_ref().unwrap()(position);
    }

    fn on_acknowledged(&self, acknowledge: AcknowledgeFn) {
        *self.acknowledge.lock().unwrap() = Some(acknowledge);
    }
}

impl ChangeFeed for ShippingDurable {
    fn note_changes(&self, _: CommitPosition, changes: &[ControlChange]) {
        *self.noted.lock().unwrap() = ControlChange::to_bytes(changes).unwrap();
    }
}

fn count(control: &ControlDatabase) -> (i64, i64) {
    let counts =
        control.read_blocking(|c| c.query_row(COUNT, [], |row| Ok((row.get(0)?, row.get(1)?))));
    counts.unwrap()
}

async fn execute(control: &ControlDatabase, sql: &'static str) {
    let run = move |tx: &Tx<'_>| {
        tx.execute(sql, [])?;
        Ok::<_, Error>(())
    };
    control.write(run).await.unwrap();
}

#[tokio::test]
async fn what_is_shipped_is_loaded_as_the_same_database() {
    let data = tempfile::tempdir().unwrap();
    ControlDatabase::open(data.path()).unwrap().close();
    let base = data.path().join("base");
    let snapshot = BaseSnapshot::begin(&data.path().join(FILE), CommitPosition(FIRST), None);
    let first = snapshot.unwrap().write_to(&base).unwrap();
    let dir = disk::open_directory(data.path()).unwrap();
    let shipper = LogShipper::new(dir, "control.db-wal", first.clone());
    let shipping = ShippingDurable::new(shipper);
    let opened = ControlDatabase::open_owner(data.path(), shipping.clone(), shipping.clone());
    let control = opened.unwrap();
    for _ in 0..5 {
        execute(&control, INSERT_SECRET).await;
        // Some 250 pages: the log is long at last, and is copied.
        execute(&control, INSERT_LONG).await;
        execute(&control, "DELETE FROM deployments WHERE id = 'id'").await;
    }
    execute(&control, "UPDATE operator_events SET at = at + 1").await;
    // The log begins anew.
    control.empty_log_if_deleted().unwrap();
    execute(&control, "DELETE FROM operator_events WHERE rowid = 2").await;
    let counts = count(&control);
    control.close();
    assert_eq!(counts, (4, 0));
    let entries = shipping.entries();
    assert_eq!(entries.len(), 17);

    let copy = tempfile::tempdir().unwrap();
    let dir = disk::open_directory(copy.path()).unwrap();
    let file = File::open(&base).unwrap();
    let loader = DatabaseLoader::start(dir, FILE, file, first.position(), first.checksum());
    let loaded = loader.unwrap().apply(&entries).unwrap().finish().unwrap();
    assert_eq!(loaded, *shipping.shipper.lock().unwrap().state());
    assert_eq!(loaded.position(), CommitPosition(FIRST + 17));
    let taken_over = ControlDatabase::open(copy.path()).unwrap();
    assert_eq!(count(&taken_over), counts);
}
