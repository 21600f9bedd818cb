//! Guests that do everything wrong that can be done: each is contained, and the next call is none the worse.

use super::*;

const HOST: &str = include_str!("../../../../tests/guests/hostile/host.wat");
const MISDEEDS: &str = include_str!("../../../../tests/guests/hostile/misdeeds.wat");
const RENDER: &str = include_str!("../../../../tests/guests/hostile/render.wat");
const GATE: &str = include_str!("../../../../tests/guests/hostile/gate.wat");

/// A component of the corpus.
fn assembled(world: &str) -> Vec<u8> {
    let text = world
        .replace("HOST\n", HOST)
        .replace("MISDEEDS\n", MISDEEDS);
    wat::parse_str(text).unwrap()
}

/// How a call has to end.
#[derive(Clone, Copy, Debug, PartialEq)]
enum End {
    Answer,
    Budget(Budget),
    /// The words are in what the log is told.
    Broken(&'static str),
}

use End::{Answer, Broken};

/// What guests of both worlds do, by the first byte of what they are given.
const BOTH: [(char, &str, End); 20] = [
    ('a', "nothing wrong", Answer),
    ('l', "endless work", End::Budget(Budget::Fuel)),
    ('s', "endless depth", End::Budget(Budget::Stack)),
    ('m', "endless memory", End::Budget(Budget::Memory)),
    ('M', "memory at once", End::Budget(Budget::Memory)),
    ('t', "a trap", Broken("unreachable")),
    ('z', "a division by zero", Broken("divide by zero")),
    // What a full stack of the guest's own looks like.
    ('b', "a read outside", End::Budget(Budget::Stack)),
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

/// What only a renderer can do.
const RENDERS: [(char, &str, End); 3] = [
    ('x', "a thousand megabytes in one", Broken("fuel allocated")),
    ('g', "a diagram that cannot be", Broken("there can be none")),
    ('o', "a page of 100 MB", End::Budget(Budget::PageBytes)),
];

/// What only a gate can do.
const JUDGES: [(char, &str, End); 3] = [
    ('x', "a thousand megabytes in one", Broken("fuel allocated")),
    (
        'g',
        "a statement that cannot be",
        Broken("impossible place"),
    ),
    ('O', "a reason of 100 MB", End::Budget(Budget::Memory)),
];

/// Enough for every call that ends by itself.
fn tight(limits: Limits) -> Limits {
    Limits {
        fuel: 500_000_000,
        ..limits
    }
}

/// A sandbox in which the hostile guests serve.
fn sandbox_of_hostile_guests(limits: fn(Limits) -> Limits) -> (Sandbox, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let hostile = |name: &str, text: &str| {
        let path = folder.path().join(name);
        fs::write(&path, assembled(text)).unwrap();
        Choice {
            origins: vec![Origin::file(&path)],
            on_trial: false,
        }
    };
    let config = SandboxConfig {
        guests: Choices {
            render: hostile("render.wasm", RENDER),
            gate: hostile("gate.wasm", GATE),
        },
        render: limits(config().render),
        gate: limits(config().gate),
        ..config()
    };
    (Sandbox::start(config).unwrap(), folder)
}

async fn rendered(sandbox: &Sandbox, text: &str) -> Result<Rendered, RenderFailure> {
    sandbox.render(source(ContentType::Markdown, text)).await
}

/// How rendering ended.
fn end_of_page(result: &Result<Rendered, RenderFailure>, expected: End) -> Option<End> {
    match result {
        Ok(_) => Some(Answer),
        Err(RenderFailure::Budget(budget)) => Some(End::Budget(*budget)),
        Err(RenderFailure::Broken(error)) => says(error, expected),
        Err(_) => None,
    }
}

/// How judging ended.
fn end_of_verdict(result: &Result<Vec<Statement>, GateFailure>, expected: End) -> Option<End> {
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
    let hostile = GuestDigest::of(&assembled(RENDER));
    assert_eq!(sandbox.renderer(), Some(hostile));
}

#[tokio::test]
async fn whatever_a_renderer_does_to_a_diagram_costs_the_diagram_alone() {
    let (sandbox, _guests) = sandbox_of_hostile_guests(tight);
    for (letter, what, end) in BOTH.into_iter().take(15) {
        let page = rendered(&sandbox, &format!("f{letter}")).await.unwrap();
        let drawn = usize::from(end == Answer);
        assert_eq!((page.drawn, page.undrawn), (drawn, 1 - drawn), "{what}");
    }
}

#[tokio::test]
async fn whatever_a_gate_does_is_contained() {
    let (sandbox, _guests) = sandbox_of_hostile_guests(tight);
    let check = async |sql: char| sandbox.check_sql(sql, Purpose::Migration).await;
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
    assert_eq!(sandbox.gate(), Some(GuestDigest::of(&assembled(GATE))));
}

#[tokio::test]
async fn endless_work_ends_with_the_time_where_the_fuel_does_not() {
    let (sandbox, _guests) = sandbox_of_hostile_guests(|limits| Limits {
        fuel: u64::MAX,
        wall: Duration::from_millis(50),
        ..limits
    });
    // Work, and words on its standard error: the host's work on those is no fuel.
    for letter in ['l', 'w'] {
        let page = rendered(&sandbox, &letter.to_string()).await;
        let end = End::Budget(Budget::Time);
        assert_eq!(end_of_page(&page, end), Some(end), "{page:?}");
        let verdict = sandbox.check_sql(letter, Purpose::Query).await;
        assert_eq!(end_of_verdict(&verdict, end), Some(end), "{verdict:?}");
    }
}

#[tokio::test]
async fn a_call_that_goes_wrong_leaves_no_instance() {
    let (sandbox, _guests) = sandbox_of_hostile_guests(tight);
    for (letter, ..) in BOTH.into_iter().chain(RENDERS) {
        let _ = rendered(&sandbox, &letter.to_string()).await;
    }
    assert_eq!(sandbox.metrics().live.get(), 0);
}
