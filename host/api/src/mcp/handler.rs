//! Answers the MCP library: the server's description, its tools, and calls of them.

use std::net::IpAddr;
use std::sync::Arc;

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, Implementation, ListResourceTemplatesResult,
    ListResourcesResult, ListToolsResult, PaginatedRequestParams, ProtocolVersion,
    ReadResourceRequestParams, ReadResourceResponse, ServerCapabilities, ServerConfig,
};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer, ServerHandler};
use serde_json::value::RawValue;
use tracing::Instrument;

use super::ToolServices;
use super::arguments::ToolArguments;
use super::auth::{self, RefusalForm, SenderIdentity};
use super::results;
use super::tools::{self, ToolCallOutcome};
use super::tools_only::{RESOURCE_METHODS, tools_only};
use crate::control::audit::{AuditActor, with_optional_actor};
use crate::http::context::HttpRequestContext;
use crate::workspaces::Caller;
use svc_sandbox::CallerFlow;

/// Instructions for a model that has never seen this service.
const INSTRUCTIONS: &str = include_str!("instructions.md");

/// Handler of one request.
#[derive(Clone, Debug)]
pub(super) struct McpRequestHandler {
    services: ToolServices,
    client: SenderIdentity,
    network: IpAddr,
    /// Scheduling flow of a call without a credential.
    anonymous_flow: CallerFlow,
    request_id: Arc<str>,
    /// Arguments of a tool call; the library gets none.
    arguments: Option<Arc<RawValue>>,
}

impl McpRequestHandler {
    pub(super) fn new(
        services: ToolServices,
        client: SenderIdentity,
        context: &HttpRequestContext,
        arguments: Option<Box<RawValue>>,
    ) -> Self {
        Self {
            services,
            client,
            network: context.client.network(),
            anonymous_flow: CallerFlow::stranger(context.client.0),
            request_id: Arc::clone(&context.request_id),
            arguments: arguments.map(Arc::from),
        }
    }

    async fn run(&self, tool: tools::Tool) -> ToolCallOutcome {
        if let Some(RefusalForm::Transport(problem) | RefusalForm::Result(problem)) =
            auth::refusal(&self.services, &self.client, Some(tool.name()))
        {
            return ToolCallOutcome::refused(problem);
        }
        let caller = match &self.client {
            SenderIdentity::Known(caller) => Some(caller.clone()),
            _ => None,
        };
        let arguments = match self.arguments.as_deref().map(|given| tool.arguments(given)) {
            None => ToolArguments::default(),
            Some(Ok(arguments)) => arguments,
            Some(Err(problem)) => return ToolCallOutcome::refused(problem),
        };
        let actor = caller
            .as_ref()
            .map(|caller| AuditActor::new(caller.id(), &self.request_id));
        let flow = caller
            .as_ref()
            .map_or_else(|| self.anonymous_flow.clone(), Caller::flow);
        let call = tool.call(&self.services, self.network, caller, arguments);
        Box::pin(flow.scope(with_optional_actor(actor, call))).await
    }
}

impl ServerHandler for McpRequestHandler {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder()
            .enable_tools()
            .enable_resources()
            .build();
        let name = Implementation::new("svc", env!("CARGO_PKG_VERSION"));
        ServerConfig::new(capabilities)
            .with_protocol_version(ProtocolVersion::V_2025_11_25)
            .with_server_info(name)
            .with_instructions(self.services.config.limits.fill_in(INSTRUCTIONS))
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(tools::list_tools(
            &self.services.config.limits,
        )))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let Some(tool) = tools::Tool::find_by_name(&request.name) else {
            let names = tools::NAMES.join(", ");
            let message = format!(
                "There is no tool `{}`. The tools are {names}.",
                request.name
            );
            return Err(ErrorData::invalid_params(message, None));
        };
        let started = self.services.clock.elapsed();
        let id = &*self.request_id;
        let span = tracing::debug_span!(
            "tool",
            id,
            tool = tool.name(),
            action = tracing::field::Empty
        );
        // The library continues after the client has hung up; only this token tells.
        let running = self.run(tool).instrument(span.clone());
        let Some(outcome) = context.ct.run_until_cancelled(running).await else {
            return Err(ErrorData::internal_error("the client has hung up", None));
        };
        span.record("action", outcome.action);
        let took = self.services.clock.elapsed().saturating_sub(started);
        let code = match &outcome.result {
            Ok(_) => "ok",
            Err(problem) => problem.code.as_str(),
        };
        let metrics = &self.services.metrics;
        metrics.count_tool(tool.name(), outcome.action, code, took);
        Ok(match outcome.result {
            Ok(value) => results::success_result(value),
            Err(problem) => {
                problem.log(id);
                results::failure_result(
                    problem
                        .document(&self.services.config.base_url, id)
                        .to_value(),
                )
            }
        }
        .into())
    }

    async fn list_resources(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        Ok(self.services.resources.list())
    }

    async fn list_resource_templates(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        Ok(ListResourceTemplatesResult::default())
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        self.services.resources.read(&request.uri).map(Into::into)
    }

    tools_only!(offered RESOURCE_METHODS);
}
