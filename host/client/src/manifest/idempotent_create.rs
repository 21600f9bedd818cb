//! Creation with idempotency keys, so that an interrupted `svc apply` can be repeated.

use serde_json::Value;

use crate::api::ApiClient;
use crate::endpoints::Endpoint;
use crate::error::Result;
use svc_base::digest::Digest;

/// The most replayed and since deleted answers, until a request is sent without a stable key.
const MAX_ATTEMPTS: u32 = 4;

/// Creates something below `at`, or returns what the same request created earlier, if `look` still finds it. Returns also whether it is
/// new.
///
/// # Errors
/// Failures of the server.
pub(super) async fn create_or_replay(
    api: &ApiClient,
    call: &'static Endpoint,
    at: &[&str],
    body: Value,
    look: &'static Endpoint,
) -> Result<(Value, bool)> {
    let mut deleted_id = String::new();
    for _ in 0..MAX_ATTEMPTS {
        let asked = api.call(call, at).body(body.clone());
        let (made, is_replayed) = asked
            .send_with_key(idempotency_key(call, &body, &deleted_id))
            .await?;
        if !is_replayed || still_exists(api, look, at, &made).await? {
            return Ok((made, !is_replayed));
        }
        // The created object was deleted since, so the next key is tried.
        deleted_id = id_of(&made);
    }
    let made = api.call(call, at).body(body).send().await?;
    Ok((made, true))
}

/// Stable key for a request; another one after its earlier result was deleted.
fn idempotency_key(call: &Endpoint, body: &Value, deleted_id: &str) -> String {
    let asked = format!("{} {deleted_id} {body}", call.path);
    format!("apply-{}", Digest::of(asked.as_bytes()))
}

fn id_of(made: &Value) -> String {
    made["id"].as_str().unwrap_or_default().to_owned()
}

async fn still_exists(
    api: &ApiClient,
    look: &'static Endpoint,
    at: &[&str],
    made: &Value,
) -> Result<bool> {
    let id = id_of(made);
    let parts = [at, &[id.as_str()]].concat();
    match api.call(look, &parts).send().await {
        // If it was renamed, it has another purpose now.
        Ok(found) => Ok(["id", "name", "slug"]
            .iter()
            .all(|field| found[field] == made[field])),
        Err(failure) if failure.is_not_found() => Ok(false),
        Err(failure) => Err(failure),
    }
}
