//! Records that the nodes of a cluster share: rows of the control database. One machine has none, and its folders decide.

use serde::{Deserialize, Serialize};

use super::record::{GuestRecord, GuestRecordError, InstalledGuest};
use super::store;
use crate::control::{ControlDatabase, ErrandWork, Error, Tx};
use svc_base::clock::Timestamp;
use svc_sandbox::{GuestDigest, World};

/// Reads the record of a world; an empty one where nothing was installed.
///
/// # Errors
/// Those of the database, or a record of another version of this program.
pub async fn read(control: &ControlDatabase, world: World) -> anyhow::Result<GuestRecord> {
    let text = control.read(move |c| store::find(c, world)).await?;
    Ok(parse(text)?)
}

/// Changes the record of a world in a transaction; returns it as it is then.
///
/// # Errors
/// Those of `change` and of the database; then nothing is changed.
pub fn change(
    tx: &Tx<'_>,
    world: World,
    change: impl FnOnce(&mut GuestRecord) -> Result<(), GuestRecordError>,
) -> Result<GuestRecord, GuestRecordError> {
    let text = store::find(tx, world).map_err(Error::from)?;
    let mut record = parse(text)?;
    let before = record.clone();
    change(&mut record)?;
    if record != before {
        let text = serde_json::to_string(&record).map_err(anyhow::Error::from)?;
        store::put(tx, world, &text)?;
    }
    Ok(record)
}

/// Removes all records, since the folders decide from now on.
///
/// # Errors
/// Those of the database.
pub async fn remove_all(control: &ControlDatabase) -> Result<(), Error> {
    control.write(store::remove_all).await
}

fn parse(text: Option<String>) -> Result<GuestRecord, GuestRecordError> {
    let Some(text) = text else {
        return Ok(GuestRecord::new());
    };
    let record = GuestRecord::from_json(text.as_bytes());
    Ok(record.map_err(|error| error.context("in the control database"))?)
}

/// Errand: a guest was rolled back automatically at a node. No node has it serve any more.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct GuestFell {
    pub world: World,
    pub guest: GuestDigest,
    /// Time of the installation that fell. One that was installed again later stays, so that the errand may be done twice.
    pub installed_at: Timestamp,
    /// Reason, without any content of the input.
    pub why: String,
    pub at: Timestamp,
}

impl ErrandWork for GuestFell {
    const KIND: &'static str = "guest_fell";
    type Answer = ();

    fn perform(self, tx: &Tx<'_>) -> Result<(), Error> {
        let fell = |one: &InstalledGuest| {
            one.digest == self.guest && one.installed_at <= self.installed_at
        };
        let changed = change(tx, self.world, |record| {
            record.remove_fallen(fell, &self.why, self.at);
            Ok(())
        });
        match changed {
            Ok(_) => Ok(()),
            Err(GuestRecordError::Control(error)) => Err(error),
            Err(error) => Err(Error::from_errand(error)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Installs a guest in a row.
    async fn install(
        control: &ControlDatabase,
        component: &'static [u8],
        now: Timestamp,
    ) -> Result<GuestRecord, GuestRecordError> {
        let digest = GuestDigest::of(component);
        let installed = InstalledGuest::of_stored(digest, 1, "here".to_owned(), now);
        let chosen =
            control.write(move |tx| change(tx, World::Gate, |record| record.choose(installed)));
        chosen.await
    }

    fn digests(record: &GuestRecord) -> Vec<GuestDigest> {
        record.serving.iter().map(|one| one.digest).collect()
    }

    #[tokio::test]
    async fn a_row_is_changed_as_a_folder_is() {
        let directory = tempfile::tempdir().unwrap();
        let control = ControlDatabase::open(directory.path()).unwrap();
        let none = read(&control, World::Gate).await.unwrap();
        assert_eq!(none, GuestRecord::new());
        let [a, b] = [b"a", b"b"].map(|bytes| GuestDigest::of(bytes));
        install(&control, b"a", Timestamp(1)).await.unwrap();
        let both = install(&control, b"b", Timestamp(2)).await.unwrap();
        assert_eq!(digests(&both), [a, b]);
        let again = install(&control, b"b", Timestamp(3)).await;
        assert!(again.unwrap_err().is_refusal());
        assert_eq!(read(&control, World::Gate).await.unwrap(), both);
        let roll_back = |only: GuestDigest| {
            control.write(move |tx| {
                change(tx, World::Gate, |record| {
                    record.roll_back(World::Gate, Some(only), Timestamp(4))
                })
            })
        };
        assert!(roll_back(a).await.unwrap_err().is_refusal());
        assert_eq!(digests(&roll_back(b).await.unwrap()), [a]);
        let other = read(&control, World::Render).await.unwrap();
        assert_eq!(other, GuestRecord::new());
        remove_all(&control).await.unwrap();
        assert_eq!(read(&control, World::Gate).await.unwrap(), none);
    }

    #[tokio::test]
    async fn a_guest_that_fell_is_removed_once_and_may_be_installed_again() {
        let directory = tempfile::tempdir().unwrap();
        let control = ControlDatabase::open(directory.path()).unwrap();
        let [a, b] = [b"a", b"b"].map(|bytes| GuestDigest::of(bytes));
        install(&control, b"a", Timestamp(1)).await.unwrap();
        install(&control, b"b", Timestamp(2)).await.unwrap();
        let fell = GuestFell {
            world: World::Gate,
            guest: b,
            installed_at: Timestamp(2),
            why: "trap".to_owned(),
            at: Timestamp(3),
        };
        for _ in 0..2 {
            control.run_errand(fell.clone()).await.unwrap();
            let left = read(&control, World::Gate).await.unwrap();
            assert_eq!((digests(&left), left.sequence), (vec![a], 3));
            assert!(left.describe_latest().contains("trap"));
        }
        install(&control, b"b", Timestamp(4)).await.unwrap();
        control.run_errand(fell).await.unwrap();
        let left = read(&control, World::Gate).await.unwrap();
        assert_eq!(digests(&left), [a, b]);
    }
}
