//! The routes of the console's host: screens, their files and settings, and the operations of owners. It serves nothing of the other hosts.

use std::sync::Arc;

use axum::Router;
use axum::extract::Request;
use axum::middleware::{self, Next};
use axum::response::Response;
use axum::routing::{delete, get, post};
use http::{HeaderValue, header};

use super::{admission_layer, owner_operations, probes, rate_limit_layer, record_matched_route};
use crate::access::{OwnerBucket, run_changes_to_completion};
use crate::app::SharedApp;
use crate::console::routes as console;
use crate::http::problem::Problem;
use crate::http::rate_limit::RateLimitRule;
use crate::openapi::{self, ApiDescription};

/// Addresses of screens. The document is the same for all: which screen it shows is its scripts' to say.
const SCREENS: [&str; 29] = [
    "/",
    "/login",
    "/callback",
    "/new",
    "/p/{project}",
    "/p/{project}/pages",
    "/p/{project}/pages/{slug}",
    "/p/{project}/pages/{slug}/{revision}",
    "/p/{project}/data",
    "/p/{project}/sql",
    "/p/{project}/schema",
    "/p/{project}/actions",
    "/p/{project}/actions/{name}",
    "/p/{project}/history",
    "/p/{project}/rooms",
    "/p/{project}/visitors",
    "/p/{project}/files",
    "/p/{project}/payments",
    "/p/{project}/agents",
    "/p/{project}/domains",
    "/p/{project}/statistics",
    "/p/{project}/log",
    "/p/{project}/settings",
    "/w/new",
    "/w/{workspace}/members",
    "/w/{workspace}/keys",
    "/w/{workspace}/audit",
    "/w/{workspace}/plan",
    "/w/{workspace}/settings",
];

/// Returns the router of the console's host.
pub(super) fn router(app: &SharedApp, description: &Arc<ApiDescription>) -> Router {
    let owned = admission_layer(app, OwnerBucket::Usual);
    let limited = rate_limit_layer(app);
    let (operations, _) = owner_operations(app).split_for_parts();
    let screens = SCREENS
        .into_iter()
        .fold(Router::<SharedApp>::new(), |router, address| {
            router.route(address, get(console::screen))
        });
    let session = limited(RateLimitRule::Auth, post(console::open_session))
        .merge(owned(delete(console::end_session)));
    operations
        .route_layer(middleware::from_fn(forbid_storing))
        .merge(screens)
        .route("/_svc/console/{file}", get(console::file))
        .route("/_svc/console/session", session)
        .route("/config.json", get(console::settings))
        .route("/robots.txt", get(console::robots))
        .route("/favicon.svg", get(console::icon_svg))
        .route("/favicon.ico", get(console::icon_ico))
        .route("/healthz", get(probes::healthz))
        .route("/readyz", get(probes::readyz))
        .route(
            "/api/v1/openapi.json",
            get(openapi::serve).with_state(Arc::clone(description)),
        )
        .route_layer(middleware::from_fn(run_changes_to_completion))
        .route_layer(middleware::from_fn(record_matched_route))
        .fallback(console::missing)
        .method_not_allowed_fallback(|| async { Problem::method_not_allowed() })
        .with_state(app.clone())
}

/// Has browsers and caches keep no answer of an operation.
async fn forbid_storing(request: Request, next: Next) -> Response {
    let mut response = next.run(request).await;
    let no_store = HeaderValue::from_static("no-store");
    response
        .headers_mut()
        .insert(header::CACHE_CONTROL, no_store);
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Module that says which screen an address has: `['/p/:project', …`.
    const MAIN_MODULE: &str = include_str!("../../assets/console/app/main.js");

    /// Returns an address without the names of its parts.
    fn shape(address: &str) -> String {
        let parts = address
            .split('/')
            .map(|part| match part.starts_with([':', '{']) {
                true => "*",
                false => part,
            });
        parts.collect::<Vec<_>>().join("/")
    }

    #[test]
    fn every_screen_of_the_scripts_has_its_address() {
        let known: Vec<String> = SCREENS.into_iter().map(shape).collect();
        let written = MAIN_MODULE.split("['/").skip(1);
        let written = written.filter_map(|rest| rest.split_once('\''));
        for (address, _) in written {
            let address = shape(&format!("/{address}"));
            assert!(known.contains(&address), "{address} is no address");
        }
    }
}
