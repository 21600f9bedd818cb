//! Who calls the tool endpoint, and what they may not. One function decides, for the transport and for the tools.

use http::{HeaderMap, HeaderValue, header};

use super::tools;
use crate::app::App;
use crate::http::extract::{Presented, credential_invalid};
use crate::http::problem::{Code, Problem};
use crate::workspaces::Principal;

/// Who calls.
#[derive(Clone, Debug)]
pub(super) enum Caller {
    /// Somebody without a credential.
    Anonymous,
    /// Somebody with a valid one.
    Known(Principal),
    /// Somebody with one that is not, or that could not be checked.
    Refused(Problem),
}

/// How somebody learns that they may not.
#[derive(Clone, Debug)]
pub(super) enum Refusal {
    /// As an HTTP status, before any tool is called.
    Transport(Problem),
    /// As the result of the tool.
    Result(Problem),
}

/// Who calls, by the headers alone: a credential in an argument is nobody's.
pub(super) async fn identify(app: &App, headers: &HeaderMap) -> Caller {
    let found = match Presented::of(headers) {
        Presented::Nothing => return Caller::Anonymous,
        Presented::Malformed => Ok(None),
        Presented::Token(token) => app.workspaces.authenticate(token).await,
    };
    match found {
        Ok(Some(principal)) => Caller::Known(principal),
        Ok(None) => Caller::Refused(challenge(&app.config.base_url)),
        Err(error) => Caller::Refused(error.into()),
    }
}

/// Why this caller may not call this tool, or, without one, do anything at all. The only place that decides so.
pub(super) fn refusal(caller: &Caller, tool: Option<&str>) -> Option<Refusal> {
    match caller {
        Caller::Known(_) => None,
        Caller::Refused(problem) => Some(Refusal::Transport(problem.clone())),
        Caller::Anonymous => match tool {
            Some(tool) if !tools::is_open(tool) => Some(Refusal::Result(anonymous(tool))),
            _ => None,
        },
    }
}

/// The 401 of a credential that is none, which tells clients where to find out how to get one (RFC 9728).
fn challenge(base_url: &str) -> Problem {
    let value = format!(
        "Bearer error=\"invalid_token\", resource_metadata=\"{base_url}/.well-known/oauth-protected-resource/mcp\""
    );
    let value = HeaderValue::try_from(value)
        .unwrap_or(HeaderValue::from_static("Bearer error=\"invalid_token\""));
    let mut problem = credential_invalid();
    problem.headers = vec![(header::WWW_AUTHENTICATE, value)];
    problem
}

/// What somebody without a credential is told by a tool that needs one.
pub(super) fn anonymous(tool: &str) -> Problem {
    Problem::new(
        Code::Unauthorized,
        format!(
            "`{tool}` needs the credential of a namespace, and this connection has none. Ask the user to add the header `Authorization: Bearer <credential>` to this server in the MCP client's configuration; the operator of the service issues credentials. Never pass one as an argument. Without one, `deploy_asset` works."
        ),
    )
}
