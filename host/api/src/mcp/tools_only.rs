//! Answers for an endpoint that offers only tools: methods of other capabilities are unknown.

use rmcp::ErrorData;
use rmcp::RoleServer;
use rmcp::model::{CustomRequest, ErrorCode};
use rmcp::service::RequestContext;

/// Methods of every era: if the library could not parse such a request, its params are invalid.
const MODERN_METHODS: [&str; 3] = ["server/discover", "tools/list", "tools/call"];
/// Methods of the era with `initialize`.
const LEGACY_METHODS: [&str; 2] = ["initialize", "ping"];

/// Refuses a request that the library could not parse or does not know.
pub(super) fn refusal(request: CustomRequest, context: &RequestContext<RoleServer>) -> ErrorData {
    let method = request.method;
    let legacy = context.meta.protocol_version().is_none();
    if MODERN_METHODS.contains(&&*method) || legacy && LEGACY_METHODS.contains(&&*method) {
        let message = format!("The params do not fit `{method}`.");
        return ErrorData::invalid_params(message, None);
    }
    let message = format!("There is no method `{method}`.");
    ErrorData::new(ErrorCode::METHOD_NOT_FOUND, message, None)
}

/// Defines the methods of a handler that offers only tools, because the library would answer some of them by default.
macro_rules! tools_only {
    () => {
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

        async fn on_custom_request(
            &self,
            request: rmcp::model::CustomRequest,
            context: rmcp::service::RequestContext<rmcp::RoleServer>,
        ) -> Result<rmcp::model::CustomResult, rmcp::ErrorData> {
            Err($crate::mcp::tools_only::refusal(request, &context))
        }
    };
}
pub(super) use tools_only;
