//! Answers the MCP library about an app: its description, its tools, and calls of them.

use std::sync::Arc;
use std::time::Duration;

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, Implementation, ListToolsResult,
    PaginatedRequestParams, ProtocolVersion, ServerCapabilities, ServerConfig,
};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer, ServerHandler};
use serde_json::value::RawValue;

use super::{AppToolServices, listing};
use crate::activity::{EntryKind, LoggedOutcome, LoggedRequest, PageActivity};
use crate::backends::calls::requests::CallParams;
use crate::http::client_ip::ClientIp;
use crate::http::problem::Problem;
use crate::mcp::tools_only::tools_only;
use crate::mcp::{arguments, results};
use svc_base::ids::BackendId;
use svc_base::names::is_action_name;
use svc_sandbox::CallerFlow;

/// Results of at most this many bytes are parsed on the request's own thread.
const MAX_INLINE_BYTES: usize = 131_072;
/// Name of all app tools in the metrics, because names that owners choose must not become labels.
const METRICS_NAME: &str = "app";

/// Handler of one request to an app.
#[derive(Clone, Debug)]
pub(super) struct AppRequestHandler {
    pub(super) services: AppToolServices,
    pub(super) slug: Arc<str>,
    /// Counters of the page, and its client.
    pub(super) page: Option<Arc<PageActivity>>,
    pub(super) client: ClientIp,
    pub(super) backend: BackendId,
    /// Instructions for agents; empty in requests that do not need them.
    pub(super) instructions: Arc<str>,
    pub(super) request_id: Arc<str>,
    /// Flow of the request, which the library's tasks do not have.
    pub(super) flow: CallerFlow,
    /// Arguments of a tool call; the library gets none.
    pub(super) arguments: Option<Arc<RawValue>>,
}

impl AppRequestHandler {
    async fn has_tool(&self, name: &str) -> Result<bool, Problem> {
        let definitions = &self.services.calls.definitions;
        let action = definitions.public_action(self.backend, name).await?;
        Ok(action.is_some_and(|action| listing::to_tool(&action, None).is_some()))
    }

    async fn run(&self, name: &str) -> Result<(CallToolResult, u64), Problem> {
        let given = self.arguments.as_deref().map(RawValue::get);
        let given: CallParams =
            given.map_or_else(|| Ok(CallParams::default()), arguments::parse)?;
        let actions = &self.services.calls.actions;
        let done = actions
            .call_action(self.backend, name, given.into(), None)
            .await?;
        let (json, rows) = (done.json, done.rows.of(0));
        let small = json.len() <= MAX_INLINE_BYTES;
        let read = move || serde_json::from_slice(&json).map(results::success_result);
        let read = if small {
            read()
        } else {
            let turn = self.services.large_results.acquire().await;
            let _turn = turn.map_err(|error| Problem::internal(&error))?;
            let read = tokio::task::spawn_blocking(read).await;
            read.map_err(|error| Problem::internal(&error))?
        };
        let read = read.map_err(|error| Problem::internal(&error))?;
        Ok((read, rows))
    }

    /// Counts a call, and writes it into the log of the page's project.
    fn record(&self, name: &str, took: Duration, done: Result<u64, &Problem>) {
        let Some(page) = &self.page else { return };
        let (calls, at) = (&self.services.calls, self.services.clock.now());
        let action = calls.definitions.known_action(self.backend, name);
        let project = page.project();
        let counters = action.as_ref().and_then(|action| action.activity(project));
        project.count_call(counters, at, took, done.map_err(|_| ()));
        let outcome = done.map_or_else(LoggedOutcome::failed, |_| LoggedOutcome::ok(200));
        let request = LoggedRequest {
            kind: EntryKind::Tool,
            at,
            took,
            client: Some(self.client),
            request_id: &self.request_id,
            action: action.map(|action| action.counted_name(project)),
            user_id: None,
            outcome,
        };
        calls.serving.activity().record(page, request);
    }

    /// Converts a problem of this server into an error of the library.
    fn to_error_data(&self, problem: &Problem) -> ErrorData {
        problem.log(&self.request_id);
        let message = format!("The tools cannot be read now: {}", problem.detail);
        ErrorData::internal_error(message, None)
    }
}

impl ServerHandler for AppRequestHandler {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder().enable_tools().build();
        let name = Implementation::new(&*self.slug, env!("CARGO_PKG_VERSION"));
        ServerConfig::new(capabilities)
            .with_protocol_version(ProtocolVersion::V_2025_11_25)
            .with_server_info(name)
            .with_instructions(&*self.instructions)
    }

    async fn list_tools(
        &self,
        request: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let after = request.and_then(|request| request.cursor);
        if after.as_deref().is_some_and(|after| !is_action_name(after)) {
            let message =
                "`cursor` is not valid: send `nextCursor` of the previous page, or leave it out.";
            return Err(ErrorData::invalid_params(message, None));
        }
        let definitions = &self.services.calls.definitions;
        match definitions
            .public_actions(self.backend, after.as_deref())
            .await
        {
            Ok(actions) => {
                // The types are advice, and the tools are there without them.
                let schema = self.services.calls.backends.schema(self.backend);
                let schema = self.flow.clone().scope(schema).await.ok();
                Ok(listing::tools_page(&actions, schema.as_ref()))
            }
            Err(error) => Err(self.to_error_data(&error.into())),
        }
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let in_flow = || self.flow.clone();
        let is_tool = in_flow().scope(self.has_tool(&request.name)).await;
        if !is_tool.map_err(|problem| self.to_error_data(&problem))? {
            let message = "This app has no such tool: `tools/list` names those that it has.";
            return Err(ErrorData::invalid_params(message, None));
        }
        let services = &self.services;
        let started = services.clock.elapsed();
        let done = in_flow().scope(self.run(&request.name)).await;
        let took = services.clock.elapsed().saturating_sub(started);
        let counted = done.as_ref().map(|(_, rows)| *rows);
        self.record(&request.name, took, counted);
        let code = done
            .as_ref()
            .map_or_else(|problem| problem.code.as_str(), |_| "ok");
        services
            .metrics
            .count_tool(METRICS_NAME, "call", code, took);
        Ok(match done {
            Ok((result, _)) => result,
            Err(problem) => {
                problem.log(&self.request_id);
                let base_url = &services.calls.config.base_url;
                results::failure_result(problem.document(base_url, &self.request_id).to_value())
            }
        }
        .into())
    }

    tools_only!();
}
