//! The host of a request, and the site that answers at its root: told before routing, so that the routes know sites below their slugs alone.

use std::sync::Arc;

use axum::extract::Request;
use axum::response::{IntoResponse, Response};
use http::{HeaderValue, Method, StatusCode, Uri, header};

use super::canonical_path::{canonicalize, folder_of_odd_path, with_path};
use crate::app::App;
use crate::deployments::model::is_reserved;
use crate::deployments::serving::routes::MissingPath;
use crate::deployments::serving::{PageLookupError, ProjectOrigin};
use crate::http::client_ip::ClientIp;
use crate::http::hosts::HostKind;
use crate::http::problem::Problem;
use svc_sandbox::CallerFlow;

/// Host of a request.
#[derive(Debug)]
pub(super) struct RequestTarget {
    /// Kind of the host, whose routes answer.
    pub(super) host: HostKind,
    /// Origin of a project at whose root a site answers.
    origin: Option<Arc<ProjectOrigin>>,
    /// Origin that all requests to the host are sent to.
    redirect: Option<String>,
}

impl RequestTarget {
    /// Finds what answers at the root of a host, which comes with whether a probe is asked for. A label that no live project has is no
    /// host, but for probes.
    ///
    /// # Errors
    /// Those of the classification, and of the look-up.
    pub(super) async fn find(
        app: &App,
        client: ClientIp,
        classified: Result<(HostKind, bool), Problem>,
    ) -> Result<Self, Problem> {
        let (host, is_probe) = classified?;
        let origin = match host.project_label() {
            Some(label) => find_origin(app, client, label).await.map(Some),
            None => Ok(None),
        };
        let origin = match origin {
            Err(_) if is_probe => None,
            found => found?.filter(|origin| origin.root_site().is_some()),
        };
        // Probes answer on every other host, and are routes of the API host; the console's host has them itself.
        let is_files = origin.is_some() || matches!(host, HostKind::Preview(_));
        let host = match is_probe && !is_files && host != HostKind::Console {
            true => HostKind::Api,
            false => host,
        };
        let redirect = match &host {
            HostKind::Domain(domain) => domain.redirect_origin(&app.config, app.hosts.domains()),
            _ => None,
        };
        Ok(Self {
            host,
            origin,
            redirect,
        })
    }

    /// Returns the answer to a request to a domain that sends all of them to another origin: to the same path and query there.
    pub(super) fn redirect(&self, uri: &Uri) -> Option<Response> {
        let origin = self.redirect.as_ref()?;
        let path = uri.path_and_query().map_or("/", |path| path.as_str());
        // A request for the server as a whole has no path.
        let path = if path.starts_with('/') { path } else { "/" };
        let Ok(location) = HeaderValue::try_from(format!("{origin}{path}")) else {
            return Some(Problem::not_found().into_response());
        };
        let headers = [
            (header::LOCATION, location),
            // The owner may end it: a browser would keep a permanent one for ever.
            (header::CACHE_CONTROL, HeaderValue::from_static("no-store")),
        ];
        Some((StatusCode::PERMANENT_REDIRECT, headers).into_response())
    }

    /// Returns the path of a request if it can be that of no file and no route, and is below an address that may be a site's.
    pub(super) fn missing_path(&self, request: &Request) -> Option<MissingPath> {
        if !self.host.has_pages() || ![Method::GET, Method::HEAD].contains(request.method()) {
            return None;
        }
        let path = request.uri().path();
        let folder = folder_of_odd_path(path)?;
        let name = path.rsplit('/').next().unwrap_or_default();
        let site = self.origin.as_ref();
        let root = site.filter(|origin| origin.is_below_root(&folder));
        let root = root.and_then(|origin| origin.root_site());
        let below_root = folder.strip_prefix('/')?;
        let (slug, below) = match root {
            Some(slug) => (slug, below_root),
            None => below_root
                .split_once('/')
                .filter(|(slug, _)| !is_reserved(slug))?,
        };
        Some(MissingPath {
            slug: slug.to_owned(),
            path: format!("{below}{name}"),
            at_root: root.is_some(),
        })
    }

    /// Adds the slug of the site at the root to the path of a request that is for the site; returns whether it is.
    pub(super) fn add_slug(&self, request: &mut Request) -> Result<bool, Problem> {
        let site = self.origin.as_ref();
        let Some((origin, slug)) = site.and_then(|origin| Some((origin, origin.root_site()?)))
        else {
            return Ok(false);
        };
        let canonical = canonicalize(request.uri().path())?;
        let path = canonical.as_deref().unwrap_or(request.uri().path());
        if !origin.is_below_root(path) {
            return Ok(false);
        }
        let path = format!("/{slug}{path}");
        *request.uri_mut() = with_path(request.uri(), &path)?;
        Ok(true)
    }
}

/// Finds the origin of a label, in memory as a rule. A look-up counts for the client.
async fn find_origin(
    app: &App,
    client: ClientIp,
    label: &str,
) -> Result<Arc<ProjectOrigin>, PageLookupError> {
    match app.serving.known_origin(label) {
        Some(origin) => Ok(origin),
        None => Box::pin(CallerFlow::stranger(client.0).scope(app.serving.origin(label))).await,
    }
}
