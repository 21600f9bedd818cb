//! The tools: their names, their descriptions, and the way from a call to its file.

mod backend_parts;
mod deploy_asset;
mod find;
mod manage_backend;
mod manage_frontend;
mod manage_payments;
mod manage_project;
mod manage_workspace;

use std::sync::{Arc, LazyLock};

use rmcp::model::{Tool as Description, ToolAnnotations};
use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::arguments::Arguments;
use super::{Tools, auth};
use crate::access::Floor;
use crate::backends::scope::BackendScope;
use crate::config::Limits;
use crate::deployments::frontends::scope::FrontendScope;
use crate::http::problem::Problem;
use crate::projects::scope::ProjectScope;
use crate::workspaces::Caller;

/// A tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tool {
    /// Publishes a quick share.
    DeployAsset,
    /// Manages projects.
    Project,
    /// A project's pages and their history.
    Frontend,
    /// A project's database and its actions.
    Backend,
    /// Manages what a project sells.
    Payments,
    /// Manages workspaces and their members.
    Workspace,
}

/// The names of all tools, in the order in which they are listed.
pub const NAMES: [&str; 6] = [
    "deploy_asset",
    "manage_project",
    "manage_frontend",
    "manage_backend",
    "manage_payments",
    "manage_workspace",
];

/// Outcome of a call.
#[derive(Debug)]
pub(super) struct Outcome {
    /// The action, as far as it was understood, for the metrics.
    pub(super) action: &'static str,
    /// Document that REST would answer.
    pub(super) result: Result<Value, Problem>,
}

/// Whether a tool may be called without a credential.
pub(super) fn is_open(name: &str) -> bool {
    Tool::named(name) == Some(Tool::DeployAsset)
}

/// All tools as they are listed, with the numbers of the settings.
pub(super) fn listed(limits: &Limits) -> Vec<Description> {
    let said = |tool: &Description| {
        let mut tool = tool.clone();
        let text = tool.description.as_deref();
        tool.description = text.map(|text| limits.said(text).into());
        let schema = Arc::make_mut(&mut tool.input_schema);
        if let Some(Value::Object(arguments)) = schema.get_mut("properties") {
            for argument in arguments.values_mut() {
                if let Some(Value::String(about)) = argument.get_mut("description") {
                    *about = limits.said(about);
                }
            }
        }
        tool
    };
    all().iter().map(said).collect()
}

/// All tools, with the names of limits in the places of numbers.
fn all() -> &'static [Description] {
    static ALL: LazyLock<[Description; 6]> = LazyLock::new(|| {
        [
            deploy_asset::description(),
            manage_project::description(),
            manage_frontend::description(),
            manage_backend::description(),
            manage_payments::description(),
            manage_workspace::description(),
        ]
    });
    &*ALL
}

impl Tool {
    /// The tool of a name.
    pub(super) fn named(name: &str) -> Option<Self> {
        [
            Self::DeployAsset,
            Self::Project,
            Self::Frontend,
            Self::Backend,
            Self::Payments,
            Self::Workspace,
        ]
        .into_iter()
        .find(|tool| tool.name() == name)
    }

    /// Returns the name.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::DeployAsset => NAMES[0],
            Self::Project => NAMES[1],
            Self::Frontend => NAMES[2],
            Self::Backend => NAMES[3],
            Self::Payments => NAMES[4],
            Self::Workspace => NAMES[5],
        }
    }

    /// The arguments of a call of it.
    ///
    /// # Errors
    /// `invalid_request`, naming an argument that is there twice; `invalid_json`.
    pub(super) fn arguments(self, given: &RawValue) -> Result<Arguments, Problem> {
        let about = all().iter().find(|about| about.name == self.name());
        let taken = about.and_then(|about| about.input_schema.get("properties"));
        let takes = |name: &str| taken.is_some_and(|taken| taken.get(name).is_some());
        Arguments::read(given, takes)
    }

    /// Calls it. Without a caller only publishing works.
    pub(super) async fn call(
        self,
        services: &Tools,
        caller: Option<Caller>,
        arguments: Arguments,
    ) -> Outcome {
        let services = services.clone();
        let mut action = "none";
        let result = match (self, caller) {
            (Self::DeployAsset, _) => deploy_asset::call(services, arguments).await,
            (_, None) => Err(auth::anonymous(self.name())),
            (Self::Project, Some(caller)) => {
                let session = Session { services, caller };
                manage_project::call(session, arguments, &mut action).await
            }
            (Self::Frontend, Some(caller)) => {
                let session = Session { services, caller };
                manage_frontend::call(session, arguments, &mut action).await
            }
            (Self::Backend, Some(caller)) => {
                let session = Session { services, caller };
                manage_backend::call(session, arguments, &mut action).await
            }
            (Self::Payments, Some(caller)) => {
                let session = Session { services, caller };
                manage_payments::call(session, arguments, &mut action).await
            }
            (Self::Workspace, Some(caller)) => {
                let session = Session { services, caller };
                manage_workspace::call(session, arguments, &mut action).await
            }
        };
        Outcome { action, result }
    }
}

/// A caller, and the services that it calls.
struct Session {
    services: Tools,
    caller: Caller,
}

impl Session {
    /// A live project that the caller has a role in.
    async fn project<F: Floor>(
        &self,
        arguments: &mut Arguments,
    ) -> Result<ProjectScope<F>, Problem> {
        let id = arguments.text("project_id")?;
        Ok(self.services.projects.named(&self.caller, &id).await?)
    }

    /// One of its frontends.
    async fn frontend<F: Floor>(
        &self,
        arguments: &mut Arguments,
    ) -> Result<FrontendScope<F>, Problem> {
        let at = self.project(arguments).await?;
        let target = arguments.frontend()?;
        Ok(FrontendScope::find(&self.services.deployments, at, &target).await?)
    }

    /// Finds the project's backend.
    async fn backend<F: Floor>(
        &self,
        arguments: &mut Arguments,
    ) -> Result<BackendScope<F>, Problem> {
        let at = self.project(arguments).await?;
        Ok(BackendScope::find(&self.services.backends, at).await?)
    }
}

/// An answer of REST's, as the document that it is on the wire.
fn answer(view: impl Serialize) -> Result<Value, Problem> {
    serde_json::to_value(view).map_err(|error| Problem::internal(&error))
}

/// Answers a deletion, which is a 204 in REST.
fn deleted() -> Value {
    json!({ "deleted": true })
}

/// A tool's description: a flat object of arguments, because models' APIs take no other.
fn describe(
    name: &'static str,
    text: &'static str,
    harm: Harm,
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
        .destructive(harm == Harm::Can)
        .idempotent(false);
    Description::new(name, text, schema).with_annotations(hints)
}

/// Harm that a tool's actions can do to what is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Harm {
    /// Some of them change or remove what is there.
    Can,
    /// They only add.
    Cannot,
}

/// An argument that is a text.
fn string(about: &str) -> Value {
    json!({ "type": "string", "description": about })
}
