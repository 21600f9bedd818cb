//! Frontends on which somebody signs in.

use std::sync::Arc;

use svc_base::names::is_slug;

use super::Visitors;
use super::failures::no_sign_in;
use super::providers::Provider;
use super::state::SignIn;
use crate::deployments::pages::Page;
use crate::http::hosts::Host;
use crate::http::problem::Problem;
use crate::projects::Project;

/// A frontend on which somebody signs in.
#[derive(Clone, Debug)]
pub(super) struct Place {
    /// Slug of the page.
    pub slug: String,
    /// The frontend.
    pub page: Arc<Page>,
    /// Project of the page.
    pub project: Project,
    /// Origin of the page.
    pub origin: String,
}

impl Visitors {
    /// The frontend of a slug on the host that was asked.
    ///
    /// # Errors
    /// `not_found` for what has no sign-in, `disabled`.
    pub(super) async fn frontend(&self, host: &Host, slug: &str) -> Result<Arc<Page>, Problem> {
        let page = self.deployments.visited(host, slug).await?;
        match self.origin(&page) {
            Some(_) => Ok(page),
            None => Err(no_sign_in()),
        }
    }

    /// The frontend of a slug on the host that was asked, with its project.
    ///
    /// # Errors
    /// Like [`Visitors::frontend`].
    pub(super) async fn place(&self, host: &Host, slug: &str) -> Result<Place, Problem> {
        let page = self.deployments.visited(host, slug).await?;
        let project = self.project_of(&page).await?;
        let (Some(project), Some(origin)) = (project, self.origin(&page)) else {
            return Err(no_sign_in());
        };
        Ok(Place {
            slug: slug.to_owned(),
            page,
            project,
            origin,
        })
    }

    /// The frontend of a sign-in, wherever it is asked.
    pub(super) async fn place_of(&self, sign_in: &SignIn) -> Result<Place, Problem> {
        if !is_slug(&sign_in.slug) {
            return Err(Problem::not_found());
        }
        let place = self.place(&Host::Sites, &sign_in.slug).await?;
        if place.page.id != sign_in.deployment {
            return Err(Problem::not_found());
        }
        Ok(place)
    }

    /// The providers that a project offers.
    pub(super) fn offered(&self, project: &Project) -> Vec<Arc<Provider>> {
        let allowed = self.providers.allowed(project.allowed_providers.as_deref());
        allowed.cloned().collect()
    }
}
