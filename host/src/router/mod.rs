//! All routes and their layers: a newcomer starts here.
//!
//! The front (`server/front.rs`) comes first: it sets the request's id, its host, and the canonical form of its path. Then the order is that
//! of the specification: the router checks path and method, a route's layer the rate limit, a handler's extractors the credential and the
//! declared length; then the handler runs.

mod console;
mod direct;
mod passkey_policy;
pub mod paths;
mod probes;

use std::sync::Arc;

use axum::Router;
use axum::extract::{MatchedPath, Request};
use axum::middleware::{self, Next};
use axum::response::Response;
use axum::routing::{MethodRouter, get, post};
use http::{StatusCode, header};
use tower::Service as _;
use utoipa_axum::router::{OpenApiRouter, UtoipaMethodRouterExt};
use utoipa_axum::routes;

use crate::access::{AdmissionLayerState, OwnerBucket, admit, run_changes_to_completion};
use crate::accounts::audit::routes as audit;
use crate::accounts::metadata::routes as metadata;
use crate::accounts::plans::routes as plans;
use crate::accounts::routes as accounts;
use crate::activity::EntryKind;
use crate::app::SharedApp;
use crate::backends::calls::routes as calls;
use crate::backends::export::routes as exports;
use crate::backends::history::routes as history;
use crate::backends::routes as backends;
use crate::config::Config;
use crate::deployments::files::routes as files;
use crate::deployments::frontends::routes as frontends;
use crate::deployments::publication::runtime::reload::routes as reload;
use crate::deployments::publication::runtime::routes as runtime;
use crate::deployments::reports::routes as reports;
use crate::deployments::revisions::routes as revisions;
use crate::deployments::revisions::sites::routes as sites;
use crate::deployments::serving::password::routes as passwords;
use crate::deployments::serving::request_log;
use crate::deployments::serving::routes as pages;
use crate::deployments::shares::routes as shares;
use crate::envelope::routes as envelope;
use crate::guides::Guides;
use crate::guides::routes as guides;
use crate::http::hosts::HostKind;
use crate::http::problem::Problem;
use crate::http::rate_limit::{self, RateLimitRule};
use crate::landing::forms::routes as forms;
use crate::landing::routes as landing;
use crate::mcp::app::routes as app_tools;
use crate::mcp::routes as mcp;
use crate::openapi;
use crate::payments::routes as payments;
use crate::projects::domains::routes as domains;
use crate::projects::routes as projects;
use crate::realtime::live::routes as live;
use crate::realtime::routes as rooms;
use crate::releases::routes as releases;
use crate::stats::routes as stats;
use crate::stripe::dev::routes as dev_payments;
use crate::stripe::routes as webhooks;
use crate::telemetry::MatchedRoute;
use crate::visitor_files::routes as visitor_files;
use crate::visitors::dev::routes as issuer;
use crate::visitors::email::routes as by_email;
use crate::visitors::passkey::account::routes as passkeys;
use crate::visitors::passkey::routes as by_passkey;
use crate::visitors::routes as sign_in;

pub use direct::{
    call, called_slug, download, is_call, is_download, is_file_view, is_view, reads_file,
    reads_page, view, view_file,
};

/// The routers of the kinds of hosts.
#[derive(Clone, Debug)]
pub struct HostRouters {
    config: Arc<Config>,
    api: Router,
    project: Router,
    preview: Router,
    landing: Router,
    console: Router,
    /// Answers paths that no route can have.
    missing: Router,
}

impl HostRouters {
    /// Builds the routers of an application.
    pub fn new(app: &SharedApp) -> Self {
        let (api, mut description) = api(app).split_for_parts();
        let (pages, of_pages) = guides::router().split_for_parts();
        description.merge(of_pages);
        let description = Arc::new(openapi::complete_description(
            &description,
            &app.config,
            paths::is_for_programs,
        ));
        let guides = Arc::new(Guides::new(
            app.sandbox.clone(),
            Arc::clone(&app.config),
            Arc::clone(&description),
        ));
        let written = Arc::clone(&guides);
        app.tools.resources.hand_in(move || written.resources());
        let console = match &app.config.console_url {
            Some(_) => console::router(app, &description),
            None => Router::new(),
        };
        let api = api
            .route(
                "/api/v1/openapi.json",
                get(openapi::serve).with_state(description),
            )
            .merge(pages.with_state(guides));
        // Not in the description: it exists in development alone.
        let api = match &app.dev_provider {
            Some(provider) => api.merge(dev_payments::routes(Arc::clone(provider))),
            None => api,
        };
        Self {
            config: Arc::clone(&app.config),
            api: with_fallbacks(
                api.route_layer(middleware::from_fn(record_matched_route)),
                app,
            ),
            project: with_fallbacks(
                project(app).route_layer(middleware::from_fn(record_matched_route)),
                app,
            ),
            preview: Router::new()
                .fallback(revisions::preview_on_origin)
                .with_state(app.clone()),
            landing: with_fallbacks(self::landing(app), app),
            console,
            missing: Router::new()
                .fallback(pages::missing)
                .with_state(app.clone()),
        }
    }

    /// Answers a request to a host.
    pub async fn answer(&self, host: &HostKind, request: Request) -> Response {
        let has_passkeys = passkey_policy::reaches_passkeys(&self.config, host, &request);
        let answer = self.get(host, &request).clone().call(request).await;
        let mut answer = answer.unwrap_or_else(|never| match never {});
        if answer.status() == StatusCode::NOT_MODIFIED {
            // Axum adds the length of the body, 0, to the answer of a HEAD; a cache would take it for that of the document (RFC 9110, 8.6).
            answer.headers_mut().remove(header::CONTENT_LENGTH);
        }
        passkey_policy::refuse_passkeys(has_passkeys, answer)
    }

    /// Returns the router of a request to a host.
    fn get(&self, host: &HostKind, request: &Request) -> &Router {
        if request.extensions().get::<pages::MissingPath>().is_some() {
            return &self.missing;
        }
        match host {
            HostKind::Api | HostKind::Sites => &self.api,
            HostKind::Project(_) | HostKind::Domain(_) => &self.project,
            HostKind::Preview(_) => &self.preview,
            HostKind::Landing => &self.landing,
            HostKind::Console => &self.console,
        }
    }
}

/// Returns the routes of a project's origin: its own frontends, and nothing else.
fn project(app: &SharedApp) -> Router<SharedApp> {
    let limited = rate_limit_layer(app);
    let logged = |kind, routes| log_requests(kind, routes, app);
    // Only the server of `svc dev` has it.
    let router = match &app.config.reload {
        Some(versions) => {
            let listen = get(reload::listen).with_state(versions.clone());
            Router::new().route("/_svc/dev/reload", listen)
        }
        None => Router::new(),
    };
    router
        .route("/{slug}/api/op", post(calls::op))
        .route(
            "/{slug}/api/query",
            logged(EntryKind::Query, limit_calls(post(calls::query), app)),
        )
        .route("/{slug}/api/schema", limit_calls(get(calls::schema), app))
        .route(
            "/{slug}/api/files/{action}",
            logged(
                EntryKind::Upload,
                limited(RateLimitRule::Upload, post(visitor_files::upload)),
            ),
        )
        .route(
            "/{slug}/api/files/{action}/{file_id}",
            get(visitor_files::download),
        )
        .route("/{slug}/ws", logged(EntryKind::Room, get(rooms::join)))
        .route(
            "/{slug}/api/live",
            logged(EntryKind::Live, get(live::listen)),
        )
        .route(
            "/{slug}/auth/login",
            logged(
                EntryKind::SignIn,
                limited(RateLimitRule::SignIn, get(sign_in::login)),
            ),
        )
        .route(
            "/{slug}/auth/complete",
            logged(EntryKind::SignIn, get(sign_in::complete)),
        )
        .route("/{slug}/auth/status", get(sign_in::status))
        .route("/{slug}/auth/providers", get(sign_in::providers))
        .route("/{slug}/auth/logout", post(sign_in::logout))
        .route(
            "/{slug}/auth/passkeys",
            limited(RateLimitRule::SignIn, get(passkeys::leave)),
        )
        .route(
            "/{slug}/payments/checkout",
            logged(
                EntryKind::Payment,
                limited(RateLimitRule::Checkout, post(payments::checkout)),
            ),
        )
        .route("/{slug}/payments/status", get(payments::status))
        .route("/{slug}/payments/catalog", get(payments::offers))
        .route("/", get(frontends::home))
        .route("/favicon.ico", get(landing::no_icon))
        .route("/_svc/runtime/{file}", get(runtime::runtime))
        .route("/_svc/runtime.d.ts", get(runtime::typings))
        .route("/{slug}/_svc/runtime.js", get(runtime::site_runtime))
        .route("/{slug}", get(pages::page))
        .route("/{slug}/", get(pages::without_slash))
        .route("/{slug}/raw", get(pages::raw))
        .route("/{slug}/{*path}", below_pages(get(pages::site_file)))
        .route_layer(middleware::from_fn(run_changes_to_completion))
        .route("/{slug}/mcp", post(app_tools::serve))
}

/// The routes of the landing host: the landing page, the files that belong to it, and what its form needs without scripts. With
/// scripts the form calls the API host.
fn landing(app: &SharedApp) -> Router<SharedApp> {
    let limited = rate_limit_layer(app);
    Router::new()
        .route(
            "/_svc/share",
            limited(RateLimitRule::Deploy, post(forms::share)),
        )
        .route(
            "/_svc/share/delete",
            limited(RateLimitRule::Delete, post(forms::delete)),
        )
        .route("/.well-known/security.txt", get(forms::security))
        .route("/", get(landing::page))
        .route("/llms.txt", get(landing::guide))
        .route("/robots.txt", get(landing::robots))
        .route("/_svc/pictures/{picture}", get(landing::picture))
        .route("/favicon.svg", get(landing::icon_svg))
        .route("/favicon.ico", get(landing::icon_ico))
        .route_layer(middleware::from_fn(run_changes_to_completion))
}

/// Returns the rate limiting layer of a rule, for routes that are not in the description.
fn rate_limit_layer(
    app: &SharedApp,
) -> impl Fn(RateLimitRule, MethodRouter<SharedApp>) -> MethodRouter<SharedApp> + use<> {
    let limits = Arc::clone(&app.rate_limits);
    move |rule, routes| {
        let state = (Arc::clone(&limits), rule);
        routes.route_layer(middleware::from_fn_with_state(
            state,
            rate_limit::enforce_rate_limit,
        ))
    }
}

/// Returns the layer of owner routes whose requests take a token from a bucket.
fn admission_layer(
    app: &SharedApp,
    bucket: OwnerBucket,
) -> impl Fn(MethodRouter<SharedApp>) -> MethodRouter<SharedApp> + use<> {
    let admission = AdmissionLayerState {
        authenticator: app.authenticator.clone(),
        rate_limits: Arc::clone(&app.rate_limits),
        bucket,
        answers: app.calls.answers.clone(),
    };
    move |routes| routes.route_layer(middleware::from_fn_with_state(admission.clone(), admit))
}

/// Writes the requests of routes below a page into the log of its project: those too that a rate limit refuses.
fn log_requests(
    kind: EntryKind,
    routes: MethodRouter<SharedApp>,
    app: &SharedApp,
) -> MethodRouter<SharedApp> {
    let state = (Arc::clone(&app.serving), kind);
    routes.route_layer(middleware::from_fn_with_state(
        state,
        request_log::log_requests,
    ))
}

/// Adds the rate limits of calls of a backend: the client's, then the deployment's.
fn limit_calls(routes: MethodRouter<SharedApp>, app: &SharedApp) -> MethodRouter<SharedApp> {
    let calls = app.calls.clone();
    routes.route_layer(middleware::from_fn_with_state(
        calls,
        calls::limit_call_rate,
    ))
}

/// The routes of the API and sites hosts that the OpenAPI description describes.
fn api(app: &SharedApp) -> OpenApiRouter<SharedApp> {
    let limited = |rule| {
        let limits = Arc::clone(&app.rate_limits);
        move |routes: MethodRouter<SharedApp>| {
            routes.route_layer(middleware::from_fn_with_state(
                (limits, rule),
                rate_limit::enforce_rate_limit,
            ))
        }
    };
    let logged = |kind| {
        let app = app.clone();
        move |routes: MethodRouter<SharedApp>| log_requests(kind, routes, &app)
    };
    let called = {
        let app = app.clone();
        move |routes: MethodRouter<SharedApp>| limit_calls(routes, &app)
    };
    OpenApiRouter::with_openapi(openapi::base_document())
        .routes(routes!(shares::deploy).map(limited(RateLimitRule::Deploy)))
        .routes(routes!(shares::put).map(limited(RateLimitRule::Deploy)))
        .routes(routes!(shares::put_unnamed).map(limited(RateLimitRule::Deploy)))
        .routes(routes!(shares::delete).map(limited(RateLimitRule::Delete)))
        .routes(routes!(passwords::unlock).map(limited(RateLimitRule::Auth)))
        .routes(routes!(reports::report).map(limited(RateLimitRule::Report)))
        .merge(owner_operations(app))
        .routes(routes!(metadata::resource))
        .routes(routes!(metadata::tools))
        .routes(routes!(calls::op))
        .routes(
            routes!(calls::query)
                .map(&called)
                .map(logged(EntryKind::Query)),
        )
        .routes(routes!(calls::schema).map(&called))
        .routes(
            routes!(visitor_files::upload)
                .map(limited(RateLimitRule::Upload))
                .map(logged(EntryKind::Upload)),
        )
        .routes(routes!(visitor_files::download))
        .routes(routes!(rooms::join).map(logged(EntryKind::Room)))
        .routes(routes!(live::listen).map(logged(EntryKind::Live)))
        .routes(
            routes!(payments::checkout)
                .map(limited(RateLimitRule::Checkout))
                .map(logged(EntryKind::Payment)),
        )
        .routes(routes!(payments::status))
        .routes(routes!(payments::offers))
        .routes(routes!(webhooks::receive))
        .routes(
            routes!(sign_in::login)
                .map(limited(RateLimitRule::SignIn))
                .map(logged(EntryKind::SignIn)),
        )
        .routes(
            routes!(sign_in::callback)
                .map(limited(RateLimitRule::SignIn))
                .map(logged(EntryKind::SignIn)),
        )
        .routes(routes!(sign_in::complete).map(logged(EntryKind::SignIn)))
        .routes(routes!(sign_in::status))
        .routes(routes!(sign_in::providers))
        .routes(routes!(sign_in::logout))
        .routes(
            routes!(by_email::show, by_email::submit)
                .map(limited(RateLimitRule::SignIn))
                .map(logged(EntryKind::SignIn)),
        )
        .routes(
            routes!(by_passkey::show, by_passkey::submit)
                .map(limited(RateLimitRule::SignIn))
                .map(logged(EntryKind::SignIn)),
        )
        .routes(routes!(passkeys::leave).map(limited(RateLimitRule::SignIn)))
        .routes(routes!(passkeys::show, passkeys::submit).map(limited(RateLimitRule::SignIn)))
        // What is for developing is not part of the service's description.
        .route("/_svc/dev/mail", get(by_email::mailbox))
        .merge(OpenApiRouter::from(issuer::router()))
        .routes(routes!(probes::healthz))
        .routes(routes!(probes::readyz))
        .routes(routes!(revisions::preview))
        .routes(routes!(revisions::preview_with_slash))
        .routes(routes!(revisions::preview_file))
        .routes(routes!(runtime::runtime))
        .routes(routes!(runtime::typings))
        .routes(routes!(runtime::site_runtime))
        .routes(routes!(pages::raw))
        .routes(routes!(pages::page, shares::reveal))
        .routes(routes!(pages::without_slash))
        .routes(routes!(pages::site_file).map(below_pages))
        .routes(routes!(probes::problem_type))
        .routes(routes!(landing::page))
        .routes(routes!(landing::guide))
        .routes(routes!(landing::robots))
        .routes(routes!(landing::icon_svg))
        .routes(routes!(landing::icon_ico))
        .routes(routes!(landing::picture))
        .routes(routes!(landing::stage))
        .routes(routes!(landing::preview).map(limited(RateLimitRule::Preview)))
        .routes(routes!(forms::share).map(limited(RateLimitRule::Deploy)))
        .routes(routes!(forms::delete).map(limited(RateLimitRule::Delete)))
        .routes(routes!(forms::qr_code))
        .routes(routes!(reports::report_form))
        .routes(routes!(reports::report_form_of_any))
        .routes(routes!(forms::security))
        .route_layer(middleware::from_fn(run_changes_to_completion))
        // Tools have a runner of their own, which knows whether a call changes something.
        .routes(routes!(mcp::serve).map(limited(RateLimitRule::Mcp)))
        .routes(routes!(app_tools::serve))
}

/// The operations of owners, which the API and sites hosts serve, and the console's.
fn owner_operations(app: &SharedApp) -> OpenApiRouter<SharedApp> {
    let owned = admission_layer(app, OwnerBucket::Usual);
    let sent = admission_layer(app, OwnerBucket::Blob);
    OpenApiRouter::default()
        .routes(routes!(projects::create, projects::list).map(&owned))
        .routes(routes!(envelope::get, envelope::update, envelope::delete).map(&owned))
        .routes(routes!(releases::release).map(&owned))
        .routes(routes!(files::put_blob).map(&sent))
        .routes(routes!(domains::create, domains::list).map(&owned))
        .routes(routes!(domains::get, domains::update, domains::delete).map(&owned))
        .routes(routes!(domains::verify).map(&owned))
        .routes(routes!(frontends::create, frontends::list).map(&owned))
        .routes(routes!(frontends::get, revisions::republish, frontends::delete).map(&owned))
        .routes(routes!(shares::claim).map(&owned))
        // A frontend may have the slug `claim`.
        .route(
            "/api/v1/projects/{id}/frontends/claim",
            owned(
                get(frontends::get)
                    .put(revisions::republish)
                    .delete(frontends::delete),
            ),
        )
        .routes(routes!(revisions::content).map(&owned))
        .routes(routes!(revisions::create, revisions::list).map(&owned))
        .routes(routes!(revisions::get, revisions::delete).map(&owned))
        .routes(routes!(sites::put_file, sites::delete_file, sites::get_file).map(&owned))
        .routes(routes!(sites::get_archive).map(&owned))
        .routes(routes!(revisions::promote).map(&owned))
        .routes(routes!(revisions::rollback).map(&owned))
        .routes(routes!(revisions::releases).map(&owned))
        .routes(
            routes!(
                backends::create,
                backends::get,
                backends::update,
                backends::delete
            )
            .map(&owned),
        )
        .routes(routes!(backends::define, backends::list_actions).map(&owned))
        .routes(routes!(backends::delete_action).map(&owned))
        .routes(routes!(backends::action_versions).map(&owned))
        .routes(routes!(backends::rollback_action).map(&owned))
        .routes(routes!(backends::query).map(&owned))
        .routes(routes!(backends::batch).map(&owned))
        .routes(routes!(exports::export).map(&owned))
        .routes(routes!(history::list).map(&owned))
        .routes(routes!(history::restore).map(&owned))
        .routes(routes!(rooms::list).map(&owned))
        .routes(routes!(rooms::send).map(&owned))
        .routes(routes!(payments::catalog, payments::add_price).map(&owned))
        .routes(routes!(payments::deactivate_price).map(&owned))
        .routes(routes!(payments::sessions).map(&owned))
        .routes(routes!(accounts::me).map(&owned))
        .routes(routes!(accounts::create, accounts::list).map(&owned))
        .routes(routes!(accounts::get, accounts::update, accounts::delete).map(&owned))
        .routes(routes!(accounts::add_member, accounts::members).map(&owned))
        .routes(routes!(accounts::set_role, accounts::remove_member).map(&owned))
        .routes(routes!(accounts::create_key, accounts::keys).map(&owned))
        .routes(routes!(accounts::revoke_key).map(&owned))
        .routes(routes!(audit::list).map(&owned))
        .routes(routes!(plans::checkout).map(&owned))
        .routes(routes!(plans::portal).map(&owned))
        .routes(routes!(sign_in::list).map(&owned))
        .routes(routes!(visitor_files::forget).map(&owned))
        .routes(routes!(visitor_files::list).map(&owned))
        .routes(routes!(visitor_files::get, visitor_files::delete).map(&owned))
        .routes(routes!(stats::stats).map(&owned))
        .routes(routes!(stats::log).map(&owned))
}

/// Has routes below a page's address answer other methods as if they were not there, unless the page is a site.
fn below_pages(routes: MethodRouter<SharedApp>) -> MethodRouter<SharedApp> {
    routes.fallback(pages::refuse_method)
}

/// Adds the fallbacks and the state of every router.
fn with_fallbacks(router: Router<SharedApp>, app: &SharedApp) -> Router {
    router
        .fallback(|| async { Problem::not_found() })
        .method_not_allowed_fallback(|| async { Problem::method_not_allowed() })
        .with_state(app.clone())
}

/// Adds the matched route to the answer, for the front's metrics.
async fn record_matched_route(route: MatchedPath, request: Request, next: Next) -> Response {
    let mut response = next.run(request).await;
    response.extensions_mut().insert(MatchedRoute(route));
    response
}
