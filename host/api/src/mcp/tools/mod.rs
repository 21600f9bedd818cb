//! The tools: their names, their descriptions, and the dispatch of calls.

mod backend_detail;
mod deploy_asset;
mod find;
mod frontend_content;
mod manage_backend;
mod manage_frontend;
mod manage_payments;
mod manage_project;
mod manage_workspace;

use std::net::IpAddr;
use std::sync::{Arc, LazyLock};

use rmcp::model::{Tool as Description, ToolAnnotations};
use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::arguments::{ToolAction as _, ToolArguments};
use super::{ToolServices, auth};
use crate::access::{MinimumRole, run_to_completion};
use crate::backends::scope::AuthorizedBackend;
use crate::config::Limits;
use crate::deployments::frontends::scope::AuthorizedFrontend;
use crate::deployments::model::DeploymentType;
use crate::deployments::publication::SharePublisher;
use crate::http::problem::Problem;
use crate::operations;
use crate::projects::scope::AuthorizedProject;
use crate::workspaces::Caller;
use svc_sandbox::ContentType;

macro_rules! tools {
    ($($(#[doc = $about:literal])+ $tool:ident $name:literal $file:ident;)+) => {
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Tool {
            /// Publishes a quick share, also without a credential.
            DeployAsset,
            $($(#[doc = $about])+ $tool,)+
        }

        /// Names of all tools, in the order in which they are listed.
        pub const NAMES: &[&str] = &["deploy_asset", $($name),+];

        impl Tool {
            const ALL: &[Self] = &[Self::DeployAsset, $(Self::$tool),+];

            pub(super) fn name(self) -> &'static str {
                match self {
                    Self::DeployAsset => "deploy_asset",
                    $(Self::$tool => $name,)+
                }
            }

            fn description(self) -> Description {
                match self {
                    Self::DeployAsset => deploy_asset::description(),
                    $(Self::$tool => $file::description(),)+
                }
            }

            /// Calls the tool. Without a caller only `deploy_asset` works.
            pub(super) async fn call(
                self,
                services: &ToolServices,
                network: IpAddr,
                caller: Option<Caller>,
                mut arguments: ToolArguments,
            ) -> ToolCallOutcome {
                let services = services.clone();
                match (self, caller) {
                    (Self::DeployAsset, caller) => {
                        // Boxed like all calls: their states are large, and would be copied by each layer around them.
                        let publisher = SharePublisher::new(network, caller);
                        let call = Box::pin(deploy_asset::call(services, publisher, arguments));
                        ToolCallOutcome {
                            action: NO_ACTION,
                            result: run_to_completion(call).await,
                        }
                    }
                    (_, None) => ToolCallOutcome::refused(auth::credential_required(self.name())),
                    $((Self::$tool, Some(caller)) => {
                        let wanted: $file::Action = match arguments.action() {
                            Ok(wanted) => wanted,
                            Err(problem) => return ToolCallOutcome::refused(problem),
                        };
                        let session = ToolSession { services, caller };
                        let call = Box::pin($file::call(session, wanted, arguments));
                        ToolCallOutcome {
                            action: wanted.name(),
                            result: run($name, wanted.name(), call).await,
                        }
                    })+
                }
            }
        }
    };
}

tools! {
    /// Manages projects.
    Project "manage_project" manage_project;
    /// Manages a project's pages and their history.
    Frontend "manage_frontend" manage_frontend;
    /// Manages a project's database and its actions.
    Backend "manage_backend" manage_backend;
    /// Manages what a project sells.
    Payments "manage_payments" manage_payments;
    /// Manages workspaces and their members.
    Workspace "manage_workspace" manage_workspace;
}

/// Action in the metrics for a call that names none.
const NO_ACTION: &str = "none";

/// Runs a call; to completion even if the client hangs up, unless it only reads.
async fn run(
    tool: &str,
    action: &str,
    call: impl Future<Output = Result<Value, Problem>> + Send + 'static,
) -> Result<Value, Problem> {
    if operations::only_reads(tool, action) {
        return call.await;
    }
    run_to_completion(call).await
}

/// Outcome of a call.
#[derive(Debug)]
pub(super) struct ToolCallOutcome {
    /// Name of the action for the metrics, if it was recognized.
    pub(super) action: &'static str,
    /// Document that REST would answer.
    pub(super) result: Result<Value, Problem>,
}

impl ToolCallOutcome {
    /// Returns the outcome of a call that was refused before its action was known.
    pub(super) fn refused(problem: Problem) -> Self {
        Self {
            action: NO_ACTION,
            result: Err(problem),
        }
    }
}

/// Whether a tool may be called without a credential.
pub(super) fn is_public(name: &str) -> bool {
    Tool::find_by_name(name) == Some(Tool::DeployAsset)
}

/// Lists all tools, with the values of settings in their texts.
pub(super) fn list_tools(limits: &Limits) -> Vec<Description> {
    let said = |tool: &Description| {
        let mut tool = tool.clone();
        let text = tool.description.as_deref();
        tool.description = text.map(|text| limits.fill_in(text).into());
        let schema = Arc::make_mut(&mut tool.input_schema);
        if let Some(Value::Object(arguments)) = schema.get_mut("properties") {
            for argument in arguments.values_mut() {
                if let Some(Value::String(about)) = argument.get_mut("description") {
                    *about = limits.fill_in(about);
                }
            }
        }
        tool
    };
    descriptions().iter().map(said).collect()
}

/// Returns all tools, with placeholders for values of settings.
fn descriptions() -> &'static [Description] {
    static DESCRIPTIONS: LazyLock<Vec<Description>> =
        LazyLock::new(|| Tool::ALL.iter().map(|tool| tool.description()).collect());
    &DESCRIPTIONS
}

impl Tool {
    /// Finds a tool by its name.
    pub(super) fn find_by_name(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|tool| tool.name() == name)
    }

    /// Reads the arguments of a call of this tool.
    ///
    /// # Errors
    /// `invalid_request` for a repeated argument; `invalid_json`.
    pub(super) fn arguments(self, given: &RawValue) -> Result<ToolArguments, Problem> {
        let about = descriptions()
            .iter()
            .find(|about| about.name == self.name());
        let taken = about.and_then(|about| about.input_schema.get("properties"));
        let takes = |name: &str| taken.is_some_and(|taken| taken.get(name).is_some());
        ToolArguments::read(given, takes)
    }
}

/// Caller of a tool, with the services.
struct ToolSession {
    services: ToolServices,
    caller: Caller,
}

impl ToolSession {
    /// Finds the live project that the arguments name, and checks the caller's role.
    async fn project<F: MinimumRole>(
        &self,
        arguments: &mut ToolArguments,
    ) -> Result<AuthorizedProject<F>, Problem> {
        let id = arguments.required_text("project_id")?;
        Ok(self
            .services
            .projects
            .find_scoped(&self.caller, &id)
            .await?)
    }

    /// Finds the frontend of the project that the arguments name.
    async fn frontend<F: MinimumRole>(
        &self,
        arguments: &mut ToolArguments,
    ) -> Result<AuthorizedFrontend<F>, Problem> {
        let at = self.project(arguments).await?;
        let target = arguments.frontend()?;
        Ok(AuthorizedFrontend::find(&self.services.frontends, at, &target).await?)
    }

    /// Finds the backend of the project that the arguments name.
    async fn backend<F: MinimumRole>(
        &self,
        arguments: &mut ToolArguments,
    ) -> Result<AuthorizedBackend<F>, Problem> {
        let at = self.project(arguments).await?;
        Ok(AuthorizedBackend::find(&self.services.backends, at).await?)
    }
}

/// Serializes a view as REST does.
fn to_json(view: impl Serialize) -> Result<Value, Problem> {
    serde_json::to_value(view).map_err(|error| Problem::internal(&error))
}

/// Returns `deleted`, where REST answers 204.
fn deletion_result(deletion: Result<(), Problem>) -> Result<Value, Problem> {
    deletion.map(|()| json!({ "deleted": true }))
}

/// Returns a tool's description. The arguments are one flat object, because models' APIs accept no other schema.
fn describe(
    name: &'static str,
    text: &'static str,
    harm: ToolDataRisk,
    arguments: &Value,
    required: &[&str],
) -> Description {
    let schema = json!({
        "type": "object",
        "properties": arguments,
        "required": required,
        "additionalProperties": false,
    });
    let schema = match schema {
        Value::Object(schema) => schema,
        _ => Map::new(),
    };
    let hints = ToolAnnotations::new()
        .read_only(false)
        .destructive(harm == ToolDataRisk::Destructive)
        .idempotent(false);
    Description::new(name, text, schema).with_annotations(hints)
}

/// Whether actions of a tool can change or remove existing data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ToolDataRisk {
    /// Some actions change or remove data.
    Destructive,
    /// All actions only add.
    AdditiveOnly,
}

/// Returns the schema of a string argument.
fn string_argument(about: &str) -> Value {
    json!({ "type": "string", "description": about })
}

/// Description of the argument `options`.
const OPTIONS_ARGUMENT: &str = "site: {fallback?: the file that answers unknown paths of an app with its own routes, immutable?: [\"/assets/*\"]}; as before if absent.";

/// Returns the schema of an argument that is an object, whose members the description names.
fn object_argument(about: &str) -> Value {
    json!({ "type": "object", "description": about })
}

/// Names of all types of a deployment.
fn type_names() -> Vec<&'static str> {
    let pages = ContentType::NAMES.into_iter();
    pages.chain([DeploymentType::Site.as_str()]).collect()
}
