//! Dry runs of releases: judged, rendered and compared as a release is, and nothing is kept.

use super::model::{NewRelease, ReleaseError, ReleasePart};
use super::service::{ProjectReleases, take_definitions};
use super::views::{PartChange, TriedAction, TriedMigration, TriedPage, TriedRelease};
use crate::backends::changes::SchemaDifference;
use crate::backends::model::DryRunEffect;
use crate::backends::releases::ActionEffect;
use crate::backends::views::{BrokenAction, SchemaChange};
use crate::deployments::revisions::LivePages;
use crate::projects::Project;

impl ProjectReleases {
    /// Tries a release.
    ///
    /// # Errors
    /// [`ReleaseError`], as for the release itself.
    pub async fn try_release(
        &self,
        project: &Project,
        mut new: NewRelease,
    ) -> Result<TriedRelease, ReleaseError> {
        let definitions = take_definitions(&mut new);
        let live = self.check(project, &new, &definitions).await?;
        let pages = self.try_pages(project, &new, &live).await?;
        let turn = self.take_turn(project, &definitions).await?;
        let asked = definitions.clone();
        let judged = self
            .definitions
            .judge(project, &turn.schema, definitions, true)
            .await?;
        self.compare(project, &new.expected_pages, &asked).await?;
        let effects = self.definitions.effects(&turn.schema, judged).await?;
        let actions = effects.actions.into_iter();
        let broken = effects.broken.into_iter();
        Ok(TriedRelease {
            migrations: effects
                .migrations
                .into_iter()
                .map(TriedMigration::from)
                .collect(),
            actions: actions
                .map(|(name, effect)| TriedAction {
                    name,
                    change: effect.into(),
                })
                .collect(),
            pages,
            broken_actions: broken
                .map(|(name, detail)| BrokenAction { name, detail })
                .collect(),
        })
    }

    /// Tries the pages of a release, and compares their texts with what is live.
    async fn try_pages(
        &self,
        project: &Project,
        new: &NewRelease,
        live: &LivePages,
    ) -> Result<Vec<TriedPage>, ReleaseError> {
        let mut tried = Vec::with_capacity(new.pages.len() + new.page_removals.len());
        for (index, page) in new.pages.iter().enumerate() {
            let live = live.get(&page.slug);
            let trial = Box::pin(self.revisions.try_page(project, page, live)).await;
            let changes =
                trial.map_err(|error| ReleaseError::of_part(ReleasePart::Page(index), error))?;
            let change = match (live, changes) {
                (None, _) => PartChange::New,
                (Some(_), true) => PartChange::Changed,
                (Some(_), false) => PartChange::None,
            };
            let lines = self
                .revisions
                .line_changes(live, Some(&page.content))
                .await?;
            tried.push(TriedPage {
                slug: page.slug.clone(),
                change,
                added_lines: lines.added,
                removed_lines: lines.removed,
            });
        }
        for slug in &new.page_removals {
            let live = live.get(slug);
            let lines = self.revisions.line_changes(live, None).await?;
            tried.push(TriedPage {
                slug: slug.clone(),
                change: live.map_or(PartChange::None, |_| PartChange::Removed),
                added_lines: lines.added,
                removed_lines: lines.removed,
            });
        }
        Ok(tried)
    }
}

impl From<ActionEffect> for PartChange {
    fn from(effect: ActionEffect) -> Self {
        match effect {
            ActionEffect::None => Self::None,
            ActionEffect::New => Self::New,
            ActionEffect::Changed => Self::Changed,
            ActionEffect::Removed => Self::Removed,
        }
    }
}

impl From<DryRunEffect> for TriedMigration {
    fn from(run: DryRunEffect) -> Self {
        Self {
            status: run.status,
            changes: SchemaDifference::between(&run.before, &run.after),
            schema: SchemaChange {
                before: run.before,
                after: run.after,
            },
            warnings: run.warnings.into_iter().map(Into::into).collect(),
        }
    }
}
