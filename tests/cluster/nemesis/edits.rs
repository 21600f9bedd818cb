//! Clients of a page that is published again and again: nobody sees a version from before the one that was acknowledged.

use std::sync::Arc;
use std::time::Duration;

use http::Method;
use reqwest::RequestBuilder;
use serde_json::json;
use svc_tests::SeededRng;

use super::client_context::{ClientContext, REFUSED_PAUSE};

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
pub(super) async fn publish(context: Arc<ClientContext>, mut rng: SeededRng) {
    let project = context.record().project.clone();
    let path = format!("/api/v1/projects/{project}/frontends/{EDITED}");
    let mut number = 1;
    while context.goes_on() {
        context.record().versions.sent = number;
        let body = json!({ "content": version(number) });
        let alice = context.issuer.token_now("alice");
        let put = (Method::PUT, &*path);
        let finish = |request: RequestBuilder| request.bearer_auth(&alice).json(&body);
        let answer = context.send(&mut rng, put, finish).await;
        match answer.as_ref().map_or(503, |answer| answer.status) {
            200 => {
                context.record().versions.acknowledged = number;
                number += 1;
                tokio::time::sleep(PAUSE).await;
            }
            503 => {
                let is_refused = answer.is_some_and(|it| it.json()["code"] != "interrupted");
                if !is_refused {
                    context.record().versions.unknown.insert(number);
                }
                tokio::time::sleep(REFUSED_PAUSE).await;
            }
            _ => context.record().fault(format!("{path}: {answer:?}")),
        }
    }
}

/// Looks at the page.
pub(super) async fn view(context: Arc<ClientContext>, mut rng: SeededRng) {
    let path = format!("/{EDITED}");
    while context.goes_on() {
        tokio::time::sleep(VIEW_PAUSE).await;
        let before = context.record().versions.acknowledged;
        let look = (Method::GET, &*path);
        let Some(answer) = context.send(&mut rng, look, |request| request).await else {
            continue;
        };
        match answer.status {
            200 => {
                let shown = shown_version(answer.text());
                context.record().note_version(before, shown);
            }
            503 => {}
            _ => context.record().fault(format!("{path}: {answer:?}")),
        }
    }
}

#[test]
fn a_version_is_found_in_its_page() {
    assert_eq!(shown_version(&version(12)), Some(12));
    assert_eq!(shown_version("<p>another page</p>"), None);
}
