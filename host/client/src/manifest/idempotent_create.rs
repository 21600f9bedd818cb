//! Creations of `svc apply` that an apply before it may have asked for: one that was killed while its request was under way.

use serde_json::Value;

use crate::api::Api;
use crate::endpoints::Endpoint;
use crate::error::Result;
use svc_base::digest::Digest;

/// How often the same may be made and deleted in a day until it is made without looking back.
const MAX_ATTEMPTS: u32 = 4;

/// Makes something below `at`, or returns what the same request has made already, as long as `look` still finds that.
///
/// # Errors
/// The server's.
pub(super) async fn create_or_replay(
    api: &Api,
    call: &'static Endpoint,
    at: &[&str],
    body: Value,
    look: &'static Endpoint,
) -> Result<Value> {
    let mut deleted_id = String::new();
    for _ in 0..MAX_ATTEMPTS {
        let asked = api.call(call, at).body(body.clone());
        let (made, is_replayed) = asked
            .send_with_key(idempotency_key(call, &body, &deleted_id))
            .await?;
        if !is_replayed || still_exists(api, look, at, &made).await? {
            return Ok(made);
        }
        // Somebody has deleted it since, and it is wanted again: under the next key, for the same reason.
        deleted_id = id_of(&made);
    }
    api.call(call, at).body(body).send().await
}

/// Key of what is asked for after something was deleted: the same for the same.
fn idempotency_key(call: &Endpoint, body: &Value, deleted_id: &str) -> String {
    let asked = format!("{} {deleted_id} {body}", call.path);
    format!("apply-{}", Digest::of(asked.as_bytes()))
}

fn id_of(made: &Value) -> String {
    made["id"].as_str().unwrap_or_default().to_owned()
}

async fn still_exists(
    api: &Api,
    look: &'static Endpoint,
    at: &[&str],
    made: &Value,
) -> Result<bool> {
    let id = id_of(made);
    let parts = [at, &[id.as_str()]].concat();
    match api.call(look, &parts).send().await {
        // One that has another name now is somebody's for another end.
        Ok(found) => Ok(["id", "name", "slug"]
            .iter()
            .all(|field| found[field] == made[field])),
        Err(failure) if failure.is_not_found() => Ok(false),
        Err(failure) => Err(failure),
    }
}
