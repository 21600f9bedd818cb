//! Operations of owners on domains.

use super::Domains;
use super::requests::{CreateDomain, UpdateDomain};
use super::views::{DomainList, DomainView};
use crate::access::{Editor, Viewer};
use crate::http::problem::Problem;
use crate::projects::scope::AuthorizedProject;

/// Adds a domain, which is served once DNS proves it.
///
/// # Errors
/// `invalid_request`, `plan_limit`, `disabled`, `domains_unconfigured`.
pub async fn create(
    domains: Domains,
    at: AuthorizedProject<Editor>,
    input: CreateDomain,
) -> Result<DomainView, Problem> {
    let added = domains.create(&at.project, &input.name, input.redirect_to);
    Ok(DomainView::new(added.await?, &domains)?)
}

/// Lists the domains of a project, oldest first.
///
/// # Errors
/// `domains_unconfigured`.
pub async fn list(domains: Domains, at: AuthorizedProject<Viewer>) -> Result<DomainList, Problem> {
    let found = domains.list(&at.project).await?;
    Ok(DomainList::new(found, &domains)?)
}

/// Returns a domain.
///
/// # Errors
/// `not_found`, `domains_unconfigured`.
pub async fn get(
    domains: Domains,
    at: AuthorizedProject<Viewer>,
    name: String,
) -> Result<DomainView, Problem> {
    let found = domains.find(&at.project, &name).await?;
    Ok(DomainView::new(found, &domains)?)
}

/// Changes where a domain's requests are sent.
///
/// # Errors
/// `nothing_to_update`, `invalid_request`, `not_found`, `domains_unconfigured`.
pub async fn update(
    domains: Domains,
    at: AuthorizedProject<Editor>,
    (name, input): (String, UpdateDomain),
) -> Result<DomainView, Problem> {
    let redirect_to = input.checked()?;
    let changed = domains
        .set_redirect(&at.project, &name, redirect_to)
        .await?;
    Ok(DomainView::new(changed, &domains)?)
}

/// Checks a domain now.
///
/// # Errors
/// `domain_unproven`, `domain_taken`, `rate_limited`, `disabled`, `not_found`, `dns_unavailable`, `domains_unconfigured`.
pub async fn verify(
    domains: Domains,
    at: AuthorizedProject<Editor>,
    name: String,
) -> Result<DomainView, Problem> {
    let proven = domains.verify(&at.project, &name).await?;
    Ok(DomainView::new(proven, &domains)?)
}

/// Removes a domain; an unknown one is no error.
///
/// # Errors
/// `domains_unconfigured`.
pub async fn delete(
    domains: Domains,
    at: AuthorizedProject<Editor>,
    name: String,
) -> Result<(), Problem> {
    Ok(domains.remove(&at.project, &name).await?)
}
