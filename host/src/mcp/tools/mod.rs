//! The tools: their names, their descriptions, and the way from a call to its file.

mod backend_parts;
mod deploy_asset;
mod find;
mod manage_backend;
mod manage_frontend;
mod manage_project;

use std::sync::{Arc, LazyLock};

use rmcp::model::{Tool as Description, ToolAnnotations};
use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::arguments::Arguments;
use super::auth;
use crate::app::SharedApp;
use crate::config::Limits;
use crate::http::problem::Problem;
use crate::projects::Project;
use crate::workspaces::Principal;

/// A tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tool {
    /// Publishes a quick share.
    DeployAsset,
    /// Projects.
    Project,
    /// A project's pages and their history.
    Frontend,
    /// A project's database and its actions.
    Backend,
}

/// The names of all tools, in the order in which they are listed.
pub const NAMES: [&str; 4] = [
    "deploy_asset",
    "manage_project",
    "manage_frontend",
    "manage_backend",
];

/// What became of a call.
#[derive(Debug)]
pub(super) struct Outcome {
    /// The action, as far as it was understood, for the metrics.
    pub(super) action: &'static str,
    /// What REST would answer.
    pub(super) result: Result<Value, Problem>,
}

/// Whether a tool may be called without a credential.
pub(super) fn is_open(name: &str) -> bool {
    Tool::named(name).is_none_or(|tool| tool == Tool::DeployAsset)
}

/// All tools as they are listed, with the numbers of the settings.
pub(super) fn listed(limits: &Limits) -> Vec<Description> {
    let said = |tool: &Description| {
        let mut tool = tool.clone();
        let text = tool.description.as_deref();
        tool.description = text.map(|text| limits.said(text).into());
        tool
    };
    all().iter().map(said).collect()
}

/// All tools, with the names of limits in the places of numbers.
fn all() -> &'static [Description] {
    static ALL: LazyLock<[Description; 4]> = LazyLock::new(|| {
        [
            deploy_asset::description(),
            manage_project::description(),
            manage_frontend::description(),
            manage_backend::description(),
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
        ]
        .into_iter()
        .find(|tool| tool.name() == name)
    }

    /// Its name.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::DeployAsset => NAMES[0],
            Self::Project => NAMES[1],
            Self::Frontend => NAMES[2],
            Self::Backend => NAMES[3],
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

    /// Calls it. Who has no principal can only publish.
    pub(super) async fn call(
        self,
        app: &SharedApp,
        principal: Option<Principal>,
        arguments: Arguments,
    ) -> Outcome {
        let app = Arc::clone(app);
        let mut action = "none";
        let result = match (self, principal) {
            (Self::DeployAsset, _) => deploy_asset::call(app, arguments).await,
            (_, None) => Err(auth::anonymous(self.name())),
            (Self::Project, Some(principal)) => {
                let caller = Caller { app, principal };
                manage_project::call(caller, arguments, &mut action).await
            }
            (Self::Frontend, Some(principal)) => {
                let caller = Caller { app, principal };
                manage_frontend::call(caller, arguments, &mut action).await
            }
            (Self::Backend, Some(principal)) => {
                let caller = Caller { app, principal };
                manage_backend::call(caller, arguments, &mut action).await
            }
        };
        Outcome { action, result }
    }
}

/// Whoever calls with a credential, and what they call.
struct Caller {
    app: SharedApp,
    principal: Principal,
}

impl Caller {
    /// A live project of theirs.
    async fn project(&self, id: &str) -> Result<Project, Problem> {
        Ok(self.app.projects.named(&self.principal, id).await?)
    }
}

/// An answer of REST's, as the document that it is on the wire.
fn answer(view: impl Serialize) -> Result<Value, Problem> {
    serde_json::to_value(view).map_err(|error| Problem::internal(&error))
}

/// What a deletion answers, which is a 204 in REST.
fn deleted() -> Value {
    json!({ "deleted": true })
}

/// A tool's description: a flat object of arguments, because models' APIs take no other.
fn describe(
    name: &'static str,
    text: &'static str,
    hints: ToolAnnotations,
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
    Description::new(name, text, schema).with_annotations(hints)
}

/// An argument that is a text.
fn string(about: &str) -> Value {
    json!({ "type": "string", "description": about })
}
