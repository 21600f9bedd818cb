//! Guests that do everything wrong that can be done: each is contained, and the next call is none the worse.

use super::*;

#[path = "../../../../tests/harness/hostile.rs"]
#[allow(unreachable_pub, reason = "the tests of the whole share it")]
mod guests;

/// How a call has to end.
#[derive(Clone, Copy, Debug, PartialEq)]
enum End {
    Answer,
    Budget(BudgetKind),
    /// The words are in what the log is told.
    Broken(&'static str),
}

use End::{Answer, Broken};

/// Misdeeds of guests of both worlds, by the first byte of their input.
const BOTH: [(char, &str, End); 21] = [
    ('a', "nothing wrong", Answer),
    ('l', "endless work", End::Budget(BudgetKind::Fuel)),
    ('s', "endless depth", End::Budget(BudgetKind::Stack)),
    ('m', "endless memory", End::Budget(BudgetKind::Memory)),
    ('M', "memory at once", End::Budget(BudgetKind::Memory)),
    ('t', "a trap", Broken("unreachable")),
    ('z', "a division by zero", Broken("divide by zero")),
    // Accesses beyond the guest's own stack, as when it is full.
    ('b', "a read just below", End::Budget(BudgetKind::Stack)),
    ('B', "a read far beyond", Broken("memory fault")),
    ('i', "a call of no function", Broken("uninitialized")),
    ('e', "an exit", Broken("exit")),
    ('h', "endless handles", Broken("no free keys")),
    ('W', "zeroes without number", Broken("more zeroes")),
    ('q', "a wait", Broken("nothing to wait for")),
    ('c', "a look at the clocks", Answer),
    ('k', "a memory of calls", Answer),
    ('p', "a pointer outside", Broken("out of bounds")),
    ('u', "bytes that are no text", Broken("utf-8")),
    ('d', "no variant", Broken("discriminant")),
    ('D', "no variant within", Broken("discriminant")),
    ('n', "a list beyond its memory", Broken("out of bounds")),
];

/// Misdeeds that only a renderer can do.
const RENDERS: [(char, &str, End); 3] = [
    ('x', "a thousand megabytes in one", Broken("fuel allocated")),
    ('g', "a diagram that cannot be", Broken("there can be none")),
    ('o', "a page of 100 MB", End::Budget(BudgetKind::PageBytes)),
];

/// Misdeeds that only a gate can do.
const JUDGES: [(char, &str, End); 3] = [
    ('x', "a thousand megabytes in one", Broken("fuel allocated")),
    (
        'g',
        "a statement that cannot be",
        Broken("impossible place"),
    ),
    ('O', "a reason of 100 MB", End::Budget(BudgetKind::Memory)),
];

/// Enough for every call that ends by itself.
fn tight(limits: CallBudgets) -> CallBudgets {
    CallBudgets {
        fuel: 500_000_000,
        ..limits
    }
}

/// A sandbox in which the hostile guests serve.
fn sandbox_of_hostile_guests(
    limits: fn(CallBudgets) -> CallBudgets,
) -> (Sandbox, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let hostile = |name: &str, component: &[u8]| {
        let path = folder.path().join(name);
        fs::write(&path, component).unwrap();
        GuestCandidates {
            origins: vec![GuestOrigin::file(&path)],
            on_trial: false,
        }
    };
    let config = SandboxConfig {
        guests: GuestCandidatesByWorld {
            render: hostile("render.wasm", &guests::renderer()),
            gate: hostile("gate.wasm", &guests::gate()),
        },
        limits: GuestLimits {
            render: limits(config().limits.render),
            gate: limits(config().limits.gate),
            ..config().limits
        },
        ..config()
    };
    (Sandbox::start(config).unwrap(), folder)
}

async fn rendered(sandbox: &Sandbox, text: &str) -> Result<RenderedPage, RenderFailure> {
    sandbox.render(source(ContentType::Markdown, text)).await
}

/// How rendering ended.
fn end_of_page(result: &Result<RenderedPage, RenderFailure>, expected: End) -> Option<End> {
    match result {
        Ok(_) => Some(Answer),
        Err(RenderFailure::Budget(budget)) => Some(End::Budget(*budget)),
        Err(RenderFailure::Broken(error)) => says(error, expected),
        Err(_) => None,
    }
}

/// How judging ended.
fn end_of_verdict(
    result: &Result<Vec<AllowedStatement>, GateFailure>,
    expected: End,
) -> Option<End> {
    match result {
        Ok(_) => Some(Answer),
        Err(GateFailure::Budget(budget)) => Some(End::Budget(*budget)),
        Err(GateFailure::Broken(error)) => says(error, expected),
        Err(_) => None,
    }
}

/// The end that was expected, if the error has its words.
fn says(error: &anyhow::Error, expected: End) -> Option<End> {
    let Broken(words) = expected else {
        return None;
    };
    format!("{error:#}").contains(words).then_some(expected)
}

#[tokio::test]
async fn whatever_a_renderer_does_is_contained() {
    let (sandbox, _guests) = sandbox_of_hostile_guests(tight);
    for (letter, what, end) in BOTH.into_iter().chain(RENDERS) {
        for _ in 0..3 {
            let result = rendered(&sandbox, &letter.to_string()).await;
            assert_eq!(end_of_page(&result, end), Some(end), "{what}: {result:?}");
            let next = rendered(&sandbox, "a").await;
            assert!(next.is_ok(), "after {what}: {next:?}");
        }
    }
    let hostile = GuestDigest::of(&guests::renderer());
    assert_eq!(sandbox.renderer_digest(), Some(hostile));
}

#[tokio::test]
async fn whatever_a_renderer_does_to_a_diagram_costs_the_diagram_alone() {
    let (sandbox, _guests) = sandbox_of_hostile_guests(tight);
    for (letter, what, end) in BOTH.into_iter().take(16) {
        let page = rendered(&sandbox, &format!("f{letter}")).await.unwrap();
        let drawn = usize::from(end == Answer);
        assert_eq!(
            (page.drawn, page.undrawn.len()),
            (drawn, 1 - drawn),
            "{what}"
        );
    }
    let large = rendered(&sandbox, "fo").await;
    let end = End::Budget(BudgetKind::PageBytes);
    assert_eq!(end_of_page(&large, end), Some(end), "{large:?}");
}

#[tokio::test]
async fn no_version_of_a_clock_lets_a_guest_wait() {
    for version in ["0.2.0", "0.2.3", "0.2.12", "0.2.99"] {
        let (sandbox, _guests) = with_gate(&guests::gate_of(version), CallBudgets::GATE);
        let waits = sandbox.check_sql("q", SqlPurpose::Query).await;
        let end = Broken("nothing to wait for");
        assert_eq!(
            end_of_verdict(&waits, end),
            Some(end),
            "{version}: {waits:?}"
        );
        assert!(sandbox.check_sql("c", SqlPurpose::Migration).await.is_ok());
    }
}

#[tokio::test]
async fn memories_share_a_budget() {
    // 20 MB each, of 32 for both.
    for (first, end) in [(1, Answer), (320, End::Budget(BudgetKind::Memory))] {
        let grows = "(drop (memory.grow (i32.const 320)))";
        let gate = gate_wat(first, "(memory 1)", grows);
        let (sandbox, _guests) = with_gate(&gate, CallBudgets::GATE);
        let verdict = sandbox.check_sql("misbehave", SqlPurpose::Migration).await;
        assert_eq!(end_of_verdict(&verdict, end), Some(end), "{verdict:?}");
    }
}

#[tokio::test]
async fn whatever_a_gate_does_is_contained() {
    let (sandbox, _guests) = sandbox_of_hostile_guests(tight);
    let check = async |sql: char| sandbox.check_sql(sql, SqlPurpose::Migration).await;
    for (letter, what, end) in BOTH.into_iter().chain(JUDGES) {
        for _ in 0..3 {
            let result = check(letter).await;
            let found = end_of_verdict(&result, end);
            assert_eq!(found, Some(end), "{what}: {result:?}");
            let next = check('a').await;
            assert!(next.is_ok(), "after {what}: {next:?}");
        }
    }
    let long = check('o').await;
    let Err(GateFailure::Refused(refusal)) = long else {
        panic!("{long:?}");
    };
    assert_eq!(refusal.reason.chars().count(), 1000);
    assert_eq!(
        sandbox.gate_digest(),
        Some(GuestDigest::of(&guests::gate()))
    );
}

#[tokio::test]
async fn endless_work_ends_with_the_time_where_the_fuel_does_not() {
    let (sandbox, _guests) = sandbox_of_hostile_guests(|limits| CallBudgets {
        fuel: u64::MAX,
        wall: Duration::from_millis(50),
        ..limits
    });
    // Work, and words on its standard error: the host's work on those is no fuel.
    for letter in ['l', 'w'] {
        let page = rendered(&sandbox, &letter.to_string()).await;
        let end = End::Budget(BudgetKind::Time);
        assert_eq!(end_of_page(&page, end), Some(end), "{page:?}");
        let verdict = sandbox.check_sql(letter, SqlPurpose::Query).await;
        assert_eq!(end_of_verdict(&verdict, end), Some(end), "{verdict:?}");
    }
}

#[tokio::test]
async fn a_call_that_goes_wrong_leaves_no_instance() {
    let (sandbox, _guests) = sandbox_of_hostile_guests(tight);
    for (letter, ..) in BOTH.into_iter().chain(RENDERS) {
        let _ = rendered(&sandbox, &letter.to_string()).await;
    }
    assert_eq!(sandbox.metrics().live_instances.get(), 0);
}
