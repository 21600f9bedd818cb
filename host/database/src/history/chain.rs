//! A chain: one history file, which begins with a whole database and goes on with what was committed to it.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use cap_std::fs::{Dir, OpenOptions};

use super::log::PAGE_SIZE;
use super::page_hashes::{MAX_IMAGE_BYTES, PageHashes, WAL_VERSION_BYTES};
use super::record::{CommitPoint, Moment, Record, RecordFormat, RecordHeader, RecordKind, damaged};
use svc_base::clock::Timestamp;

const FILE_SUFFIX: &str = ".history";

/// A chain as it is on the disk.
#[derive(Debug)]
pub(super) struct Chain {
    /// Number of the chain: a later chain has a larger one.
    pub(super) number: u32,
    file: File,
    /// Records of the chain, each with its place: a base first, unless there is none.
    pub(super) records: Vec<(u64, RecordHeader)>,
    /// Where they end.
    pub(super) end: u64,
}

/// A moment, and where to find it.
#[derive(Clone, Copy, Debug)]
pub(super) struct MomentLocation {
    pub(super) chain: u32,
    /// Which of the chain's records.
    record: usize,
    pub(super) moment: Moment,
}

fn name(number: u32) -> String {
    format!("{number:010}{FILE_SUFFIX}")
}

/// The numbers of the chains in a directory, oldest first.
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

/// How many bytes a chain takes.
pub(super) fn bytes(dir: &Dir, number: u32) -> io::Result<u64> {
    Ok(dir.metadata(name(number))?.len())
}

/// Removes a chain; one that is gone is removed already.
pub(super) fn remove(dir: &Dir, number: u32) -> io::Result<()> {
    match dir.remove_file(name(number)) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Begins a chain, durably.
pub(super) fn create_file(dir: &Dir, number: u32, base: &Record) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true);
    let file = dir.open_with(name(number), &options)?.into_std();
    file.write_all_at(&base.bytes, 0)?;
    file.sync_data()?;
    dir.open(".")?.sync_all()
}

/// Appends to a chain at its end, durably.
pub(super) fn append(dir: &Dir, number: u32, end: u64, record: &Record) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true);
    let file = dir.open_with(name(number), &options)?.into_std();
    // What a crash left half written is not to be taken for what follows.
    file.set_len(end)?;
    file.write_all_at(&record.bytes, end)?;
    file.sync_data()
}

impl Chain {
    /// Reads what is in a chain, but not the pages.
    pub(super) fn open(dir: &Dir, number: u32) -> io::Result<Self> {
        let file = dir.open(name(number))?.into_std();
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

    /// Forgets the last record if it is not there to its last byte: a crash came while it was written.
    pub(super) fn without_torn_end(mut self) -> io::Result<Self> {
        if let Some((offset, last)) = self.records.last()
            && !last.is_whole(&self.file, *offset)?
        {
            self.end = *offset;
            self.records.pop();
        }
        Ok(self)
    }

    /// When its last moment was.
    pub(super) fn last(&self) -> Option<Timestamp> {
        self.records.last().map(|(_, header)| header.last)
    }

    /// When its first moment was.
    pub(super) fn began(&self) -> Option<Timestamp> {
        self.records.first().map(|(_, base)| base.last)
    }

    /// Whether anything was committed since it began.
    pub(super) fn has_frames(&self) -> bool {
        self.records
            .iter()
            .any(|(_, h)| h.kind == RecordKind::Frames)
    }

    /// How many bytes of pages are to be unpacked to come to its end, the base aside.
    pub(super) fn unpacked(&self) -> u64 {
        let frames = self.records.iter().skip(1);
        frames.map(|(_, header)| u64::from(header.unpacked)).sum()
    }

    /// Reads the content of the last record.
    pub(super) fn last_content(&self) -> io::Result<Vec<u8>> {
        let (offset, header) = self.records.last().ok_or_else(damaged)?;
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

    /// The database as it was at a moment of this chain.
    ///
    /// # Errors
    /// The disk's; damage, where what the records lead to is not what they say.
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
        // The last page may be a free one, which SQLite never writes.
        resize(&mut image, spot.moment.pages)?;
        let state = spot.moment.point.map(|point| point.state);
        if state.is_some_and(|state| PageHashes::of(&image).checksum() != state) {
            return Err(damaged());
        }
        clear_wal_flag(&mut image);
        Ok(image)
    }

    /// The database as it was at its last moment.
    pub(super) fn last_image(&self) -> io::Result<Vec<u8>> {
        let last = self.moment_locations()?.pop().ok_or_else(damaged)?;
        self.image(&last)
    }

    /// Where it has come to; `None` in the format before.
    pub(super) fn point(&self) -> Option<CommitPoint> {
        self.records.last().and_then(|(_, header)| header.point)
    }

    /// Whether it is of the format before.
    pub(super) fn has_old_format(&self) -> bool {
        let mut records = self.records.iter();
        records.any(|(_, header)| header.format == RecordFormat::V1)
    }

    /// Whether all of it can be read, and leads where it says: answers what is wrong.
    pub(super) fn verify(&self) -> io::Result<Option<String>> {
        if self.records.is_empty() {
            return Ok(Some("has no beginning".to_owned()));
        }
        let (mut state, mut before) = (PageHashes::default(), None);
        for (number, (offset, header)) in self.records.iter().enumerate() {
            // The last may be being written.
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

    /// Follows a record; answers whether it leads where it says, after the point `before`.
    fn follow(
        &self,
        state: &mut PageHashes,
        before: &mut Option<CommitPoint>,
        offset: u64,
        header: &RecordHeader,
    ) -> io::Result<bool> {
        let content = header.content(&self.file, offset)?;
        let moments = header.moments(&self.file, offset)?;
        let frames = match header.kind {
            RecordKind::Base => {
                *state = PageHashes::of(&content);
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

/// Has an image say that there is no log beside it.
pub(super) fn clear_wal_flag(image: &mut [u8]) {
    if let Some(versions) = image.get_mut(WAL_VERSION_BYTES) {
        versions.fill(1);
    }
}

/// Packs frames as a record holds them: how many, the pages' numbers, the pages.
pub(super) fn pack_frames(pages: &[u32], data: &[u8]) -> Vec<u8> {
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
struct PackedFrames<'c> {
    pages: &'c [u8],
    data: &'c [u8],
}

impl<'c> PackedFrames<'c> {
    fn of(content: &'c [u8]) -> io::Result<Self> {
        let (count, rest) = content.split_at_checked(4).ok_or_else(damaged)?;
        let count = usize::try_from(number(count)).unwrap_or(usize::MAX);
        let split = rest.split_at_checked(count.saturating_mul(4));
        let (pages, data) = split.ok_or_else(damaged)?;
        if data.len() != count * PAGE_SIZE {
            return Err(damaged());
        }
        Ok(Self { pages, data })
    }

    /// The frames from the place `from` on, up to the place `to`: the page of each, and what it holds then.
    fn between(&self, from: u32, to: u32) -> impl Iterator<Item = (u32, &'c [u8])> {
        let place = |frame| usize::try_from(frame).unwrap_or(usize::MAX);
        let frames = self
            .pages
            .chunks_exact(4)
            .zip(self.data.chunks_exact(PAGE_SIZE));
        frames
            .map(|(page, data)| (number(page), data))
            .skip(place(from))
            .take(place(to.saturating_sub(from)))
    }
}

fn number(bytes: &[u8]) -> u32 {
    u32::from_le_bytes(bytes.try_into().unwrap_or_default())
}

/// Brings an image from moment to moment.
fn apply_frames(image: &mut Vec<u8>, content: &[u8], moments: &[Moment]) -> io::Result<()> {
    let frames = PackedFrames::of(content)?;
    let mut from = 0;
    for moment in moments {
        for (page, data) in frames.between(from, moment.frames) {
            write_page(image, page, data)?;
        }
        resize(image, moment.pages)?;
        from = moment.frames;
    }
    Ok(())
}

/// Gives an image so many pages: the database may have become smaller, or larger by what SQLite never wrote.
fn resize(image: &mut Vec<u8>, pages: u32) -> io::Result<()> {
    let pages = usize::try_from(pages).unwrap_or(usize::MAX);
    let length = pages.saturating_mul(PAGE_SIZE);
    if length == 0 || length > MAX_IMAGE_BYTES {
        return Err(damaged());
    }
    image.resize(length, 0);
    Ok(())
}

/// Puts a page, counted from 1, into an image.
pub(super) fn write_page(image: &mut Vec<u8>, page: u32, data: &[u8]) -> io::Result<()> {
    let start = usize::try_from(page.checked_sub(1).ok_or_else(damaged)?).unwrap_or(usize::MAX);
    let start = start.saturating_mul(PAGE_SIZE);
    if start > MAX_IMAGE_BYTES {
        return Err(damaged());
    }
    let end = start + PAGE_SIZE;
    if image.len() < end {
        image.resize(end, 0);
    }
    image[start..end].copy_from_slice(data);
    Ok(())
}
