//! Effects that the definitions of a release would have, for its dry run.

use super::{DefinitionReleases, JudgedDefinitions, SchemaTurn};
use crate::backends::action_changes::ActionDefinitionEffect;
use crate::backends::model::{BackendError, DryRunEffect, MigrationStatus};
use crate::backends::store;
use svc_database::MigrationOutcome;

/// Effect that a release would have on an action.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ActionEffect {
    None,
    New,
    Changed,
    Removed,
}

/// Effects that the definitions of a release would have.
#[derive(Debug)]
pub struct DefinitionEffects {
    /// Effect of each migration, after those before it.
    pub migrations: Vec<DryRunEffect>,
    /// Effect on each action to define, then on each to end.
    pub actions: Vec<(String, ActionEffect)>,
    /// Actions that are left as they are and would not work any more, with the reasons.
    pub broken: Vec<(String, String)>,
}

impl DefinitionReleases {
    /// Tells what judged definitions would do.
    ///
    /// # Errors
    /// The database's.
    pub async fn effects(
        &self,
        turn: &SchemaTurn,
        judged: JudgedDefinitions,
    ) -> Result<DefinitionEffects, BackendError> {
        let backend = turn.backend;
        let read = move |c: &_| store::actions(c, &backend);
        let known = self.backends.infra.control.read(read).await?;
        let newest = |name: &str| known.iter().find(|known| known.name == name);
        let defined = judged.changes.define.iter().map(|new| {
            let newest = newest(new.name());
            let effect = match (newest, ActionDefinitionEffect::compare(new, newest)) {
                (_, ActionDefinitionEffect::Nothing) => ActionEffect::None,
                (None, ActionDefinitionEffect::Version) => ActionEffect::New,
                (Some(_), ActionDefinitionEffect::Version) => ActionEffect::Changed,
            };
            (new.name().to_owned(), effect)
        });
        let ended = judged.changes.remove.iter().map(|removal| {
            let effect = match newest(&removal.name) {
                Some(_) => ActionEffect::Removed,
                None => ActionEffect::None,
            };
            (removal.name.clone(), effect)
        });
        let actions = defined.chain(ended).collect();
        let (migrations, broken) = judged.into_effects();
        Ok(DefinitionEffects {
            migrations,
            actions,
            broken,
        })
    }
}

impl JudgedDefinitions {
    /// Returns the effect of each migration, and the broken actions.
    fn into_effects(self) -> (Vec<DryRunEffect>, Vec<(String, String)>) {
        let Some(effect) = self.effect else {
            return (Vec::new(), Vec::new());
        };
        let mut schema = effect.before;
        let mut tried = effect.migrated.into_iter().zip(effect.after_each);
        let mut migrations = Vec::with_capacity(self.migrations.len());
        for migration in &self.migrations {
            let next = migration.pending.and_then(|_| tried.next());
            let (status, warnings, after) = match next {
                None => (MigrationStatus::AlreadyApplied, Vec::new(), schema.clone()),
                Some((MigrationOutcome::Applied(_, warnings), after)) => {
                    (MigrationStatus::Applied, warnings, after)
                }
                Some((MigrationOutcome::AlreadyApplied(_), after)) => {
                    (MigrationStatus::Healed, Vec::new(), after)
                }
            };
            migrations.push(DryRunEffect {
                status,
                before: std::mem::replace(&mut schema, after.clone()),
                after,
                broken: Vec::new(),
                removed: None,
                warnings,
            });
        }
        let broken = effect.broken_statements.into_iter();
        (
            migrations,
            broken.map(|one| (one.name, one.reason)).collect(),
        )
    }
}
