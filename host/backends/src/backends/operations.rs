//! Operations on backends.

use std::sync::Arc;

use bytes::Bytes;

use super::calls::ActionCalls;
use super::calls::requests::{As, CallBatch, QueryBackend, check_ops};
use super::export::BackendExporter;
use super::history::BackendHistoryService;
use super::history::requests::{MomentsQuery, RestoreBackend};
use super::history::views::{HistoryView, RestoredView};
use super::model::{ActionRemoval, QueryAccess};
use super::requests::{
    BackendChangeRequest, CreateBackend, DefineActions, DeleteAction, DryRunQuery,
    ListActionVersions, RollbackAction, UpdateBackend,
};
use super::scope::AuthorizedBackend;
use super::views::{
    ActionList, ActionVersionList, ActionView, BackendView, Defined, DescribedActionList, Updated,
};
use super::{ActionDefinitions, Backends, MigrationService};
use crate::access::{Editor, Viewer};
use crate::control::kept_answers::AnswerRecorder;
use crate::http::problem::Problem;
use crate::projects::scope::AuthorizedProject;

/// Creates the backend of a project. Durable when it returns.
///
/// # Errors
/// `ddl_refused`, `backend_exists`, `constraint_violation`, `capacity_reached`; then nothing was created.
pub async fn create(
    backends: Arc<Backends>,
    at: AuthorizedProject<Editor>,
    input: CreateBackend,
    keep: AnswerRecorder<BackendView>,
) -> Result<BackendView, Problem> {
    let config = Arc::clone(backends.config());
    let keep = keep.map_view(move |detail| BackendView::new(detail, &config));
    let detail = backends.create(&at.project, input.checked(), keep).await?;
    Ok(BackendView::new(&detail, backends.config()))
}

/// Returns the backend of a project.
///
/// # Errors
/// `not_found`, `database_busy`.
pub async fn get(
    backends: Arc<Backends>,
    at: AuthorizedProject<Viewer>,
) -> Result<BackendView, Problem> {
    let detail = backends.detail(at.project.id).await?;
    Ok(BackendView::new(&detail, backends.config()))
}

/// Applies or tries a migration, or switches realtime or the tools for agents.
///
/// # Errors
/// `nothing_to_update`, `ddl_refused`, `constraint_violation`, `migration_not_recorded`, `database_full`, `database_busy`.
pub async fn update(
    migrations: Arc<MigrationService>,
    at: AuthorizedBackend<Editor>,
    (input, how): (UpdateBackend, DryRunQuery),
) -> Result<Updated, Problem> {
    let (project, backends) = (at.at.project.id, migrations.backends());
    Ok(match input.checked(how)? {
        BackendChangeRequest::Try(ddl) => {
            let tried = migrations.try_migration(project, ddl).await?;
            Updated::Tried(Box::new(tried.into()))
        }
        BackendChangeRequest::Migrate { ddl, note } => {
            Updated::Migrated(migrations.migrate(project, ddl, note).await?.into())
        }
        BackendChangeRequest::Realtime(realtime) => {
            let detail = backends.set_realtime(project, realtime).await?;
            let view = BackendView::new(&detail, backends.config());
            Updated::Switched(Box::new(view))
        }
        BackendChangeRequest::Agents(agents) => {
            let detail = backends.set_agents(project, agents).await?;
            let view = BackendView::new(&detail, backends.config());
            Updated::Switched(Box::new(view))
        }
    })
}

/// Deletes the backend of a project with its data; a missing backend is not an error.
pub async fn delete(backends: Arc<Backends>, at: AuthorizedProject<Editor>) -> Result<(), Problem> {
    Ok(backends.delete(at.project.id).await?)
}

/// Lists the actions, with the columns of their rows.
///
/// # Errors
/// `query_timeout`, `database_busy`.
pub async fn list_actions(
    definitions: Arc<ActionDefinitions>,
    at: AuthorizedBackend<Viewer>,
) -> Result<DescribedActionList, Problem> {
    let described = definitions.describe(at.at.project.id).await?;
    Ok(DescribedActionList::new(described))
}

/// Defines actions, all or none of a batch, or tries them. With `replace`, those that are left out end.
///
/// # Errors
/// `invalid_request`, `statement_refused`, with every failing entry; `action_conflict`.
pub async fn define(
    definitions: Arc<ActionDefinitions>,
    at: AuthorizedBackend<Editor>,
    (input, how): (DefineActions, DryRunQuery),
) -> Result<Defined, Problem> {
    let project = at.at.project.id;
    let (batch, replace) = input.checked();
    Ok(if how.dry_run {
        let tried = definitions.try_actions(project, batch, replace).await?;
        Defined::Tried(Box::new(tried.into()))
    } else {
        let actions = definitions.define(project, batch, replace).await?;
        Defined::Actions(ActionList::new(&actions))
    })
}

/// Lists the versions of an action, newest first.
///
/// # Errors
/// `not_found`, `invalid_request`.
pub async fn action_versions(
    definitions: Arc<ActionDefinitions>,
    at: AuthorizedBackend<Viewer>,
    (name, input): (String, ListActionVersions),
) -> Result<ActionVersionList, Problem> {
    let (before, most) = input.checked()?;
    let versions = definitions.versions(at.backend.id, name, (before, most + 1));
    Ok(ActionVersionList::new(versions.await?, most))
}

/// Puts an earlier version of an action back, as its newest one.
///
/// # Errors
/// `not_found`, `statement_refused`, `action_conflict`.
pub async fn rollback_action(
    definitions: Arc<ActionDefinitions>,
    at: AuthorizedBackend<Editor>,
    (name, input): (String, RollbackAction),
) -> Result<ActionView, Problem> {
    let (version, expected) = (input.version.0, input.expected_version);
    let action = definitions.roll_back(at.at.project.id, (name, version), expected);
    Ok(ActionView::from(&action.await?))
}

/// Ends an action with its versions; an unknown one is no error.
///
/// # Errors
/// `action_conflict`.
pub async fn delete_action(
    definitions: Arc<ActionDefinitions>,
    at: AuthorizedBackend<Editor>,
    (name, input): (String, DeleteAction),
) -> Result<(), Problem> {
    let removal = ActionRemoval {
        name,
        expected_version: input.expected_version,
    };
    Ok(definitions.end(at.at.project.id, removal).await?)
}

/// Runs a statement of the owner's, without a page. It writes only for an editor who did not ask for reading alone.
///
/// # Errors
/// `forbidden` for a write, and errors of a query.
pub async fn query(
    actions: Arc<ActionCalls>,
    at: AuthorizedBackend<Viewer>,
    input: QueryBackend,
) -> Result<Vec<u8>, Problem> {
    let query = input.checked()?;
    let access = QueryAccess::of(at.at.authority, query.read_only);
    let answer = actions.query(at.backend.id, query.sql, query.params, access);
    Ok(answer.await?.json)
}

/// Calls actions in one transaction, as visitors do.
///
/// # Errors
/// Errors of a call, with the `index` of the op.
pub async fn batch(
    actions: Arc<ActionCalls>,
    at: AuthorizedBackend<Editor>,
    input: CallBatch,
) -> Result<Vec<u8>, Problem> {
    let ops = check_ops(input.ops)?;
    let by = input.by.map(As::checked).transpose()?;
    let mut rows = Vec::new();
    let done = actions.batch(at.backend.id, ops, by.as_ref(), &mut rows);
    Ok(done.await?.json)
}

/// Lists the moments that a database can be restored to.
///
/// # Errors
/// `invalid_request`, `database_busy`.
pub async fn history(
    histories: Arc<BackendHistoryService>,
    at: AuthorizedBackend<Viewer>,
    input: MomentsQuery,
) -> Result<HistoryView, Problem> {
    let part = input.checked()?;
    Ok(histories.history(at.at.project.id, part).await?.into())
}

/// Restores a database to a moment of its history.
///
/// # Errors
/// `not_found` for the moment, `constraint_violation`, `database_busy`.
pub async fn restore(
    histories: Arc<BackendHistoryService>,
    at: AuthorizedBackend<Editor>,
    input: RestoreBackend,
) -> Result<RestoredView, Problem> {
    let moment = input.checked()?;
    Ok(histories.restore(at.at.project.id, moment).await?.into())
}

/// Exports a database as one file.
///
/// # Errors
/// `query_timeout`, `database_busy`.
pub async fn export(
    exporter: Arc<BackendExporter>,
    at: AuthorizedBackend<Viewer>,
) -> Result<Bytes, Problem> {
    Ok(exporter.export(at.at.project.id).await?)
}
