//! `deploy_asset`: publishes a quick share, also without a credential.

use rmcp::model::Tool as Description;
use serde_json::{Value, json};

use super::{
    OPTIONS_ARGUMENT, ToolDataRisk, describe, object_argument, string_argument, to_json, type_names,
};
use crate::control::kept_answers::AnswerRecorder;
use crate::deployments::publication::SharePublisher;
use crate::deployments::shares::requests::{DeployRequest, DeploySite};
use crate::http::extract::invalid_request;
use crate::http::problem::Problem;
use crate::mcp::ToolServices;
use crate::mcp::arguments::ToolArguments;

const TOOL_DESCRIPTION: &str = "Publish a page, or a site of files, at a public URL for {{quick_share_seconds}}, without an account. \
Give the user the url that it answers; keep id and delete_token, which are shown once: \
DELETE /api/v1/deploy/{id} with the token as bearer deletes the page, manage_frontend claim makes it a project's. \
It cannot be changed, and its scripts have no cookies, storage or svc.db: manage_project and manage_frontend make pages that last or have a backend.";

pub(super) fn description() -> Description {
    let arguments = json!({
        "content": string_argument("The page's whole source (required, but of a site); no credential in it."),
        "type": { "type": "string", "enum": type_names(), "default": "html", "description": "Of content; site: files instead." },
        "files": object_argument("site (required): {\"index.html\": {text}, \"a.png\": {base64}}, 100 files at most; addresses in them are relative."),
        "options": object_argument(OPTIONS_ARGUMENT),
        "slug": string_argument("Last part of the URL: 1 to 63 of a-z, 0-9 and -; suffixed if taken, random if absent."),
        "title": string_argument("Up to 200 characters."),
        "expires_in": { "type": "integer", "description": "Seconds to live; {{quick_share_seconds}} if absent, and at most." },
        "one_time": { "type": "boolean", "description": "Its first reader is its last; not of a site." },
        "password": string_argument("What readers must enter; not of a site."),
    });
    describe(
        "deploy_asset",
        TOOL_DESCRIPTION,
        ToolDataRisk::AdditiveOnly,
        &arguments,
        &[],
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
    let limits = &services.config.limits;
    if arguments.names_site() {
        let share = arguments
            .parse_rest::<DeploySite>()?
            .checked_as("slug", limits)?;
        let publishing = services
            .shares
            .publish_site(share, publisher, AnswerRecorder::none());
        return to_json(publishing.await?);
    }
    let share = arguments
        .parse_rest::<DeployRequest>()?
        .checked_as("slug", limits)?;
    let publishing = services
        .shares
        .publish(share, publisher, AnswerRecorder::none());
    to_json(publishing.await?)
}
