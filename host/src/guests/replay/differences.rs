//! Differences as files: a folder that is created with the first of them, readable by its owner alone.

use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use bytes::Bytes;
use cap_std::fs::Dir;
use serde_json::json;

use crate::backends::stored_sql::AllowedStoredSql;
use crate::deployments::operators::ReplayedPage;
use svc_base::disk;
use svc_base::ids::BackendId;
use svc_sandbox::AllowedStatement;

/// Number of differences that are written; further ones are only counted.
const MAX_WRITTEN: u64 = 1000;

/// Folder of differences.
#[derive(Debug)]
pub struct DifferencesFolder {
    /// Absent if differences are only counted.
    path: Option<PathBuf>,
    dir: Option<Dir>,
    written: u64,
    left_out: u64,
}

impl DifferencesFolder {
    /// Uses a folder that is missing or empty.
    ///
    /// # Errors
    /// The folder is not empty.
    pub fn in_folder(path: PathBuf) -> anyhow::Result<Self> {
        if let Ok(mut entries) = std::fs::read_dir(&path) {
            anyhow::ensure!(
                entries.next().is_none(),
                "{} is not empty: name another folder with --out",
                path.display()
            );
        }
        Ok(Self {
            path: Some(path),
            ..Self::counted_only()
        })
    }

    /// Uses no folder: differences are only counted.
    pub fn counted_only() -> Self {
        Self {
            path: None,
            dir: None,
            written: 0,
            left_out: 0,
        }
    }

    /// Returns the folder, if something was written.
    pub fn path(&self) -> Option<&Path> {
        self.path.as_deref().filter(|_| self.dir.is_some())
    }

    /// Returns the number of differences without files.
    pub fn left_out(&self) -> u64 {
        self.left_out
    }

    pub(super) fn write_page(
        &mut self,
        page: &ReplayedPage,
        old: &Result<Bytes, String>,
        new: &Result<Bytes, String>,
    ) -> io::Result<()> {
        // The slug may have belonged to another page a moment ago.
        let name = format!("{}-{}", page.slug, page.id);
        let Some(dir) = self.create_folder("pages", &name)? else {
            return Ok(());
        };
        for (name, answer) in [("old", old), ("new", new)] {
            match answer {
                Ok(page) => write_file(&dir, &format!("{name}.html"), page)?,
                Err(why) => write_file(&dir, &format!("{name}.error.txt"), why.as_bytes())?,
            }
        }
        Ok(())
    }

    pub(super) fn write_verdict(
        &mut self,
        backend: BackendId,
        piece: &AllowedStoredSql,
        old: &Result<Vec<AllowedStatement>, String>,
        new: &Result<Vec<AllowedStatement>, String>,
    ) -> io::Result<()> {
        let name = format!("{backend}-{}", piece.name);
        let Some(dir) = self.create_folder("verdicts", &name)? else {
            return Ok(());
        };
        write_file(&dir, "statement.sql", piece.sql.as_bytes())?;
        for (name, answer) in [("old", old), ("new", new)] {
            let said = match answer {
                Ok(statements) => json!({ "allowed": statements }),
                Err(why) => json!({ "refused": why }),
            };
            let said = serde_json::to_vec_pretty(&said)?;
            write_file(&dir, &format!("{name}.json"), &said)?;
        }
        Ok(())
    }

    /// Creates a folder for one difference; `None` beyond the limit.
    fn create_folder(&mut self, kind: &str, name: &str) -> io::Result<Option<Dir>> {
        let Some(path) = self.path.as_deref().filter(|_| self.written < MAX_WRITTEN) else {
            self.left_out += 1;
            return Ok(None);
        };
        self.written += 1;
        if self.dir.is_none() {
            crate::data_lock::create_private_dir(path)?;
            self.dir = Some(disk::open_directory(path)?);
        }
        let Some(dir) = &self.dir else {
            return Ok(None);
        };
        let kind = disk::ensure_subdirectory(dir, kind)?;
        disk::ensure_subdirectory(&kind, name).map(Some)
    }
}

fn write_file(dir: &Dir, name: &str, bytes: &[u8]) -> io::Result<()> {
    dir.open_with(name, &disk::private_file_options())?
        .write_all(bytes)
}
