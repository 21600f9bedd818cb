//! All routes and their layers: a newcomer starts here.
//!
//! The front (`server/front.rs`) comes first: it sets the request's id, its host, and the canonical form of its path. Then the order is that
//! of the specification: the router checks path and method, a route's layer the rate limit, a handler's extractors the credential and the
//! declared length; then the handler runs.

mod console;
mod passkey_policy;
pub mod paths;
mod probes;

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::{MatchedPath, Request};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, get, post};
use http::request::Parts;
use http::{Method, Uri};
use svc_base::names::is_slug;
use tower::Service as _;
use utoipa_axum::router::{OpenApiRouter, UtoipaMethodRouterExt};
use utoipa_axum::routes;

use crate::access::{AdmissionLayerState, OwnerBucket, admit, run_changes_to_completion};
use crate::accounts::audit::routes as audit;
use crate::accounts::metadata::routes as metadata;
use crate::accounts::plans::routes as plans;
use crate::accounts::routes as accounts;
use crate::activity::EntryKind;
use crate::app::{App, SharedApp};
use crate::backends::calls::routes::{self as calls, CallContext};
use crate::backends::export::routes as exports;
use crate::backends::history::routes as history;
use crate::backends::routes as backends;
use crate::config::Config;
use crate::deployments::files::routes as files;
use crate::deployments::frontends::routes as frontends;
use crate::deployments::model::is_reserved;
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
use crate::http::client_ip::ClientIp;
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
            description,
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
        let answer = answer.unwrap_or_else(|never| match never {});
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

/// Route of the files of sites.
pub const FILE_ROUTE: &str = "/{slug}/{*path}";
/// First segments of other routes below the address of a page.
const ROUTED_BELOW_PAGES: [&str; 7] = ["_svc", "api", "auth", "mcp", "payments", "raw", "ws"];

/// Whether a request is a page view, which [`view`] answers as the route `GET /{slug}` does.
pub fn is_view(host: &HostKind, request: &Request) -> bool {
    let pages = host.has_pages();
    pages && request.method() == Method::GET && slug_of_path(request.uri()).is_some()
}

/// Whether a request reads a page that may be in memory: a view, its head alone, or the source.
pub fn reads_page(host: &HostKind, method: &Method, uri: &Uri) -> bool {
    let pages = host.has_pages();
    let path = uri.path();
    let page = path.strip_suffix("/raw").filter(|page| !page.is_empty());
    let is_read = [Method::GET, Method::HEAD].contains(method);
    pages && is_read && slug_of_page(page.unwrap_or(path)).is_some()
}

/// Answers a page view without the router: views are by far the most requests, and the router's boxed futures would double their cost.
pub async fn view(app: &App, host: &HostKind, request: &Parts) -> Response {
    let slug = slug_of_path(&request.uri).unwrap_or_default();
    let shown = pages::show(&app.serving, host, slug, request).await;
    let has_passkeys = passkey_policy::is_reached(&app.config, host);
    passkey_policy::refuse_passkeys(has_passkeys, shown.into_response())
}

/// Whether a request is a view of a file below an address that may be a site's, which [`view_file`] answers as the route
/// [`FILE_ROUTE`] does. Its path is in the canonical form.
pub fn is_file_view(host: &HostKind, request: &Request) -> bool {
    host.has_pages()
        && request.method() == Method::GET
        && slug_of_file(request.uri().path()).is_some()
}

/// Answers a view of a file without the router, for the same reason; `at_root` says that the mount is the root of the host.
pub async fn view_file(
    app: &App,
    (host, at_root): (&HostKind, bool),
    request: Request,
) -> Response {
    let (parts, _) = request.into_parts();
    let slug = slug_of_file(parts.uri.path()).unwrap_or_default();
    let showing = pages::show_file(&app.serving, (host, at_root), slug, &parts);
    // It is larger than the answer to a page's view, which has no room for it.
    let shown = Box::pin(showing).await.into_response();
    passkey_policy::refuse_passkeys(passkey_policy::is_reached(&app.config, host), shown)
}

/// Whether a request is a call of an action, which [`call`] answers as the route `POST /{slug}/api/op` does.
pub fn is_call(host: &HostKind, request: &Request) -> bool {
    let pages = host.has_pages();
    pages && request.method() == Method::POST && called_slug(request.uri()).is_some()
}

/// Answers a call of an action without the router, for the same reason.
pub async fn call(
    app: &App,
    (host, client): (&HostKind, &ClientIp),
    (request_id, began): (&str, Duration),
    request: Request,
) -> Response {
    let context = CallContext {
        host,
        client,
        request_id,
        began,
    };
    let uri = request.uri().clone();
    let slug = called_slug(&uri).unwrap_or_default();
    calls::call(&app.calls, context, slug, request).await
}

/// Route of downloads of visitors' files.
pub const DOWNLOAD_ROUTE: &str = "/{slug}/api/files/{action}/{file_id}";

/// Whether a request is a download of a visitor's file, which [`download`] answers as the route [`DOWNLOAD_ROUTE`] does. Its path is in the
/// canonical form.
pub fn is_download(host: &HostKind, request: &Request) -> bool {
    let pages = host.has_pages();
    pages && request.method() == Method::GET && downloaded_file(request.uri().path()).is_some()
}

/// Answers a download of a visitor's file without the router, for the same reason.
pub async fn download(
    app: &App,
    (host, client): (&HostKind, &ClientIp),
    request: Request,
) -> Response {
    let (parts, _) = request.into_parts();
    let path = parts.uri.path().to_owned();
    let Some(at) = downloaded_file(&path) else {
        return Problem::not_found().into_response();
    };
    let answer =
        visitor_files::answer_download(&app.visitor_file_routes, (host, client), at, &parts);
    // It is larger than the answer to a page's view, which has no room for it.
    let answer = Box::pin(answer).await.into_response();
    passkey_policy::refuse_passkeys(passkey_policy::is_reached(&app.config, host), answer)
}

/// Returns slug, action and file of the canonical path of a download, which has nothing to be decoded.
fn downloaded_file(path: &str) -> Option<(&str, &str, &str)> {
    let (slug, rest) = path.strip_prefix('/')?.split_once("/api/files/")?;
    let (action, file) = rest.split_once('/')?;
    let is_plain = |part: &str| {
        let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
        !part.is_empty() && part.bytes().all(is_word)
    };
    let plain = is_slug(slug) && !is_reserved(slug) && is_plain(action) && is_plain(file);
    plain.then_some((slug, action, file))
}

/// Returns the slug of the canonical path of a call.
pub fn called_slug(uri: &Uri) -> Option<&str> {
    let slug = uri.path().strip_prefix('/')?.strip_suffix("/api/op")?;
    (is_slug(slug) && !is_reserved(slug)).then_some(slug)
}

/// Returns the slug of a path below it that no route has but that of files.
fn slug_of_file(path: &str) -> Option<&str> {
    let (slug, below) = path.strip_prefix('/')?.split_once('/')?;
    let first = below.split('/').next().unwrap_or_default();
    let is_routed = below.is_empty() || ROUTED_BELOW_PAGES.contains(&first);
    (!is_routed && is_slug(slug) && !is_reserved(slug)).then_some(slug)
}

/// Returns the slug, if the canonical path is nothing but a slug.
fn slug_of_path(uri: &Uri) -> Option<&str> {
    slug_of_page(uri.path())
}

fn slug_of_page(path: &str) -> Option<&str> {
    let slug = path.strip_prefix('/')?;
    (is_slug(slug) && !is_reserved(slug)).then_some(slug)
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
        .route(DOWNLOAD_ROUTE, get(visitor_files::download))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_download_has_a_plain_path() {
        let file = "file_01h455vb4pex5vsknk084sn02q";
        let path = format!("/shop/api/files/picture/{file}");
        assert_eq!(downloaded_file(&path), Some(("shop", "picture", file)));
        for other in [
            "/shop/api/files/picture",
            "/shop/api/files/a/b/c",
            "/api/api/files/a/b",
            "/shop/api/files/a/%62",
        ] {
            assert_eq!(downloaded_file(other), None, "{other}");
        }
    }

    #[test]
    fn whoever_reads_a_page_is_told_apart() {
        let project = HostKind::Project("shop".to_owned());
        for (host, method, path, reads) in [
            (&HostKind::Api, Method::GET, "/room", true),
            (&HostKind::Api, Method::HEAD, "/room", true),
            (&project, Method::GET, "/room/raw", true),
            (&HostKind::Sites, Method::HEAD, "/room/raw", true),
            (&HostKind::Api, Method::POST, "/room", false),
            (&HostKind::Api, Method::GET, "/room/api/schema", false),
            (&HostKind::Api, Method::GET, "/room/raw/raw", false),
            (&HostKind::Api, Method::GET, "/healthz", false),
            (&HostKind::Landing, Method::GET, "/room", false),
        ] {
            let uri: Uri = path.parse().unwrap();
            assert_eq!(reads_page(host, &method, &uri), reads, "{method} {path}");
        }
    }
}
