//! The guests that are built in stand what every other has to.

use std::sync::Arc;
use std::time::Duration;

use svc::guests::check::{Bench, check};
use svc_sandbox::{GuestLimits, Limits, PageLimits, World, built_in};

fn bench() -> Bench {
    let wall = Duration::from_secs(60);
    Bench {
        cache: svc_tests::cache(),
        limits: GuestLimits {
            render: Limits {
                wall,
                ..Limits::RENDER
            },
            gate: Limits {
                wall,
                ..Limits::GATE
            },
            page: PageLimits {
                processor: wall,
                wall,
                ..PageLimits::DEFAULT
            },
        },
        page_bytes: 1 << 20,
    }
}

/// How large the renderer may be, in bytes. Publishing waits for all of it to be compiled after an upgrade, and every server holds it:
/// what is new has to be small.
const RENDERER: usize = 15_257_000;

#[test]
fn the_renderer_stays_light() {
    let bytes = built_in(World::Render).len();
    assert!(bytes < RENDERER, "{bytes}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_guests_that_are_built_in_pass() {
    let directory = tempfile::tempdir().unwrap();
    for world in World::ALL {
        let file = directory.path().join(world.as_str());
        let bytes = built_in(world).to_vec();
        std::fs::write(&file, &bytes).unwrap();
        let checked = check(&bench(), &file, Arc::new(bytes), &|_, _| {})
            .await
            .unwrap();
        assert!(checked.passed(), "{checked:#?}");
        assert_eq!(checked.component.world, Some(world));
        assert_eq!(checked.component.version.as_deref(), Some(world.version()));
        assert!(checked.corpus.unwrap().cases > 40);
    }
}
