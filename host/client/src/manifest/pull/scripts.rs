//! Migrations and actions of a pull, and the names of their files.

use std::path::{Component, Path, PathBuf};

use super::super::remote_state::{AppliedMigration, RemoteProjectState};
use super::super::{FolderBudget, Manifest, MigrationFile, SQL_EXTENSION, is_hidden, sql_files};
use super::PullPlan;
use crate::actions::file_text;
use crate::error::{CliFailure, FailureExitCode, Result};

/// The most bytes of a file's name that a note gives.
const MAX_NAME_BYTES: usize = 200;

/// A file of the folder's migrations, with its version in the ledger if it was applied.
type KnownFile = (PathBuf, Option<u32>);

/// A file that a name would stand on the wrong side of.
#[derive(Debug, PartialEq, Eq)]
struct MisplacedFile {
    file: PathBuf,
    /// Whether the file belongs before the name.
    is_before: bool,
    name: PathBuf,
    version: u32,
}

impl PullPlan {
    /// Adds missing migrations, which must come after those in the folder, and the actions.
    pub(super) fn add_sql(
        &mut self,
        manifest: &Manifest,
        state: &RemoteProjectState,
    ) -> Result<()> {
        let Some(backend) = &state.backend else {
            return Ok(());
        };
        let (mut known, mut checksums) = (Vec::new(), Vec::new());
        let mut budget = FolderBudget::new();
        for file in sql_files(&self.folder, manifest.migrations(), false)? {
            let sql = budget.read_text(&self.folder, &file)?;
            let migration = MigrationFile::new(&self.folder, &file, sql);
            known.push((file, backend.version(&migration.checksum)));
            checksums.push(migration.checksum);
        }
        let missing = backend
            .scripts()
            .filter(|one| !checksums.contains(&one.checksum));
        let missing: Vec<_> = missing.collect();
        let names = name_files(manifest.migrations(), &known, &missing);
        let names = names.map_err(|misplaced| self.misplaced_failure(&misplaced))?;
        for (name, applied) in names.into_iter().zip(missing) {
            self.add(name, &applied.sql)?;
        }
        for action in &backend.actions {
            let name = format!("{}.{SQL_EXTENSION}", action.name);
            self.add(
                manifest.actions().join(name),
                &file_text(&action.sql, &action.defaults, &action.files()),
            )?;
        }
        Ok(())
    }

    fn misplaced_failure(&self, misplaced: &MisplacedFile) -> CliFailure {
        let side = if misplaced.is_before {
            "before"
        } else {
            "behind"
        };
        let shown = |name: &Path| self.folder.display_path(name).display().to_string();
        CliFailure::new(
            FailureExitCode::Conflict,
            "The migrations differ",
            format!(
                "Migration {} of the server belongs at {}: give {} a name that comes {side} it, and pull again.",
                misplaced.version,
                shown(&misplaced.name),
                shown(&misplaced.file)
            ),
        )
    }
}

/// Names the files of the migrations that a folder does not have: as their notes say, else by their numbers.
fn name_files(
    folder: &Path,
    known: &[KnownFile],
    missing: &[&AppliedMigration],
) -> std::result::Result<Vec<PathBuf>, MisplacedFile> {
    let numbered = |one: &AppliedMigration| format!("{:04}.{SQL_EXTENSION}", one.version);
    let noted = |one: &AppliedMigration| noted_name(one).unwrap_or_else(|| numbered(one));
    place_files(folder, known, missing, noted)
        .or_else(|_| place_files(folder, known, missing, numbered))
}

/// Joins names to the folder, if they sort with the folder's files as the ledger has them.
fn place_files(
    folder: &Path,
    known: &[KnownFile],
    missing: &[&AppliedMigration],
    name_of: impl Fn(&AppliedMigration) -> String,
) -> std::result::Result<Vec<PathBuf>, MisplacedFile> {
    let mut placed = known.to_vec();
    let mut names = Vec::new();
    for applied in missing {
        let (name, version) = (folder.join(name_of(applied)), applied.version);
        for (file, other) in &placed {
            let is_before = other.is_some_and(|other| other < version);
            if *file == name || (*file < name) != is_before {
                let file = file.clone();
                return Err(MisplacedFile {
                    file,
                    is_before,
                    name,
                    version,
                });
            }
        }
        placed.push((name.clone(), Some(version)));
        names.push(name);
    }
    Ok(names)
}

/// Name of a file that the note of a migration is; `None` for any other note. Somebody else has written it.
fn noted_name(applied: &AppliedMigration) -> Option<String> {
    let note = applied.note.as_deref()?;
    let path = Path::new(note);
    let parts: Vec<_> = path.components().collect();
    let is_plain = matches!(parts[..], [Component::Normal(part)] if part == note)
        && path.extension().is_some_and(|found| found == SQL_EXTENSION)
        && note.len() <= MAX_NAME_BYTES
        && !note.contains(|c: char| c.is_control() || matches!(c, '\\' | ':'));
    (is_plain && !is_hidden(path)).then(|| note.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn applied(version: u32, note: &str) -> AppliedMigration {
        AppliedMigration {
            version,
            checksum: version.to_string(),
            sql: "CREATE TABLE a (b);".to_owned(),
            note: Some(note.to_owned()),
        }
    }

    #[test]
    fn a_note_names_the_file_where_it_sorts_rightly() {
        for (known, missing, expected) in [
            (
                &[][..],
                &[(1, "0001_a.sql"), (2, "0002_b.sql")][..],
                Ok(&["0001_a.sql", "0002_b.sql"][..]),
            ),
            (
                &[("1.sql", Some(1)), ("2_b.sql", Some(2))],
                &[(3, "3_c.sql")],
                Ok(&["3_c.sql"]),
            ),
            (
                &[],
                &[(1, "b.sql"), (2, "a.sql")],
                Ok(&["0001.sql", "0002.sql"]),
            ),
            (
                &[],
                &[(1, "a.sql"), (2, "a.sql")],
                Ok(&["0001.sql", "0002.sql"]),
            ),
            (
                &[],
                &[(1, "The tables"), (3, "0003_b.sql")],
                Ok(&["0001.sql", "0003_b.sql"]),
            ),
            // A file that is not applied yet comes behind.
            (
                &[("0004.sql", None)],
                &[(4, "0003_z.sql")],
                Ok(&["0003_z.sql"]),
            ),
            (&[("0004.sql", None)], &[(4, "0004.sql")], Err("0004.sql")),
            (
                &[("1.sql", Some(1)), ("2_b.sql", Some(2))],
                &[(3, "0003.sql")],
                Err("1.sql"),
            ),
        ] {
            let known: Vec<_> = known
                .iter()
                .map(|(name, version)| (PathBuf::from(name), *version))
                .collect();
            let missing: Vec<_> = missing
                .iter()
                .map(|(version, note)| applied(*version, note))
                .collect();
            let missing: Vec<_> = missing.iter().collect();
            let found = name_files(Path::new(""), &known, &missing);
            let expected =
                expected.map(|names| names.iter().map(PathBuf::from).collect::<Vec<_>>());
            let found = found.map_err(|misplaced| misplaced.file);
            assert_eq!(found, expected.map_err(PathBuf::from), "{known:?}");
        }
    }

    #[test]
    fn a_note_leads_nowhere_else() {
        for note in [
            "../a.sql",
            "/a.sql",
            "a/b.sql",
            ".a.sql",
            "a.sql/",
            "./a.sql",
            "a\u{1b}.sql",
            "a\\b.sql",
            "c:a.sql",
            "a.txt",
            "",
            "sql",
            ".sql",
        ] {
            assert_eq!(noted_name(&applied(1, note)), None, "{note}");
        }
        assert_eq!(
            noted_name(&applied(1, &format!("{}.sql", "a".repeat(300)))),
            None
        );
        assert_eq!(
            noted_name(&applied(1, "Ü 1.sql")).as_deref(),
            Some("Ü 1.sql")
        );
    }
}
