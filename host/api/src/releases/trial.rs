//! Dry runs of releases: judged, rendered and compared as a release is, and nothing is kept.

use futures_util::{StreamExt as _, TryStreamExt as _, stream};

use super::model::{NewRelease, ReleaseError, ReleasePart};
use super::service::{PAGES_AT_ONCE, ProjectReleases, take_definitions};
use super::views::{PartChange, TriedAction, TriedMigration, TriedPage, TriedRelease};
use crate::backends::changes::SchemaDifference;
use crate::backends::model::DryRunEffect;
use crate::backends::releases::ActionEffect;
use crate::backends::views::{BrokenAction, SchemaChange};
use crate::deployments::frontends::Frontend;
use crate::deployments::revisions::{LivePages, PageReleaseError, PageToRelease};
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
        let schema = self.definitions.take_turn(project.id, &definitions).await?;
        let asked = definitions.clone();
        let judged = self
            .definitions
            .judge(project, &schema, definitions, true)
            .await?;
        self.compare(project, &new.expected_pages, &asked).await?;
        let effects = self.definitions.effects(&schema, judged).await?;
        let migrations = effects.migrations.into_iter().map(TriedMigration::from);
        let mut migrations: Vec<TriedMigration> = migrations.collect();
        let broken = effects.broken.into_iter();
        let broken_actions: Vec<BrokenAction> = broken
            .map(|(name, detail)| BrokenAction { name, detail })
            .collect();
        // Actions are tried against the schema that all migrations lead to.
        if let Some(last) = migrations.last_mut() {
            last.broken_actions.clone_from(&broken_actions);
        }
        let actions = effects.actions.into_iter().map(|(name, effect)| {
            let change = effect.into();
            TriedAction { name, change }
        });
        Ok(TriedRelease {
            migrations,
            actions: actions.collect(),
            pages,
            broken_actions,
        })
    }

    /// Tries the pages of a release, and compares their texts with what is live.
    async fn try_pages(
        &self,
        project: &Project,
        new: &NewRelease,
        live: &LivePages,
    ) -> Result<Vec<TriedPage>, ReleaseError> {
        let trying = stream::iter(0..new.pages.len()).map(|index| async move {
            let page = &new.pages[index];
            let tried = self.try_page(project, page, live.get(&page.slug)).await;
            tried.map_err(|error| ReleaseError::of_part(ReleasePart::Page(index), error))
        });
        let mut tried: Vec<TriedPage> = trying
            .buffered(PAGES_AT_ONCE as usize)
            .try_collect()
            .await?;
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

    /// Tries a page of a release, and compares its text with what is live.
    async fn try_page(
        &self,
        project: &Project,
        page: &PageToRelease,
        live: Option<&Frontend>,
    ) -> Result<TriedPage, PageReleaseError> {
        let tried = Box::pin(self.revisions.try_page(project, page, live)).await?;
        let change = match live {
            None => PartChange::New,
            Some(_) if tried.is_other => PartChange::Changed,
            Some(_) => PartChange::None,
        };
        Ok(TriedPage {
            slug: page.slug.clone(),
            change,
            added_lines: tried.lines.added,
            removed_lines: tried.lines.removed,
        })
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
            broken_actions: Vec::new(),
            warnings: run.warnings.into_iter().map(Into::into).collect(),
        }
    }
}
