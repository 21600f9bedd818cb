//! `GET /tls/ask?domain=` on the operators' listener: whether a proxy in front may ask for the certificate of a name.

use http::{StatusCode, Uri};

use crate::app::App;
use crate::deployments::serving::PageLookupError;
use crate::http::hosts::previewed_revision;
use crate::http::problem::Problem;
use crate::tls::{NameKind, Names};
use svc_base::ids::RevisionId;

/// Answers 200 for a host of the installation, the origin of a project or a preview that is there, and a domain that is served.
///
/// # Errors
/// `not_found` for any other name.
pub(super) async fn answer(app: &App, uri: &Uri) -> Result<StatusCode, Problem> {
    let pairs = url::form_urlencoded::parse(uri.query().unwrap_or_default().as_bytes());
    let mut named = pairs.filter(|(parameter, _)| parameter == "domain");
    let (Some((_, name)), None) = (named.next(), named.next()) else {
        return Err(Problem::not_found());
    };
    let name = name.to_ascii_lowercase();
    let name = name.strip_suffix('.').unwrap_or(&name);
    if app.domains.served().contains(name) {
        return Ok(StatusCode::OK);
    }
    let is_ours = match Names::new(&app.config).classify(name) {
        Some(NameKind::Fixed) => true,
        Some(NameKind::Label(label)) => has_origin(app, label).await?,
        None => false,
    };
    match is_ours {
        true => Ok(StatusCode::OK),
        false => Err(Problem::not_found()),
    }
}

/// Whether a label is that of a preview or of a project.
async fn has_origin(app: &App, label: &str) -> Result<bool, Problem> {
    let previewed = previewed_revision(label).filter(|_| app.config.covers_all_labels());
    match previewed {
        Some(revision) => is_previewed(app, revision).await,
        None => Ok(app.projects.find_by_label(label).await?.is_some()),
    }
}

/// Whether a revision has a preview at an origin of its own.
async fn is_previewed(app: &App, revision: RevisionId) -> Result<bool, Problem> {
    match app.revisions.site_preview(revision).await {
        Ok(_) => Ok(true),
        Err(PageLookupError::NotFound | PageLookupError::Disabled) => Ok(false),
        Err(error) => Err(error.into()),
    }
}
