//! SQLite's write-ahead log, read as its file format has it: what was committed, page by page.
//!
//! A log is a header and frames: each a page's number, for the last of a commit also the database's size, and the page.
//! Salts name the generation of the log, which begins anew once it is copied wholly; sums run over all that is before.
//! A frame whose salts or sums do not fit was never synced, or is of a generation before.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::time::UNIX_EPOCH;

use cap_std::fs::Dir;

use svc_base::clock::Timestamp;

/// The size of a page, in bytes: of every database here.
pub(super) const PAGE_SIZE: usize = 4096;
const HEADER: usize = 32;
const FRAME_HEADER: usize = 24;
const FRAME_SIZE: usize = FRAME_HEADER + PAGE_SIZE;
/// Frames that are read at once.
const FRAMES_PER_READ: usize = 64;
/// All frames of a log.
pub(super) const ALL_FRAMES: u32 = u32::MAX;
/// The most frames that are taken at once: several times what a log may have.
const MAX_FRAMES: usize = 64 << 10;
/// Magic number of a log, but for its last bit, which is the byte order of its sums.
const MAGIC: u32 = 0x377f_0682;
const VERSION: u32 = 3_007_000;

/// A place in a log: after so many frames of one of its generations, with the sums over all before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct LogPosition {
    /// Which generation.
    pub(super) salts: [u32; 2],
    /// How many frames are before.
    pub(super) frames: u32,
    /// Over all that is before.
    pub(super) checksums: [u32; 2],
}

impl LogPosition {
    /// Whether a log that begins with `salts` is the one that SQLite began when this one was copied.
    pub(super) fn is_followed_by(&self, salts: [u32; 2]) -> bool {
        *self != Self::default() && salts[0] == self.salts[0].wrapping_add(1)
    }
}

/// A log as it is on the disk.
#[derive(Debug)]
pub(super) struct WalFile {
    file: File,
    big_endian: bool,
    start: LogPosition,
}

/// Frames, up to the last that ends a commit.
#[derive(Debug)]
pub(super) struct Frames {
    /// The pages' numbers, from 1.
    pub(super) pages: Vec<u32>,
    /// The pages, one after the other.
    pub(super) data: Vec<u8>,
    /// Where commits end, in their order.
    pub(super) commits: Vec<CommitEnd>,
    /// Where they end.
    pub(super) end: LogPosition,
}

/// The end of a commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CommitEnd {
    /// How many of the frames are up to it.
    pub(super) frames: u32,
    /// How many pages the database has then.
    pub(super) pages: u32,
}

impl WalFile {
    /// Opens the log `name`; `None` if there is none, or nothing whole in it.
    pub(super) fn open(dir: &Dir, name: &str) -> io::Result<Option<Self>> {
        match dir.open(name) {
            Ok(file) => Self::read(file.into_std()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn read(file: File) -> io::Result<Option<Self>> {
        let mut header = [0; HEADER];
        if read_up_to(&file, &mut header, 0)? < HEADER {
            return Ok(None);
        }
        let [magic, version, page] = [
            read_u32(&header, 0),
            read_u32(&header, 4),
            read_u32(&header, 8),
        ];
        let big_endian = magic & 1 == 1;
        let checksums = checksum(big_endian, [0, 0], &header[..24]);
        if magic & !1 != MAGIC || version != VERSION || checksums != read_u32_pair(&header, 24) {
            return Ok(None);
        }
        if usize::try_from(page).ok() != Some(PAGE_SIZE) {
            let wrong = format!("the log has pages of {page} bytes");
            return Err(io::Error::new(io::ErrorKind::InvalidData, wrong));
        }
        let start = LogPosition {
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

    /// Returns the position of the log's beginning.
    pub(super) fn start(&self) -> LogPosition {
        self.start
    }

    /// Whether this log had come to `position` once, so that what follows in it follows that.
    pub(super) fn contains(&self, position: &LogPosition) -> io::Result<bool> {
        let Some(last) = position.frames.checked_sub(1) else {
            return Ok(*position == self.start);
        };
        let mut header = [0; FRAME_HEADER];
        let there = read_up_to(&self.file, &mut header, offset(last))? == FRAME_HEADER;
        Ok(there
            && position.salts == self.start.salts
            && read_u32_pair(&header, 8) == position.salts
            && read_u32_pair(&header, 16) == position.checksums)
    }

    /// When it was last written to.
    pub(super) fn modified_at(&self) -> io::Result<Timestamp> {
        let written = self.file.metadata()?.modified()?;
        let since = written.duration_since(UNIX_EPOCH).unwrap_or_default();
        let millis = i64::try_from(since.as_millis()).unwrap_or(i64::MAX);
        Ok(Timestamp(millis))
    }

    /// Reads what was committed after `from`, which this log holds, within its first `most` frames: later frames may
    /// not be synced yet.
    pub(super) fn read_committed(&self, from: &LogPosition, most: u32) -> io::Result<Frames> {
        let mut found = Frames {
            pages: Vec::new(),
            data: Vec::new(),
            commits: Vec::new(),
            end: *from,
        };
        let mut at = *from;
        let mut chunk = vec![0; FRAMES_PER_READ * FRAME_SIZE];
        'log: loop {
            let read = read_up_to(&self.file, &mut chunk, offset(at.frames))?;
            for frame in chunk[..read].chunks_exact(FRAME_SIZE) {
                if at.frames >= most {
                    break 'log;
                }
                let Some(next) = self.next_position(&at, frame) else {
                    break 'log;
                };
                at = next;
                found.pages.push(read_u32(frame, 0));
                found.data.extend_from_slice(&frame[FRAME_HEADER..]);
                let size = read_u32(frame, 4);
                if size > 0 {
                    found.commits.push(CommitEnd {
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
        // What comes after the last commit was never answered, and is written over.
        let committed = found.commits.last().map_or(0, |commit| commit.frames);
        let committed = usize::try_from(committed).unwrap_or(usize::MAX);
        found.pages.truncate(committed);
        found.data.truncate(committed.saturating_mul(PAGE_SIZE));
        Ok(found)
    }

    /// Where the log is after a frame, if it is the next.
    fn next_position(&self, at: &LogPosition, frame: &[u8]) -> Option<LogPosition> {
        let checksums = checksum(self.big_endian, at.checksums, &frame[..8]);
        let checksums = checksum(self.big_endian, checksums, &frame[FRAME_HEADER..]);
        let fits = read_u32_pair(frame, 8) == at.salts
            && read_u32_pair(frame, 16) == checksums
            && read_u32(frame, 0) > 0;
        fits.then_some(LogPosition {
            salts: at.salts,
            frames: at.frames + 1,
            checksums,
        })
    }
}

fn offset(frames: u32) -> u64 {
    HEADER as u64 + u64::from(frames) * FRAME_SIZE as u64
}

/// Reads until the buffer is full or the file ends; returns how much there was.
pub(super) fn read_up_to(file: &File, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
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

/// Numbers in a log's headers are big-endian, whatever the order of its sums.
fn read_u32(bytes: &[u8], at: usize) -> u32 {
    let mut word = [0; 4];
    word.copy_from_slice(&bytes[at..at + 4]);
    u32::from_be_bytes(word)
}

fn read_u32_pair(bytes: &[u8], at: usize) -> [u32; 2] {
    [read_u32(bytes, at), read_u32(bytes, at + 4)]
}

/// Goes on with the sums over a multiple of eight bytes.
pub(super) fn checksum(big_endian: bool, before: [u32; 2], bytes: &[u8]) -> [u32; 2] {
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
