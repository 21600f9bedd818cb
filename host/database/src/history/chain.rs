//! A chain: one history file, which begins with a whole database and continues with its commits.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use cap_std::fs::{Dir, OpenOptions};

use super::page_hashes::{MAX_IMAGE_BYTES, PageHashes, WAL_VERSION_BYTES};
use super::record::{
    CommitFingerprint, Moment, NewHistoryRecord, RecordFormat, RecordHeader, RecordKind,
    damaged_record_error,
};
use crate::wal::PAGE_SIZE;
use svc_base::clock::Timestamp;

const FILE_SUFFIX: &str = ".history";
/// Numbers that are left for chains from elsewhere, where a database was loaded: its own chains begin after them.
pub(super) const NUMBERS_BEFORE_LOADED: u32 = 1 << 20;

/// A chain on the disk.
#[derive(Debug)]
pub(super) struct HistoryChainFile {
    /// Number of the chain: a later chain has a larger one.
    pub(super) number: u32,
    file: File,
    /// Records of the chain with their offsets; the first is a base.
    pub(super) records: Vec<(u64, RecordHeader)>,
    /// Offset after the last record.
    pub(super) end: u64,
}

/// A moment, and where it is stored.
#[derive(Clone, Copy, Debug)]
pub(super) struct MomentLocation {
    pub(super) chain: u32,
    /// Index of the record in the chain.
    record: usize,
    pub(super) moment: Moment,
}

/// Returns the name of a chain's file.
pub(super) fn chain_file_name(number: u32) -> String {
    format!("{number:010}{FILE_SUFFIX}")
}

/// Lists the numbers of the chains in a directory, oldest first.
pub(super) fn list_numbers(dir: &Dir) -> io::Result<Vec<u32>> {
    let mut numbers = Vec::new();
    for entry in dir.entries()? {
        let entry = entry?.file_name();
        let number = entry
            .to_str()
            .and_then(|name| name.strip_suffix(FILE_SUFFIX));
        numbers.extend(number.and_then(|number| number.parse::<u32>().ok()));
    }
    numbers.sort_unstable();
    Ok(numbers)
}

/// Reads the file of a chain.
pub(super) fn read_file(dir: &Dir, number: u32) -> io::Result<Vec<u8>> {
    dir.read(chain_file_name(number))
}

/// Size of a chain, in bytes.
pub(super) fn chain_file_bytes(dir: &Dir, number: u32) -> io::Result<u64> {
    Ok(dir.metadata(chain_file_name(number))?.len())
}

/// Removes a chain; a missing one is no error.
pub(super) fn remove_chain_file(dir: &Dir, number: u32) -> io::Result<()> {
    match dir.remove_file(chain_file_name(number)) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Creates the file of a chain, durably.
pub(super) fn create_file(dir: &Dir, number: u32, base: &NewHistoryRecord) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true);
    let file = dir.open_with(chain_file_name(number), &options)?.into_std();
    file.write_all_at(&base.bytes, 0)?;
    file.sync_data()?;
    dir.open(".")?.sync_all()
}

/// Appends a record to a chain, durably.
pub(super) fn append_record(
    dir: &Dir,
    number: u32,
    end: u64,
    record: &NewHistoryRecord,
) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true);
    let file = dir.open_with(chain_file_name(number), &options)?.into_std();
    // A half-written record of a crash must not stay behind this one.
    file.set_len(end)?;
    file.write_all_at(&record.bytes, end)?;
    file.sync_data()
}

impl HistoryChainFile {
    /// Reads the headers of a chain, without the pages.
    pub(super) fn open(dir: &Dir, number: u32) -> io::Result<Self> {
        let file = dir.open(chain_file_name(number))?.into_std();
        let length = file.metadata()?.len();
        let (mut records, mut end) = (Vec::new(), 0);
        while let Some(header) = RecordHeader::read(&file, end)? {
            let first = records.is_empty();
            if end + header.length() > length || first != (header.kind == RecordKind::Base) {
                break;
            }
            records.push((end, header));
            end += header.length();
        }
        Ok(Self {
            number,
            file,
            records,
            end,
        })
    }

    /// Drops the last record if a crash left it incomplete.
    pub(super) fn without_torn_end(mut self) -> io::Result<Self> {
        if let Some((offset, last)) = self.records.last()
            && !last.is_whole(&self.file, *offset)?
        {
            self.end = *offset;
            self.records.pop();
        }
        Ok(self)
    }

    /// Time of the last moment.
    pub(super) fn last(&self) -> Option<Timestamp> {
        self.records.last().map(|(_, header)| header.last)
    }

    /// Time of the first moment.
    pub(super) fn first_moment_at(&self) -> Option<Timestamp> {
        self.records.first().map(|(_, base)| base.last)
    }

    /// Whether the chain has commits after its base.
    pub(super) fn has_frames(&self) -> bool {
        self.records
            .iter()
            .any(|(_, h)| h.kind == RecordKind::Frames)
    }

    /// Bytes of pages after the base, unpacked.
    pub(super) fn unpacked(&self) -> u64 {
        let frames = self.records.iter().skip(1);
        frames.map(|(_, header)| u64::from(header.unpacked)).sum()
    }

    /// Reads the content of the last record.
    pub(super) fn last_content(&self) -> io::Result<Vec<u8>> {
        let (offset, header) = self.records.last().ok_or_else(damaged_record_error)?;
        header.content(&self.file, *offset)
    }

    /// Lists the moments of the chain, oldest first.
    pub(super) fn moment_locations(&self) -> io::Result<Vec<MomentLocation>> {
        let mut moment_locations = Vec::new();
        for (record, (offset, header)) in self.records.iter().enumerate() {
            let moments = header.moments(&self.file, *offset)?;
            moment_locations.extend(moments.into_iter().map(|moment| MomentLocation {
                chain: self.number,
                record,
                moment,
            }));
        }
        Ok(moment_locations)
    }

    /// Builds the database image at a moment of this chain.
    ///
    /// # Errors
    /// Errors of the disk; damage, if the records lead to another state than they name.
    pub(super) fn image(&self, spot: &MomentLocation) -> io::Result<Vec<u8>> {
        let mut image = Vec::new();
        for (record, (offset, header)) in self.records.iter().enumerate().take(spot.record + 1) {
            let content = header.content(&self.file, *offset)?;
            match header.kind {
                RecordKind::Base => image = content,
                RecordKind::Frames => {
                    let mut moments = header.moments(&self.file, *offset)?;
                    if record == spot.record {
                        moments.retain(|moment| moment.frames <= spot.moment.frames);
                    }
                    apply_frames(&mut image, &content, &moments)?;
                }
                RecordKind::Seal => {}
            }
        }
        // SQLite never writes a free page at the end.
        resize_image(&mut image, spot.moment.pages)?;
        let state = spot.moment.point.map(|point| point.state);
        let format = self.format();
        let other = |state| PageHashes::in_format(format, &image).checksum() != state;
        if state.is_some_and(other) {
            return Err(damaged_record_error());
        }
        clear_wal_flag(&mut image);
        Ok(image)
    }

    /// Builds the database image at the last moment.
    pub(super) fn last_image(&self) -> io::Result<Vec<u8>> {
        let last = self
            .moment_locations()?
            .pop()
            .ok_or_else(damaged_record_error)?;
        self.image(&last)
    }

    /// Commit point at the end; `None` in format 1.
    pub(super) fn point(&self) -> Option<CommitFingerprint> {
        self.records.last().and_then(|(_, header)| header.point)
    }

    /// Format of the chain. A chain has one format, since only chains of the present one are continued.
    fn format(&self) -> RecordFormat {
        let base = self.records.first();
        base.map(|(_, header)| header.format).unwrap_or_default()
    }

    /// Whether the chain is of an earlier format.
    pub(super) fn has_old_format(&self) -> bool {
        self.format() != RecordFormat::default()
    }

    /// Checks all records and the states that they lead to; returns the faults.
    pub(super) fn verify(&self) -> io::Result<Option<String>> {
        if self.records.is_empty() {
            return Ok(Some("has no beginning".to_owned()));
        }
        let (mut state, mut before) = (PageHashes::default(), None);
        for (number, (offset, header)) in self.records.iter().enumerate() {
            // The last record may be incomplete, because it is being written.
            if number + 1 == self.records.len() && !header.is_whole(&self.file, *offset)? {
                break;
            }
            let led = self.follow(&mut state, &mut before, *offset, header);
            let wrong = match led {
                Ok(true) => continue,
                Ok(false) => "does not lead to the state that it names",
                Err(error) if error.kind() == io::ErrorKind::InvalidData => "is damaged",
                Err(error) => return Err(error),
            };
            let (record, last) = (number + 1, header.last);
            return Ok(Some(format!("{wrong}: record {record}, of {last}")));
        }
        Ok(None)
    }

    /// Applies a record to `state`, after the point `before`; returns whether it leads to the state that it names.
    fn follow(
        &self,
        state: &mut PageHashes,
        before: &mut Option<CommitFingerprint>,
        offset: u64,
        header: &RecordHeader,
    ) -> io::Result<bool> {
        let content = header.content(&self.file, offset)?;
        let moments = header.moments(&self.file, offset)?;
        let frames = match header.kind {
            RecordKind::Base => {
                *state = PageHashes::in_format(header.format, &content);
                None
            }
            RecordKind::Frames => Some(PackedFrames::of(&content)?),
            RecordKind::Seal => None,
        };
        let mut from = 0;
        for moment in &moments {
            if let Some(frames) = &frames {
                for (page, data) in frames.between(from, moment.frames) {
                    state.set_page(page, data)?;
                }
            }
            from = moment.frames;
            state.resize(usize::try_from(moment.pages).unwrap_or(usize::MAX))?;
            let led = moment.point.is_none_or(|point| {
                let later = before.is_none_or(|before| before.commit < point.commit);
                later && point.state == state.checksum()
            });
            if !led {
                return Ok(false);
            }
            *before = moment.point;
        }
        Ok(header.point == *before)
    }
}

/// Marks an image as a database without a write-ahead log.
pub(super) fn clear_wal_flag(image: &mut [u8]) {
    if let Some(versions) = image.get_mut(WAL_VERSION_BYTES) {
        versions.fill(1);
    }
}

/// Packs frames for a record: their number, the page numbers, the pages.
pub(crate) fn pack_frames(pages: &[u32], data: &[u8]) -> Vec<u8> {
    let count = u32::try_from(pages.len()).unwrap_or(u32::MAX);
    let mut content = Vec::with_capacity(4 + pages.len() * 4 + data.len());
    content.extend_from_slice(&count.to_le_bytes());
    for page in pages {
        content.extend_from_slice(&page.to_le_bytes());
    }
    content.extend_from_slice(data);
    content
}

/// The frames of a record, as [`pack_frames`] packs them.
pub(crate) struct PackedFrames<'c> {
    pages: &'c [u8],
    data: &'c [u8],
}

impl<'c> PackedFrames<'c> {
    /// Reads the content of a record.
    ///
    /// # Errors
    /// Damage.
    pub(crate) fn of(content: &'c [u8]) -> io::Result<Self> {
        let (count, rest) = content
            .split_at_checked(4)
            .ok_or_else(damaged_record_error)?;
        let count = usize::try_from(read_u32(count)).unwrap_or(usize::MAX);
        let split = rest.split_at_checked(count.saturating_mul(4));
        let (pages, data) = split.ok_or_else(damaged_record_error)?;
        if data.len() != count.saturating_mul(PAGE_SIZE) {
            return Err(damaged_record_error());
        }
        Ok(Self { pages, data })
    }

    /// Returns all frames: page number and content.
    pub(crate) fn all(&self) -> impl Iterator<Item = (u32, &'c [u8])> {
        let pages = self.pages.chunks_exact(4).map(read_u32);
        pages.zip(self.data.chunks_exact(PAGE_SIZE))
    }

    /// Returns the frames from index `from` to index `to`.
    fn between(&self, from: u32, to: u32) -> impl Iterator<Item = (u32, &'c [u8])> {
        let place = |frame| usize::try_from(frame).unwrap_or(usize::MAX);
        self.all()
            .skip(place(from))
            .take(place(to.saturating_sub(from)))
    }
}

fn read_u32(bytes: &[u8]) -> u32 {
    u32::from_le_bytes(bytes.try_into().unwrap_or_default())
}

/// Applies frames to an image, moment by moment.
fn apply_frames(image: &mut Vec<u8>, content: &[u8], moments: &[Moment]) -> io::Result<()> {
    let frames = PackedFrames::of(content)?;
    let mut from = 0;
    for moment in moments {
        for (page, data) in frames.between(from, moment.frames) {
            write_page(image, page, data)?;
        }
        resize_image(image, moment.pages)?;
        from = moment.frames;
    }
    Ok(())
}

/// Sets the number of pages of an image: the database may have shrunk, or grown by pages that SQLite never wrote.
fn resize_image(image: &mut Vec<u8>, pages: u32) -> io::Result<()> {
    let pages = usize::try_from(pages).unwrap_or(usize::MAX);
    let length = pages.saturating_mul(PAGE_SIZE);
    if length == 0 || length > MAX_IMAGE_BYTES {
        return Err(damaged_record_error());
    }
    image.resize(length, 0);
    Ok(())
}

/// Writes a page, counted from 1, into an image.
pub(super) fn write_page(image: &mut Vec<u8>, page: u32, data: &[u8]) -> io::Result<()> {
    let start = usize::try_from(page.checked_sub(1).ok_or_else(damaged_record_error)?)
        .unwrap_or(usize::MAX);
    let start = start.saturating_mul(PAGE_SIZE);
    if start > MAX_IMAGE_BYTES {
        return Err(damaged_record_error());
    }
    let end = start + PAGE_SIZE;
    if image.len() < end {
        image.resize(end, 0);
    }
    image[start..end].copy_from_slice(data);
    Ok(())
}
