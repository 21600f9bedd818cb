//! Baseline code of the guests that are built in: it does what optimised code does, within the same budgets, and gives way to it.

use super::*;

/// A sandbox whose guests have baseline code alone.
fn baseline(config: SandboxConfig) -> Sandbox {
    let startup_code = StartupCodeTier::BaselineOnly;
    Sandbox::start(SandboxConfig {
        startup_code,
        ..config
    })
    .unwrap()
}

fn tier(sandbox: &Sandbox) -> OptimizationTier {
    let serving = sandbox.inner.registry.gate.current().unwrap();
    serving.guest.code().engine.tier()
}

#[tokio::test]
async fn both_tiers_give_the_same_pages_and_verdicts_for_nearly_the_same_fuel() {
    let (fast, soon) = (sandbox(), baseline(config()));
    for (content_type, text) in [
        (ContentType::Html, "<title>x</title><p>y"),
        (
            ContentType::Markdown,
            "# Hi\n\n| a | b |\n|---|---|\n| *1* | `2` |\n\n$x^2$\n\n```rust\nfn main() {}\n```\n\n```mermaid\ngraph TD\nA-->B\n```\n",
        ),
        (
            ContentType::Mermaid,
            "sequenceDiagram\nA->>B: hello\nB-->>A: bye",
        ),
        (ContentType::Json, r#"{"a":[1,2.5e300,null,{"b":"<x>"}]}"#),
        (ContentType::Csv, "a;b\n1;\"two; three\"\n"),
    ] {
        let pages = [&fast, &soon].map(|sandbox| sandbox.render(source(content_type, text)));
        let [fast, soon] = futures_of(pages).await.map(Result::unwrap);
        assert_eq!(fast.html, soon.html, "{content_type}");
        is_near(fast.fuel, soon.fuel);
    }
    let sql = "SELECT a.x, count(*) FROM a JOIN b USING (id) WHERE a.y = :y GROUP BY a.x";
    let fast_verdict = fast.check_sql(sql, SqlPurpose::Action).await.unwrap();
    let soon_verdict = soon.check_sql(sql, SqlPurpose::Action).await.unwrap();
    assert_eq!(fast_verdict, soon_verdict);
    let fuel = |sandbox: &Sandbox| sandbox.total(World::Gate).fuel;
    is_near(fuel(&fast), fuel(&soon));
    assert_eq!(
        (tier(&fast), tier(&soon)),
        (OptimizationTier::Optimised, OptimizationTier::Baseline)
    );
}

/// The compilers count a few instructions at the edges of blocks differently: a budget holds for both to an eighth.
#[track_caller]
fn is_near(fast: u64, soon: u64) {
    assert!(fast.abs_diff(soon) <= fast / 8, "{fast} and {soon}");
}

async fn futures_of<F: Future>([one, two]: [F; 2]) -> [F::Output; 2] {
    [one.await, two.await]
}

#[tokio::test]
async fn every_budget_holds_for_baseline_code() {
    let house = config().limits.render;
    let rows = "a,b,c\n".repeat(100_000);
    for (limits, expected) in [
        (
            CallBudgets {
                fuel: 1_000_000,
                ..house
            },
            BudgetKind::Fuel,
        ),
        (
            CallBudgets {
                memory_bytes: 4 << 20,
                ..house
            },
            BudgetKind::Memory,
        ),
        (
            CallBudgets {
                wall: Duration::from_millis(20),
                ..house
            },
            BudgetKind::Time,
        ),
    ] {
        let config = config();
        let sandbox = baseline(SandboxConfig {
            limits: GuestLimits {
                render: limits,
                ..config.limits
            },
            ..config
        });
        let page = sandbox.render(source(ContentType::Csv, &rows)).await;
        let found = matches!(page, Err(RenderFailure::Budget(budget)) if budget == expected);
        assert!(found, "{expected}: {page:?}");
    }
}

/// Each tier renders what the other does: nothing that is nested runs out of stack in one of them alone.
#[tokio::test]
async fn what_is_nested_deeply_fits_into_both_tiers() {
    let (fast, soon) = (sandbox(), baseline(config()));
    for (content_type, text) in [
        (
            ContentType::Json,
            "[".repeat(100_000) + &"]".repeat(100_000),
        ),
        (ContentType::Markdown, ">".repeat(50_000) + " x"),
        (ContentType::Markdown, "[".repeat(50_000)),
        (ContentType::Markdown, "- ".repeat(2000) + "x"),
        (
            ContentType::Markdown,
            format!("$${}x{}$$", "{".repeat(2000), "}".repeat(2000)),
        ),
    ] {
        let pages = [&fast, &soon].map(|sandbox| sandbox.render(source(content_type, &text)));
        let [fast, soon] = futures_of(pages).await;
        let begins: String = text.chars().take(8).collect();
        match (fast, soon) {
            (Ok(fast), Ok(soon)) => assert_eq!(fast.html, soon.html, "{begins}"),
            (Err(fast), Err(soon)) => {
                assert_eq!(fast.to_string(), soon.to_string(), "{begins}");
            }
            differing => panic!("{begins}: {differing:?}"),
        }
    }
}

#[tokio::test]
async fn optimised_code_takes_over_from_baseline_code() {
    let cache = tempfile::tempdir().unwrap();
    let nothing = GuestCandidates {
        origins: Vec::new(),
        on_trial: false,
    };
    let config = || SandboxConfig {
        cache_dir: cache.path().join("compiled"),
        // The gate alone: the renderer takes a minute.
        guests: GuestCandidatesByWorld {
            render: nothing.clone(),
            ..GuestCandidatesByWorld::default()
        },
        startup_code: StartupCodeTier::Baseline,
        ..super::config()
    };
    let first = Sandbox::start(config()).unwrap();
    let before = judge(&first, "SELECT 1", SqlPurpose::Query).await.unwrap();
    while tier(&first) != OptimizationTier::Optimised {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let after = judge(&first, "SELECT 1", SqlPurpose::Query).await.unwrap();
    assert_eq!(before.gate, after.gate);
    assert_eq!(before.statements, after.statements);
    assert_eq!(first.total(World::Gate).calls, 2, "the counters go on");
    // The next start begins with it.
    let second = Sandbox::start(config()).unwrap();
    judge(&second, "SELECT 1", SqlPurpose::Query).await.unwrap();
    assert_eq!(tier(&second), OptimizationTier::Optimised);
}
