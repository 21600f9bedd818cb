//! The default directory of compiled guests.

use std::path::{Path, PathBuf};

use rustix::fs::{Access, access};

/// Name of our directory in a shared cache directory.
const DIR_NAME: &str = "svc";

/// Candidate directories from the environment.
#[derive(Clone, Debug, Default)]
struct CacheDirectoryCandidates {
    /// systemd's `$CACHE_DIRECTORY`.
    service: Option<PathBuf>,
    /// Directory of `$XDG_CACHE_HOME`.
    xdg: Option<PathBuf>,
    /// The user's home.
    home: Option<PathBuf>,
}

/// Returns `svc/` in the cache directory of the service or the user, or `cache` in the data directory if there is none.
#[allow(
    clippy::disallowed_methods,
    reason = "where the user's directories are is the environment's to say"
)]
pub(super) fn default_cache(data: &Path) -> PathBuf {
    let named = |name| std::env::var_os(name).map(PathBuf::from);
    choose_cache(
        CacheDirectoryCandidates {
            service: named("CACHE_DIRECTORY")
                .as_deref()
                .and_then(first_directory),
            xdg: named("XDG_CACHE_HOME"),
            home: std::env::home_dir(),
        },
        data,
    )
}

/// Returns the first directory of systemd's list, which is separated by colons.
fn first_directory(directories: &Path) -> Option<PathBuf> {
    let text = directories.to_str()?;
    text.split(':').next().map(PathBuf::from)
}

fn choose_cache(environment: CacheDirectoryCandidates, data: &Path) -> PathBuf {
    let home = environment.home.map(|home| home.join(".cache"));
    [environment.service, environment.xdg, home]
        .into_iter()
        .flatten()
        .filter(|cache| cache.is_absolute())
        .map(|cache| cache.join(DIR_NAME))
        .find(|cache| is_usable(cache))
        .unwrap_or_else(|| data.join("cache"))
}

/// Whether the process can write to a directory, or make it.
fn is_usable(cache: &Path) -> bool {
    let there = cache.ancestors().find(|path| path.exists());
    there.is_some_and(|path| path.is_dir() && access(path, Access::WRITE_OK | Access::EXEC_OK).is_ok())
        // The home of a user who has none is not created.
        && cache.ancestors().nth(2).is_some_and(Path::exists)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_that_can_be_used() {
        let root = tempfile::tempdir().unwrap();
        let at = |name: &str| Some(root.path().join(name));
        for name in ["var/svc", "xdg", "home"] {
            std::fs::create_dir_all(root.path().join(name)).unwrap();
        }
        std::fs::write(root.path().join("file"), "").unwrap();
        let data = Path::new("/data");
        let all = CacheDirectoryCandidates {
            service: at("var/svc"),
            xdg: at("xdg"),
            home: at("home"),
        };
        let home = CacheDirectoryCandidates {
            home: at("home"),
            ..CacheDirectoryCandidates::default()
        };
        for (environment, expected) in [
            (all.clone(), at("var/svc/svc")),
            (
                CacheDirectoryCandidates {
                    service: None,
                    ..all.clone()
                },
                at("xdg/svc"),
            ),
            (home.clone(), at("home/.cache/svc")),
            (
                CacheDirectoryCandidates {
                    xdg: Some("relative".into()),
                    ..home.clone()
                },
                at("home/.cache/svc"),
            ),
            (
                CacheDirectoryCandidates {
                    home: at("nonexistent"),
                    ..home.clone()
                },
                None,
            ),
            (
                CacheDirectoryCandidates {
                    home: at("file"),
                    ..home
                },
                None,
            ),
            (CacheDirectoryCandidates::default(), None),
        ] {
            let expected = expected.unwrap_or_else(|| data.join("cache"));
            assert_eq!(
                choose_cache(environment.clone(), data),
                expected,
                "{environment:?}"
            );
        }
        assert_eq!(first_directory(Path::new("/a:/b")), Some("/a".into()));
    }
}
