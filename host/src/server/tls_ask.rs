//! `GET /tls/ask?domain=` on the operators' listener: whether a proxy in front may ask for the certificate of a name.

use axum::extract::Query;
use axum::extract::rejection::QueryRejection;
use http::StatusCode;
use serde::Deserialize;

use crate::app::SharedApp;
use crate::http::extract::invalid_request;
use crate::http::problem::Problem;
use crate::tls::{NameKind, Names};

/// Name that a proxy asks for.
#[derive(Debug, Deserialize)]
pub(super) struct AskedName {
    domain: String,
}

/// Answers 200 for a host of the installation, the origin of a project that is there, and a domain that is served.
///
/// # Errors
/// `not_found` for any other name.
pub(super) async fn answer(
    app: SharedApp,
    asked: Result<Query<AskedName>, QueryRejection>,
) -> Result<StatusCode, Problem> {
    let asked = asked.map_err(|_| {
        invalid_request("Name one domain in the query: `?domain=` and the host name.")
    })?;
    let name = asked.domain.to_ascii_lowercase();
    if app.domains.served().contains(&name) {
        return Ok(StatusCode::OK);
    }
    let is_ours = match Names::new(&app.config).classify(&name) {
        Some(NameKind::Fixed) => true,
        Some(NameKind::Label(label)) => app.projects.find_by_label(label).await?.is_some(),
        None => false,
    };
    match is_ours {
        true => Ok(StatusCode::OK),
        false => Err(Problem::not_found()),
    }
}
