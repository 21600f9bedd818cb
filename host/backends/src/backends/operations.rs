//! Operations on backends.

use std::sync::Arc;

use bytes::Bytes;

use super::calls::ActionCalls;
use super::calls::requests::{As, CallBatch, QueryBackend, check_ops};
use super::export::BackendExporter;
use super::history::BackendHistoryService;
use super::history::requests::{MomentsQuery, RestoreBackend};
use super::history::views::{HistoryView, RestoredView};
use super::model::QueryAccess;
use super::requests::{
    BackendChangeRequest, CreateBackend, DefineActions, DryRunQuery, UpdateBackend,
};
use super::scope::AuthorizedBackend;
use super::views::{ActionList, BackendView, Defined, Updated};
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

/// Defines actions, all or none of a batch, or tries them.
///
/// # Errors
/// `invalid_request`, `statement_refused`, with every failing entry.
pub async fn define(
    definitions: Arc<ActionDefinitions>,
    at: AuthorizedBackend<Editor>,
    (input, how): (DefineActions, DryRunQuery),
) -> Result<Defined, Problem> {
    let (project, batch) = (at.at.project.id, input.checked());
    Ok(if how.dry_run {
        let tried = definitions.try_actions(project, batch).await?;
        Defined::Tried(Box::new(tried.into()))
    } else {
        Defined::Actions(ActionList::new(&definitions.define(project, batch).await?))
    })
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
    Ok(actions.batch(at.backend.id, ops, by.as_ref()).await?.json)
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
