//! Files of visitors in answers.

use serde::Serialize;
use utoipa::ToSchema;

use crate::backends::calls::views::QueryResult;
use svc_database::VisitorFileRow;

/// A file that was uploaded.
#[derive(Debug, Serialize, ToSchema)]
pub struct UploadedFileView {
    /// Id of the file: the value of `:svc_file`.
    #[schema(pattern = "^file_[0-9a-hjkmnp-tv-z]{26}$")]
    pub(super) id: String,
    /// Name that the visitor gave, without folders.
    pub(super) name: String,
    /// Media type, as it was recognised from the bytes.
    #[serde(rename = "type")]
    #[schema(example = "image/jpeg")]
    pub(super) media_type: String,
    /// Length in bytes, as it is stored.
    pub(super) size: u64,
    /// SHA-256 of the stored bytes, in hexadecimal.
    pub(super) sha256: String,
    /// Width of a picture as it is shown, in pixels.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) width: Option<u32>,
    /// Height of a picture as it is shown, in pixels.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) height: Option<u32>,
    /// Squares that smaller copies fit which were made.
    pub(super) sizes: Vec<u32>,
    /// When it was uploaded.
    #[schema(value_type = String, format = "date-time")]
    pub(super) created_at: String,
}

impl UploadedFileView {
    /// Shows an uploaded file with its smaller copies.
    pub(super) fn new(row: &VisitorFileRow, sizes: Vec<u32>) -> Self {
        let row = row.clone();
        Self {
            id: row.id,
            name: row.name,
            media_type: row.media_type,
            size: row.size,
            sha256: row.sha256,
            width: row.width,
            height: row.height,
            sizes,
            created_at: row.created_at,
        }
    }
}

/// Answer to an upload.
#[derive(Debug, Serialize, ToSchema)]
#[allow(
    dead_code,
    reason = "describes what `uploads.rs` of the database writes"
)]
pub struct UploadAnswer {
    /// The file.
    file: UploadedFileView,
    /// Answer of the action's statement.
    result: QueryResult,
}

/// A file of a visitor, for the owner.
#[derive(Debug, Serialize, ToSchema)]
pub struct VisitorFileView {
    /// Id of the file.
    id: String,
    /// Name that the visitor gave.
    name: String,
    /// Media type, as it was recognised from the bytes.
    #[serde(rename = "type")]
    media_type: String,
    /// Length in bytes.
    size: u64,
    /// SHA-256 of the bytes, in hexadecimal.
    sha256: String,
    /// Width of a picture as it is shown, in pixels.
    width: Option<u32>,
    /// Height of a picture as it is shown, in pixels.
    height: Option<u32>,
    /// Id of the visitor, if signed in.
    user_id: Option<String>,
    /// When it was uploaded.
    #[schema(value_type = String, format = "date-time")]
    created_at: String,
}

impl From<VisitorFileRow> for VisitorFileView {
    fn from(row: VisitorFileRow) -> Self {
        Self {
            id: row.id,
            name: row.name,
            media_type: row.media_type,
            size: row.size,
            sha256: row.sha256,
            width: row.width,
            height: row.height,
            user_id: row.user_id,
            created_at: row.created_at,
        }
    }
}

/// Files of a project's visitors.
#[derive(Debug, Serialize, ToSchema)]
pub struct VisitorFileList {
    /// Newest first.
    pub(super) files: Vec<VisitorFileView>,
    /// Bytes that all files of the project take.
    pub(super) used_bytes: u64,
    /// Most bytes that they may take.
    pub(super) limit_bytes: u64,
    /// Value to send as `cursor` for the files before; null where there are none.
    pub(super) next_cursor: Option<String>,
}

impl VisitorFileList {
    /// Returns the number of files of this page.
    pub fn files(&self) -> usize {
        self.files.len()
    }
}
