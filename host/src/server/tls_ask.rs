//! `GET /tls/ask?domain=` on the operators' listener: whether a proxy in front may ask for the certificate of a name.

use http::{StatusCode, Uri};

use crate::app::App;
use crate::http::extract::invalid_request;
use crate::http::problem::Problem;
use crate::tls::{NameKind, Names};

/// Answers 200 for a host of the installation, the origin of a project that is there, and a domain that is served.
///
/// # Errors
/// `not_found` for any other name.
pub(super) async fn answer(app: &App, uri: &Uri) -> Result<StatusCode, Problem> {
    let pairs = url::form_urlencoded::parse(uri.query().unwrap_or_default().as_bytes());
    let mut named = pairs.filter(|(parameter, _)| parameter == "domain");
    let (Some((_, name)), None) = (named.next(), named.next()) else {
        return Err(invalid_request(
            "Name one host in the query: `?domain=www.example.com`.",
        ));
    };
    let name = name.to_ascii_lowercase();
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
