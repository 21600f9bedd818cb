//! `svc backend export`.

use std::path::PathBuf;

use super::BackendTargetArgs;
use crate::endpoints;
use crate::error::Result;
use crate::saved_body::SavePlace;

/// Copies the database into a file, or to standard output.
pub(super) async fn export(
    output: Option<PathBuf>,
    force: bool,
    args: &BackendTargetArgs,
) -> Result<()> {
    let at = args.find().await?;
    let path = output.unwrap_or_else(|| format!("{}.db", at.project.host_label).into());
    let copy = at.api.call(&endpoints::EXPORT, &at.path_parts());
    let place = SavePlace {
        path: &path,
        force,
        work: "export",
    };
    place.save(copy, args.output()).await
}
