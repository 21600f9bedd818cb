//! Publishing quick shares, and burning those that are read once.

use std::time::Duration;

use bytes::Bytes;

use super::store;
use super::views::Deployed;
use super::{DeleteToken, Shares};
use crate::access::run_while_client_waits;
use crate::control::kept_answers::AnswerRecorder;
use crate::control::{self, ControlChange};
use crate::deployments::files::{FileError, NewSite, PreparedSite, SiteTitle};
use crate::deployments::model::{Deployment, DeploymentType, display_title};
use crate::deployments::publication::{
    PagePlacement, PageSource, PublishError, RenderedPage, SharePublisher,
};
use crate::deployments::serving::password;
use crate::deployments::views::Warning;
use crate::deployments::{once_files, store as rows};
use crate::http::byte_budget::{ByteBudgetFull, BytePermit};
use svc_base::Stopwatch;
use svc_base::clock::Timestamp;
use svc_base::ids::{DeploymentId, ProjectId};
use svc_sandbox::ContentType;

/// Longest time from the reading of a page to its deletion, which a bucket may refuse for a moment; and the least for the deletion alone.
const BURN_TIMEOUT: Duration = Duration::from_secs(11);
const MIN_BURN_TIME: Duration = Duration::from_secs(1);

/// Share to publish; its fields are within their bounds.
#[derive(Clone, Debug)]
pub struct NewShare {
    /// The source.
    pub content: String,
    /// Type of the source.
    pub content_type: ContentType,
    /// The wanted slug.
    pub name: Option<String>,
    /// The page's title; its content's, if there is none.
    pub title: Option<String>,
    /// How long it lives, in seconds; as long as a share may, if absent.
    pub expires_in: Option<u64>,
    /// Whether its first reader is its last.
    pub one_time: bool,
    /// Password that readers must know.
    pub password: Option<String>,
}

/// Site to publish as a share; its fields are within their bounds.
#[derive(Debug)]
pub struct NewSiteShare {
    /// Files and options.
    pub site: NewSite,
    /// The wanted slug.
    pub name: Option<String>,
    /// The site's title; that of its start page, if there is none.
    pub title: Option<String>,
    /// How long it lives, in seconds; as long as a share may, if absent.
    pub expires_in: Option<u64>,
}

/// Row of a site's share, beside what its files say.
struct SiteShare {
    id: DeploymentId,
    name: Option<String>,
    expires_in: Option<u64>,
    by: SharePublisher,
}

/// Share that burns when it is read, ready to be published.
struct PreparedOneTimeShare {
    deployment: Deployment,
    page: RenderedPage,
    by: SharePublisher,
}

impl Shares {
    /// Publishes a quick share. Durable when it returns.
    ///
    /// # Errors
    /// See [`PublishError`]; nothing is stored then.
    #[tracing::instrument(name = "publish_share", skip_all, fields(content_type = share.content_type.as_str(), bytes = share.content.len()))]
    pub async fn publish(
        &self,
        share: NewShare,
        by: SharePublisher,
        keep: AnswerRecorder<Deployed>,
    ) -> Result<Deployed, PublishError> {
        self.capacity.check_share(&by).await?;
        let slug = self.slugs.reserve(share.name.as_deref()).await?;
        let created_at = self.infra.clock.now();
        let expires_at = created_at.plus_seconds(self.lifetime_seconds(share.expires_in));
        let page = self.render_page(&share, slug.as_str(), expires_at).await?;
        let token = DeleteToken::new(&self.infra.random)?;
        let mut deployment = Deployment {
            id: DeploymentId::new(&self.infra.clock, &self.infra.random)?,
            slug: slug.as_str().to_owned(),
            content_type: share.content_type.into(),
            title: if share.one_time {
                String::new()
            } else {
                page.title.clone()
            },
            one_time: share.one_time,
            password_hash: match share.password {
                Some(password) => Some(self.hash_password(password).await?),
                None => None,
            },
            source: None,
            artifact: None,
            project: ProjectId::QUICK_SHARES,
            host_label: None,
            backend: None,
            disabled: false,
            created_at,
            expires_at: Some(expires_at),
            delete_token: Some(token.digest()),
        };
        let title = display_title(&page.title);
        let deployed = self.compose_answer(&deployment, title, token, page.warnings.clone());
        if share.one_time {
            let once = PreparedOneTimeShare {
                deployment,
                page,
                by,
            };
            return self.publish_once(once, deployed, keep).await;
        }
        let stored = self.pipeline.store_rendered(share.content, &page).await?;
        let (address, now) = (deployment.address(), deployment.created_at);
        let caps = self.capacity.cap_check();
        self.pipeline
            .publish(stored, address, now, move |tx, published| {
                deployment.source = Some(published.source);
                deployment.artifact = Some(published.artifact);
                let holder = caps.check_share(tx, &by, published.bytes)?;
                store::insert(tx, &deployment, Some(published), &holder, published.bytes)?;
                keep.store(tx, &deployed)?;
                Ok(deployed)
            })
            .await
    }

    /// Publishes a site as a quick share. Durable when it returns.
    ///
    /// # Errors
    /// See [`FileError`]; nothing is stored then.
    pub async fn publish_site(
        &self,
        share: NewSiteShare,
        by: SharePublisher,
        keep: AnswerRecorder<Deployed>,
    ) -> Result<Deployed, FileError> {
        self.capacity.check_share(&by).await?;
        let id = DeploymentId::new(&self.infra.clock, &self.infra.random);
        let new = SiteShare {
            id: id.map_err(PublishError::from)?,
            name: share.name,
            expires_in: share.expires_in,
            by,
        };
        let title = match (share.title, &new.name) {
            (Some(title), _) => SiteTitle::Given(title),
            (None, name) => SiteTitle::OfStartPage(name.clone().unwrap_or_default()),
        };
        let site = self.files.prepare_share(&new.id, share.site, title).await?;
        let files = site.files();
        let made = self.keep_site(new, site, keep).await;
        if made.is_err() {
            self.files.give_up(&files).await?;
        }
        made
    }

    /// Makes a prepared site answer as a share.
    async fn keep_site(
        &self,
        new: SiteShare,
        site: PreparedSite,
        keep: AnswerRecorder<Deployed>,
    ) -> Result<Deployed, FileError> {
        let slug = self.slugs.reserve(new.name.as_deref()).await?;
        let created_at = self.infra.clock.now();
        let token = DeleteToken::new(&self.infra.random).map_err(PublishError::from)?;
        let mut deployment = Deployment {
            id: new.id,
            slug: slug.as_str().to_owned(),
            content_type: DeploymentType::Site,
            title: site.title,
            one_time: false,
            password_hash: None,
            source: None,
            artifact: None,
            project: ProjectId::QUICK_SHARES,
            host_label: None,
            backend: None,
            disabled: false,
            created_at,
            expires_at: Some(created_at.plus_seconds(self.lifetime_seconds(new.expires_in))),
            delete_token: Some(token.digest()),
        };
        let title = display_title(&deployment.title);
        let deployed = self.compose_answer(&deployment, title, token, site.warnings);
        let (caps, by, files) = (self.capacity.cap_check(), new.by, site.files);
        let address = deployment.address();
        self.pipeline
            .publish(
                site.publication,
                address,
                created_at,
                move |tx, published| {
                    deployment.source = Some(published.source);
                    deployment.artifact = Some(published.artifact);
                    let size = published.site.map_or(0, |site| site.bytes);
                    let bytes = published.bytes.saturating_add(size);
                    let holder = caps.check_share(tx, &by, bytes)?;
                    store::insert(tx, &deployment, Some(published), &holder, bytes)?;
                    files.adopt_live(tx, &deployment.id, created_at)?;
                    keep.store(tx, &deployed)?;
                    Ok(deployed)
                },
            )
            .await
    }

    /// Returns how long a share lives: as long as it asks for, and as a share may.
    fn lifetime_seconds(&self, expires_in: Option<u64>) -> i64 {
        let most = self.infra.config.limits.quick_share_seconds;
        let seconds = expires_in.unwrap_or(most).min(most);
        i64::try_from(seconds).unwrap_or(i64::MAX)
    }

    /// Renders a share's page, with what its foot says.
    async fn render_page(
        &self,
        share: &NewShare,
        slug: &str,
        expires_at: Timestamp,
    ) -> Result<RenderedPage, PublishError> {
        let source = PageSource {
            content_type: share.content_type,
            title: share.title.as_deref().unwrap_or_default(),
            name: share.name.as_deref(),
            text: &share.content,
        };
        let placement = PagePlacement {
            slug,
            expires_at: Some(expires_at),
            one_time: share.one_time,
            is_private: share.password.is_some(),
        };
        self.pipeline.render_share(source, placement).await
    }

    /// Publishes a page that burns: its one file instead of content, and no source.
    async fn publish_once(
        &self,
        once: PreparedOneTimeShare,
        deployed: Deployed,
        keep: AnswerRecorder<Deployed>,
    ) -> Result<Deployed, PublishError> {
        let PreparedOneTimeShare {
            deployment,
            page,
            by,
        } = once;
        let (id, bytes, caps) = (
            deployment.id,
            page.html.len() as u64,
            self.capacity.cap_check(),
        );
        once_files::write(&self.once, id, page.html).await?;
        let committing = self.pipeline.commit(move |tx| {
            let holder = caps.check_share(tx, &by, bytes)?;
            store::insert(tx, &deployment, None, &holder, bytes)?;
            keep.store(tx, &deployed)?;
            Ok(deployed)
        });
        let added = committing.await;
        if added.is_err() {
            once_files::burn(&self.once, id).await?;
        }
        added
    }

    /// Composes the answer to a publication.
    fn compose_answer(
        &self,
        deployment: &Deployment,
        title: String,
        delete_token: DeleteToken,
        warnings: Vec<Warning>,
    ) -> Deployed {
        Deployed {
            id: deployment.id,
            slug: deployment.slug.clone(),
            url: format!("{}/{}", self.infra.config.sites_url, deployment.slug),
            created_at: deployment.created_at,
            expires_at: deployment.expires_at.unwrap_or(deployment.created_at),
            title,
            delete_token,
            warnings,
        }
    }

    async fn hash_password(&self, password: String) -> Result<String, PublishError> {
        let salt = self.infra.random.bytes()?;
        let hashing = self
            .sandbox
            .check_lane()
            .run(move |_| password::hash_password(&password, &salt));
        let hash = run_while_client_waits(hashing).await??;
        hash.map_err(PublishError::Internal)
    }

    /// Burns a one-time share: of all who try, one gets its page. `None` for the others. `hold` counts the page while it is sent;
    /// where it refuses, nothing is burnt.
    ///
    /// # Errors
    /// Those of `hold`, the disk's or the database's. A caller that claimed the share before the failure has lost it, and no other gets it.
    pub(super) async fn burn(
        &self,
        slug: &str,
        id: DeploymentId,
        hold: impl FnOnce(usize) -> Result<Option<BytePermit>, ByteBudgetFull>,
    ) -> Result<Option<Bytes>, PublishError> {
        // Until the first has claimed the share, each other would read a copy of its page.
        let _reader = self.once.lock(&id).await;
        let opening = Stopwatch::start();
        let Some(page) = once_files::read(&self.once, id).await? else {
            return Ok(None);
        };
        let permit = hold(page.len())?;
        let (now, slug) = (self.infra.clock.now(), slug.to_owned());
        // Claiming comes before unlinking: two who have read the file must not both answer with it.
        let claimed = self
            .infra
            .control
            .write(move |tx| {
                tx.note(ControlChange::Slug(slug));
                rows::remove(tx, &id, now)
            })
            .await
            .map_err(|error: control::Error| PublishError::from(error))?;
        if !claimed {
            return Ok(None);
        }
        let left = BURN_TIMEOUT.saturating_sub(opening.elapsed());
        let burnt = once_files::burn_claimed(&self.once, id, left.max(MIN_BURN_TIME)).await;
        // The share is gone by now, whatever failed.
        burnt.map_err(|error| PublishError::Internal(error.into()))?;
        let page = Bytes::from(page);
        Ok(Some(match permit {
            Some(permit) => permit.attach(page),
            None => page,
        }))
    }
}
