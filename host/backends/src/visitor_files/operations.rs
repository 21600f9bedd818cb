//! Operations of owners on visitors' files.

use std::sync::Arc;

use super::VisitorFiles;
use super::requests::{ForgetVisitor, ListFiles};
use super::views::VisitorFileList;
use crate::access::{Editor, Viewer};
use crate::deployments::sites::FileReader;
use crate::http::problem::Problem;
use crate::projects::scope::AuthorizedProject;
use crate::visitors::Visitors;
use svc_base::ids::is_visitor_file_id;
use svc_database::VisitorFileRow;

/// Lists the files of a project's visitors, newest first.
///
/// # Errors
/// `invalid_request`.
pub async fn list(
    files: Arc<VisitorFiles>,
    at: AuthorizedProject<Viewer>,
    input: ListFiles,
) -> Result<VisitorFileList, Problem> {
    let (before, most) = input.checked()?;
    let mut found = match files.backend_of(at.project.id).await? {
        Some(backend) => files.backends.list_files(backend, before, most + 1).await?,
        None => Vec::new(),
    };
    let more = found.len() > most as usize;
    found.truncate(most as usize);
    let last = found.last().map(|file| file.id.clone());
    let (used_bytes, limit_bytes) = files.files.storage_of(&at.project).await?;
    Ok(VisitorFileList {
        next_cursor: last.filter(|_| more),
        files: found.into_iter().map(Into::into).collect(),
        used_bytes,
        limit_bytes,
    })
}

/// Opens a file.
///
/// # Errors
/// `not_found`, `disabled`.
pub async fn get(
    files: Arc<VisitorFiles>,
    at: AuthorizedProject<Viewer>,
    file: String,
) -> Result<(VisitorFileRow, FileReader), Problem> {
    let opened = match is_visitor_file_id(&file) {
        true => files.open_for_owner(at.project.id, file).await?,
        false => None,
    };
    opened.ok_or_else(Problem::not_found)
}

/// Erases a visitor's profile and sessions, and the visitor's files if that is asked for. An unknown visitor is no error.
///
/// # Errors
/// Those of the database; what was erased stays so, and the request can be sent again.
pub async fn forget(
    (files, visitors): (Arc<VisitorFiles>, Arc<Visitors>),
    at: AuthorizedProject<Editor>,
    (user_id, input): (String, ForgetVisitor),
) -> Result<(), Problem> {
    // The sessions first: an upload that is under way finds its own gone.
    visitors.forget(at.project.id, user_id.clone()).await?;
    if input.files.unwrap_or(false)
        && let Some(backend) = files.backend_of(at.project.id).await?
    {
        files.backends.delete_files_of(backend, &user_id).await?;
    }
    Ok(())
}

/// Deletes a file, with what refers to it. An unknown file is no error.
///
/// # Errors
/// `constraint_violation` where rows refer to it that may not lose it.
pub async fn delete(
    files: Arc<VisitorFiles>,
    at: AuthorizedProject<Editor>,
    file: String,
) -> Result<(), Problem> {
    let Some(backend) = files.backend_of(at.project.id).await? else {
        return Ok(());
    };
    let is_there = is_visitor_file_id(&file)
        && files
            .backends
            .find_file(backend, file.clone())
            .await?
            .is_some();
    if is_there {
        files.actions.delete_file(backend, file).await?;
    }
    Ok(())
}
