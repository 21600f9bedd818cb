//! The corpora that texts are made from: `tests/corpus`.

use std::fs;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use svc_tests::masked_frame;

/// Repetitions of the parts of hostile sources.
const REPEATED: usize = 40;

fn corpus() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus")
}

/// The files of a folder, in the order of their names.
fn files_of(folder: &str, extensions: &[&str]) -> Vec<Vec<u8>> {
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
        .flat_map(|folder| files_of(folder, &["sql"]));
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

/// Frames' texts of clients, for rooms and for live queries.
pub(crate) fn envelopes() -> Vec<Vec<u8>> {
    files_of("fuzz/envelopes", &["json"])
}

/// Frames of clients, some of them broken, behind a byte that says how they are cut.
pub(crate) fn frames() -> Vec<Vec<u8>> {
    let long = [b'x'; 301];
    let mut all: Vec<Vec<u8>> = envelopes();
    all.iter_mut().for_each(|text| text.truncate(250));
    for text in &mut all {
        let (one, other) = text.split_at(text.len() / 2);
        let parts = [
            masked_frame(0x01, one),
            masked_frame(0x89, b"ping"),
            masked_frame(0x80, other),
        ];
        *text = [masked_frame(0x81, text), parts.concat()].concat();
    }
    let mut broken = vec![
        masked_frame(0x88, &1000_u16.to_be_bytes()),
        masked_frame(0x88, b""),
        masked_frame(0x81, "häß 日本".as_bytes()),
        masked_frame(0x81, &long[..300]),
        masked_frame(0x89, &long[..125]),
        [
            masked_frame(0x01, &long[..200]),
            masked_frame(0x80, &long[..100]),
        ]
        .concat(),
    ];
    for opcode in [
        0x81, 0x82, 0x83, 0x88, 0x89, 0x8a, 0x8b, 0x01, 0x09, 0x00, 0xc1,
    ] {
        broken.push(masked_frame(opcode, b"\xff\xfe"));
        broken.push(masked_frame(opcode, &long));
    }
    all.extend(broken);
    for (number, bytes) in all.iter_mut().enumerate() {
        bytes.insert(0, number.to_le_bytes()[0]);
    }
    all
}

/// Sources of pages and diagrams.
pub(crate) fn sources() -> Vec<Vec<u8>> {
    #[derive(Deserialize)]
    struct HostileSource {
        parts: Vec<(String, usize)>,
    }
    let hostile = fs::read(corpus().join("hostile/content.json")).unwrap();
    let hostile: Vec<HostileSource> = serde_json::from_slice(&hostile).unwrap();
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
        all.extend(files_of(folder, extensions));
    }
    all
}

/// Files of visitors, most of them pictures.
pub(crate) fn files() -> Vec<Vec<u8>> {
    let extensions = [
        "avif", "gif", "jpg", "mp3", "mp4", "pdf", "png", "svg", "webm", "webp",
    ];
    files_of("fuzz/files", &extensions)
}
