//! Clients of pages: who publishes and deletes them, who looks at them, who opens one-time pages, and who wants one name.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use http::Method;
use serde_json::json;
use svc_tests::SeededRng;

use super::client_context::{ClientContext, REFUSED_PAUSE};
use super::record::PageState;

/// Readers of a one-time page at once, and how often each asks at most.
const OPENERS: usize = 4;
const ATTEMPTS: usize = 5;
/// Publishers of a name at once.
const RIVALS: usize = 2;
/// Pages of which one is deleted.
const DELETED: u64 = 3;
/// Pauses after a page, and after a look at one.
const PAUSE: Duration = Duration::from_millis(300);
const VIEW_PAUSE: Duration = Duration::from_millis(20);

/// Publishes pages, sends some a second time with the same key, and deletes some.
pub(super) async fn publish(context: Arc<ClientContext>, publisher: u64, mut rng: SeededRng) {
    let mut number: u64 = 0;
    while context.goes_on() {
        let name = format!("page-{publisher}-{number}");
        number += 1;
        context.record().turn_page(&name, PageState::Sent);
        let body = json!({ "content": format!("<p>of {name}</p>"), "name": name });
        let Some(share) = context.publish(&mut rng, &body, &name).await else {
            continue;
        };
        if share["slug"] != *name {
            let fault = format!("{name} was published as {}", share["slug"]);
            context.record().fault(fault);
        }
        context.record().turn_page(&name, PageState::Published);
        tokio::time::sleep(PAUSE).await;
        // The record finds it if this makes another page.
        let again = context.publish_once(&mut rng, &body, &name).await;
        if let Ok(again) = again
            && again["slug"] != share["slug"]
        {
            let fault = format!("the key {name} has made {share} and {again}");
            context.record().fault(fault);
        }
        let token = share["delete_token"].as_str();
        if number.is_multiple_of(DELETED)
            && let Some(token) = token
        {
            context.record().turn_page(&name, PageState::Leaving);
            let path = format!("/api/v1/deploy/{}", share["id"].as_str().unwrap());
            if context.delete(&mut rng, &path, token).await {
                context.record().turn_page(&name, PageState::Gone);
            }
        }
    }
}

/// Looks at pages: the newest ones, and now and then any.
pub(super) async fn view(context: Arc<ClientContext>, mut rng: SeededRng) {
    while context.goes_on() {
        tokio::time::sleep(VIEW_PAUSE).await;
        let Some((name, before)) = context.record().draw_page(&mut rng) else {
            continue;
        };
        let path = format!("/{name}");
        let view = (Method::GET, &*path);
        if let Some(answer) = context.send(&mut rng, view, |request| request).await {
            context.record().note_view(&name, before, &answer);
        }
    }
}

/// Publishes one-time pages, each for several readers at once.
pub(super) async fn burn(context: Arc<ClientContext>, mut rng: SeededRng) {
    let mut number = 0;
    while context.goes_on() {
        let name = format!("once-{number}");
        let content = format!("<p>of {name}</p>");
        let body = json!({ "content": content, "name": name, "one_time": true });
        if let Some(share) = context.publish(&mut rng, &body, &name).await {
            let seeds: [u64; OPENERS] = std::array::from_fn(|_| rng.draw());
            let readers = seeds.map(|seed| open(&context, &name, SeededRng::new(seed)));
            let got = join_all(readers)
                .await
                .into_iter()
                .filter(|got| *got)
                .count();
            let mut record = context.record();
            if share["slug"] != *name {
                record.fault(format!("{name} was published as {}", share["slug"]));
            }
            if got > 1 {
                record.fault(format!("{name} was given to {got} readers"));
            }
            record.readers.insert(name, got);
        }
        number += 1;
        tokio::time::sleep(PAUSE).await;
    }
}

/// Opens a one-time page, by some attempts. Returns whether it was had.
async fn open(context: &ClientContext, name: &str, mut rng: SeededRng) -> bool {
    let path = format!("/{name}");
    for _ in 0..ATTEMPTS {
        let open = (Method::POST, &*path);
        let answer = context.send(&mut rng, open, |request| request).await;
        match answer.as_ref().map_or(503, |answer| answer.status) {
            200 => return true,
            404 => return false,
            503 => tokio::time::sleep(REFUSED_PAUSE).await,
            _ => {
                context.record().fault(format!("{name}: {answer:?}"));
                return false;
            }
        }
    }
    false
}

/// Publishes pages of one name by several publishers at once.
pub(super) async fn race(context: Arc<ClientContext>, mut rng: SeededRng) {
    let mut number = 0;
    while context.goes_on() {
        let name = format!("race-{number}");
        number += 1;
        let seeds: [u64; RIVALS] = std::array::from_fn(|_| rng.draw());
        let rivals = seeds.map(|seed| publish_as_rival(&context, &name, seed));
        let slugs: Vec<_> = join_all(rivals).await.into_iter().flatten().collect();
        if slugs.len() == RIVALS {
            context.record().note_race(&name, &slugs);
        }
        tokio::time::sleep(PAUSE).await;
    }
}

/// Publishes a page with a key of its own. Returns the slug, if it was acknowledged.
async fn publish_as_rival(context: &ClientContext, name: &str, seed: u64) -> Option<String> {
    let key = format!("{name}-by-{seed}");
    let body = json!({ "content": format!("<p>by {seed}</p>"), "name": name });
    let mut rng = SeededRng::new(seed);
    let share = context.publish(&mut rng, &body, &key).await?;
    Some(share["slug"].as_str().unwrap().to_owned())
}
