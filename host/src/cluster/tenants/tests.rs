//! Loads that fail.

use futures_util::future::join_all;
use object_store::memory::InMemory;
use svc_base::clock::Clock;
use svc_base::random::Random;
use svc_ledger::MemoryLedger;
use tokio::sync::mpsc;

use super::super::tests::settings;
use super::*;

#[tokio::test]
async fn callers_share_a_load_that_fails() {
    let (clock, random) = (Clock::system(), Random::system());
    let ledger = Arc::new(MemoryLedger::default());
    let run = Run::join(ledger, &settings("n1"), &clock, &random)
        .await
        .unwrap();
    let data = tempfile::tempdir().unwrap();
    let bucket = Bucket::from_store(Arc::new(InMemory::new()));
    let bases = Bases::new(
        Arc::clone(run.ledger()),
        run.id(),
        bucket.clone(),
        data.path().to_owned(),
        clock.clone(),
    );
    let (made, _making) = mpsc::unbounded_channel();
    let routes = ShippingRoutes {
        queue: Arc::clone(run.queue()),
        gate: Arc::clone(run.gate()),
        made,
    };
    let files = DatabasesDirectory::open(data.path()).unwrap();
    let places = Arc::new(KnownPlaces::new(Arc::clone(&run)));
    let tenants = Tenants::new((run, places), (Arc::new(bases), bucket), files, routes);
    let id = BackendId::new(&clock, &random).unwrap();
    for failures in 1..=2 {
        let answers = join_all((0..8).map(|_| tenants.load(id, 0, ClaimWish::Free).unwrap())).await;
        let missing = answers
            .iter()
            .filter(|it| matches!(it, Err(StatementRunError::Closed)));
        assert_eq!(missing.count(), 1);
        assert!(answers.iter().all(Result::is_err));
        let counted = tenants.tenant(id).failures.load(Ordering::SeqCst);
        assert_eq!(counted, failures);
    }
}
