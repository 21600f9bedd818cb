//! The pool: who shares a commit, and who waits.

use futures_util::FutureExt as _;

use super::*;

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap()
}

#[test]
fn an_error_undoes_its_own_job_and_no_other() {
    let directory = tempfile::tempdir().unwrap();
    let control = ControlDatabase::open(directory.path()).unwrap();
    runtime().block_on(async {
        let mut writes = Vec::new();
        for n in 0..50_i64 {
            writes.push(control.write(move |tx| {
                tx.execute(
                    "INSERT INTO operator_events (kind, subject, at) VALUES ('', '', ?1)",
                    [n],
                )
                .map_err(Error::from)?;
                if n % 2 == 0 { Ok(()) } else { Err(Error::Busy) }
            }));
        }
        let results = futures_util::future::join_all(writes).await;
        assert!(
            results
                .iter()
                .enumerate()
                .all(|(n, result)| result.is_ok() == (n % 2 == 0))
        );
        let kept: i64 = control
            .read(|c| c.query_row("SELECT count(*) FROM operator_events", [], |r| r.get(0)))
            .await
            .unwrap();
        assert_eq!(kept, 25);
    });
}

#[test]
fn a_change_is_delivered_before_its_caller_is_answered_and_only_if_it_is_kept() {
    let directory = tempfile::tempdir().unwrap();
    let control = ControlDatabase::open(directory.path()).unwrap();
    let seen = Arc::new(Mutex::new(Vec::new()));
    let followed = Arc::clone(&seen);
    control.on_change(move |change| followed.lock().unwrap().push(change.clone()));
    let note = |slug: &'static str, result: Result<(), Error>| {
        control.write(move |tx| {
            tx.note(ControlChange::Slug(slug.to_owned()));
            result
        })
    };
    runtime().block_on(async {
        note("kept", Ok(())).await.unwrap();
        assert_eq!(
            *seen.lock().unwrap(),
            [ControlChange::Slug("kept".to_owned())]
        );
        note("undone", Err(Error::Busy)).await.unwrap_err();
        note("later", Ok(())).await.unwrap();
    });
    let seen = seen.lock().unwrap();
    assert_eq!(seen[1..], [ControlChange::Slug("later".to_owned())]);
}

#[test]
fn a_panicking_job_answers_and_harms_nobody() {
    let directory = tempfile::tempdir().unwrap();
    let control = ControlDatabase::open(directory.path()).unwrap();
    runtime().block_on(async {
        let panicked = control
            .write(|_| -> Result<(), Error> { panic!("on purpose") })
            .await;
        assert!(matches!(panicked, Err(Error::Panicked)));
        control.write(|_| Ok::<_, Error>(())).await.unwrap();
    });
    control.close();
    runtime().block_on(async {
        let closed = control.write(|_| Ok::<_, Error>(())).await;
        assert!(matches!(closed, Err(Error::Closed)));
    });
}

#[test]
fn a_read_whose_caller_is_gone_keeps_its_turn_until_it_ends() {
    let directory = tempfile::tempdir().unwrap();
    let control = ControlDatabase::open(directory.path()).unwrap();
    let free = || control.0.reading.available_permits();
    let ((started, starts), (end, ends)) = (channel(), channel::<()>());
    runtime().block_on(async {
        let read = control.read(move |_| {
            started.send(()).unwrap();
            // Ends once the sender is dropped.
            let _ = ends.recv();
            Ok(())
        });
        let mut read = Box::pin(read);
        assert!(read.as_mut().now_or_never().is_none());
        starts.recv().unwrap();
        drop(read);
        assert_eq!(free(), MAX_READERS - 1);
        drop(end);
        // All turns are free again once the job has ended.
        let turns = u32::try_from(MAX_READERS).unwrap();
        let _all = control.0.reading.acquire_many(turns).await.unwrap();
    });
}

#[test]
fn few_idle_readers_are_kept() {
    let directory = tempfile::tempdir().unwrap();
    let control = ControlDatabase::open(directory.path()).unwrap();
    let together = std::sync::Barrier::new(2 * MAX_READERS);
    std::thread::scope(|scope| {
        for _ in 0..2 * MAX_READERS {
            scope.spawn(|| {
                let read = control.read_blocking(|_| {
                    together.wait();
                    Ok(())
                });
                read.unwrap();
            });
        }
    });
    assert_eq!(control.0.readers.lock().unwrap().len(), MAX_READERS);
}

#[test]
fn a_network_has_so_many_reads_under_way_and_keeps_nobody_out() {
    let directory = tempfile::tempdir().unwrap();
    let control = ControlDatabase::open(directory.path()).unwrap();
    let stranger = |address: &str| CallerFlow::stranger(address.parse().unwrap());
    let read = |caller: CallerFlow| caller.scope(control.read(|_| Ok(())));
    let count = || {
        let caller = stranger("2001:db8:1:2::3");
        control.0.strangers.admit(&caller).unwrap()
    };
    let held: Vec<_> = (0..stranger_reads::MAX_READS).map(|_| count()).collect();
    runtime().block_on(async {
        // A /48 is one network.
        for caller in [
            stranger("2001:db8:1:4::1"),
            stranger("2001:db8:1:4::1").preview(),
        ] {
            let refused = read(caller).await;
            assert!(matches!(refused, Err(Error::TooManyReads)));
        }
        for caller in [
            stranger("2001:db8:2::1"),
            CallerFlow::Owner("usr_1".into()),
            CallerFlow::Server,
        ] {
            read(caller).await.unwrap();
        }
        drop(held);
        read(stranger("2001:db8:1:4::1")).await.unwrap();
    });
}
