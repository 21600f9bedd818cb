//! Finds frontends with sign-in.

use std::sync::Arc;

use svc_base::names::is_slug;

use super::Visitors;
use super::model::VisitorError;
use super::providers::SignInProvider;
use super::state::PendingSignIn;
use crate::deployments::serving::PageMounts;
use crate::deployments::serving::pages::ServedPage;
use crate::http::hosts::{DomainHost, HostKind};
use crate::projects::Project;

/// Frontend with sign-in.
#[derive(Clone, Debug)]
pub(super) struct FrontendWithSignIn {
    /// Paths of the frontend on its origin.
    pub mounts: PageMounts,
    pub frontend: Arc<ServedPage>,
    pub project: Project,
    /// Origin of the frontend that the visitor is on.
    pub origin: String,
    /// Domain that the visitor is on; `None` on the project's own origin.
    pub domain: Option<DomainHost>,
}

impl FrontendWithSignIn {
    /// Returns the domain that the visitor is on, as requests name it.
    pub(super) fn domain_authority(&self) -> Option<String> {
        self.domain.as_ref().map(DomainHost::authority)
    }
}

impl Visitors {
    /// Returns the frontend at a slug of the requested host.
    ///
    /// # Errors
    /// `NoSignIn` for a quick share, and errors of the look-up.
    pub(super) async fn frontend(
        &self,
        host: &HostKind,
        slug: &str,
    ) -> Result<Arc<ServedPage>, VisitorError> {
        let page = self.serving.page_on_host(host, slug).await?;
        match self.origin(host, &page) {
            Some(_) => Ok(page),
            None => Err(VisitorError::NoSignIn),
        }
    }

    /// Returns the paths of a frontend on its origin.
    ///
    /// # Errors
    /// Errors of the look-up.
    pub(super) async fn mounts(
        &self,
        page: &ServedPage,
        slug: &str,
    ) -> Result<PageMounts, VisitorError> {
        Ok(self.serving.mounts(page, slug).await?)
    }

    /// Returns the frontend at a slug of the requested host, with its project.
    ///
    /// # Errors
    /// Like [`Visitors::frontend`].
    pub(super) async fn sign_in_page(
        &self,
        host: &HostKind,
        slug: &str,
    ) -> Result<FrontendWithSignIn, VisitorError> {
        let page = self.serving.page_on_host(host, slug).await?;
        let project = self.project_of(&page).await?;
        let (Some(project), Some(origin)) = (project, self.origin(host, &page)) else {
            return Err(VisitorError::NoSignIn);
        };
        Ok(FrontendWithSignIn {
            mounts: self.serving.mounts(&page, slug).await?,
            frontend: page,
            project,
            origin,
            domain: host.domain().cloned(),
        })
    }

    /// Returns the frontend that a pending sign-in began on.
    ///
    /// # Errors
    /// `Gone` if another deployment has its slug now, or its domain is not served any more, and errors of [`Visitors::sign_in_page`].
    pub(super) async fn sign_in_page_of(
        &self,
        sign_in: &PendingSignIn,
    ) -> Result<FrontendWithSignIn, VisitorError> {
        if !is_slug(&sign_in.slug) {
            return Err(VisitorError::Gone);
        }
        let host = match &sign_in.domain {
            None => HostKind::Sites,
            Some(domain) => match self.hosts.classify(domain) {
                Some(host @ HostKind::Domain(_)) => host,
                _ => return Err(VisitorError::Gone),
            },
        };
        let page = self.sign_in_page(&host, &sign_in.slug).await?;
        if page.frontend.id != sign_in.deployment {
            return Err(VisitorError::Gone);
        }
        Ok(page)
    }

    /// Finds a provider that visitors of a project may sign in with, which it may not offer by itself.
    pub(super) fn find_allowed_provider(
        &self,
        project: &Project,
        name: &str,
    ) -> Option<Arc<SignInProvider>> {
        let list = project.allowed_providers.as_deref();
        let is_listed = list.is_none_or(|list| list.iter().any(|one| one == name));
        let found = self.providers.find_by_name(name).filter(|_| is_listed);
        found.cloned()
    }

    /// Lists the providers that a project offers.
    pub(super) fn offered_providers(&self, project: &Project) -> Vec<Arc<SignInProvider>> {
        let allowed = self.providers.allowed(project.allowed_providers.as_deref());
        allowed.cloned().collect()
    }
}
