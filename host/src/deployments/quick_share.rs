//! Quick shares: pages that anybody may publish, for a time.

use bytes::Bytes;

use super::model::{Deployment, shown_title};
use super::password;
use super::publish::{PageSource, Placement, PublishError, RenderedPage};
use super::room::Publisher;
use super::sharing::DeleteToken;
use super::timings::Stage;
use super::views::{Deployed, Warning};
use super::{Deployments, store};
use crate::access::while_client_waits;
use crate::control::kept_answers::AnswerKeeper;
use crate::control::{self, Change};
use svc_base::clock::Timestamp;
use svc_base::ids::DeploymentId;
use svc_sandbox::ContentType;

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

/// Share that burns when it is read, ready to be published.
struct OneTime {
    deployment: Deployment,
    page: RenderedPage,
    by: Publisher,
}

impl Deployments {
    /// Publishes a quick share. Durable when it returns.
    ///
    /// # Errors
    /// See [`PublishError`]; nothing is stored then.
    #[tracing::instrument(skip_all, fields(content_type = share.content_type.as_str(), bytes = share.content.len()))]
    pub async fn publish_share(
        &self,
        share: NewShare,
        by: Publisher,
        keep: AnswerKeeper<Deployed>,
    ) -> Result<Deployed, PublishError> {
        self.check_share_room(&by).await?;
        let slug = self.reserve_slug(share.name.as_deref()).await?;
        let created_at = self.clock.now();
        let most = self.config.limits.quick_share_seconds;
        let seconds = share.expires_in.unwrap_or(most).min(most);
        let seconds = i64::try_from(seconds).unwrap_or(i64::MAX);
        let expires_at = created_at.plus_seconds(seconds);
        let page = self.share_page(&share, slug.as_str(), expires_at).await?;
        let token = DeleteToken::new(&self.random)?;
        let mut deployment = Deployment {
            id: DeploymentId::new(&self.clock, &self.random)?,
            slug: slug.as_str().to_owned(),
            content_type: share.content_type,
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
            host_label: None,
            backend: None,
            disabled: false,
            created_at,
            expires_at: Some(expires_at),
            delete_token: Some(token.digest()),
        };
        let title = shown_title(&page.title);
        let deployed = self.deployed(&deployment, title, token, page.warnings.clone());
        if share.one_time {
            let once = OneTime {
                deployment,
                page,
                by,
            };
            return self.publish_once(once, deployed, keep).await;
        }
        let stored = self.store_made(share.content, &page).await?;
        let (address, now, room) = (deployment.address(), deployment.created_at, self.room());
        self.publish(stored, address, now, move |tx, published| {
            deployment.source = Some(published.source);
            deployment.artifact = Some(published.artifact);
            let holder = room.for_share(tx, &by, published.bytes)?;
            store::insert(tx, &deployment, &published.by, &holder, published.bytes)?;
            keep.store(tx, &deployed)?;
            Ok(deployed)
        })
        .await
    }

    /// Renders a share's page, with what its foot says.
    async fn share_page(
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
        let placement = Placement {
            slug,
            expires_at: Some(expires_at),
            one_time: share.one_time,
            is_private: share.password.is_some(),
        };
        self.render_share(source, placement).await
    }

    /// Publishes a page that burns: its one file instead of content, and no source.
    async fn publish_once(
        &self,
        once: OneTime,
        deployed: Deployed,
        keep: AnswerKeeper<Deployed>,
    ) -> Result<Deployed, PublishError> {
        let OneTime {
            deployment,
            page,
            by,
        } = once;
        let (id, bytes, room) = (deployment.id, page.html.len() as u64, self.room());
        self.write_once(id, page.html).await?;
        let committing = self.control.write(move |tx| {
            let holder = room.for_share(tx, &by, bytes)?;
            store::insert(tx, &deployment, &page.by, &holder, bytes)?;
            keep.store(tx, &deployed)?;
            Ok(deployed)
        });
        let added = self.timings.time(Stage::Commit, committing).await;
        if added.is_err() {
            self.burn_file(id).await?;
        }
        added
    }

    /// Composes the answer to a publication.
    fn deployed(
        &self,
        deployment: &Deployment,
        title: String,
        delete_token: DeleteToken,
        warnings: Vec<Warning>,
    ) -> Deployed {
        Deployed {
            id: deployment.id,
            slug: deployment.slug.clone(),
            url: format!("{}/{}", self.config.sites_url, deployment.slug),
            created_at: deployment.created_at,
            expires_at: deployment.expires_at.unwrap_or(deployment.created_at),
            title,
            delete_token,
            warnings,
        }
    }

    async fn hash_password(&self, password: String) -> Result<String, PublishError> {
        let salt = self.random.bytes()?;
        let hashing = self
            .sandbox
            .check_lane()
            .run(move |_| password::hash(&password, &salt));
        let hash = while_client_waits(hashing).await??;
        hash.map_err(PublishError::Internal)
    }

    async fn write_once(&self, id: DeploymentId, page: Bytes) -> Result<(), PublishError> {
        let files = self.once.clone();
        blocking(move || files.write(&id, &page)).await
    }

    /// Removes a one-time share's file; durable when it answers.
    pub(super) async fn burn_file(&self, id: DeploymentId) -> Result<(), PublishError> {
        let files = self.once.clone();
        blocking(move || files.burn(&id)).await
    }

    /// Burns a one-time share: of all who try, one gets its page. `None` for the others.
    ///
    /// # Errors
    /// The disk's or the database's. A caller that claimed the share before the failure has lost it, and no other gets it.
    pub async fn burn(
        &self,
        slug: &str,
        id: DeploymentId,
    ) -> Result<Option<Vec<u8>>, PublishError> {
        let files = self.once.clone();
        let Some(page) = blocking(move || files.read(&id)).await? else {
            return Ok(None);
        };
        let (now, slug) = (self.clock.now(), slug.to_owned());
        // Claiming comes before unlinking: two who have read the file must not both answer with it.
        let claimed = self
            .control
            .write(move |tx| {
                tx.note(Change::Slug(slug));
                store::remove(tx, &id, now)
            })
            .await
            .map_err(|error: control::Error| PublishError::from(error))?;
        if !claimed {
            return Ok(None);
        }
        self.burn_file(id).await?;
        Ok(Some(page))
    }
}

/// Runs disk work off the request threads.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> std::io::Result<T> + Send + 'static,
) -> Result<T, PublishError> {
    let done = tokio::task::spawn_blocking(work).await;
    Ok(done.map_err(|error| PublishError::Internal(error.into()))??)
}
