//! `deploy_asset`: a quick share, which anybody may publish.

use rmcp::model::{Tool as Description, ToolAnnotations};
use serde_json::{Value, json};

use super::{answer, describe, string};
use crate::access::to_the_end;
use crate::control::answers::Keep;
use crate::deployments::requests::DeployRequest;
use crate::http::extract::invalid;
use crate::http::problem::Problem;
use crate::mcp::Tools;
use crate::mcp::arguments::Arguments;
use svc_sandbox::ContentType;

const ABOUT: &str = "Publish one page at a public URL for {{quick_share_seconds}}, without an account: {{content_types}}. \
Answers {id, slug, url, created_at, expires_at, title, delete_token}: give the user the url, and keep id and delete_token, which are shown once: \
DELETE /api/v1/deploy/{id} with the token as bearer deletes the page, and manage_frontend claim makes it a project's. \
Its scripts run in a sandbox without cookies, storage and svc.db. It cannot be changed afterwards; \
for a page that lasts or has a backend, use manage_project and manage_frontend.";

pub(super) fn description() -> Description {
    let arguments = json!({
        "content": string("The whole source of the page. Never put a credential into it."),
        "type": { "type": "string", "enum": ContentType::NAMES, "default": "html", "description": "What the content is written in." },
        "slug": string("The last part of the URL that you would like: 1 to 63 of a-z, 0-9 and -. With a suffix if it is taken; random if absent."),
        "title": string("The page's title, up to 200 characters."),
        "expires_in": { "type": "integer", "minimum": 60, "description": "How long the page lives, in seconds; {{quick_share_seconds}} if absent, which is the most." },
        "one_time": { "type": "boolean", "description": "true: the first reader to open it is the last." },
        "password": string("What readers must enter."),
    });
    let hints = ToolAnnotations::with_title("Publish a page without an account")
        .read_only(false)
        .destructive(false)
        .idempotent(false)
        .open_world(true);
    describe("deploy_asset", ABOUT, hints, &arguments, &["content"])
}

pub(super) async fn call(services: Tools, mut arguments: Arguments) -> Result<Value, Problem> {
    if arguments.has("name") {
        return Err(invalid(
            "In the arguments: unknown field `name`: the wanted name is `slug`.",
        ));
    }
    if arguments.has("slug") {
        let slug = arguments.text("slug")?;
        arguments.give("name", &slug)?;
    }
    let share = arguments
        .rest::<DeployRequest>()?
        .checked_as("slug", &services.config.limits)?;
    let publishing = async move {
        let keep = Keep::nothing();
        services.deployments.publish_share(share, keep).await
    };
    answer(to_the_end(publishing).await?)
}
