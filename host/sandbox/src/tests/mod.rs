//! Runs the guests that are built in, and small ones written for the purpose.

mod hostile;
mod refused;
mod rules;
mod tiers;
mod trial;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::*;

/// The host's own cache for tests: the guests are compiled once for all of them.
fn cache_dir() -> PathBuf {
    Path::new(env!("OUT_DIR")).join("compiled")
}

fn config() -> SandboxConfig {
    SandboxConfig {
        // Tests share the machine with builds and with each other: what is slow must not look like what is endless.
        limits: GuestLimits {
            render: CallBudgets {
                wall: Duration::from_secs(60),
                ..CallBudgets::RENDER
            },
            gate: CallBudgets {
                wall: Duration::from_secs(60),
                ..CallBudgets::GATE
            },
            page: SharedLimits {
                processor: Duration::from_secs(60),
                wall: Duration::from_secs(60),
                ..SharedLimits::PAGE
            },
        },
        threads: 2,
        ..SandboxConfig::new(cache_dir())
    }
}

fn sandbox() -> Sandbox {
    Sandbox::start(config()).unwrap()
}

/// Judges SQL that is all of its request.
async fn judge(sandbox: &Sandbox, sql: &str, purpose: SqlPurpose) -> Result<Verdict, GateFailure> {
    let budget = sandbox.judging_budget();
    sandbox.judge(sql, purpose, &budget).await
}

fn source(content_type: ContentType, text: &str) -> RenderSource {
    RenderSource {
        content_type,
        title: Some("A <title>".to_owned()),
        name: None,
        text: text.to_owned(),
        runtime: None,
        page_bytes: 16 << 20,
        foot: None,
        is_private: false,
    }
}

/// Makes a configuration with limits of its own for a gate.
fn with_gate_limits(gate: CallBudgets) -> SandboxConfig {
    let config = config();
    SandboxConfig {
        limits: GuestLimits {
            gate,
            ..config.limits
        },
        ..config
    }
}

/// A gate guest in the text format that allows every script as an empty one, and does `body` for one of more than three bytes. It
/// begins with so many pages of memory, and its core module has `more` in it.
fn gate_wat(pages: u32, more: &str, body: &str) -> Vec<u8> {
    let text = format!(
        r#"(component
  (import "svc:gate/types@1.0.0" (instance $types
    (type $p (enum "action" "query" "schema" "migration"))
    (export "purpose" (type (eq $p)))
    (type $k (enum "read" "write" "migration"))
    (export "kind" (type $kind (eq $k)))
    (type $l (record (field "line" u32) (field "column" u32) (field "offset" u32)))
    (export "place" (type $place (eq $l)))
    (type $t (record (field "name" string) (field "times" u32)))
    (export "table" (type $table (eq $t)))
    (type $s (record (field "kind" $kind) (field "binds" (list string)) (field "returns-rows" bool)
      (field "tables" (list $table)) (field "view" (option string)) (field "parts" u32) (field "start" u32) (field "end" u32)))
    (export "statement" (type (eq $s)))
    (type $r (record (field "reason" string) (field "statement" u32) (field "place" $place)))
    (export "refusal" (type (eq $r)))))
  (alias export $types "purpose" (type $purpose))
  (alias export $types "statement" (type $statement))
  (alias export $types "refusal" (type $refusal))
  (core module $libc
    (memory (export "memory") {pages})
    (func (export "realloc") (param i32 i32 i32 i32) (result i32) (i32.const 1024)))
  (core module $guest
    {more}
    (func $misbehave {body})
    (func (export "check") (param $sql i32) (param $length i32) (param $purpose i32) (result i32)
      (if (i32.gt_u (local.get $length) (i32.const 3)) (then (call $misbehave)))
      (i32.const 0)))
  (core instance $l (instantiate $libc))
  (core instance $i (instantiate $guest))
  (func $check (param "sql" string) (param "purpose" $purpose)
    (result (result (list $statement) (error $refusal)))
    (canon lift (core func $i "check") (memory (core memory $l "memory"))
      (realloc (core func $l "realloc"))))
  (instance $judge (export "check" (func $check)))
  (export "svc:gate/judge@1.0.0" (instance $judge)))"#,
    );
    wat::parse_str(text).unwrap()
}

/// A sandbox whose gate is a component of the text format, with limits for the gate.
fn with_gate(component: &[u8], gate: CallBudgets) -> (Sandbox, tempfile::TempDir) {
    let guests = tempfile::tempdir().unwrap();
    let path = guests.path().join("gate.wasm");
    fs::write(&path, component).unwrap();
    let gates = GuestCandidates {
        origins: vec![GuestOrigin::file(&path), GuestOrigin::BuiltIn],
        on_trial: false,
    };
    let config = SandboxConfig {
        guests: GuestCandidatesByWorld {
            gate: gates,
            ..GuestCandidatesByWorld::default()
        },
        ..with_gate_limits(gate)
    };
    (Sandbox::start(config).unwrap(), guests)
}

#[tokio::test]
async fn every_type_becomes_a_page() {
    let sandbox = sandbox();
    for (content_type, text, shown) in [
        (ContentType::Html, "<!doctype html><p>hello", "hello"),
        (
            ContentType::Markdown,
            "# hello\n\n*world*",
            "<em>world</em>",
        ),
        (ContentType::Mermaid, "flowchart TD\n  A --> B\n", "A"),
        (ContentType::Json, r#"{"hello": [1, 2]}"#, "hello"),
        (ContentType::Csv, "hello,b\n1,2\n", "hello"),
    ] {
        let page = sandbox.render(source(content_type, text)).await.unwrap();
        let html = std::str::from_utf8(&page.html).unwrap();
        assert!(html.contains(shown), "{content_type}: {html}");
        assert!(page.fuel > 0);
        assert_eq!(Some(page.guest), sandbox.renderer_digest());
        let again = sandbox.render(source(content_type, text)).await.unwrap();
        assert_eq!(page.html, again.html, "{content_type}");
        assert_eq!(page.fuel, again.fuel, "{content_type}");
    }
}

#[tokio::test]
async fn what_its_author_can_repair_is_malformed() {
    let bad = sandbox()
        .render(source(ContentType::Json, "{\n  \"a\": oops\n}"))
        .await;
    assert!(
        matches!(&bad, Err(RenderFailure::Malformed(bad)) if bad.place.is_some_and(|place| place.line == 2)),
        "{bad:?}"
    );
}

#[tokio::test]
async fn a_page_has_a_largest_size() {
    let sandbox = sandbox();
    for content_type in ContentType::ALL {
        let text = match content_type {
            ContentType::Json => "[1]",
            ContentType::Mermaid => "flowchart TD\n  A --> B\n",
            _ => "a page that is longer than its limit",
        };
        let small = RenderSource {
            page_bytes: 20,
            ..source(content_type, text)
        };
        let failed = sandbox.render(small).await;
        assert!(
            matches!(failed, Err(RenderFailure::Budget(BudgetKind::PageBytes))),
            "{content_type}: {failed:?}"
        );
    }
    let diagram = "x".repeat(MAX_DIAGRAM_BYTES + 1);
    let failed = sandbox.render(source(ContentType::Mermaid, &diagram)).await;
    assert!(matches!(
        failed,
        Err(RenderFailure::Budget(BudgetKind::SourceBytes))
    ));
}

#[tokio::test]
async fn a_page_is_reserved_before_its_drawings_wait() {
    let sandbox = sandbox();
    let text = "# Two\n\n".to_owned() + &"```mermaid\nflowchart TD\n  A --> B\n```\n\n".repeat(2);
    let reserved = std::sync::Mutex::new(Vec::new());
    let count = |bytes: usize| -> Result<(), LaneBusy> {
        reserved.lock().unwrap().push(bytes);
        Ok(())
    };
    let plain = source(ContentType::Markdown, "# None");
    sandbox.render_reserved(plain, &count).await.unwrap();
    assert!(reserved.lock().unwrap().is_empty(), "nothing waits");
    let drawn = source(ContentType::Markdown, &text);
    sandbox
        .render_reserved(drawn.clone(), &count)
        .await
        .unwrap();
    let found = reserved.lock().unwrap().clone();
    assert!(
        found.len() == 2 && found[0] > text.len() && found[1] > found[0],
        "{found:?}"
    );
    let refused = sandbox.render_reserved(drawn, &|_| Err(LaneBusy)).await;
    assert!(matches!(refused, Err(RenderFailure::Busy)), "{refused:?}");
}

#[tokio::test]
async fn a_page_that_takes_too_much_fails_alone() {
    let csv = "a,b,c\n".repeat(100_000);
    let limited = |render| {
        let mut config = config();
        config.limits.render = render;
        Sandbox::start(config).unwrap()
    };
    for (budget, limits) in [
        (
            BudgetKind::Memory,
            CallBudgets {
                memory_bytes: 4 << 20,
                ..config().limits.render
            },
        ),
        (
            BudgetKind::Fuel,
            CallBudgets {
                fuel: 10_000_000,
                ..config().limits.render
            },
        ),
    ] {
        let sandbox = limited(limits);
        let failed = sandbox.render(source(ContentType::Csv, &csv)).await;
        assert!(
            matches!(failed, Err(RenderFailure::Budget(found)) if found == budget),
            "{budget}: {failed:?}"
        );
        let small = sandbox.render(source(ContentType::Csv, "a,b\n")).await;
        assert!(small.is_ok(), "{budget}: {small:?}");
    }
}

#[tokio::test]
async fn the_largest_sources_fit() {
    let sandbox = sandbox();
    let line = |unit: &str| unit.repeat((1 << 20) / unit.len());
    for (content_type, text) in [
        (ContentType::Html, line("<p>hello world</p>\n")),
        (
            ContentType::Markdown,
            line("A *paragraph* with `code` and a [link](https://example.com).\n\n"),
        ),
        (ContentType::Csv, line("one,two,\"three, four\",5\n")),
        (
            ContentType::Json,
            format!("[{}0]", line(r#"{"name":"value","n":[1,2,3]},"#)),
        ),
    ] {
        let page = sandbox.render(source(content_type, &text)).await;
        assert!(page.is_ok(), "{content_type}: {page:?}");
    }
}

#[tokio::test]
async fn sql_is_judged() {
    let sandbox = sandbox();
    let one = sandbox.check_sql(" SELECT 1;", SqlPurpose::Query).await;
    let expected = AllowedStatement {
        kind: StatementKind::Read,
        binds: Vec::new(),
        returns_rows: true,
        tables: Vec::new(),
        view: None,
        parts: 2,
        start: 1,
        end: 9,
    };
    assert_eq!(one.unwrap(), [expected]);
    let refused = sandbox
        .check_sql("ATTACH 'x' AS y", SqlPurpose::Action)
        .await;
    let Err(GateFailure::Refused(refusal)) = refused else {
        panic!("{refused:?}");
    };
    assert_eq!(refusal.statement, 1);
    assert_eq!(refusal.position.unwrap().line, 1);
    let long = " ".repeat(MAX_STATEMENT_BYTES + 1);
    let long = sandbox.check_sql(long, SqlPurpose::Action).await;
    assert!(matches!(
        long,
        Err(GateFailure::Budget(BudgetKind::SourceBytes))
    ));
}

#[tokio::test]
async fn without_a_thread_in_time_a_call_is_busy() {
    let wait = Duration::from_millis(500);
    let checks = LaneConfig {
        wait,
        ..LaneConfig::checks(1)
    };
    let sandbox = Sandbox::start_with_lanes(config(), [LaneConfig::pages(1), checks]).unwrap();
    assert!(
        sandbox
            .check_sql("SELECT 1", SqlPurpose::Query)
            .await
            .is_ok()
    );
    let (release, released) = std::sync::mpsc::channel::<()>();
    let (started, start) = tokio::sync::oneshot::channel();
    let lane = sandbox.check_lane().clone();
    let occupied = tokio::spawn(async move {
        let job = move |_: &JobCancellation| {
            let _ = started.send(());
            let _ = released.recv();
        };
        lane.run(job).await
    });
    start.await.unwrap();
    let busy = sandbox.check_sql("SELECT 1", SqlPurpose::Query).await;
    assert!(matches!(busy, Err(GateFailure::Busy)), "{busy:?}");
    drop(release);
    occupied.await.unwrap().unwrap();
    assert!(
        sandbox
            .check_sql("SELECT 1", SqlPurpose::Query)
            .await
            .is_ok()
    );
}

/// A registry of its own, of which nothing is loaded.
fn registry() -> GuestRegistry {
    let metrics = Metrics::default();
    let mut limits = GuestLimits::DEFAULT;
    // So long that fuel ends a call first, even on a busy machine.
    limits.gate.wall = Duration::from_secs(60);
    let engine = GuestEngine::new(OptimizationTier::Optimised, 2, limits, metrics.clone()).unwrap();
    let cache = CompiledGuestCache::open(cache_dir(), GuestCompiler::new(None)).unwrap();
    GuestRegistry::new(Arc::new(engine), StartupCodeTier::Optimised, cache, metrics)
}

#[test]
fn the_first_guest_of_a_choice_that_works_serves() {
    let guests = tempfile::tempdir().unwrap();
    let (broken, installed) = (
        guests.path().join("broken.wasm"),
        guests.path().join("installed.wasm"),
    );
    let component = gate_wat(1, "", "");
    fs::write(&installed, &component).unwrap();
    fs::write(&broken, "broken").unwrap();
    let choice = |origins: &[&Path]| GuestCandidates {
        origins: origins
            .iter()
            .map(|path| GuestOrigin::file(path))
            .chain([GuestOrigin::BuiltIn])
            .collect(),
        on_trial: false,
    };
    let registry = registry();
    let applied = registry.apply(World::Gate, &choice(&[&broken, &installed]));
    assert_eq!(applied.serves, Some(GuestDigest::of(&component)));
    assert!(
        applied.failures[0].contains("broken.wasm"),
        "{:?}",
        applied.failures
    );
    // A component with another digest counts as broken.
    let another = GuestOrigin::File {
        path: installed,
        digest: Some(GuestDigest::of(b"another")),
    };
    let choice = GuestCandidates {
        origins: vec![another, GuestOrigin::BuiltIn],
        on_trial: false,
    };
    let applied = registry.apply(World::Gate, &choice);
    assert_eq!(
        applied.serves,
        Some(GuestDigest::of(built_in_component(World::Gate)))
    );
    assert!(
        applied.failures[0].contains("damaged"),
        "{:?}",
        applied.failures
    );
}

#[tokio::test]
async fn many_sandboxes_live_in_one_process() {
    let all: Vec<Sandbox> = (0..50).map(|_| sandbox()).collect();
    for sandbox in &all {
        assert!(
            sandbox
                .check_sql("SELECT 1", SqlPurpose::Query)
                .await
                .is_ok()
        );
    }
    let page = all[49].render(source(ContentType::Markdown, "# one")).await;
    assert!(page.is_ok());
    assert!(all[49].is_loaded());
}

#[tokio::test]
async fn callers_wait_for_a_guest_past_those_that_cannot_serve() {
    let (sandbox, guests) = with_gate(b"broken", CallBudgets::GATE);
    assert!(
        sandbox
            .check_sql("SELECT 1", SqlPurpose::Query)
            .await
            .is_ok()
    );
    drop(guests);
}

/// Judges SQL ten times within one request; returns how often the serving gate was called for it.
async fn calls_of_a_request(sandbox: &Sandbox) -> u64 {
    let calls = || sandbox.total(World::Gate).calls;
    let (before, budget) = (calls(), sandbox.judging_budget());
    for _ in 0..10 {
        let answer = sandbox.judge("misbehave", SqlPurpose::Migration, &budget);
        let answer = answer.await;
        assert!(
            matches!(answer, Err(GateFailure::Budget(BudgetKind::Fuel))),
            "{answer:?}"
        );
    }
    calls() - before
}

#[tokio::test]
async fn all_sql_of_a_request_has_one_budget() {
    let limits = CallBudgets {
        fuel: 1_000_000,
        ..config().limits.gate
    };
    let endless = gate_wat(1, "(memory 1)", "(loop $again (br $again))");
    let (sandbox, _guests) = with_gate(&endless, limits);
    for _ in 0..2 {
        assert_eq!(calls_of_a_request(&sandbox).await, 4);
    }
    assert!(sandbox.check_sql("ok", SqlPurpose::Migration).await.is_ok());
}

#[tokio::test]
async fn the_least_memory_suffices_for_what_is_small() {
    let mut config = config();
    config.limits.render.memory_bytes = usize::try_from(MIN_RENDER_MEMORY).unwrap();
    config.limits.gate.memory_bytes = usize::try_from(MIN_GATE_MEMORY).unwrap();
    let sandbox = Sandbox::start(config).unwrap();
    let markdown =
        "# hello\n\n```rust\nfn a() {}\n```\n\n$x^2$ :tada:\n\n| a | b |\n|--|--|\n| 1 | 2 |\n";
    for (content_type, text) in [
        (ContentType::Html, "<!doctype html><p>hello"),
        (ContentType::Markdown, markdown),
        (ContentType::Mermaid, "flowchart TD\n  A --> B\n"),
        (ContentType::Json, r#"{"hello": [1, 2]}"#),
        (ContentType::Csv, "hello,b\n1,2\n"),
    ] {
        let page = sandbox.render(source(content_type, text)).await;
        assert!(page.is_ok(), "{content_type}: {page:?}");
    }
    let schema = "CREATE TABLE a (id INTEGER PRIMARY KEY, b TEXT NOT NULL);";
    let verdict = sandbox.check_sql(schema, SqlPurpose::Schema).await;
    assert!(verdict.is_ok(), "{verdict:?}");
}
