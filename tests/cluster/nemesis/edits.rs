//! Clients of a page that is published again and again: nobody sees a version from before the one that was acknowledged.

use std::sync::Arc;
use std::time::Duration;

use http::Method;
use reqwest::RequestBuilder;
use serde_json::json;
use svc_tests::SeededRng;

use super::shared::{ClientContext, REFUSED_PAUSE};

/// Slug of the page.
pub(super) const EDITED: &str = "edited";
/// Pauses after a version, and after a look.
const PAUSE: Duration = Duration::from_millis(200);
const VIEW_PAUSE: Duration = Duration::from_millis(20);

/// Returns the content of a version.
pub(super) fn version(number: u64) -> String {
    format!("<p>version {number}.</p>")
}

/// Finds the version that a page shows.
fn shown_version(page: &str) -> Option<u64> {
    let (_, rest) = page.split_once("version ")?;
    rest.split_once('.')?.0.parse().ok()
}

/// Publishes one version after the other, each until it is acknowledged.
pub(super) async fn publish(shared: Arc<ClientContext>, mut rng: SeededRng) {
    let project = shared.record().project.clone();
    let path = format!("/api/v1/projects/{project}/frontends/{EDITED}");
    let mut number = 1;
    while shared.goes_on() {
        shared.record().versions.sent = number;
        let body = json!({ "content": version(number) });
        let alice = shared.issuer.token_now("alice");
        let put = (Method::PUT, &*path);
        let finish = |request: RequestBuilder| request.bearer_auth(&alice).json(&body);
        let answer = shared.send(&mut rng, put, finish).await;
        match answer.as_ref().map_or(503, |answer| answer.status) {
            200 => {
                shared.record().versions.acknowledged = number;
                number += 1;
                tokio::time::sleep(PAUSE).await;
            }
            503 => {
                let is_refused = answer.is_some_and(|it| it.json()["code"] != "interrupted");
                if !is_refused {
                    shared.record().versions.unknown.insert(number);
                }
                tokio::time::sleep(REFUSED_PAUSE).await;
            }
            _ => shared.record().fault(format!("{path}: {answer:?}")),
        }
    }
}

/// Looks at the page.
pub(super) async fn view(shared: Arc<ClientContext>, mut rng: SeededRng) {
    let path = format!("/{EDITED}");
    while shared.goes_on() {
        tokio::time::sleep(VIEW_PAUSE).await;
        let before = shared.record().versions.acknowledged;
        let look = (Method::GET, &*path);
        let Some(answer) = shared.send(&mut rng, look, |request| request).await else {
            continue;
        };
        match answer.status {
            200 => {
                let shown = shown_version(answer.text());
                shared.record().note_version(before, shown);
            }
            503 => {}
            _ => shared.record().fault(format!("{path}: {answer:?}")),
        }
    }
}

#[test]
fn a_version_is_found_in_its_page() {
    assert_eq!(shown_version(&version(12)), Some(12));
    assert_eq!(shown_version("<p>another page</p>"), None);
}
