//! SQLite's write-ahead log, read by its file format: committed frames, page by page.
//!
//! A log is a header and frames. A frame has a page number, the page, and for the last frame of a commit also the size of the
//! database. Salts name the generation of the log, which starts anew when it is wholly copied. Checksums cover all bytes before. A
//! frame whose salts or checksums do not match was never synced, or is of an earlier generation.
//!
//! Frames must be read before the log is copied into the database: the next commit may then overwrite them. SQLite holds no locks
//! on the log's file, so it may be opened and closed beside SQLite's connections.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::time::UNIX_EPOCH;

use cap_std::fs::Dir;

use svc_base::clock::Timestamp;

/// The page size of every database here, in bytes.
pub const PAGE_SIZE: usize = 4096;
const WAL_HEADER_BYTES: usize = 32;
const FRAME_HEADER_BYTES: usize = 24;
const FRAME_SIZE: usize = FRAME_HEADER_BYTES + PAGE_SIZE;
/// Frames per read.
const FRAMES_PER_READ: usize = 64;
/// No bound on frames.
pub const ALL_FRAMES: u32 = u32::MAX;
/// The most frames of one read: several times what a log may have, and all pages of a database of 256 MiB. A commit writes each page
/// once, and its last one maybe twice.
const MAX_FRAMES: usize = (64 << 10) + 64;
/// Magic number of a log. The last bit is the byte order of the checksums.
const WAL_MAGIC: u32 = 0x377f_0682;
const WAL_VERSION: u32 = 3_007_000;

/// A position in a log: its generation, the frames before, and the checksums up to there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WalPosition {
    /// Salts of the generation.
    pub salts: [u32; 2],
    /// Number of frames before the position.
    pub frames: u32,
    /// Checksums of everything before the position.
    pub checksums: [u32; 2],
}

impl WalPosition {
    /// Whether a log with these salts is the one that SQLite started after this one was copied.
    pub fn is_followed_by(&self, salts: [u32; 2]) -> bool {
        *self != Self::default() && salts[0] == self.salts[0].wrapping_add(1)
    }
}

/// A log on the disk.
#[derive(Debug)]
pub struct WalFile {
    file: File,
    big_endian: bool,
    start: WalPosition,
}

/// Committed frames.
#[derive(Debug)]
pub struct CommittedFrames {
    /// Page numbers, from 1.
    pub pages: Vec<u32>,
    /// Contents of the pages, one after another.
    pub data: Vec<u8>,
    /// Ends of the commits, in their order.
    pub commits: Vec<CommitEndPosition>,
    /// Position after the last frame.
    pub end: WalPosition,
}

/// The end of a commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CommitEndPosition {
    /// Number of frames up to the end of the commit.
    pub frames: u32,
    /// Size of the database after the commit, in pages.
    pub pages: u32,
}

impl WalFile {
    /// Opens the log `name`; `None` if there is none, or no complete header.
    pub fn open(dir: &Dir, name: &str) -> io::Result<Option<Self>> {
        match dir.open(name) {
            Ok(file) => Self::read(file.into_std()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn read(file: File) -> io::Result<Option<Self>> {
        let mut header = [0; WAL_HEADER_BYTES];
        if read_up_to(&file, &mut header, 0)? < WAL_HEADER_BYTES {
            return Ok(None);
        }
        let [magic, version, page] = [
            read_u32(&header, 0),
            read_u32(&header, 4),
            read_u32(&header, 8),
        ];
        let big_endian = magic & 1 == 1;
        let checksums = frame_checksum(big_endian, [0, 0], &header[..24]);
        if magic & !1 != WAL_MAGIC
            || version != WAL_VERSION
            || checksums != read_u32_pair(&header, 24)
        {
            return Ok(None);
        }
        if usize::try_from(page).ok() != Some(PAGE_SIZE) {
            let wrong = format!("the log has pages of {page} bytes");
            return Err(io::Error::new(io::ErrorKind::InvalidData, wrong));
        }
        let start = WalPosition {
            salts: read_u32_pair(&header, 16),
            frames: 0,
            checksums,
        };
        Ok(Some(Self {
            file,
            big_endian,
            start,
        }))
    }

    /// Returns the position of the first frame.
    pub fn start(&self) -> WalPosition {
        self.start
    }

    /// Whether this log has passed `position`, so that its next frames continue from there.
    pub fn contains(&self, position: &WalPosition) -> io::Result<bool> {
        let Some(last) = position.frames.checked_sub(1) else {
            return Ok(*position == self.start);
        };
        let mut header = [0; FRAME_HEADER_BYTES];
        let there = read_up_to(&self.file, &mut header, frame_offset(last))? == FRAME_HEADER_BYTES;
        Ok(there
            && position.salts == self.start.salts
            && read_u32_pair(&header, 8) == position.salts
            && read_u32_pair(&header, 16) == position.checksums)
    }

    /// Time of the last write to the file.
    pub fn modified_at(&self) -> io::Result<Timestamp> {
        let written = self.file.metadata()?.modified()?;
        let since = written.duration_since(UNIX_EPOCH).unwrap_or_default();
        let millis = i64::try_from(since.as_millis()).unwrap_or(i64::MAX);
        Ok(Timestamp(millis))
    }

    /// Reads the commits after `from`, within the first `most` frames: later frames may not be synced yet.
    pub fn read_committed(&self, from: &WalPosition, most: u32) -> io::Result<CommittedFrames> {
        let mut found = CommittedFrames {
            pages: Vec::new(),
            data: Vec::new(),
            commits: Vec::new(),
            end: *from,
        };
        let mut at = *from;
        let mut chunk = vec![0; FRAMES_PER_READ * FRAME_SIZE];
        'log: loop {
            let read = read_up_to(&self.file, &mut chunk, frame_offset(at.frames))?;
            for frame in chunk[..read].chunks_exact(FRAME_SIZE) {
                if at.frames >= most {
                    break 'log;
                }
                let Some(next) = self.next_position(&at, frame) else {
                    break 'log;
                };
                at = next;
                found.pages.push(read_u32(frame, 0));
                found.data.extend_from_slice(&frame[FRAME_HEADER_BYTES..]);
                let size = read_u32(frame, 4);
                if size > 0 {
                    found.commits.push(CommitEndPosition {
                        frames: at.frames - from.frames,
                        pages: size,
                    });
                    found.end = at;
                }
                if found.pages.len() > MAX_FRAMES {
                    return Err(io::Error::other("the log is too long"));
                }
            }
            if read < chunk.len() {
                break;
            }
        }
        // Frames after the last commit belong to no answered write, and will be overwritten.
        let committed = found.commits.last().map_or(0, |commit| commit.frames);
        let committed = usize::try_from(committed).unwrap_or(usize::MAX);
        found.pages.truncate(committed);
        found.data.truncate(committed.saturating_mul(PAGE_SIZE));
        Ok(found)
    }

    /// Returns the position after a frame, if it is the next one.
    fn next_position(&self, at: &WalPosition, frame: &[u8]) -> Option<WalPosition> {
        let checksums = frame_checksum(self.big_endian, at.checksums, &frame[..8]);
        let checksums = frame_checksum(self.big_endian, checksums, &frame[FRAME_HEADER_BYTES..]);
        let fits = read_u32_pair(frame, 8) == at.salts
            && read_u32_pair(frame, 16) == checksums
            && read_u32(frame, 0) > 0;
        fits.then_some(WalPosition {
            salts: at.salts,
            frames: at.frames + 1,
            checksums,
        })
    }
}

fn frame_offset(frames: u32) -> u64 {
    WAL_HEADER_BYTES as u64 + u64::from(frames) * FRAME_SIZE as u64
}

/// Reads until the buffer is full or the file ends; returns the number of bytes.
pub(crate) fn read_up_to(file: &File, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
    let mut read = 0;
    while read < buffer.len() {
        match file.read_at(&mut buffer[read..], offset + read as u64) {
            Ok(0) => break,
            Ok(more) => read += more,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(read)
}

/// Reads a number of a header: always big-endian, whatever the byte order of the checksums.
fn read_u32(bytes: &[u8], at: usize) -> u32 {
    let mut word = [0; 4];
    word.copy_from_slice(&bytes[at..at + 4]);
    u32::from_be_bytes(word)
}

fn read_u32_pair(bytes: &[u8], at: usize) -> [u32; 2] {
    [read_u32(bytes, at), read_u32(bytes, at + 4)]
}

/// Continues the checksums over a multiple of eight bytes.
pub(crate) fn frame_checksum(big_endian: bool, before: [u32; 2], bytes: &[u8]) -> [u32; 2] {
    let [mut first, mut second] = before;
    let read = |word: &[u8]| {
        let word = word.try_into().unwrap_or_default();
        if big_endian {
            u32::from_be_bytes(word)
        } else {
            u32::from_le_bytes(word)
        }
    };
    for words in bytes.chunks_exact(8) {
        let (left, right) = words.split_at(4);
        first = first.wrapping_add(read(left)).wrapping_add(second);
        second = second.wrapping_add(read(right)).wrapping_add(first);
    }
    [first, second]
}
