//! A client that makes keys and revokes them: none is taken after that.

use std::sync::Arc;
use std::time::{Duration, Instant};

use http::Method;
use reqwest::RequestBuilder;
use serde_json::json;
use svc_tests::{Answer, SeededRng};

use super::client_context::{ClientContext, REFUSED_PAUSE};

const KEYS: &str = "/api/v1/workspaces/acme/keys";
/// Requests with a key before and after its end, and the pause between two.
const LOOKS: usize = 5;
const PAUSE: Duration = Duration::from_millis(300);
/// Longest time for which a node that is cut off may take a key that was revoked.
const LATE: Duration = Duration::from_secs(1);

/// Makes keys of the workspace, and revokes each.
pub(super) async fn revoke(context: Arc<ClientContext>, mut rng: SeededRng) {
    let project = context.record().project.clone();
    let detail = format!("/api/v1/projects/{project}/backend");
    while context.goes_on() {
        let alice = context.issuer.token_now("alice");
        let make = (Method::POST, KEYS);
        let viewer = json!({ "role": "viewer" });
        let made = context.send(&mut rng, make, |request| {
            request.bearer_auth(&alice).json(&viewer)
        });
        let made = made.await;
        let made = match made.as_ref().map_or(503, |made| made.status) {
            201 => made.unwrap().json(),
            503 => {
                tokio::time::sleep(REFUSED_PAUSE).await;
                continue;
            }
            // Of keys whose answers were lost nobody knows, and a workspace has so many at most.
            400 => {
                revoke_all(&context, &mut rng, &alice).await;
                continue;
            }
            _ => {
                context
                    .record()
                    .fault(format!("a key to be made: {made:?}"));
                continue;
            }
        };
        let credential = made["credential"].as_str().unwrap();
        for _ in 0..LOOKS {
            let answer = look(&context, &mut rng, &detail, credential).await;
            context.record().note_key(answer.as_ref(), None);
            tokio::time::sleep(REFUSED_PAUSE).await;
        }
        let key = format!("{KEYS}/{}", made["key_id"].as_str().unwrap());
        if !context.delete(&mut rng, &key, &alice).await {
            continue;
        }
        let ended = Instant::now();
        for _ in 0..LOOKS {
            let is_late = ended.elapsed() >= LATE;
            let answer = look(&context, &mut rng, &detail, credential).await;
            context.record().note_key(answer.as_ref(), Some(is_late));
            tokio::time::sleep(PAUSE).await;
        }
        context.record().revoked += 1;
    }
}

/// Revokes all keys of the workspace.
async fn revoke_all(context: &ClientContext, rng: &mut SeededRng, credential: &str) {
    let list = (Method::GET, KEYS);
    let finish = |request: RequestBuilder| request.bearer_auth(credential);
    let listed = context.send(rng, list, finish).await;
    let Some(listed) = listed.filter(|listed| listed.status == 200) else {
        tokio::time::sleep(REFUSED_PAUSE).await;
        return;
    };
    for key in listed.json()["keys"].as_array().unwrap() {
        let path = format!("{KEYS}/{}", key["key_id"].as_str().unwrap());
        context.delete(rng, &path, credential).await;
    }
}

/// Asks for the backend with a key.
async fn look(
    context: &ClientContext,
    rng: &mut SeededRng,
    detail: &str,
    credential: &str,
) -> Option<Answer> {
    let look = (Method::GET, detail);
    let finish = |request: RequestBuilder| request.bearer_auth(credential);
    context.send(rng, look, finish).await
}
