//! Values of files as the host has them.

use std::ops::Range;

use bytes::Bytes;

use crate::values::BudgetKind;

/// Most bytes of a file's begin that a guest is given to recognise it.
pub const MAX_HEAD_BYTES: usize = 64 << 10;

/// First bytes of a file.
#[derive(Clone, Debug)]
pub struct FileHead(pub(super) Bytes);

impl FileHead {
    /// Takes the first bytes of a file.
    #[must_use]
    pub fn of(file: &Bytes) -> Self {
        Self(file.slice(..file.len().min(MAX_HEAD_BYTES)))
    }
}

/// Kind of a file, by its first bytes.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum FileRecognition {
    /// A picture, with its media type.
    Picture(String),
    /// Sound, a video or a document, with its media type.
    Other(String),
    /// Perhaps a text.
    PerhapsText,
    /// Nothing that is known.
    Unknown,
}

/// Part of what is stored in place of a file.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum FilePiece {
    /// Bytes of the file.
    Kept(Range<usize>),
    /// New bytes.
    Added(Vec<u8>),
    /// So many zero bytes.
    Zeros(usize),
}

impl FilePiece {
    /// Returns the number of bytes.
    #[must_use]
    pub fn len(&self) -> usize {
        match self {
            Self::Kept(range) => range.len(),
            Self::Added(bytes) => bytes.len(),
            Self::Zeros(count) => *count,
        }
    }

    /// Whether there are no bytes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// A picture without what does not draw.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct CleanedPicture {
    /// Width as it is shown, in pixels.
    pub width: u32,
    /// Height as it is shown, in pixels.
    pub height: u32,
    /// Parts of the picture, in their order.
    pub pieces: Vec<FilePiece>,
}

/// A smaller copy of a picture.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct PictureCopy {
    /// Media type of the copy.
    pub media_type: &'static str,
    /// Bytes of the copy.
    pub bytes: Bytes,
}

/// Fault of a picture.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum PictureFault {
    /// It is cut short or broken: one sentence.
    #[error("{0}")]
    Broken(String),
    /// It has too many pixels.
    #[error("the picture has too many pixels")]
    TooLarge,
    /// No copies are made of such pictures.
    #[error("no copies are made of such pictures")]
    Unsupported,
}

/// Reason why a file was not looked at.
#[derive(Debug, thiserror::Error)]
pub enum FileFailure {
    /// The picture has a fault.
    #[error(transparent)]
    Refused(PictureFault),
    /// Looking at it takes more than a call may use.
    #[error("looking at the file takes more than the budget of {0}")]
    Budget(BudgetKind),
    /// The serving renderer knows no files: the operator can install one that does.
    #[error("it knows no files")]
    Unsupported,
    /// The renderer is still being compiled: try again later.
    #[error("the renderer is still being prepared")]
    Preparing,
    /// No thread was free within 5 s: try again later.
    #[error("the renderer is busy")]
    Busy,
    /// The guest failed, which is our fault. The text is for the log and never for a client.
    #[error("the render guest failed: {0:#}")]
    Broken(anyhow::Error),
}
