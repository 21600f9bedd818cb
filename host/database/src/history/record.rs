//! Format of a history file: records, each with a header, the moments of its commits, and the pages.
//!
//! Each moment has the number of its commit and the checksum of the state after it, and each header those of its last moment. So a
//! reader can start from any record, and check it. Records of format 1 have neither. Checksums of format 2 include bytes in which
//! equal databases may differ. Both are read, and never written.

use std::fs::File;
use std::io;

use crate::wal::{WalPosition, read_up_to};
use svc_base::clock::Timestamp;

/// Length of a header, in bytes.
const HEADER_BYTES: usize = 76;
/// The most bytes of a record, unpacked.
const MAX_UNPACKED_BYTES: u32 = 1 << 30;
/// Logarithm of the compression window: pages repeat at any distance within a record.
const WINDOW_LOG: u32 = 23;
const COMPRESSION_LEVEL: i32 = 1;

/// Format of a record.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum RecordFormat {
    /// Without numbers and checksums of commits; only read.
    V1,
    /// With checksums that count what SQLite writes in each copy for itself; only read.
    V2,
    /// The present format.
    #[default]
    V3,
}

impl RecordFormat {
    fn magic(self) -> [u8; 8] {
        match self {
            Self::V1 => *b"svchist1",
            Self::V2 => *b"svchist2",
            Self::V3 => *b"svchist3",
        }
    }

    fn of(magic: &[u8]) -> Option<Self> {
        let known = [Self::V1, Self::V2, Self::V3];
        known.into_iter().find(|format| format.magic() == *magic)
    }

    /// Length of a header, in bytes.
    fn header(self) -> usize {
        match self {
            Self::V1 => 72,
            Self::V2 | Self::V3 => HEADER_BYTES,
        }
    }

    /// Length of a moment, in bytes.
    fn moment(self) -> usize {
        match self {
            Self::V1 => 16,
            Self::V2 | Self::V3 => 32,
        }
    }

    /// Whether records have the numbers and checksums of commits.
    fn has_points(self) -> bool {
        self != Self::V1
    }

    /// Whether checksums leave out the bytes of the first page that change with each copy.
    pub(super) fn leaves_out_change_counter(self) -> bool {
        self == Self::V3
    }
}

/// Content of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RecordKind {
    /// A whole database; the first record of each file.
    Base,
    /// Pages of commits after the record before.
    Frames,
    /// Mark that the database was closed without further commits.
    Seal,
}

/// Number and state of a commit, by which copies of a database are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CommitFingerprint {
    /// Number of the commit.
    pub(super) commit: u64,
    /// Checksum of the state after it.
    pub(super) state: u64,
}

impl CommitFingerprint {
    fn to_bytes(self) -> [u8; 16] {
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&self.commit.to_le_bytes());
        bytes[8..].copy_from_slice(&self.state.to_le_bytes());
        bytes
    }

    fn from_bytes(bytes: &[u8]) -> Self {
        let word = |at: usize| {
            let word = bytes.get(at..at + 8).and_then(|word| word.try_into().ok());
            u64::from_le_bytes(word.unwrap_or_default())
        };
        Self {
            commit: word(0),
            state: word(8),
        }
    }
}

/// A commit that can be restored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Moment {
    /// Time of the commit.
    pub(super) at: Timestamp,
    /// Frames of its record up to the commit.
    pub(super) frames: u32,
    /// Size of the database after the commit, in pages.
    pub(super) pages: u32,
    /// Commit point; `None` in format 1.
    pub(super) point: Option<CommitFingerprint>,
}

/// Header of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RecordHeader {
    pub(super) format: RecordFormat,
    pub(super) kind: RecordKind,
    /// Number of moments after the header.
    pub(super) moments: u32,
    /// Bytes of pages, packed and unpacked.
    pub(super) packed: u32,
    pub(super) unpacked: u32,
    /// Position in the log after the record; for a base without a log, the start.
    pub(super) end: WalPosition,
    /// Time of its last moment.
    pub(super) last: Timestamp,
    /// Commit point of its last moment; `None` in format 1.
    pub(super) point: Option<CommitFingerprint>,
    /// Checksum of everything after the header.
    checksum: u32,
}

/// A record that is to be written.
#[derive(Debug)]
pub(super) struct NewHistoryRecord {
    pub(super) header: RecordHeader,
    pub(super) bytes: Vec<u8>,
}

impl NewHistoryRecord {
    /// Builds a record.
    pub(super) fn new(
        kind: RecordKind,
        moments: &[Moment],
        content: &[u8],
        end: WalPosition,
        (last, point): (Timestamp, CommitFingerprint),
    ) -> io::Result<Self> {
        let packed = pack(content)?;
        let mut bytes = vec![0; HEADER_BYTES];
        for moment in moments {
            bytes.extend_from_slice(&moment.at.0.to_le_bytes());
            bytes.extend_from_slice(&moment.frames.to_le_bytes());
            bytes.extend_from_slice(&moment.pages.to_le_bytes());
            bytes.extend_from_slice(&moment.point.unwrap_or(point).to_bytes());
        }
        bytes.extend_from_slice(&packed);
        let header = RecordHeader {
            format: RecordFormat::default(),
            kind,
            moments: to_u32(moments.len())?,
            packed: to_u32(packed.len())?,
            unpacked: to_u32(content.len())?,
            end,
            last,
            point: Some(point),
            checksum: crc32fast::hash(&bytes[HEADER_BYTES..]),
        };
        bytes[..HEADER_BYTES].copy_from_slice(&header.to_bytes(point));
        Ok(Self { header, bytes })
    }
}

impl RecordHeader {
    /// Length of the whole record, in bytes.
    pub(super) fn length(&self) -> u64 {
        let (header, moment) = (self.format.header() as u64, self.format.moment() as u64);
        header + u64::from(self.moments) * moment + u64::from(self.packed)
    }

    fn to_bytes(self, point: CommitFingerprint) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        bytes[..8].copy_from_slice(&self.format.magic());
        let kind = match self.kind {
            RecordKind::Base => 1,
            RecordKind::Frames => 2,
            RecordKind::Seal => 3,
        };
        let WalPosition {
            salts,
            frames,
            checksums,
        } = self.end;
        let words = [
            kind,
            self.moments,
            self.packed,
            self.unpacked,
            salts[0],
            salts[1],
            frames,
            checksums[0],
            checksums[1],
            self.checksum,
        ];
        for (word, place) in words.iter().zip(bytes[8..48].chunks_exact_mut(4)) {
            place.copy_from_slice(&word.to_le_bytes());
        }
        bytes[48..56].copy_from_slice(&self.last.0.to_le_bytes());
        bytes[56..72].copy_from_slice(&point.to_bytes());
        let checksum = crc32fast::hash(&bytes[..HEADER_BYTES - 4]);
        bytes[HEADER_BYTES - 4..].copy_from_slice(&checksum.to_le_bytes());
        bytes
    }

    fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let format = RecordFormat::of(bytes.get(..8)?)?;
        let bytes = bytes.get(..format.header())?;
        let word = |at: usize| {
            let mut word = [0; 4];
            word.copy_from_slice(&bytes[at..at + 4]);
            u32::from_le_bytes(word)
        };
        let summed = bytes.len() - 4;
        if word(summed) != crc32fast::hash(&bytes[..summed]) {
            return None;
        }
        let mut last = [0; 8];
        last.copy_from_slice(&bytes[48..56]);
        Some(Self {
            format,
            kind: match word(8) {
                1 => RecordKind::Base,
                2 => RecordKind::Frames,
                3 => RecordKind::Seal,
                _ => return None,
            },
            moments: word(12),
            packed: word(16),
            unpacked: word(20),
            end: WalPosition {
                salts: [word(24), word(28)],
                frames: word(32),
                checksums: [word(36), word(40)],
            },
            checksum: word(44),
            last: Timestamp(i64::from_le_bytes(last)),
            point: format
                .has_points()
                .then(|| CommitFingerprint::from_bytes(&bytes[56..72])),
        })
    }

    /// Reads the header at `offset`, if it is complete.
    pub(super) fn read(file: &File, offset: u64) -> io::Result<Option<Self>> {
        let mut bytes = [0; HEADER_BYTES];
        let read = read_up_to(file, &mut bytes, offset)?;
        Ok(Self::from_bytes(&bytes[..read]))
    }

    /// Reads the moments of the record at `offset`.
    pub(super) fn moments(&self, file: &File, offset: u64) -> io::Result<Vec<Moment>> {
        let bytes = usize::try_from(self.moments).unwrap_or(usize::MAX);
        let length = self.format.moment();
        let bytes = self.read_body(file, offset, bytes.saturating_mul(length))?;
        let moments = bytes.chunks_exact(length).map(|bytes| {
            let (at, rest) = bytes.split_at(8);
            let (frames, rest) = rest.split_at(4);
            let (pages, point) = rest.split_at(4);
            Moment {
                at: Timestamp(i64::from_le_bytes(at.try_into().unwrap_or_default())),
                frames: u32::from_le_bytes(frames.try_into().unwrap_or_default()),
                pages: u32::from_le_bytes(pages.try_into().unwrap_or_default()),
                point: self
                    .format
                    .has_points()
                    .then(|| CommitFingerprint::from_bytes(point)),
            }
        });
        Ok(moments.collect())
    }

    /// Reads the content of the record at `offset`, unpacked.
    pub(super) fn content(&self, file: &File, offset: u64) -> io::Result<Vec<u8>> {
        let all = self.length() - self.format.header() as u64;
        let bytes = self.read_body(file, offset, usize::try_from(all).unwrap_or(usize::MAX))?;
        if crc32fast::hash(&bytes) != self.checksum || self.unpacked > MAX_UNPACKED_BYTES {
            return Err(damaged_record_error());
        }
        let packed = &bytes[bytes.len() - usize::try_from(self.packed).unwrap_or(0)..];
        unpack(packed, usize::try_from(self.unpacked).unwrap_or(0))
    }

    /// Whether the record at `offset` is complete.
    pub(super) fn is_whole(&self, file: &File, offset: u64) -> io::Result<bool> {
        match self.content(file, offset) {
            Ok(_) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::InvalidData => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Reads the first bytes after the header.
    fn read_body(&self, file: &File, offset: u64, length: usize) -> io::Result<Vec<u8>> {
        // A file shorter than its header says is damaged. This is checked before memory is reserved.
        let size = file.metadata()?.len();
        if offset.saturating_add(self.length()) > size {
            return Err(damaged_record_error());
        }
        let mut bytes = vec![0; length];
        let read = read_up_to(file, &mut bytes, offset + self.format.header() as u64)?;
        if read == length {
            Ok(bytes)
        } else {
            Err(damaged_record_error())
        }
    }
}

fn to_u32(bytes: usize) -> io::Result<u32> {
    u32::try_from(bytes).map_err(io::Error::other)
}

pub(crate) fn damaged_record_error() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "a history file is damaged")
}

/// Compresses the content of a record.
pub(crate) fn pack(bytes: &[u8]) -> io::Result<Vec<u8>> {
    use zstd::zstd_safe::CParameter::{EnableLongDistanceMatching, WindowLog};
    let mut compressor = zstd::bulk::Compressor::new(COMPRESSION_LEVEL)?;
    compressor.set_parameter(WindowLog(WINDOW_LOG))?;
    compressor.set_parameter(EnableLongDistanceMatching(true))?;
    compressor.compress(bytes)
}

/// Unpacks the content of a record, which has this length.
///
/// # Errors
/// Damage.
pub(crate) fn unpack(packed: &[u8], length: usize) -> io::Result<Vec<u8>> {
    let bytes = zstd::bulk::decompress(packed, length).map_err(|_| damaged_record_error())?;
    if bytes.len() == length {
        Ok(bytes)
    } else {
        Err(damaged_record_error())
    }
}
