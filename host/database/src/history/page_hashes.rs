//! The checksum of a database's state, updated page by page.
//!
//! Each page has a hash of its number and its bytes, and the checksum is the sum of all hashes. So a commit costs only the hashes
//! of the pages that it wrote, however large the database is. Two pages that change places get other hashes, and so another sum.
//! This finds damage and our own mistakes; it does not protect against an attacker who can write files.

use std::io;
use std::ops::Range;

use twox_hash::XxHash3_64;

use super::record::{RecordFormat, damaged_record_error};
use crate::wal::PAGE_SIZE;

/// The largest database that has a history, in bytes.
pub(super) const MAX_IMAGE_BYTES: usize = 1 << 30;
/// The most pages that are hashed: those of 64 GiB. A number beyond is damage.
pub(crate) const MAX_PAGES: usize = 1 << 24;
/// Bytes of the header that say whether a database has a write-ahead log.
pub(super) const WAL_VERSION_BYTES: Range<usize> = 18..20;
/// Bytes of the header that SQLite writes anew with every change of the first page, so that a copy which is written through SQLite
/// has others: the number of changes, that number once more, and the version of SQLite.
const CHANGE_COUNTER_BYTES: [Range<usize>; 2] = [24..28, 92..100];

/// Hashes of a database's pages, with their sum.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct PageHashes {
    /// Format whose checksum this is.
    format: RecordFormat,
    pages: Vec<u64>,
    sum: u64,
}

impl PageHashes {
    /// Hashes the pages of a database image.
    pub(super) fn of(image: &[u8]) -> Self {
        Self::in_format(RecordFormat::default(), image)
    }

    /// Hashes the pages of a database image as the records of a format do.
    pub(super) fn in_format(format: RecordFormat, image: &[u8]) -> Self {
        let mut hashes = Self {
            format,
            ..Self::default()
        };
        for data in image.chunks_exact(PAGE_SIZE) {
            hashes.push(data);
        }
        hashes
    }

    fn push(&mut self, data: &[u8]) {
        let number = u32::try_from(self.pages.len() + 1).unwrap_or(u32::MAX);
        let hash = page_hash(self.format, number, data);
        self.pages.push(hash);
        self.sum = self.sum.wrapping_add(hash);
    }

    /// Adds a page at the end.
    ///
    /// # Errors
    /// Damage, if there are more pages than a database can have.
    pub(crate) fn add_page(&mut self, data: &[u8]) -> io::Result<()> {
        if self.pages.len() >= MAX_PAGES {
            return Err(damaged_record_error());
        }
        self.push(data);
        Ok(())
    }

    /// Returns the checksum. It is the same with and without a write-ahead log, and in a copy that was written page by page through
    /// SQLite.
    pub(crate) fn checksum(&self) -> u64 {
        self.sum
    }

    /// Returns the number of pages.
    pub(crate) fn pages(&self) -> u32 {
        u32::try_from(self.pages.len()).unwrap_or(u32::MAX)
    }

    /// Replaces the content of a page, counted from 1.
    ///
    /// # Errors
    /// Damage, if no database has this page.
    pub(crate) fn set_page(&mut self, page: u32, data: &[u8]) -> io::Result<()> {
        let place = usize::try_from(page.checked_sub(1).ok_or_else(damaged_record_error)?)
            .unwrap_or(usize::MAX);
        if place >= self.pages.len() {
            self.resize(place.saturating_add(1))?;
        }
        let new = page_hash(self.format, page, data);
        let old = std::mem::replace(&mut self.pages[place], new);
        self.sum = self.sum.wrapping_sub(old).wrapping_add(new);
        Ok(())
    }

    /// Sets the number of pages: removes pages at the end, or adds empty ones.
    ///
    /// # Errors
    /// Damage, if there are more pages than a database can have.
    pub(crate) fn resize(&mut self, pages: usize) -> io::Result<()> {
        if pages > MAX_PAGES {
            return Err(damaged_record_error());
        }
        while self.pages.len() > pages {
            self.sum = self.sum.wrapping_sub(self.pages.pop().unwrap_or_default());
        }
        while self.pages.len() < pages {
            self.push(&[0; PAGE_SIZE]);
        }
        Ok(())
    }
}

fn page_hash(format: RecordFormat, page: u32, data: &[u8]) -> u64 {
    let seed = u64::from(page);
    if page > 1 {
        return XxHash3_64::oneshot_with_seed(seed, data);
    }
    // A copy has no log, and counts its changes by itself, so these bytes do not count.
    let mut first = data.to_vec();
    let mut leave_out = |bytes: Range<usize>| {
        if let Some(bytes) = first.get_mut(bytes) {
            bytes.fill(1);
        }
    };
    leave_out(WAL_VERSION_BYTES);
    if format.leaves_out_change_counter() {
        CHANGE_COUNTER_BYTES.into_iter().for_each(leave_out);
    }
    XxHash3_64::oneshot_with_seed(seed, &first)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(byte: u8) -> Vec<u8> {
        vec![byte; PAGE_SIZE]
    }

    #[test]
    fn a_state_that_was_followed_is_the_state_that_is_there() {
        let mut followed = PageHashes::of(&[page(1), page(2), page(3)].concat());
        followed.set_page(2, &page(9)).unwrap();
        followed.set_page(5, &page(5)).unwrap();
        let there = [page(1), page(9), page(3), page(0), page(5)].concat();
        assert_eq!(followed, PageHashes::of(&there));
        followed.resize(2).unwrap();
        assert_eq!(followed, PageHashes::of(&there[..2 * PAGE_SIZE]));
        followed.resize(0).unwrap();
        assert_eq!(followed.checksum(), PageHashes::default().checksum());
    }

    #[test]
    fn another_state_has_another_checksum() {
        let one = [page(1), page(2), page(3)].concat();
        let others = [
            [page(1), page(3), page(2)].concat(),
            [page(1), page(2), page(3), page(0)].concat(),
            [page(1), page(2)].concat(),
            [page(1), page(2), page(4)].concat(),
        ];
        for other in others {
            assert_ne!(
                PageHashes::of(&one).checksum(),
                PageHashes::of(&other).checksum()
            );
        }
        let mut with_log = one.clone();
        with_log[WAL_VERSION_BYTES].fill(2);
        assert_eq!(
            PageHashes::of(&one).checksum(),
            PageHashes::of(&with_log).checksum()
        );
    }

    #[test]
    fn what_sqlite_counts_in_each_copy_for_itself_is_left_out_of_the_first_page_alone() {
        let checksum = |format, image: &[u8]| PageHashes::in_format(format, image).checksum();
        let one = [page(1), page(2)].concat();
        let (now, before) = (RecordFormat::V3, RecordFormat::V2);
        for (place, counts) in [
            (23, true),
            (24, false),
            (27, false),
            (28, true),
            (91, true),
            (92, false),
            (99, false),
            (100, true),
            (PAGE_SIZE + 24, true),
        ] {
            let mut other = one.clone();
            other[place] = 7;
            let differs = checksum(now, &one) != checksum(now, &other);
            assert_eq!(differs, counts, "{place}");
            assert_ne!(checksum(before, &one), checksum(before, &other), "{place}");
        }
    }

    #[test]
    fn a_page_that_no_database_has_is_damage() {
        let mut state = PageHashes::default();
        assert!(state.set_page(0, &page(1)).is_err());
        assert!(state.set_page(u32::MAX, &page(1)).is_err());
    }
}
