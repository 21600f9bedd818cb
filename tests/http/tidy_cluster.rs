//! The files of a node of several: the drawing of them in `ARCHITECTURE.md` has all, once.

use std::collections::BTreeSet;
use std::path::Path;

/// Begin of a line of the drawing.
const LINE: &str = " of ";

#[test]
fn the_drawing_has_every_file_of_the_cluster() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let text = std::fs::read_to_string(root.join("ARCHITECTURE.md")).unwrap();
    let drawn: Vec<&str> = text
        .lines()
        .filter_map(|line| line.strip_prefix(LINE)?.split_once('│'))
        .flat_map(|(_, files)| files.split_whitespace())
        .collect();
    let folder = std::fs::read_dir(root.join("host/src/cluster")).unwrap();
    let names = folder.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let files: BTreeSet<String> = names
        .map(|name| name.trim_end_matches(".rs").to_owned())
        .filter(|name| name != "mod" && !name.ends_with("tests"))
        .collect();
    let unique: BTreeSet<String> = drawn.iter().map(|&name| name.to_owned()).collect();
    assert_eq!(unique, files);
    assert_eq!(drawn.len(), unique.len(), "{drawn:?}");
}
