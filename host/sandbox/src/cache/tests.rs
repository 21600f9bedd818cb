//! The cache of compiled guests.

use std::os::unix::fs::{PermissionsExt as _, symlink};

use super::super::engine::compiler_engine;
use super::*;

fn engine() -> Engine {
    compiler_engine(OptimizationTier::Optimised, CompilerCores::One).unwrap()
}

fn open(dir: PathBuf) -> anyhow::Result<CompiledGuestCache> {
    CompiledGuestCache::open(dir, GuestCompiler::new(None))
}

fn job(engine: &Engine) -> CompilerJob<'_> {
    CompilerJob {
        tier: OptimizationTier::Optimised,
        cores: CompilerCores::One,
        engine,
    }
}

fn component() -> Vec<u8> {
    let text = "(component (core module (func (export \"f\") (result i32) (i32.const 7))))";
    wat::parse_str(text).unwrap()
}

/// The one file with the extension in the directory.
fn only(dir: &Path, extension: &str) -> PathBuf {
    let mut found: Vec<PathBuf> = fs::read_dir(dir)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|end| end == extension))
        .collect();
    assert_eq!(found.len(), 1, "{found:?}");
    found.remove(0)
}

fn opened() -> (tempfile::TempDir, PathBuf, CompiledGuestCache) {
    let parent = tempfile::tempdir().unwrap();
    let dir = parent.path().join("a/b/compiled");
    let cache = open(dir.clone()).unwrap();
    (parent, dir, cache)
}

#[test]
fn a_new_cache_is_closed_to_others() {
    let (_parent, dir, _cache) = opened();
    assert_eq!(fs::metadata(&dir).unwrap().mode() & 0o777, 0o700);
    assert!(open(dir).is_ok());
}

#[test]
fn a_cache_that_others_could_write_is_refused() {
    let (parent, dir, _cache) = opened();
    for mode in [0o755, 0o770, 0o701, 0o777] {
        fs::set_permissions(&dir, fs::Permissions::from_mode(mode)).unwrap();
        let refusal = open(dir.clone()).unwrap_err().to_string();
        assert!(refusal.contains("0700"), "{refusal}");
    }
    fs::set_permissions(&dir, fs::Permissions::from_mode(0o700)).unwrap();
    let link = parent.path().join("link");
    symlink(&dir, &link).unwrap();
    assert!(open(link).is_err());
    let file = parent.path().join("file");
    fs::write(&file, "").unwrap();
    assert!(open(file).is_err());
}

#[test]
fn what_is_compiled_is_found_again() {
    let (_parent, dir, cache) = opened();
    let engine = engine();
    let load = || cache.load(&job(&engine), GuestComponent::of(&component()));
    load().unwrap();
    let path = only(&dir, "cwasm");
    let written = fs::metadata(&path).unwrap().ino();
    load().unwrap();
    assert_eq!(fs::metadata(&path).unwrap().ino(), written);
    only(&dir, "crc32");
}

#[test]
fn other_settings_make_other_code() {
    let digest = GuestDigest::of(&component());
    let other = Engine::new(wasmtime::Config::new().gc_support(false)).unwrap();
    assert_ne!(file_name(&engine(), digest), file_name(&other, digest));
}

#[test]
fn what_is_not_whole_is_compiled_again() {
    let (_parent, dir, cache) = opened();
    let engine = engine();
    cache
        .load(&job(&engine), GuestComponent::of(&component()))
        .unwrap();
    let path = only(&dir, "cwasm");
    let good = fs::read(&path).unwrap();

    let mut flipped = good.clone();
    flipped[good.len() / 2] ^= 1;
    let spoil: [&dyn Fn(); 5] = [
        &|| fs::write(&path, &flipped).unwrap(),
        &|| fs::write(&path, &good[..good.len() / 2]).unwrap(),
        &|| fs::write(&path, "").unwrap(),
        &|| fs::remove_file(path.with_extension("crc32")).unwrap(),
        // Whole, but not code.
        &|| super::write_code(&path, b"something else").unwrap(),
    ];
    for spoil in spoil {
        spoil();
        assert!(super::read_code(&engine, &path).is_none());
        cache
            .load(&job(&engine), GuestComponent::of(&component()))
            .unwrap();
        assert!(super::read_code(&engine, &path).is_some());
    }
}

#[test]
fn what_was_not_loaded_for_longest_is_removed() {
    let (_parent, dir, cache) = opened();
    let engine = engine();
    let numbered = |number: usize| {
        let text = format!("(component (core module (func (result i32) (i32.const {number}))))");
        wat::parse_str(text).unwrap()
    };
    let path = |number: usize| dir.join(file_name(&engine, GuestDigest::of(&numbered(number))));
    for number in 0..4 {
        cache
            .load(&job(&engine), GuestComponent::of(&numbered(number)))
            .unwrap();
    }
    let long_ago = SystemTime::UNIX_EPOCH;
    for number in [0, 2] {
        let file = File::options().append(true).open(path(number)).unwrap();
        file.set_modified(long_ago).unwrap();
    }
    cache
        .load(&job(&engine), GuestComponent::of(&numbered(0)))
        .unwrap();
    let all: u64 = (0..4)
        .map(|number| fs::metadata(path(number)).unwrap().len())
        .sum();
    cache.prune(all);
    assert!((0..4).all(|number| path(number).exists()));
    cache.prune(all - 1);
    let left: Vec<_> = (0..4).filter(|number| path(*number).exists()).collect();
    assert_eq!(left, [0, 1, 3]);
    assert!(!path(2).with_extension("crc32").exists());
}
