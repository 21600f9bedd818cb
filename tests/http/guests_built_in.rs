//! The guests that are built in stand what every other has to.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use svc::guests::check::{GuestTestSettings, check_component, run_corpus};
use svc_sandbox::{
    CallBudgets, GuestLimits, InterfaceVersion, Sandbox, SandboxConfig, SharedLimits,
    StartupCodeTier, World, built_in_component,
};

use crate::svc;

fn bench() -> GuestTestSettings {
    let wall = Duration::from_secs(60);
    GuestTestSettings {
        cache: svc_tests::guest_cache_dir(),
        limits: GuestLimits {
            render: CallBudgets {
                wall,
                ..CallBudgets::RENDER
            },
            gate: CallBudgets {
                wall,
                ..CallBudgets::GATE
            },
            page: SharedLimits {
                processor: wall,
                wall,
                ..SharedLimits::PAGE
            },
        },
        page_bytes: 1 << 20,
    }
}

/// How large the renderer may be, in bytes. Publishing waits for all of it to be compiled after an upgrade, and every server holds it:
/// what is new has to be small.
const RENDERER: usize = 15_800_000;

#[test]
fn the_renderer_stays_light() {
    let bytes = built_in_component(World::Render).len();
    assert!(bytes < RENDERER, "{bytes}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_guests_that_are_built_in_pass() {
    let directory = tempfile::tempdir().unwrap();
    for world in World::ALL {
        let file = directory.path().join(world.as_str());
        let bytes = built_in_component(world).to_vec();
        std::fs::write(&file, &bytes).unwrap();
        let checked = check_component(&bench(), &file, Arc::new(bytes), &|_, _| {})
            .await
            .unwrap();
        assert!(checked.passed(), "{checked:#?}");
        assert_eq!(checked.component.world, Some(world));
        assert_eq!(
            checked.component.version.as_deref(),
            Some(InterfaceVersion::current(world).version())
        );
        assert!(checked.corpus.unwrap().cases > 40);
    }
}

/// Baseline code answers while optimised code is being compiled: it stands the same questions.
#[tokio::test(flavor = "multi_thread")]
async fn the_guests_that_are_built_in_pass_with_baseline_code() {
    let bench = bench();
    let baseline = Sandbox::start(SandboxConfig {
        limits: bench.limits,
        startup_code: StartupCodeTier::BaselineOnly,
        ..SandboxConfig::new(bench.cache.clone())
    });
    let baseline = baseline.unwrap();
    for world in World::ALL {
        let stood = run_corpus(&bench, &baseline, world, &|_, _| {})
            .await
            .unwrap();
        assert_eq!(stood.failed, 0, "{stood:#?}");
        assert!(stood.cases > 40);
    }
}

#[tokio::test]
async fn the_first_start_says_how_far_it_is() {
    let (data, home) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let cache = home.path().join("compiled");
    let cache = [("SVC_CACHE", cache.to_str().unwrap())];
    let server = svc()
        .serve_with_environment(&cache, &[], data.path(), &[])
        .await;
    let (mut said, mut seen) = (String::new(), String::new());
    loop {
        let probe = server.get("/readyz").await;
        if probe.status == 200 {
            break;
        }
        assert_eq!(probe.status, 503, "{probe:?}");
        said.push_str(probe.text());
        let page = server.get("/").await;
        if page.text().contains("is still compiling the renderer") {
            assert_eq!(page.headers["cache-control"], "no-store");
            seen = page.text().to_owned();
        }
    }
    assert!(
        said.contains("compiling the renderer for this machine"),
        "{said}"
    );
    assert!(said.contains("publishing waits for it"), "{said}");
    assert!(seen.contains("What you publish now waits for it"), "{seen}");
    let share = json!({ "type": "markdown", "content": "# x", "name": "first" });
    server.json("/api/v1/deploy", &share).await.expect(201);
    // Once it is ready the page is as ever.
    let page = server.get("/").await;
    assert!(!page.text().contains("still compiling"));
    let log = server.stderr();
    assert!(
        log.contains("baseline") && log.contains("compiled a guest"),
        "{log}"
    );
    server.kill().await;
}
