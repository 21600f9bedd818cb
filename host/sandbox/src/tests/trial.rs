//! A guest that is new, held against the one before it.

use super::*;

const ENDLESS: &str = "(loop $again (br $again))";

/// A sandbox whose gate is `bodies[0]`, on trial against `bodies[1]`.
async fn on_trial(bodies: [&str; 2]) -> (Sandbox, [GuestDigest; 2], tempfile::TempDir) {
    let guests = tempfile::tempdir().unwrap();
    let components = bodies.map(|body| gate_wat(1, "(memory 1)", body));
    let origins = [0, 1].map(|number| {
        let path = guests.path().join(number.to_string());
        fs::write(&path, &components[number]).unwrap();
        GuestOrigin::file(&path)
    });
    let limits = CallBudgets {
        fuel: 1_000_000,
        ..config().limits.gate
    };
    let sandbox = Sandbox::start(with_gate_limits(limits)).unwrap();
    assert!(
        sandbox
            .check_sql("SELECT 1", SqlPurpose::Query)
            .await
            .is_ok()
    );
    let choice = GuestCandidates {
        origins: origins.to_vec(),
        on_trial: true,
    };
    let applied = sandbox.apply(World::Gate, &choice);
    let digests = [0, 1].map(|number| GuestDigest::of(&components[number]));
    assert_eq!(applied.serves, Some(digests[0]));
    (sandbox, digests, guests)
}

#[tokio::test]
async fn a_gate_that_fails_where_the_one_before_does_not_loses_its_place() {
    for bad in [
        "unreachable",
        ENDLESS,
        "(call $misbehave) (call $misbehave)",
        // It costs no fuel to speak of, and is nobody's full stack.
        "(drop (i32.load (i32.const 0x40000000)))",
    ] {
        let (sandbox, [new, old], _guests) = on_trial([bad, ""]).await;
        let judged = judge(&sandbox, "misbehave", SqlPurpose::Migration).await;
        let judged = judged.unwrap();
        assert_eq!(judged.gate, old, "{bad}");
        assert_eq!(sandbox.gate_digest(), Some(old), "{bad}");
        let fallen = sandbox.take_rolled_back();
        assert_eq!(fallen.len(), 1);
        assert_eq!((fallen[0].guest, fallen[0].before), (new, old));
        assert!(sandbox.take_rolled_back().is_empty());
    }
}

#[tokio::test]
async fn a_gate_stays_where_the_one_before_fails_too() {
    let nearly = "(local $n i32) (loop $again (br_if $again (i32.lt_u (local.tee $n (i32.add (local.get $n) (i32.const 1))) (i32.const 80000))))";
    for (new, old) in [
        ("unreachable", "unreachable"),
        (ENDLESS, ENDLESS),
        (ENDLESS, "unreachable"),
        // Within the budget, and not by much: what the next one needs may be just over it.
        (ENDLESS, nearly),
    ] {
        let (sandbox, [digest, _], _guests) = on_trial([new, old]).await;
        for _ in 0..3 {
            let answer = sandbox.check_sql("misbehave", SqlPurpose::Migration).await;
            assert!(answer.is_err() || old == nearly, "{new}, {old}: {answer:?}");
        }
        assert_eq!(sandbox.gate_digest(), Some(digest), "{new}, {old}");
        assert!(sandbox.take_rolled_back().is_empty());
        assert!(sandbox.check_sql("ok", SqlPurpose::Migration).await.is_ok());
    }
}

#[tokio::test]
async fn a_second_attempt_goes_on_with_the_budget_of_the_first() {
    let (sandbox, _, _guests) = on_trial([ENDLESS, ENDLESS]).await;
    // The budget suffices for four calls, and the earlier guest's are counted with them: both are one component.
    assert_eq!(calls_of_a_request(&sandbox).await, 4);
}
