//! Changes of actions: definitions, the return to an earlier version, and ends. All of them are one function of a control
//! transaction, which a release calls together with changes of pages.

use std::collections::{BTreeMap, HashSet};

use super::actions::ActionDefinitions;
use super::judging::JudgedAction;
use super::model::{ActionRemoval, BackendError, NewAction, StoredActionVersion, takes_file};
use super::store;
use crate::access::run_while_client_waits;
use crate::control::audit::AuditAction;
use crate::control::{self, ControlChange, Tx};
use crate::projects;
use svc_base::clock::Timestamp;
use svc_base::fault;
use svc_base::ids::{BackendId, ProjectId};

/// Changes of a backend's actions, which are made together or not at all.
#[derive(Clone, Debug, Default)]
pub struct ActionChanges {
    /// Actions to define.
    pub define: Vec<JudgedAction>,
    /// Actions to end; one that does not exist is no error.
    pub remove: Vec<ActionRemoval>,
    /// Whether all actions end that are not defined.
    pub replace: bool,
    /// Whether what is defined is an earlier version, for the audit.
    pub is_rollback: bool,
}

/// Backend whose actions are changed, with what a change depends on.
#[derive(Clone, Copy, Debug)]
pub struct ActionChangeTarget {
    pub project: ProjectId,
    pub backend: BackendId,
    /// Most bytes that the backend's definitions may take.
    pub most_bytes: u64,
    /// Time of the change.
    pub now: Timestamp,
}

/// Actions that a change was about, after it.
#[derive(Clone, Debug)]
pub struct ChangedActions {
    /// Newest version of each action that was to be defined.
    pub defined: Vec<StoredActionVersion>,
    /// Names of the actions that ended.
    pub ended: Vec<String>,
}

/// Effect of a definition on an action.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ActionDefinitionEffect {
    /// The newest version has the same SQL and the same defaults.
    Nothing,
    /// The next version.
    Version,
}

impl ActionDefinitionEffect {
    /// Compares `new` with the newest version of its action.
    pub(super) fn compare(new: &JudgedAction, newest: Option<&StoredActionVersion>) -> Self {
        let new = &new.row;
        match newest {
            Some(same)
                if same.checksum == new.checksum
                    && same.defaults == new.defaults
                    && same.files == new.files =>
            {
                Self::Nothing
            }
            _ => Self::Version,
        }
    }
}

impl ActionChanges {
    /// Lists the names that end, of those of the actions that the backend has.
    pub(super) fn ended<'a>(&self, known: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
        let defined: HashSet<&str> = self.define.iter().map(JudgedAction::name).collect();
        let removed = self.remove.iter().map(|removal| removal.name.as_str());
        let removed: HashSet<&str> = removed.collect();
        let ends = |name: &&str| removed.contains(name) || self.replace && !defined.contains(name);
        known.into_iter().filter(ends).collect()
    }

    /// Lists the actions to change, each with the version that it must have, and whether it is to end.
    pub(super) fn expectations(&self) -> impl Iterator<Item = (&str, Option<u64>, bool)> {
        let defined = self.define.iter();
        let defined = defined.map(|new| (new.name(), new.expected_version, false));
        let removed = self.remove.iter();
        let removed =
            removed.map(|removal| (removal.name.as_str(), removal.expected_version, true));
        defined.chain(removed)
    }
}

/// Changes the actions of a backend within a transaction: compares versions, stores and ends actions, checks their size, and records the
/// audit.
///
/// # Errors
/// `ActionConflict` with every conflict; `NotFound` for a backend that is gone; `Invalid`, if the definitions are too large. The
/// transaction must not be committed then.
pub fn apply(
    tx: &Tx<'_>,
    target: &ActionChangeTarget,
    changes: &ActionChanges,
) -> Result<ChangedActions, BackendError> {
    let (id, most_bytes) = (&target.backend, target.most_bytes);
    if !store::exists(tx, id).map_err(control::Error::from)? {
        return Err(BackendError::NotFound);
    }
    let conflicts = store::version_conflicts(tx, Some(id), changes.expectations());
    let conflicts = conflicts.map_err(control::Error::from)?;
    if !conflicts.is_empty() {
        return Err(BackendError::ActionConflict(conflicts));
    }
    let ended = end(tx, target, changes)?;
    let (defined, new) = define(tx, target, &changes.define)?;
    if !new.is_empty() {
        let taken = store::definition_bytes(tx, id).map_err(control::Error::from)?;
        if taken > most_bytes {
            return Err(BackendError::definitions_full(most_bytes));
        }
        record_definitions(tx, target, changes.is_rollback, &new)?;
    }
    if !ended.is_empty() || !new.is_empty() {
        tx.note(ControlChange::ActionsDefined(*id));
    }
    Ok(ChangedActions { defined, ended })
}

/// Ends the actions that a change leaves out; returns their names. All names are read only where all may end: a backend may have many
/// actions, and everybody's changes wait meanwhile.
fn end(
    tx: &Tx<'_>,
    target: &ActionChangeTarget,
    changes: &ActionChanges,
) -> Result<Vec<String>, control::Error> {
    let (project, id, now) = (&target.project, &target.backend, target.now);
    let known = match changes.replace {
        true => store::action_names(tx, id)?,
        false => {
            let removed = changes.remove.iter();
            removed.map(|removal| removal.name.clone()).collect()
        }
    };
    let mut ended = Vec::new();
    for name in changes.ended(known.iter().map(String::as_str)) {
        let Some(version) = store::newest_version(tx, id, name)? else {
            continue;
        };
        store::end_action(tx, id, name, version)?;
        let target = format!("{id}/{name}");
        projects::record_audit(tx, project, AuditAction::ActionDelete, &target, now)?;
        ended.push(name.to_owned());
    }
    Ok(ended)
}

/// Stores the next versions of the actions that change; returns the newest version of each action, and the names of those that changed.
fn define<'a>(
    tx: &Tx<'_>,
    target: &ActionChangeTarget,
    new: &'a [JudgedAction],
) -> Result<(Vec<StoredActionVersion>, Vec<&'a str>), control::Error> {
    let id = &target.backend;
    let (mut defined, mut changed) = (Vec::new(), Vec::new());
    for action in new {
        let newest = store::newest_action(tx, id, action.name())?;
        let effect = ActionDefinitionEffect::compare(action, newest.as_ref());
        let last = match newest {
            Some(newest) if effect == ActionDefinitionEffect::Nothing => {
                defined.push(newest);
                continue;
            }
            Some(newest) => newest.version,
            None => store::take_ended_version(tx, id, action.name())?,
        };
        let row = StoredActionVersion {
            version: last + 1,
            created_at: target.now,
            ..action.row.clone()
        };
        store::insert_action(tx, id, &row)?;
        defined.push(row);
        changed.push(action.name());
    }
    Ok((defined, changed))
}

/// Records new versions: one entry of a batch, and one of each action that was put back.
fn record_definitions(
    tx: &Tx<'_>,
    target: &ActionChangeTarget,
    is_rollback: bool,
    defined: &[&str],
) -> Result<(), control::Error> {
    let (project, id, now) = (&target.project, &target.backend, target.now);
    if !is_rollback {
        return projects::record_audit(tx, project, AuditAction::BackendDefine, id, now);
    }
    for name in defined {
        let name = format!("{id}/{name}");
        projects::record_audit(tx, project, AuditAction::ActionRollback, &name, now)?;
    }
    Ok(())
}

/// Puts what a change has defined in the place of what others have made of it since: its answer is about its own versions.
fn with_own(
    listed: Vec<StoredActionVersion>,
    own: Vec<StoredActionVersion>,
) -> Vec<StoredActionVersion> {
    let named = |action: StoredActionVersion| (action.name.clone(), action);
    let mut actions: BTreeMap<String, StoredActionVersion> =
        listed.into_iter().map(named).collect();
    actions.extend(own.into_iter().map(named));
    actions.into_values().collect()
}

impl ActionDefinitions {
    /// Returns the target of a change that is made now.
    pub fn change_target(&self, project: ProjectId, backend: BackendId) -> ActionChangeTarget {
        let infra = &self.backends.infra;
        ActionChangeTarget {
            project,
            backend,
            most_bytes: infra.config.limits.definition_bytes,
            now: infra.clock.now(),
        }
    }

    /// Defines actions: all of them, or none. With `replace`, those that the batch leaves out end. Returns the newest version of every
    /// action that the backend has.
    ///
    /// # Errors
    /// [`BackendError::Batch`] names every entry that is refused; [`BackendError::ActionConflict`] every other version than expected.
    pub async fn define(
        &self,
        project: ProjectId,
        batch: Vec<NewAction>,
        replace: bool,
    ) -> Result<Vec<StoredActionVersion>, BackendError> {
        let id = self.backends.require_backend(project).await?.id;
        self.backends.bring(id).await?;
        let define = run_while_client_waits(self.judge_batch(id, batch)).await??;
        self.backends.check_disk()?;
        let changes = ActionChanges {
            define,
            replace,
            ..ActionChanges::default()
        };
        let changed = self.change(project, id, changes, None).await?;
        fault::point("define.committed");
        let list = move |c: &_| store::actions(c, &id);
        let actions = self.backends.infra.control.read(list).await?;
        Ok(with_own(actions, changed.defined))
    }

    /// Makes an earlier version of an action the newest one again, if it is allowed and works still.
    ///
    /// # Errors
    /// `NoAction`, `NoActionVersion`, `ActionConflict`; `Refused`, if the version does not work any more.
    pub async fn roll_back(
        &self,
        project: ProjectId,
        wanted: (String, u64),
        expected_version: Option<u64>,
    ) -> Result<StoredActionVersion, BackendError> {
        let id = self.backends.require_backend(project).await?.id;
        self.backends.bring(id).await?;
        let old = self.stored_version(id, wanted.clone()).await?;
        let new = NewAction {
            files: takes_file(&old.verdict).then(|| old.files.to_request()),
            defaults: old.defaults.to_json_values(),
            name: old.name,
            sql: old.sql,
            note: old.note,
            expected_version,
        };
        let judged = run_while_client_waits(self.judge_batch(id, vec![new])).await?;
        let define = judged.map_err(BackendError::of_single_action)?;
        self.backends.check_disk()?;
        let changes = ActionChanges {
            define,
            is_rollback: true,
            ..ActionChanges::default()
        };
        let name = wanted.0.clone();
        let changed = self.change(project, id, changes, Some(wanted)).await?;
        fault::point("rollback_action.committed");
        let action = changed.defined.into_iter().next();
        action.ok_or(BackendError::NoAction(name))
    }

    /// Ends an action with all its versions; one that does not exist is no error.
    ///
    /// # Errors
    /// `ActionConflict`.
    pub async fn end(
        &self,
        project: ProjectId,
        removal: ActionRemoval,
    ) -> Result<(), BackendError> {
        let id = self.backends.require_backend(project).await?.id;
        self.backends.bring(id).await?;
        let changes = ActionChanges {
            remove: vec![removal],
            ..ActionChanges::default()
        };
        self.change(project, id, changes, None).await?;
        fault::point("delete_action.committed");
        Ok(())
    }

    /// Lists versions of an action before a given one, newest first.
    ///
    /// # Errors
    /// `NoAction`.
    pub async fn versions(
        &self,
        id: BackendId,
        name: String,
        page: (Option<u64>, u32),
    ) -> Result<Vec<StoredActionVersion>, BackendError> {
        let asked = name.clone();
        let read = move |c: &_| {
            let newest = store::newest_version(c, &id, &asked)?;
            Ok((newest, store::action_versions(c, &id, &asked, page)?))
        };
        match self.backends.infra.control.read(read).await? {
            (None, _) => Err(BackendError::NoAction(name)),
            (Some(_), versions) => Ok(versions),
        }
    }

    /// Makes a change in a transaction of its own, if a version exists that it was made from.
    async fn change(
        &self,
        project: ProjectId,
        id: BackendId,
        changes: ActionChanges,
        made_from: Option<(String, u64)>,
    ) -> Result<ChangedActions, BackendError> {
        let target = self.change_target(project, id);
        let control = &self.backends.infra.control;
        control
            .write(move |tx| {
                if let Some(version) = &made_from {
                    store::find_version(tx, &id, version)?;
                }
                apply(tx, &target, &changes)
            })
            .await
    }

    /// Returns a version of an action.
    async fn stored_version(
        &self,
        id: BackendId,
        version: (String, u64),
    ) -> Result<StoredActionVersion, BackendError> {
        let control = &self.backends.infra.control;
        let find = move |c: &_| Ok(store::find_version(c, &id, &version));
        control.read(find).await?
    }
}
