//! Creates, describes and deletes backends.

use std::collections::HashMap;
use std::sync::Arc;

use quick_cache::sync::Cache;

use super::actions::ActionCache;
use super::drift;
use super::file_changes::FileChanges;
use super::model::{Backend, BackendDetail, BackendError, LedgerEntry};
use super::occupancy::{RoomOccupancy, RoomOccupancySource};
use super::store;
use super::verdicts::SqlJudge;
use crate::access::run_while_client_waits;
use crate::config::Config;
use crate::content::Digest;
use crate::control::audit::AuditAction;
use crate::control::kept_answers::AnswerRecorder;
use crate::control::{self, ControlChange, ControlDatabase, Tx};
use crate::deployments::frontends;
use crate::deployments::publication::{CapacityChecker, PublishError};
use crate::infra::Infra;
use crate::projects::{self, Project};
use svc_base::fault;
use svc_base::ids::{BackendId, ProjectId, WorkspaceId};
use svc_database::{DatabasePlace, Databases, DurableSource, MigrationScript, Schema};
use svc_sandbox::Sandbox;

/// Service of backends.
#[derive(Debug)]
pub struct Backends {
    pub(super) infra: Infra,
    pub(super) capacity: CapacityChecker,
    pub(super) databases: Arc<Databases>,
    pub(super) verdicts: Arc<SqlJudge>,
    pub(super) actions: Arc<ActionCache>,
    /// Digests of schemas and ledgers that were compared and match.
    pub(super) compared_schemas: Cache<BackendId, Digest>,
    /// Locks of migrations and restores.
    pub(super) migration_locks: super::migrations::MigrationLocks,
    rooms: Arc<dyn RoomOccupancySource>,
    /// Tables of payments, and which are behind.
    pub(super) mirrors: super::mirror::Mirrors,
    /// Backends whose files of visitors may have changed.
    pub(super) file_changes: FileChanges,
}

/// Backend to create.
#[derive(Clone, Debug)]
pub struct NewBackend {
    /// First script.
    pub ddl: String,
    /// Whether the rooms may be joined.
    pub realtime: bool,
}

impl Backends {
    /// Creates the service in a data directory; no database is opened yet. `durable` acknowledges commits, unless this machine does.
    ///
    /// # Errors
    /// When a directory cannot be opened.
    pub fn new(
        infra: Infra,
        capacity: CapacityChecker,
        sandbox: Sandbox,
        rooms: Arc<dyn RoomOccupancySource>,
        durable: Option<DurableSource>,
    ) -> anyhow::Result<Self> {
        let config = &infra.config;
        let databases = Arc::new(Databases::open_with_durable(
            &config.data,
            &config.limits.database_limits(),
            infra.clock.clone(),
            durable,
        )?);
        // The cache of actions handles a change first, because live queries read it.
        let actions = ActionCache::following(&infra.control);
        tell_databases(&infra.control, &databases);
        Ok(Self {
            databases,
            verdicts: Arc::new(SqlJudge::new(sandbox)),
            actions,
            compared_schemas: Cache::new(drift::MAX_REMEMBERED_MATCHES),
            migration_locks: super::migrations::MigrationLocks::default(),
            rooms,
            mirrors: super::mirror::Mirrors::default(),
            file_changes: FileChanges::default(),
            infra,
            capacity,
        })
    }

    /// Creates a project's backend. Durable when it returns.
    ///
    /// # Errors
    /// [`BackendError`]; then nothing was created.
    pub async fn create(
        &self,
        project: &Project,
        new: NewBackend,
        keep: AnswerRecorder<BackendDetail>,
    ) -> Result<BackendDetail, BackendError> {
        if self.find_by_project(project.id).await?.is_some() {
            return Err(BackendError::Exists);
        }
        let script = run_while_client_waits(self.judge_script(new.ddl, None)).await??;
        self.check_capacity(project.workspace.id).await?;
        let first = (self.new_id()?, script, None);
        self.create_judged(project, first, new.realtime, keep).await
    }

    /// Generates the id of a new backend.
    pub(super) fn new_id(&self) -> Result<BackendId, BackendError> {
        let id = BackendId::new(&self.infra.clock, &self.infra.random);
        Ok(id.map_err(anyhow::Error::from)?)
    }

    /// Creates a project's backend with its id, a judged script, and the note of that. Durable when it returns.
    ///
    /// # Errors
    /// [`BackendError`]; then nothing was created.
    pub(super) async fn create_judged(
        &self,
        project: &Project,
        (id, script, note): (BackendId, MigrationScript, Option<String>),
        realtime: bool,
        keep: AnswerRecorder<BackendDetail>,
    ) -> Result<BackendDetail, BackendError> {
        let backend = Backend {
            id,
            project: project.id,
            realtime,
            agents: false,
            created_at: self.infra.clock.now(),
        };
        let entry = LedgerEntry {
            version: 1,
            checksum: script.checksum.clone(),
            sql: script.sql.clone(),
            note,
            applied_at: backend.created_at,
        };
        let holder = self.thread_holder(project.workspace.id).await?;
        self.databases.set_workspaces([(backend.id, holder)]);
        let made = self.databases.create(backend.id, script.clone()).await;
        let inventory = made.map_err(|error| super::migrations::script_error(&script, error))?;
        let recorded = async {
            let detail = BackendDetail {
                bytes_on_disk: self.bytes_on_disk(id).await?,
                backend,
                occupancy: RoomOccupancy::default(),
                behind: None,
                inventory,
                ledger: vec![entry],
                unrecorded: Vec::new(),
                actions: Vec::new(),
            };
            self.record(detail, project.workspace.id, keep).await
        };
        let recorded = recorded.await;
        if recorded.is_err()
            && let Err(error) = self.remove_files(id).await
        {
            // The next start removes the files.
            tracing::warn!(%error, "a database that nobody owns cannot be removed");
        }
        let detail = recorded?;
        fault::point("provision.recorded");
        Ok(detail)
    }

    /// Records a new database as the project's backend, and binds the frontends that never had a backend.
    async fn record(
        &self,
        detail: BackendDetail,
        workspace: WorkspaceId,
        keep: AnswerRecorder<BackendDetail>,
    ) -> Result<BackendDetail, BackendError> {
        let (config, now) = (Arc::clone(&self.infra.config), self.infra.clock.now());
        self.infra
            .control
            .write(move |tx| {
                let backend = &detail.backend;
                let found = store::find_by_project(tx, &backend.project);
                if !projects::is_live(tx, &backend.project, now)? {
                    return Err(BackendError::NoProject);
                }
                if found.map_err(control::Error::from)?.is_some() {
                    return Err(BackendError::Exists);
                }
                store::check_cap(tx, &config, &workspace)?;
                store::insert(tx, backend, &workspace)?;
                for entry in &detail.ledger {
                    store::append(tx, &backend.id, entry)?;
                }
                frontends::bind_backend(tx, &backend.project, &backend.id)?;
                projects::record_audit(
                    tx,
                    &backend.project,
                    AuditAction::BackendCreate,
                    &backend.id,
                    now,
                )?;
                keep.store(tx, &detail)?;
                Ok(detail)
            })
            .await
    }

    pub fn config(&self) -> &Arc<Config> {
        &self.infra.config
    }

    /// Checks that the disk has room for new definitions.
    pub(super) fn check_disk(&self) -> Result<(), BackendError> {
        self.capacity.check_disk().map_err(|error| match error {
            PublishError::Capacity(why) => BackendError::Capacity(why),
            other => BackendError::Internal(other.into()),
        })
    }

    /// Checks that the disk and the caps allow another backend.
    pub(super) async fn check_capacity(&self, workspace: WorkspaceId) -> Result<(), BackendError> {
        self.check_disk()?;
        let config = Arc::clone(&self.infra.config);
        self.infra
            .control
            .read(move |c| Ok(store::check_cap(c, &config, &workspace)))
            .await?
    }

    /// Finds the backend of a project.
    pub async fn find_by_project(
        &self,
        project: ProjectId,
    ) -> Result<Option<Backend>, control::Error> {
        self.infra
            .control
            .read(move |c| store::find_by_project(c, &project))
            .await
    }

    /// Finds the backend of a project, which must have one.
    ///
    /// # Errors
    /// `NotFound`.
    pub(super) async fn require_backend(
        &self,
        project: ProjectId,
    ) -> Result<Backend, BackendError> {
        self.find_by_project(project)
            .await?
            .ok_or(BackendError::NotFound)
    }

    /// Returns how many bytes the migrations and actions of a backend take.
    pub(super) async fn definition_bytes(&self, id: BackendId) -> Result<u64, control::Error> {
        let control = &self.infra.control;
        control.read(move |c| store::definition_bytes(c, &id)).await
    }

    /// Returns the complete description of a project's backend.
    ///
    /// # Errors
    /// `NotFound` if the project has no backend.
    pub async fn detail(&self, project: ProjectId) -> Result<BackendDetail, BackendError> {
        let backend = self.require_backend(project).await?;
        let id = backend.id;
        let inventory = self.databases.inventory(id).await?;
        let (mut ledger, actions) = self
            .infra
            .control
            .read(move |c| Ok((store::ledger(c, &id)?, store::actions(c, &id)?)))
            .await?;
        let recorded = |version| ledger.iter().any(|entry| entry.version == version);
        if !inventory.markers.iter().all(|m| recorded(m.version)) {
            self.record_restores(id).await?;
            ledger = self
                .infra
                .control
                .read(move |c| store::ledger(c, &id))
                .await?;
        }
        Ok(BackendDetail {
            unrecorded: self.list_unrecorded_schema(id, &inventory, &ledger).await,
            bytes_on_disk: self.bytes_on_disk(id).await?,
            occupancy: self.rooms.occupancy(&id),
            behind: self.mirrors.lag_of(&id),
            backend,
            inventory,
            ledger,
            actions,
        })
    }

    async fn bytes_on_disk(&self, id: BackendId) -> Result<u64, BackendError> {
        let files = self.databases.files().clone();
        let bytes = tokio::task::spawn_blocking(move || files.disk_bytes(&id)).await;
        Ok(bytes
            .map_err(anyhow::Error::from)?
            .map_err(anyhow::Error::from)?)
    }

    /// Returns the schema of a backend.
    pub async fn schema(&self, id: BackendId) -> Result<Schema, BackendError> {
        Ok(self.databases.schema(id).await?)
    }

    /// Whether the rooms of a backend may be joined; false for a deleted backend.
    pub async fn is_realtime(&self, id: BackendId) -> Result<bool, control::Error> {
        self.infra
            .control
            .read(move |c| store::is_realtime(c, &id))
            .await
    }

    /// Opens or closes the rooms of a project's backend.
    ///
    /// # Errors
    /// `NotFound` if the project has no backend.
    pub async fn set_realtime(
        &self,
        project: ProjectId,
        realtime: bool,
    ) -> Result<BackendDetail, BackendError> {
        self.set_switch(project, move |tx, id| store::set_realtime(tx, id, realtime))
            .await
    }

    /// Changes a switch of a project's backend by `set`, which returns whether the backend exists.
    ///
    /// # Errors
    /// `NotFound` if the project has no backend.
    pub(super) async fn set_switch(
        &self,
        project: ProjectId,
        set: impl FnOnce(&Tx<'_>, &BackendId) -> Result<bool, control::Error> + Send + 'static,
    ) -> Result<BackendDetail, BackendError> {
        let id = self.require_backend(project).await?.id;
        let now = self.infra.clock.now();
        let there = self
            .infra
            .control
            .write(move |tx| {
                let there = set(tx, &id)?;
                if there {
                    projects::record_audit(tx, &project, AuditAction::BackendUpdate, &id, now)?;
                }
                Ok::<_, control::Error>(there)
            })
            .await?;
        if !there {
            return Err(BackendError::NotFound);
        }
        self.bring(id).await?;
        self.detail(project).await
    }

    /// Deletes a project's backend, if it has one. No call succeeds after this returns.
    ///
    /// # Errors
    /// Errors of the database or of the disk; the next start removes what is left.
    pub async fn delete(&self, project: ProjectId) -> Result<(), BackendError> {
        let now = self.infra.clock.now();
        let removed = self
            .infra
            .control
            .write(move |tx| {
                frontends::backend_changed(tx, &project)?;
                let removed = store::remove(tx, &project)?;
                if let Some(id) = &removed {
                    projects::record_audit(tx, &project, AuditAction::BackendDelete, id, now)?;
                }
                Ok::<_, control::Error>(removed)
            })
            .await?;
        fault::point("raze.deleted");
        let Some(id) = removed else {
            return Ok(());
        };
        self.remove_files(id).await?;
        fault::point("raze.removed");
        Ok(())
    }

    async fn remove_files(&self, id: BackendId) -> Result<(), BackendError> {
        let databases = Arc::clone(&self.databases);
        tokio::task::spawn_blocking(move || databases.remove(&id))
            .await
            .map_err(anyhow::Error::from)?
            .map_err(anyhow::Error::from)?;
        Ok(())
    }

    /// Reads which workspace each database counts for, and removes databases without a backend, which a crash has left. Runs before serving.
    ///
    /// # Errors
    /// Errors of the database or of the disk.
    pub async fn load_owners(&self) -> anyhow::Result<()> {
        let owned = self.infra.control.read(store::thread_holders).await?;
        for id in self.databases.files().list()? {
            if !owned.contains_key(&id) {
                self.databases.files().remove(&id)?;
            }
        }
        self.set_thread_holders(owned);
        Ok(())
    }

    /// Returns the workspace that the databases of a workspace count for.
    async fn thread_holder(&self, workspace: WorkspaceId) -> Result<WorkspaceId, control::Error> {
        let control = &self.infra.control;
        control
            .read(move |c| store::thread_holder(c, &workspace))
            .await
    }

    /// Reads again which workspace each database counts for: a plan may have changed.
    ///
    /// # Errors
    /// Errors of the database.
    pub async fn update_owners(&self) -> anyhow::Result<()> {
        self.set_thread_holders(self.infra.control.read(store::thread_holders).await?);
        Ok(())
    }

    fn set_thread_holders(&self, holders: HashMap<BackendId, Option<WorkspaceId>>) {
        let known = holders.into_iter();
        self.databases
            .set_workspaces(known.filter_map(|(id, workspace)| Some((id, workspace?))));
    }

    /// Takes the database of a backend that no other node has, for sockets that must be at one node alone. On a single machine nothing is
    /// done.
    ///
    /// # Errors
    /// When another node has it, or it cannot be loaded.
    pub async fn claim(&self, id: BackendId) -> Result<(), BackendError> {
        Ok(self.databases.claim(id).await?)
    }

    /// Brings the database of a backend to this node, which must write it together with the control database. On a single machine nothing
    /// is done.
    ///
    /// # Errors
    /// When another node does not give it up in time, or it cannot be loaded.
    pub(super) async fn bring(&self, id: BackendId) -> Result<(), BackendError> {
        Ok(self.databases.bring(id).await?)
    }

    /// Closes the database of a backend once its calls have ended. Its next use opens it again.
    pub fn close_database(&self, id: &BackendId) {
        self.databases.close_one(id);
    }

    /// Whether this node is to do the background work of a database: it has it, or has control and nobody has it.
    pub fn is_responsible(&self, id: BackendId) -> bool {
        match self.databases.place(id) {
            DatabasePlace::Here => true,
            DatabasePlace::Elsewhere => false,
            DatabasePlace::Nobody => !self.infra.control.is_follower(),
        }
    }

    /// Closes idle databases. In a cluster their places are given back once they are closed.
    pub async fn close_idle(&self) -> anyhow::Result<()> {
        let databases = Arc::clone(&self.databases);
        Ok(tokio::task::spawn_blocking(move || databases.close_idle()).await?)
    }

    /// Copies new commits of open databases into their histories, for each of them once a minute where this is called once a second.
    pub fn record_history(&self) {
        self.databases.record_history();
    }

    /// Deletes history that is too old.
    pub async fn forget_old(&self) -> anyhow::Result<()> {
        self.databases.prune_histories().await
    }

    /// Closes all databases. Blocks.
    pub fn close(&self) {
        self.databases.close_all();
        self.databases.await_closed();
    }
}

/// Tells these databases of changes from now on: which workspace a new one counts for, and that live queries are evaluated anew after
/// their actions are defined.
fn tell_databases(control: &ControlDatabase, databases: &Arc<Databases>) {
    let databases = Arc::clone(databases);
    control.on_change(move |change| match change {
        ControlChange::BackendCreated(id, workspace) => {
            databases.set_workspaces([(*id, *workspace)]);
        }
        ControlChange::ActionsDefined(id) => databases.announce_change(*id),
        // The files of an ended backend are removed by whoever ends it: that takes longer than a listener may.
        ControlChange::BackendEnded(_)
        | ControlChange::Slug(_)
        | ControlChange::Origin(_)
        | ControlChange::RealtimeOff(_)
        | ControlChange::ActionJudged(_)
        | ControlChange::SessionEnded(_)
        | ControlChange::SessionsEnded(_)
        | ControlChange::ContentBlocked(_)
        | ControlChange::ContentAllowed(_)
        | ControlChange::DomainServed { .. }
        | ControlChange::DomainEnded(_) => {}
    });
}
