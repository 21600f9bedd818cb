//! Arguments of a run of the bench.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail, ensure};

/// The arguments of the command line.
#[derive(Debug, Default)]
pub(crate) struct Arguments {
    /// Parts to measure; all if empty.
    parts: Vec<String>,
    svc: Option<PathBuf>,
    /// Earlier build to compare with.
    pub(crate) before: Option<PathBuf>,
    /// Only this page size, for profiling.
    pub(crate) page: Option<String>,
    /// Number of nodes that are killed to see another one take over.
    pub(crate) takeovers: Option<usize>,
    /// Number of databases of a server that has very many.
    pub(crate) databases: Option<usize>,
    pub(crate) nginx: Option<PathBuf>,
    pub(crate) nats: Option<PathBuf>,
    pub(crate) pocketbase: Option<PathBuf>,
}

impl Arguments {
    /// Parses the arguments of the process.
    ///
    /// # Errors
    /// When an argument is unknown, or its value is missing.
    pub(crate) fn read(
        mut words: impl Iterator<Item = String>,
        parts: &[&str],
    ) -> anyhow::Result<Self> {
        let mut read = Self::default();
        while let Some(word) = words.next() {
            let mut path = || {
                let path = words.next().with_context(|| format!("{word} needs a path"));
                path.map(|path| Some(PathBuf::from(path)))
            };
            match word.as_str() {
                "--svc" => read.svc = path()?,
                "--before" => read.before = path()?,
                "--nginx" => read.nginx = path()?,
                "--nats" => read.nats = path()?,
                "--pocketbase" => read.pocketbase = path()?,
                "--page" => {
                    read.page = Some(words.next().context("--page needs a size, as in 10")?);
                }
                "--takeovers" => read.takeovers = Some(read_number(&mut words, &word)?),
                "--databases" => read.databases = Some(read_number(&mut words, &word)?),
                part if parts.contains(&part) => read.parts.push(word),
                other => bail!(
                    "unknown argument {other}: give any of {parts:?}, --page KB, --takeovers N, --databases N, --svc PATH, --before PATH, --nginx PATH, --nats PATH or --pocketbase PATH"
                ),
            }
        }
        Ok(read)
    }

    /// Whether a part is to be measured.
    pub(crate) fn selects(&self, part: &str) -> bool {
        self.parts.is_empty() || self.parts.iter().any(|named| named == part)
    }

    /// Returns the build to measure: the named one, or the one beside this program.
    ///
    /// # Errors
    /// When there is no build.
    pub(crate) fn svc_beside(&self, me: &Path) -> anyhow::Result<PathBuf> {
        let svc = self.svc.clone();
        let svc = svc.unwrap_or_else(|| me.with_file_name("svc"));
        ensure!(
            svc.is_file(),
            "there is no {}: build it, or name it with --svc",
            svc.display()
        );
        Ok(svc)
    }
}

/// Reads the number that follows an argument.
fn read_number(words: &mut impl Iterator<Item = String>, word: &str) -> anyhow::Result<usize> {
    let number = words.next().and_then(|number| number.parse().ok());
    number.with_context(|| format!("{word} needs a number, as in 100"))
}
