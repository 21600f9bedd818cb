//! The corpora that texts are made from: `tests/corpus`.

use std::fs;
use std::path::{Path, PathBuf};

use serde::Deserialize;

/// So often is what a hostile source repeats repeated here.
const REPEATED: usize = 40;

fn corpus() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus")
}

/// The files of a folder, in the order of their names.
fn files(folder: &str, extensions: &[&str]) -> Vec<Vec<u8>> {
    let folder = corpus().join(folder);
    let entries = fs::read_dir(&folder).unwrap_or_else(|error| panic!("{folder:?}: {error}"));
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| {
        let extension = path.extension().and_then(|extension| extension.to_str());
        extension.is_some_and(|extension| extensions.contains(&extension))
    });
    paths.sort();
    assert!(!paths.is_empty(), "{folder:?} is empty");
    paths.iter().map(|path| fs::read(path).unwrap()).collect()
}

/// Statements, one a text.
pub(crate) fn sql() -> Vec<Vec<u8>> {
    let files = ["sql/accepted", "sql/refused", "fuzz/sql"]
        .into_iter()
        .flat_map(|folder| files(folder, &["sql"]));
    files
        .flat_map(|file| {
            let text = String::from_utf8(file).unwrap();
            let statements = text.split(super::targets::gate::BETWEEN);
            statements
                .map(|sql| sql.as_bytes().to_vec())
                .collect::<Vec<_>>()
        })
        .collect()
}

/// Sources of pages and diagrams.
pub(crate) fn sources() -> Vec<Vec<u8>> {
    #[derive(Deserialize)]
    struct Hostile {
        parts: Vec<(String, usize)>,
    }
    let hostile = fs::read(corpus().join("hostile/content.json")).unwrap();
    let hostile: Vec<Hostile> = serde_json::from_slice(&hostile).unwrap();
    let hostile = hostile.into_iter().map(|source| {
        let parts = source.parts.iter();
        let parts = parts.map(|(text, times)| text.repeat(REPEATED.min(*times)));
        parts.collect::<String>().into_bytes()
    });
    let mut all: Vec<Vec<u8>> = hostile.collect();
    for (folder, extensions) in [
        ("diagrams", ["mmd"].as_slice()),
        ("diagrams/hostile", &["mmd"]),
        ("fuzz/pages", &["csv", "html", "json", "md"]),
    ] {
        all.extend(files(folder, extensions));
    }
    all
}
