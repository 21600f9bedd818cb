//! Uploaded files: recognised, and cleaned if they are pictures, by the guest.

use bytes::Bytes;

use super::UploadError;
use super::spool::SpooledBody;
use crate::backends::ActionFiles;
use crate::deployments::files::ProjectFiles;
use crate::http::byte_budget::BytePermit;
use svc_sandbox::{
    CleanedPicture, FileFailure, FileHead, FileRecognition, MAX_HEAD_BYTES, PictureCopy,
    PictureFault, Sandbox,
};

/// Media types of what no format is recognised of.
const TEXT_TYPE: &str = "text/plain";
const UNKNOWN_TYPE: &str = "application/octet-stream";

/// A file that was looked at.
#[derive(Debug)]
pub(super) struct InspectedFile {
    /// Media type, by the bytes alone.
    pub(super) media_type: String,
    /// The picture, if it is one.
    pub(super) picture: Option<InspectedPicture>,
}

/// A picture that was cleaned.
#[derive(Debug)]
pub(super) struct InspectedPicture {
    /// Size of the picture, and the parts that are stored.
    pub(super) cleaned: CleanedPicture,
    /// Bytes as they were sent.
    file: Bytes,
    /// Counts those.
    _held: BytePermit,
}

impl From<FileFailure> for UploadError {
    fn from(failure: FileFailure) -> Self {
        match failure {
            FileFailure::Refused(PictureFault::Broken(reason)) => Self::BadPicture(reason),
            FileFailure::Refused(PictureFault::TooLarge) => {
                Self::BadPicture("The picture has more than 100 megapixels.".to_owned())
            }
            FileFailure::Refused(PictureFault::Unsupported) => {
                Self::BadPicture("Pictures of this kind are not taken.".to_owned())
            }
            FileFailure::Budget(budget) => Self::BadPicture(format!(
                "Looking at the file takes more than its budget of {budget}."
            )),
            FileFailure::Unsupported => Self::Unsupported,
            FileFailure::Preparing | FileFailure::Busy => Self::Busy,
            FileFailure::Broken(error) => Self::Internal(error),
        }
    }
}

/// Looks at a file, if the action takes its type.
///
/// # Errors
/// `WrongType`, `BadPicture`, those of the guest and of the disk.
pub(super) async fn inspect(
    sandbox: &Sandbox,
    files: &ProjectFiles,
    body: &SpooledBody,
    rules: &ActionFiles,
) -> Result<InspectedFile, UploadError> {
    let head = body.part(0..MAX_HEAD_BYTES as u64).await?;
    let media_type = match sandbox.recognise_file(FileHead::of(&head)).await? {
        FileRecognition::Picture(media_type) => {
            check_type(rules, &media_type)?;
            let (file, held) = load(files, body).await?;
            let cleaned = sandbox.clean_picture(file.clone(), rules.keep_metadata);
            let picture = InspectedPicture {
                cleaned: cleaned.await?,
                file,
                _held: held,
            };
            return Ok(InspectedFile {
                media_type,
                picture: Some(picture),
            });
        }
        FileRecognition::Other(media_type) => media_type,
        FileRecognition::PerhapsText => {
            let (file, _held) = load(files, body).await?;
            match sandbox.is_text_file(file).await? {
                true => TEXT_TYPE.to_owned(),
                false => UNKNOWN_TYPE.to_owned(),
            }
        }
        FileRecognition::Unknown => UNKNOWN_TYPE.to_owned(),
    };
    check_type(rules, &media_type)?;
    Ok(InspectedFile {
        media_type,
        picture: None,
    })
}

fn check_type(rules: &ActionFiles, media_type: &str) -> Result<(), UploadError> {
    match rules.takes_type(media_type) {
        true => Ok(()),
        false => Err(UploadError::WrongType(media_type.to_owned())),
    }
}

/// Reads all of a body into memory, where it counts.
async fn load(
    files: &ProjectFiles,
    body: &SpooledBody,
) -> Result<(Bytes, BytePermit), UploadError> {
    let bytes = usize::try_from(body.bytes).unwrap_or(usize::MAX);
    let held = files.hold_in_memory(bytes).await?;
    Ok((body.all().await?, held))
}

impl InspectedPicture {
    /// Makes the smaller copies that can be made, with their sizes.
    ///
    /// # Errors
    /// When no worker is free.
    pub(super) async fn copies(
        &self,
        sandbox: &Sandbox,
        sizes: &[u32],
    ) -> Result<Vec<(u32, PictureCopy)>, UploadError> {
        let mut copies = Vec::with_capacity(sizes.len());
        for size in sizes {
            match sandbox.resize_picture(self.file.clone(), *size).await {
                Ok(copy) => copies.push((*size, copy)),
                Err(error @ (FileFailure::Busy | FileFailure::Preparing)) => {
                    return Err(error.into());
                }
                // The picture has one copy less.
                Err(error) => tracing::debug!(%error, size, "no copy of a picture is made"),
            }
        }
        Ok(copies)
    }
}
