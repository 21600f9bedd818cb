//! Differences as files to look at: a folder that is made with the first of them, for its owner alone.

use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use bytes::Bytes;
use cap_std::fs::Dir;
use serde_json::json;

use crate::backends::stored_sql::StoredSql;
use crate::deployments::operators::StoredPage;
use svc_base::disk;
use svc_base::ids::BackendId;
use svc_sandbox::Statement;

/// How many differences are written; further ones are only counted.
const MAX_WRITTEN: u64 = 1000;

/// The folder of differences.
#[derive(Debug)]
pub struct Differences {
    /// Absent where they are only counted.
    path: Option<PathBuf>,
    dir: Option<Dir>,
    written: u64,
    left_out: u64,
}

impl Differences {
    /// A folder that is to be made, or is empty.
    ///
    /// # Errors
    /// It holds something.
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

    /// No folder: differences are only counted.
    pub fn counted_only() -> Self {
        Self {
            path: None,
            dir: None,
            written: 0,
            left_out: 0,
        }
    }

    /// Where something was written.
    pub fn path(&self) -> Option<&Path> {
        self.path.as_deref().filter(|_| self.dir.is_some())
    }

    /// How many differences are not among the files.
    pub fn left_out(&self) -> u64 {
        self.left_out
    }

    pub(super) fn write_page(
        &mut self,
        page: &StoredPage,
        old: &Result<Bytes, String>,
        new: &Result<Bytes, String>,
    ) -> io::Result<()> {
        // A slug may have been another page's a moment ago.
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
        piece: &StoredSql,
        old: &Result<Vec<Statement>, String>,
        new: &Result<Vec<Statement>, String>,
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

    /// A folder for one difference, unless there are too many.
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
