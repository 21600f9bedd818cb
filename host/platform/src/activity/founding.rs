//! The counts of a machine alone, as they are brought into a cluster: into the control database, which all nodes share.

use ring::digest;
use tokio::task::spawn_blocking;

use super::store::{self, HourOfProject, HourPlace};
use crate::control::{ControlDatabase, Error};
use svc_base::clock::Timestamp;

/// Hours that are brought in one transaction.
const HOURS_AT_ONCE: u32 = 1000;

/// Returns the id under which hours are noted until they are deleted from the file of counters, so that those of an interrupted founding
/// are not added twice. Others have another one.
fn flush_id(hours: &[HourOfProject]) -> i64 {
    let text = serde_json::to_vec(hours).unwrap_or_default();
    let digest = digest::digest(&digest::SHA256, &text);
    let mut first = [0; 8];
    first.copy_from_slice(&digest.as_ref()[..8]);
    i64::from_be_bytes(first)
}

/// Brings the counts of the file of counters into the control database. Nobody may count meanwhile.
///
/// # Errors
/// Those of the databases; calling again continues.
pub async fn share_own_hours(control: &ControlDatabase, at: Timestamp) -> Result<(), Error> {
    loop {
        let counters = control.counters();
        let first =
            spawn_blocking(move || counters.read_file(|c| store::first_own(c, HOURS_AT_ONCE)));
        let hours = first.await.unwrap_or(Err(Error::Panicked))?;
        if hours.is_empty() {
            return Ok(());
        }
        let (id, added) = (flush_id(&hours), hours.clone());
        let adding = control.write(move |tx| {
            if store::is_new_flush(tx, id, at)? {
                HourPlace::Shared.add(tx, &added)?;
            }
            Ok::<_, Error>(())
        });
        adding.await?;
        let counters = control.counters();
        let removing = move || counters.write_file(|tx| store::remove_own(tx, &hours));
        let removed = spawn_blocking(removing).await;
        removed.unwrap_or(Err(Error::Panicked))?;
        let noted = control.write(move |tx| Ok::<_, Error>(store::forget_flush(tx, id)?));
        noted.await?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::activity::HourCounts;
    use svc_base::clock::Clock;
    use svc_base::ids::ProjectId;
    use svc_base::random::Random;

    const HOUR: i64 = 491_000;

    fn hour(views: u64) -> HourCounts {
        HourCounts {
            pages: [("shop".to_owned(), views)].into(),
            ..HourCounts::default()
        }
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn what_is_interrupted_and_repeated_counts_once() {
        let data = tempfile::tempdir().unwrap();
        let control = ControlDatabase::open(data.path()).unwrap();
        let at = Timestamp(0);
        let project = ProjectId::new(&Clock::manual(at), &Random::system()).unwrap();
        let count = |views| {
            let counted = [(project, HOUR, hour(views))];
            let counters = control.counters();
            let counting = counters.write_file(move |tx| HourPlace::Own.add(tx, &counted));
            counting.unwrap();
        };
        let shared = async || {
            let range = ((HOUR, HOUR + 1), 1);
            let sums = control.read(move |c| HourPlace::Shared.sums(c, &project, range));
            sums.await.unwrap().all.views()
        };
        count(3);
        share_own_hours(&control, at).await.unwrap();
        share_own_hours(&control, at).await.unwrap();
        assert_eq!(shared().await, 3);
        // It died when they were added, and not yet removed.
        count(4);
        let dead = [(project, HOUR, hour(4))];
        let id = flush_id(&dead);
        let dies = control.write(move |tx| {
            assert!(store::is_new_flush(tx, id, at)?);
            HourPlace::Shared.add(tx, &dead)?;
            Ok::<_, Error>(())
        });
        dies.await.unwrap();
        share_own_hours(&control, at).await.unwrap();
        assert_eq!(shared().await, 7);
        // It died when they were removed, and their flush was not forgotten.
        let dies = control.write(move |tx| Ok::<_, Error>(store::is_new_flush(tx, id, at)?));
        assert!(dies.await.unwrap());
        count(5);
        share_own_hours(&control, at).await.unwrap();
        assert_eq!(shared().await, 12);
        let counters = control.counters();
        let own = counters.read_file(|c| store::first_own(c, HOURS_AT_ONCE));
        assert!(own.unwrap().is_empty());
    }
}
