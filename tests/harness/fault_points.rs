//! Fault points (`svc_base::fault`), as the sources name them.

use std::collections::BTreeSet;
use std::path::Path;

/// Returns the group of a fault point: the first part of its name.
pub fn fault_group(point: &str) -> &str {
    point.split('.').next().unwrap()
}

/// Lists every fault point in the sources.
pub fn fault_points() -> BTreeSet<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../host");
    let mut points = BTreeSet::new();
    let mut open = vec![root];
    while let Some(directory) = open.pop() {
        for entry in std::fs::read_dir(directory)
            .unwrap()
            .map(|entry| entry.unwrap().path())
        {
            if entry.is_dir() {
                open.push(entry);
                continue;
            }
            if entry.extension().is_none_or(|extension| extension != "rs") {
                continue;
            }
            let source = std::fs::read_to_string(&entry).unwrap();
            let named = source.split("fault::point(\"").skip(1);
            points.extend(named.map(|rest| rest.split('"').next().unwrap().to_owned()));
        }
    }
    assert!(points.len() > 10, "{points:?}");
    points
}
