//! `deploy_asset`: publishes a quick share, also without a credential.

use rmcp::model::Tool as Description;
use serde_json::{Value, json};

use super::{ToolDataRisk, describe, string_argument, to_json};
use crate::control::kept_answers::AnswerRecorder;
use crate::deployments::publication::SharePublisher;
use crate::deployments::shares::requests::DeployRequest;
use crate::http::extract::invalid_request;
use crate::http::problem::Problem;
use crate::mcp::ToolServices;
use crate::mcp::arguments::ToolArguments;
use svc_sandbox::ContentType;

const TOOL_DESCRIPTION: &str = "Publish one page at a public URL for {{quick_share_seconds}}, without an account. \
Give the user the url that it answers; keep id and delete_token, which are shown once: \
DELETE /api/v1/deploy/{id} with the token as bearer deletes the page, manage_frontend claim makes it a project's. \
It cannot be changed, and its scripts have no cookies, storage or svc.db: manage_project and manage_frontend make pages that last or have a backend.";

pub(super) fn description() -> Description {
    let arguments = json!({
        "content": string_argument("The page's whole source; no credential in it."),
        "type": { "type": "string", "enum": ContentType::NAMES, "default": "html", "description": "Of content." },
        "slug": string_argument("Last part of the URL: 1 to 63 of a-z, 0-9 and -; suffixed if taken, random if absent."),
        "title": string_argument("Up to 200 characters."),
        "expires_in": { "type": "integer", "description": "Seconds to live; {{quick_share_seconds}} if absent, and at most." },
        "one_time": { "type": "boolean", "description": "true: its first reader is its last." },
        "password": string_argument("What readers must enter."),
    });
    describe(
        "deploy_asset",
        TOOL_DESCRIPTION,
        ToolDataRisk::AdditiveOnly,
        &arguments,
        &["content"],
    )
}

pub(super) async fn call(
    services: ToolServices,
    publisher: SharePublisher,
    mut arguments: ToolArguments,
) -> Result<Value, Problem> {
    if arguments.has("name") {
        return Err(invalid_request(
            "In the arguments: unknown field `name`: the wanted name is `slug`.",
        ));
    }
    if arguments.has("slug") {
        let slug = arguments.required_text("slug")?;
        arguments.set("name", &slug)?;
    }
    let share = arguments
        .parse_rest::<DeployRequest>()?
        .checked_as("slug", &services.config.limits)?;
    let publishing = services
        .shares
        .publish(share, publisher, AnswerRecorder::none());
    to_json(publishing.await?)
}
