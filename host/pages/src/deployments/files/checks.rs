//! Checks of a site that is about to be published, before anything of it is stored.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::model::{FileError, NewSite, NewSiteFile};
use crate::content::Digest;
use crate::deployments::sites::SiteFile;
use crate::workspaces::FileLimits;

impl NewSite {
    /// Returns the bytes that were sent with the request.
    pub(super) fn inline_bytes(&self) -> usize {
        let bytes = self.files.values().map(|file| match file {
            NewSiteFile::Inline(bytes) => bytes.len(),
            _ => 0,
        });
        bytes.sum()
    }

    /// Lists the files that the project must have, each once.
    pub(super) fn named(&self) -> Vec<Digest> {
        let named = self.files.values().filter_map(|file| match file {
            NewSiteFile::Named(digest, _) => Some(*digest),
            NewSiteFile::Kept(file) => Some(file.digest),
            NewSiteFile::Inline(_) | NewSiteFile::Stored(_) => None,
        });
        named.collect::<BTreeSet<_>>().into_iter().collect()
    }

    /// Returns the length of a file; a missing one has that which the request says.
    fn bytes_of(file: &NewSiteFile, known: &HashMap<Digest, SiteFile>) -> u64 {
        match file {
            NewSiteFile::Inline(bytes) => bytes.len() as u64,
            NewSiteFile::Named(digest, said) => match known.get(digest) {
                Some(file) => file.bytes,
                None => said.unwrap_or(0),
            },
            NewSiteFile::Kept(file) => file.bytes,
            NewSiteFile::Stored(stored) => stored.file.bytes,
        }
    }

    /// Refuses a site with no or too many files, with a file that is too large, or with too many bytes.
    pub(super) fn check_bounds(
        &self,
        limits: &FileLimits,
        known: &HashMap<Digest, SiteFile>,
    ) -> Result<(), FileError> {
        if self.files.is_empty() {
            return Err(FileError::NoFiles);
        }
        if self.files.len() as u64 > limits.site_files {
            return Err(FileError::TooManyFiles(limits.site_files));
        }
        if let Some(fallback) = &self.options.fallback
            && !self.files.contains_key(fallback)
        {
            return Err(FileError::NoSuchFallback(fallback.clone()));
        }
        let mut all: u64 = 0;
        for file in self.files.values() {
            let bytes = Self::bytes_of(file, known);
            // A file that the project has may be from a time when its plan allowed more.
            let is_new = match file {
                NewSiteFile::Inline(_) => true,
                NewSiteFile::Named(digest, _) => !known.contains_key(digest),
                NewSiteFile::Kept(_) | NewSiteFile::Stored(_) => false,
            };
            if is_new && bytes > limits.file_bytes {
                return Err(FileError::TooLarge(limits.file_bytes));
            }
            all = all.saturating_add(bytes);
        }
        match all > limits.site_bytes {
            true => Err(FileError::SiteTooLarge(limits.site_bytes)),
            false => Ok(()),
        }
    }

    /// Refuses a file whose length is another than the request says.
    pub(super) fn check_sizes(&self, known: &HashMap<Digest, SiteFile>) -> Result<(), FileError> {
        for (path, file) in &self.files {
            if let NewSiteFile::Named(digest, Some(said)) = file
                && known.get(digest).is_some_and(|file| file.bytes != *said)
            {
                return Err(FileError::SizeMismatch(path.clone()));
            }
        }
        Ok(())
    }

    /// Lists the files that come with the publication, each distinct one once, with their lengths. Those of the request are hashed: callers
    /// run it on a thread that may wait.
    pub(super) fn sent(&self) -> BTreeMap<Digest, u64> {
        let sent = self.files.values().filter_map(|file| match file {
            NewSiteFile::Inline(bytes) => Some((Digest::of(bytes), bytes.len() as u64)),
            NewSiteFile::Stored(stored) => Some((stored.file.digest, stored.file.bytes)),
            NewSiteFile::Named(..) | NewSiteFile::Kept(_) => None,
        });
        sent.collect()
    }

    /// Returns the files as they would be stored: those of the request are hashed, as for [`NewSite::sent`].
    pub(super) fn to_files(&self, known: &HashMap<Digest, SiteFile>) -> BTreeMap<String, SiteFile> {
        let small = |digest, bytes| SiteFile {
            digest,
            bytes,
            list: None,
        };
        let files = self.files.iter().filter_map(|(path, file)| {
            let file = match file {
                NewSiteFile::Inline(bytes) => small(Digest::of(bytes), bytes.len() as u64),
                NewSiteFile::Stored(stored) => small(stored.file.digest, stored.file.bytes),
                NewSiteFile::Named(digest, _) => *known.get(digest)?,
                NewSiteFile::Kept(file) => *file,
            };
            Some((path.clone(), file))
        });
        files.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::deployments::sites::SiteOptions;

    fn known() -> HashMap<Digest, SiteFile> {
        let digest = Digest::of(b"known");
        let file = SiteFile {
            digest,
            bytes: 5,
            list: None,
        };
        HashMap::from([(digest, file)])
    }

    fn site(files: &[(&str, NewSiteFile)], fallback: Option<&str>) -> NewSite {
        let files = files
            .iter()
            .map(|(path, file)| ((*path).to_owned(), file.clone()));
        NewSite {
            files: files.collect(),
            options: SiteOptions {
                fallback: fallback.map(str::to_owned),
                ..SiteOptions::default()
            },
            deleted: BTreeSet::new(),
        }
    }

    #[test]
    fn a_site_has_its_bounds() {
        let inline = |bytes: usize| NewSiteFile::Inline(vec![b'x'; bytes].into());
        let named = |size| NewSiteFile::Named(Digest::of(b"known"), size);
        let limits = FileLimits {
            site_files: 3,
            site_bytes: 12,
            file_bytes: 6,
            storage_bytes: 100,
        };
        let check = |site: NewSite| site.check_bounds(&limits, &known());
        let whole = [("a", inline(6)), ("b", named(None)), ("c", inline(1))];
        check(site(&whole, Some("b"))).unwrap();
        assert!(matches!(check(site(&[], None)), Err(FileError::NoFiles)));
        let refused = check(site(&whole, Some("d")));
        assert!(matches!(refused, Err(FileError::NoSuchFallback(_))));
        let refused = check(site(&[("a", inline(7))], None));
        assert!(matches!(refused, Err(FileError::TooLarge(6))));
        let refused = check(site(
            &[("a", inline(6)), ("b", inline(2)), ("c", named(None))],
            None,
        ));
        assert!(matches!(refused, Err(FileError::SiteTooLarge(12))));
        let many = ["a", "b", "c", "d"].map(|path| (path, inline(1)));
        assert!(matches!(
            check(site(&many, None)),
            Err(FileError::TooManyFiles(3))
        ));
        let sizes = |said| site(&[("a", named(Some(said)))], None).check_sizes(&known());
        sizes(5).unwrap();
        assert!(matches!(sizes(4), Err(FileError::SizeMismatch(_))));
        // Of a file that is not there the request says how long it is.
        let missing = |size| ("b", NewSiteFile::Named(Digest::of(b"missing"), Some(size)));
        check(site(&[("a", inline(6)), missing(6)], None)).unwrap();
        let refused = check(site(&[missing(7)], None));
        assert!(matches!(refused, Err(FileError::TooLarge(6))));
        let refused = check(site(
            &[("a", inline(6)), missing(6), ("c", inline(1))],
            None,
        ));
        assert!(matches!(refused, Err(FileError::SiteTooLarge(12))));
    }

    #[test]
    fn what_comes_twice_is_counted_once() {
        let inline = |text: &'static str| NewSiteFile::Inline(text.into());
        let kept = NewSiteFile::Kept(known()[&Digest::of(b"known")]);
        let new = site(
            &[("a", inline("one")), ("b", inline("one")), ("c", kept)],
            None,
        );
        assert_eq!(new.sent(), BTreeMap::from([(Digest::of(b"one"), 3)]));
        let files = new.to_files(&known());
        let lengths: Vec<u64> = files.values().map(|file| file.bytes).collect();
        assert_eq!(lengths, [3, 3, 5]);
    }
}
