//! Quick shares: what anybody may publish, for a week.

use bytes::Bytes;
use serde::Serialize;
use utoipa::ToSchema;

use super::model::{Deployment, shown_title};
use super::parts::Part;
use super::password;
use super::publish::{Address, Made, MadeBy, PageSource, PublishError, Warning};
use super::{Deployments, store};
use crate::clock::Timestamp;
use crate::control::answers::{self, AnswerKey};
use crate::control::{self};
use crate::ids::DeploymentId;
use crate::sandbox::ContentType;

/// What to publish; its fields are within their bounds.
#[derive(Clone, Debug)]
pub struct NewShare {
    /// The source.
    pub content: String,
    /// What it is written in.
    pub content_type: ContentType,
    /// The wanted slug.
    pub name: Option<String>,
    /// The page's title; its content's, if there is none.
    pub title: Option<String>,
    /// Whether its first reader is its last.
    pub one_time: bool,
    /// What readers must know.
    pub password: Option<String>,
}

/// A published share.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct Deployed {
    /// The deployment's id.
    #[schema(value_type = String, format = "uuid")]
    pub id: DeploymentId,
    /// Where it answers; with a suffix if the wanted name was taken.
    #[schema(example = "release-notes")]
    pub slug: String,
    /// The link to pass on.
    #[schema(format = "uri")]
    pub url: String,
    /// The page's title: as it was given, else its content's own, else the wanted name.
    #[schema(example = "Release notes")]
    pub title: String,
    /// When it was published.
    #[schema(value_type = String, format = DateTime)]
    pub created_at: Timestamp,
    /// When it ends.
    #[schema(value_type = String, format = DateTime)]
    pub expires_at: Timestamp,
    /// What its author should know; absent where that is nothing.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<Warning>,
}

impl Deployments {
    /// Publishes a quick share; `answer` keeps what is answered for an idempotency key. Durable when it answers.
    ///
    /// # Errors
    /// See [`PublishError`]; nothing is stored then.
    #[tracing::instrument(skip_all, fields(content_type = share.content_type.as_str(), bytes = share.content.len()))]
    pub async fn publish_share(
        &self,
        share: NewShare,
        answer: Option<AnswerKey>,
    ) -> Result<Deployed, PublishError> {
        self.check_room().await?;
        let slug = self.reserve_slug(share.name.as_deref()).await?;
        // An answer is kept for its idempotency key, and the title of a one-time share burns with it: the wanted name may stay.
        let told = share
            .one_time
            .then(|| share.name.clone().unwrap_or_default());
        let created_at = self.clock.now();
        let seconds = i64::try_from(self.config.limits.quick_share_seconds).unwrap_or(i64::MAX);
        let expires_at = created_at.plus_seconds(seconds);
        let page = self.share_page(&share, slug.as_str(), expires_at).await?;
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
        };
        // The pins outlive the transaction that makes the references.
        let _pins = if share.one_time {
            self.write_once(deployment.id, page.html).await?;
            None
        } else {
            let source = Bytes::from(share.content);
            let (source, artifact) = self.store_page(source, page.html).await?;
            deployment.source = Some(source.digest());
            deployment.artifact = Some(artifact.digest());
            Some((source, artifact))
        };
        let (id, slug) = (deployment.id, deployment.slug.clone());
        let answered = Deployed {
            id,
            slug: slug.clone(),
            url: format!("{}/{slug}", self.config.sites_url),
            title: shown_title(told.as_ref().unwrap_or(&page.title)),
            created_at,
            expires_at,
            warnings: page.warnings,
        };
        let added = self.add(deployment, page.by, answered, answer).await;
        if added.is_err() && share.one_time {
            self.burn_file(id).await?;
        }
        self.pages.forget(&slug);
        added
    }

    async fn share_page(
        &self,
        share: &NewShare,
        slug: &str,
        expires_at: Timestamp,
    ) -> Result<Made, PublishError> {
        let source = PageSource {
            content_type: share.content_type,
            title: share.title.as_deref().unwrap_or_default(),
            name: share.name.as_deref(),
            text: &share.content,
        };
        let address = Address {
            slug,
            expires_at: Some(expires_at),
            one_time: share.one_time,
            is_private: share.password.is_some(),
        };
        self.render_share(source, address).await
    }

    async fn add(
        &self,
        deployment: Deployment,
        made_by: MadeBy,
        deployed: Deployed,
        answer: Option<AnswerKey>,
    ) -> Result<Deployed, PublishError> {
        let most = self.config.limits.active_deployments;
        let body = serde_json::to_string(&deployed).map_err(anyhow::Error::from);
        let body = body.map_err(PublishError::Internal)?;
        let committing = self.control.write(move |tx| {
            Self::check_room_in(tx, deployment.created_at, most)?;
            store::insert(tx, &deployment, &made_by)?;
            if let Some(key) = answer {
                answers::keep(tx, &key, 201, &body, deployment.created_at)?;
            }
            Ok::<_, PublishError>(())
        });
        self.parts.time(Part::Commit, committing).await?;
        Ok(deployed)
    }

    async fn hash_password(&self, password: String) -> Result<String, PublishError> {
        let salt = self.random.bytes()?;
        let hash = self
            .sandbox
            .workers()
            .run(move || password::hash(&password, &salt))
            .await?;
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
    /// Ours; whoever has claimed the share then has lost it, and nobody else will get it.
    pub async fn burn(
        &self,
        slug: &str,
        id: DeploymentId,
    ) -> Result<Option<Vec<u8>>, PublishError> {
        let files = self.once.clone();
        let Some(page) = blocking(move || files.read(&id)).await? else {
            return Ok(None);
        };
        let now = self.clock.now();
        // Claiming comes before unlinking: two who have read the file must not both answer with it.
        let claimed = self
            .control
            .write(move |tx| store::remove(tx, &id, now))
            .await
            .map_err(|error: control::Error| PublishError::from(error))?;
        self.pages.forget(slug);
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
