//! Random lives of a database: whatever happens, what was there can be there again.

use super::*;

/// Event in the life of a database.
#[derive(Clone, Debug)]
enum Event {
    Insert(u32),
    Update(u8),
    Delete(u8),
    Large(u16),
    Tick(u16),
    Remember,
    Reopen,
    Die,
    /// To a moment that is this share of all that was, and back.
    Restore(u8),
    /// Commits rows, for good.
    Keep(u8),
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        6 => any::<u32>().prop_map(Event::Insert),
        3 => any::<u8>().prop_map(Event::Update),
        2 => any::<u8>().prop_map(Event::Delete),
        2 => (1_u16..600).prop_map(Event::Large),
        6 => (1_u16..2000).prop_map(Event::Tick),
        1 => Just(Event::Remember),
        1 => Just(Event::Reopen),
        1 => Just(Event::Die),
        2 => any::<u8>().prop_map(Event::Restore),
        1 => any::<u8>().prop_map(Event::Keep),
    ]
}

async fn apply_event(fixture: &mut Fixture, event: Event) {
    let moment = |fixture: &Fixture, share: u8| {
        let first = fixture.states[0].at.0;
        let last = fixture
            .states
            .last()
            .unwrap()
            .at
            .0
            .max(fixture.clock.now().0);
        Timestamp(first + (last - first) * i64::from(share) / 255)
    };
    match event {
        Event::Insert(n) => {
            let sql = format!("INSERT INTO t (a, n) VALUES ('row {n}', {n})");
            fixture.write(&sql).await;
        }
        Event::Update(n) => {
            let sql = format!(
                "UPDATE t SET n = n + 1, a = a || 'x' WHERE id % 7 = {}",
                n % 7
            );
            fixture.write(&sql).await;
        }
        Event::Delete(n) => {
            let sql = format!("DELETE FROM t WHERE id % 11 = {}", n % 11);
            fixture.write(&sql).await;
        }
        Event::Large(n) => {
            let sql = format!(
                "INSERT INTO t (a, n) WITH RECURSIVE c (x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c WHERE x < {n})
                 SELECT hex(zeroblob(900)) || x, x FROM c"
            );
            fixture.write(&sql).await;
        }
        Event::Tick(millis) => fixture.clock.advance(Duration::from_millis(millis.into())),
        Event::Remember => {
            let past = fixture
                .databases
                .list_moments(fixture.id, None, 1)
                .await
                .unwrap();
            assert_eq!(past.newest, fixture.states.last().map(|state| state.at));
            fixture.taken();
        }
        Event::Reopen => fixture.reopen(),
        Event::Die => fixture.die().await,
        Event::Restore(share) => {
            let at = moment(fixture, share);
            fixture.restore_and_undo(at).await;
        }
        Event::Keep(share) => {
            let at = moment(fixture, share);
            let _ = fixture.restore(at).await;
        }
    }
}

fn live(history_bytes: u64, events: Vec<Event>) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let mut fixture = Fixture::new(history_bytes).await;
        for event in events {
            apply_event(&mut fixture, event).await;
        }
        let known: Vec<_> = fixture.states.iter().map(|state| state.at).collect();
        for at in [known[0], known[known.len() / 2], known[known.len() - 1]] {
            fixture.restore_and_undo(at).await;
        }
        let (history, log) = fixture.bytes();
        assert!(history <= history_bytes, "{history}");
        assert!(log <= LONGEST_LOG, "{log}");
        let files = fixture.databases.files();
        let damage = check_integrity(files, &fixture.id).unwrap().damage;
        assert_eq!(damage, Vec::<String>::new());
    });
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    #[test]
    fn what_was_there_can_be_there_again(events in prop::collection::vec(event(), 1..30)) {
        live(64 << 20, events);
    }

    #[test]
    fn what_little_is_kept_is_true(events in prop::collection::vec(event(), 20..40)) {
        live(8 << 20, events);
    }
}
