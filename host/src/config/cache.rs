//! Where compiled guests lie unless the operator says so.

use std::path::{Path, PathBuf};

use rustix::fs::{Access, access};

/// The name of our directory in one that others share.
const DIR_NAME: &str = "svc";

/// Variables that name the user's directories.
#[derive(Clone, Debug, Default)]
struct CacheDirectories {
    /// systemd's `CacheDirectory`.
    service: Option<PathBuf>,
    /// The XDG base directory specification's.
    xdg: Option<PathBuf>,
    /// The user's home.
    home: Option<PathBuf>,
}

/// `svc/` in the cache directory of the service or of the user; in the data directory for a user who has none.
#[allow(
    clippy::disallowed_methods,
    reason = "where the user's directories are is the environment's to say"
)]
pub(super) fn default_cache(data: &Path) -> PathBuf {
    let named = |name| std::env::var_os(name).map(PathBuf::from);
    choose_cache(
        CacheDirectories {
            service: named("CACHE_DIRECTORY").as_deref().and_then(first),
            xdg: named("XDG_CACHE_HOME"),
            home: std::env::home_dir(),
        },
        data,
    )
}

/// systemd lists several with colons between them.
fn first(directories: &Path) -> Option<PathBuf> {
    let text = directories.to_str()?;
    text.split(':').next().map(PathBuf::from)
}

fn choose_cache(environment: CacheDirectories, data: &Path) -> PathBuf {
    let home = environment.home.map(|home| home.join(".cache"));
    [environment.service, environment.xdg, home]
        .into_iter()
        .flatten()
        .filter(|cache| cache.is_absolute())
        .map(|cache| cache.join(DIR_NAME))
        .find(|cache| is_usable(cache))
        .unwrap_or_else(|| data.join("cache"))
}

/// Whether this user can write to a directory, or make it.
fn is_usable(cache: &Path) -> bool {
    let there = cache.ancestors().find(|path| path.exists());
    there.is_some_and(|path| path.is_dir() && access(path, Access::WRITE_OK | Access::EXEC_OK).is_ok())
        // Nobody makes a home for a user who has none.
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
        let all = CacheDirectories {
            service: at("var/svc"),
            xdg: at("xdg"),
            home: at("home"),
        };
        let home = CacheDirectories {
            home: at("home"),
            ..CacheDirectories::default()
        };
        for (environment, expected) in [
            (all.clone(), at("var/svc/svc")),
            (
                CacheDirectories {
                    service: None,
                    ..all.clone()
                },
                at("xdg/svc"),
            ),
            (home.clone(), at("home/.cache/svc")),
            (
                CacheDirectories {
                    xdg: Some("relative".into()),
                    ..home.clone()
                },
                at("home/.cache/svc"),
            ),
            (
                CacheDirectories {
                    home: at("nonexistent"),
                    ..home.clone()
                },
                None,
            ),
            (
                CacheDirectories {
                    home: at("file"),
                    ..home
                },
                None,
            ),
            (CacheDirectories::default(), None),
        ] {
            let expected = expected.unwrap_or_else(|| data.join("cache"));
            assert_eq!(
                choose_cache(environment.clone(), data),
                expected,
                "{environment:?}"
            );
        }
        assert_eq!(first(Path::new("/a:/b")), Some("/a".into()));
    }
}
