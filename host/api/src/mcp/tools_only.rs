//! Answers for methods of capabilities that an endpoint does not offer: they are unknown.

use rmcp::ErrorData;
use rmcp::RoleServer;
use rmcp::model::{CustomRequest, ErrorCode};
use rmcp::service::RequestContext;

/// Methods of every era: if the library could not parse such a request, its params are invalid.
const MODERN_METHODS: [&str; 3] = ["server/discover", "tools/list", "tools/call"];
/// Methods of an endpoint that has resources.
pub(super) const RESOURCE_METHODS: &[&str] = &[
    "resources/list",
    "resources/templates/list",
    "resources/read",
];
/// Methods of the era with `initialize`.
const LEGACY_METHODS: [&str; 2] = ["initialize", "ping"];

/// Refuses a request that the library could not parse or does not know; `offered` are methods beside those of tools.
pub(super) fn refusal(
    request: CustomRequest,
    context: &RequestContext<RoleServer>,
    offered: &[&str],
) -> ErrorData {
    let method = request.method;
    let legacy = context.meta.protocol_version().is_none();
    let is_offered = MODERN_METHODS.contains(&&*method) || offered.contains(&&*method);
    if is_offered || legacy && LEGACY_METHODS.contains(&&*method) {
        let message = format!("The params do not fit `{method}`.");
        return ErrorData::invalid_params(message, None);
    }
    let message = format!("There is no method `{method}`.");
    ErrorData::new(ErrorCode::METHOD_NOT_FOUND, message, None)
}

/// Defines the methods of a handler that offers only tools, because the library would answer some of them by default. With `offered` the
/// handler has resources, too, and defines their methods itself.
macro_rules! tools_only {
    () => {
        $crate::mcp::tools_only::tools_only!(offered & []);

        async fn list_resources(
            &self,
            _: Option<rmcp::model::PaginatedRequestParams>,
            _: rmcp::service::RequestContext<rmcp::RoleServer>,
        ) -> Result<rmcp::model::ListResourcesResult, rmcp::ErrorData> {
            Err(rmcp::ErrorData::method_not_found::<
                rmcp::model::ListResourcesRequestMethod,
            >())
        }

        async fn list_resource_templates(
            &self,
            _: Option<rmcp::model::PaginatedRequestParams>,
            _: rmcp::service::RequestContext<rmcp::RoleServer>,
        ) -> Result<rmcp::model::ListResourceTemplatesResult, rmcp::ErrorData> {
            Err(rmcp::ErrorData::method_not_found::<
                rmcp::model::ListResourceTemplatesRequestMethod,
            >())
        }
    };
    (offered $offered:expr) => {
        async fn complete(
            &self,
            _: rmcp::model::CompleteRequestParams,
            _: rmcp::service::RequestContext<rmcp::RoleServer>,
        ) -> Result<rmcp::model::CompleteResult, rmcp::ErrorData> {
            Err(rmcp::ErrorData::method_not_found::<
                rmcp::model::CompleteRequestMethod,
            >())
        }

        async fn list_prompts(
            &self,
            _: Option<rmcp::model::PaginatedRequestParams>,
            _: rmcp::service::RequestContext<rmcp::RoleServer>,
        ) -> Result<rmcp::model::ListPromptsResult, rmcp::ErrorData> {
            Err(rmcp::ErrorData::method_not_found::<
                rmcp::model::ListPromptsRequestMethod,
            >())
        }

        async fn on_custom_request(
            &self,
            request: rmcp::model::CustomRequest,
            context: rmcp::service::RequestContext<rmcp::RoleServer>,
        ) -> Result<rmcp::model::CustomResult, rmcp::ErrorData> {
            Err($crate::mcp::tools_only::refusal(
                request, &context, $offered,
            ))
        }
    };
}
pub(super) use tools_only;
