//! The order of dependencies around `host/ledger`: it knows the base alone.

use std::path::Path;

/// Our packages that a manifest names, its own name apart.
fn own_packages(manifest: &str) -> Vec<&str> {
    let names = manifest.lines().filter_map(|line| {
        let name = line.split(['.', ' ', '=']).next()?;
        let ours = name == "svc" || name.starts_with("svc-") || name.starts_with("guest-");
        ours.then_some(name)
    });
    names.collect()
}

#[test]
fn the_ledger_knows_the_base_alone() {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR")).join("../host/ledger/Cargo.toml");
    let manifest = std::fs::read_to_string(manifest).unwrap();
    assert_eq!(own_packages(&manifest), ["svc-base"]);
}

#[test]
fn every_package_that_a_manifest_names_is_found() {
    let manifest = "name = \"svc-ledger\"\n\n[dependencies]\nserde = \"1\"\nsvc-base.workspace = true\n\
                    svc = { path = \"..\" }\nguest-gate.workspace = true\nsvcs = \"1\"\n";
    assert_eq!(own_packages(manifest), ["svc-base", "svc", "guest-gate"]);
}
