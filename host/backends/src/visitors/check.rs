//! Checks of the stored visitors and sessions.

use std::collections::HashSet;

use super::{passkey, store};
use crate::control::{ControlDatabase, Error};
use svc_base::ids::{DeploymentId, ProjectId};

/// Result of a check.
#[derive(Clone, Debug, Default)]
pub struct VisitorCheckFindings {
    /// Errors in the stored rows.
    pub errors: Vec<String>,
    /// Leftover rows, which the server removes by itself.
    pub leftovers: Vec<String>,
}

/// Checks visitors and sessions against the existing `projects` and `deployments`.
pub async fn check(
    control: &ControlDatabase,
    projects: &HashSet<ProjectId>,
    deployments: &HashSet<DeploymentId>,
) -> Result<VisitorCheckFindings, Error> {
    let mut found = VisitorCheckFindings::default();
    for project in control.read(store::projects_with_visitors).await? {
        if !projects.contains(&project) {
            found
                .errors
                .push(format!("visitors of project {project}, which there is not"));
        }
    }
    for frontend in control.read(store::frontends_with_sessions).await? {
        if !deployments.contains(&frontend) {
            found
                .leftovers
                .push(format!("sessions on frontend {frontend}, which is gone"));
        }
    }
    let unlinked = control.read(passkey::store::count_unlinked).await?;
    if unlinked > 0 {
        found.errors.push(format!(
            "{unlinked} accounts of passkeys that no visitor is linked to"
        ));
    }
    let odd = control.read(store::count_malformed_rows).await?;
    if odd > 0 {
        found.errors.push(format!(
            "{odd} visitors or sessions whose ids or digests have no such form"
        ));
    }
    Ok(found)
}
