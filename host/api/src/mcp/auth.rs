//! Authentication and authorization at the tool endpoint. One function decides, for the transport and for the tools.

use http::{HeaderMap, HeaderValue, header};

use super::{ToolServices, tools};
use crate::access::{AuthenticationResult, credential_invalid};
use crate::http::problem::{Problem, ProblemCode};
use crate::workspaces::Caller;

/// Sender of a message.
#[derive(Clone, Debug)]
pub(super) enum SenderIdentity {
    /// No credential was sent.
    Anonymous,
    /// The credential is valid.
    Known(Caller),
    /// The credential is invalid, or could not be checked.
    Refused(Problem),
}

/// Form of the answer to a refusal.
#[derive(Clone, Debug)]
pub(super) enum RefusalForm {
    /// An HTTP status, before any tool is called.
    Transport(Problem),
    /// A tool result.
    Result(Problem),
}

/// Identifies the caller by the credential in the headers.
pub(super) async fn identify(services: &ToolServices, headers: &HeaderMap) -> SenderIdentity {
    match services.authenticator.identify(headers).await {
        Ok(AuthenticationResult::Nobody) => SenderIdentity::Anonymous,
        Ok(AuthenticationResult::Known(caller)) => SenderIdentity::Known(caller),
        Ok(AuthenticationResult::Invalid) => {
            SenderIdentity::Refused(with_challenge(services, credential_invalid(), true))
        }
        Err(problem) => SenderIdentity::Refused(problem),
    }
}

/// Decides whether a sender may call a tool or, without a tool, use the endpoint: `None` means yes. No other function decides this.
pub(super) fn refusal(
    services: &ToolServices,
    client: &SenderIdentity,
    tool: Option<&str>,
) -> Option<RefusalForm> {
    match client {
        SenderIdentity::Known(_) => None,
        SenderIdentity::Refused(problem) => Some(RefusalForm::Transport(problem.clone())),
        SenderIdentity::Anonymous => match tool {
            // Clients start to sign in only after a 401.
            Some(tool) if !tools::is_public(tool) && services.authenticator.tokens().is_some() => {
                Some(RefusalForm::Transport(with_challenge(
                    services,
                    credential_required(tool),
                    false,
                )))
            }
            Some(tool) if !tools::is_public(tool) => {
                Some(RefusalForm::Result(credential_required(tool)))
            }
            _ => None,
        },
    }
}

/// Adds the `WWW-Authenticate` header, which leads clients to a credential (RFC 9728, section 5.1); `invalid` means that they sent one.
fn with_challenge(services: &ToolServices, mut problem: Problem, invalid: bool) -> Problem {
    let error = if invalid {
        "error=\"invalid_token\", "
    } else {
        ""
    };
    let value = format!(
        "Bearer {error}resource_metadata=\"{}/.well-known/oauth-protected-resource/mcp\"",
        services.config.base_url
    );
    let value = HeaderValue::try_from(value).unwrap_or(HeaderValue::from_static("Bearer"));
    problem.headers = vec![(header::WWW_AUTHENTICATE, value)];
    problem
}

/// Returns the problem of a tool call that needs a credential and has none.
pub(super) fn credential_required(tool: &str) -> Problem {
    Problem::new(
        ProblemCode::Unauthorized,
        format!(
            "`{tool}` needs the credential of a namespace, and this connection has none. Ask the user to add the header `Authorization: Bearer <credential>` to this server in the MCP client's configuration; the operator of the service issues credentials. Never pass one as an argument. Without one, `deploy_asset` works."
        ),
    )
}
