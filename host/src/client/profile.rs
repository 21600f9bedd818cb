//! Servers and credentials of a user: named profiles in a file that only the user reads.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use url::Url;

use super::error::{Exit, Failure, Result};

/// The profile of a login that names none.
pub(super) const DEFAULT: &str = "default";
/// Where `svc serve` listens unless told otherwise.
const LOCAL: &str = "http://localhost:8080";
/// The name of our directory among those of other programs.
const DIRECTORY: &str = "svc";
/// The name of the file in it.
const FILE: &str = "profiles.toml";

/// How a command finds its server and its credential.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct Remote {
    /// The profile to use, as `svc login --profile` named it [default: the one logged in last]
    #[arg(long, value_name = "NAME", conflicts_with = "server")]
    profile: Option<String>,
    /// The server to speak to in place of a profile's [default: http://localhost:8080 without a login]
    #[arg(long, value_name = "URL")]
    server: Option<String>,
}

/// Variables of the environment.
#[derive(Clone, Debug, Default)]
struct Environment {
    profile: Option<String>,
    server: Option<String>,
    credential: Option<String>,
}

/// A server, and what it is told about the caller.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Target {
    pub(super) server: Url,
    pub(super) credential: Option<String>,
}

impl std::fmt::Debug for Target {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Target")
            .field("server", &self.server.as_str())
            .finish_non_exhaustive()
    }
}

/// A server with the credential for it.
#[derive(Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Profile {
    pub(super) server: Url,
    pub(super) credential: String,
}

/// All profiles of a user.
#[derive(Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Profiles {
    /// The one that is used where none is named.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) current: Option<String>,
    #[serde(default)]
    pub(super) profiles: BTreeMap<String, Profile>,
}

impl Remote {
    /// Whether the command line says where to go.
    pub fn is_named(&self) -> bool {
        self.profile.is_some() || self.server.is_some()
    }

    /// The name of the profile on the command line or in the environment.
    pub(super) fn profile(&self) -> Option<String> {
        self.profile.clone().or_else(|| environment().profile)
    }

    /// The server, and the credential that belongs to it: a credential goes to no other server than its own.
    ///
    /// # Errors
    /// When the profile is not there, or the address is none.
    pub(super) fn target(&self) -> Result<Target> {
        self.chosen(environment(), &Profiles::read()?)
    }

    fn chosen(&self, environment: Environment, known: &Profiles) -> Result<Target> {
        let server = match (&self.profile, &self.server) {
            (None, Some(server)) => Some(server.clone()),
            (None, None) => environment.server,
            (Some(_), _) => None,
        };
        if let Some(server) = server {
            let server = address(&server)?;
            let kept = || {
                let mut same = known.profiles.values().filter(|one| one.server == server);
                same.next().map(|one| one.credential.clone())
            };
            return Ok(Target {
                credential: environment.credential.or_else(kept),
                server,
            });
        }
        let named = self.profile.clone().or(environment.profile);
        let Some(name) = named.or_else(|| known.current.clone()) else {
            return Ok(Target {
                server: address(LOCAL)?,
                credential: environment.credential,
            });
        };
        let profile = known.profiles.get(&name).ok_or_else(|| {
            Failure::new(
                Exit::NotFound,
                "No such profile",
                format!("There is no profile `{name}`: `svc login --profile {name} URL` makes it, `svc profile list` has those that there are."),
            )
        })?;
        Ok(Target {
            server: profile.server.clone(),
            credential: Some(profile.credential.clone()),
        })
    }
}

#[allow(
    clippy::disallowed_methods,
    reason = "which server a client speaks to is the user's environment to say, and a credential must not be an argument"
)]
fn environment() -> Environment {
    let named = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    Environment {
        profile: named("SVC_PROFILE"),
        server: named("SVC_SERVER"),
        credential: named("SVC_CREDENTIAL"),
    }
}

/// The address of a server as everybody writes it, without what follows the host.
///
/// # Errors
/// When it is none.
pub(super) fn address(text: &str) -> Result<Url> {
    let whole = match text.contains("://") {
        true => text.to_owned(),
        false => format!("https://{text}"),
    };
    let wrong = |why: &str| {
        let detail = format!(
            "`{text}` is not the address of a server: {why}. Write it as https://svc.example."
        );
        Failure::new(Exit::Failed, "Not an address", detail)
    };
    let url = Url::parse(&whole).map_err(|error| wrong(&error.to_string()))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(wrong("it must begin with http:// or https://"));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(wrong(
            "it has a user or a password, which no address may have",
        ));
    }
    if url.path() != "/" || url.query().is_some() || url.fragment().is_some() {
        return Err(wrong("it goes on after the host"));
    }
    Ok(url)
}

/// Whether what is sent to a server can be read on the way.
pub(super) fn is_open(server: &Url) -> bool {
    let local = match server.host() {
        Some(url::Host::Domain(name)) => name == "localhost" || name.ends_with(".localhost"),
        Some(url::Host::Ipv4(address)) => address.is_loopback(),
        Some(url::Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    };
    server.scheme() == "http" && !local
}

/// The user's directory of settings.
#[allow(
    clippy::disallowed_methods,
    reason = "where the user's directories are is the environment's to say"
)]
fn directory() -> Result<PathBuf> {
    let named = std::env::var_os("XDG_CONFIG_HOME").map(PathBuf::from);
    let named = named.filter(|path| path.is_absolute());
    let base = named.or_else(|| Some(std::env::home_dir()?.join(".config")));
    base.map(|base| base.join(DIRECTORY)).ok_or_else(|| {
        Failure::here(
            "You have no home directory: set XDG_CONFIG_HOME, which is where profiles are kept.",
        )
    })
}

impl Profiles {
    /// Those that the user has; none where there is no file.
    ///
    /// # Errors
    /// When other users can read the file, or it does not hold profiles.
    pub(super) fn read() -> Result<Self> {
        match directory() {
            Ok(directory) => Self::read_from(&directory),
            Err(_) => Ok(Self::default()),
        }
    }

    fn read_from(directory: &Path) -> Result<Self> {
        let path = directory.join(FILE);
        let shown = path.display();
        let text = match std::fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return Ok(Self::default());
            }
            Err(error) => return Err(Failure::file("Reading", &path, &error)),
        };
        let found = std::fs::metadata(&path);
        let mode = found.map_err(|error| Failure::file("Reading", &path, &error))?;
        if mode.mode() & 0o077 != 0 {
            return Err(Failure::here(format!(
                "Other users can reach {shown}, which holds credentials (mode {:04o}): chmod 600 it. If they may have read it, revoke its keys.",
                mode.mode() & 0o7777
            )));
        }
        // The parser quotes the line that it does not take, which may hold a credential.
        toml::from_str(&text).map_err(|error| {
            let line = error.span().map_or(1, |at| text[..at.start].matches('\n').count() + 1);
            Failure::here(format!("{shown} holds no profiles: line {line} is not what `svc login` writes. Mend or delete it."))
        })
    }

    /// Writes them, in one step, where only the user reads them.
    ///
    /// # Errors
    /// The disk's.
    pub(super) fn write(&self) -> Result<PathBuf> {
        let directory = directory()?;
        self.write_to(&directory)?;
        Ok(directory.join(FILE))
    }

    fn write_to(&self, directory: &Path) -> Result<()> {
        let path = directory.join(FILE);
        let failed = |error: std::io::Error| Failure::file("Writing", &path, &error);
        std::fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(directory)
            .map_err(failed)?;
        let text = toml::to_string(self).map_err(|error| Failure::here(error.to_string()))?;
        // It is made with mode 0600.
        let mut file = tempfile::NamedTempFile::new_in(directory).map_err(failed)?;
        file.write_all(text.as_bytes())
            .and_then(|()| file.as_file().sync_all())
            .map_err(failed)?;
        file.persist(&path).map_err(|error| failed(error.error))?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn known() -> Profiles {
        let one = |server: &str, credential: &str| Profile {
            server: address(server).unwrap(),
            credential: credential.to_owned(),
        };
        Profiles {
            current: Some("home".to_owned()),
            profiles: [
                ("home".to_owned(), one("https://home.example", "H")),
                ("work".to_owned(), one("https://work.example", "W")),
            ]
            .into(),
        }
    }

    fn remote(profile: Option<&str>, server: Option<&str>) -> Remote {
        Remote {
            profile: profile.map(str::to_owned),
            server: server.map(str::to_owned),
        }
    }

    #[test]
    fn a_credential_goes_to_its_own_server_alone() {
        let environment =
            |server: Option<&str>, profile: Option<&str>, credential: Option<&str>| Environment {
                server: server.map(str::to_owned),
                profile: profile.map(str::to_owned),
                credential: credential.map(str::to_owned),
            };
        let none = environment(None, None, None);
        for (remote, environment, server, credential) in [
            (
                remote(None, None),
                none.clone(),
                "https://home.example/",
                Some("H"),
            ),
            (
                remote(Some("work"), None),
                none.clone(),
                "https://work.example/",
                Some("W"),
            ),
            (
                remote(None, Some("https://work.example")),
                none.clone(),
                "https://work.example/",
                Some("W"),
            ),
            (
                remote(None, Some("https://third.example")),
                none.clone(),
                "https://third.example/",
                None,
            ),
            (
                remote(None, None),
                environment(None, Some("work"), None),
                "https://work.example/",
                Some("W"),
            ),
            (
                remote(None, None),
                environment(Some("https://third.example"), None, Some("E")),
                "https://third.example/",
                Some("E"),
            ),
            // What the environment has is for the server that it names, or that the command line does.
            (
                remote(None, None),
                environment(None, None, Some("E")),
                "https://home.example/",
                Some("H"),
            ),
            (
                remote(Some("work"), None),
                environment(Some("https://third.example"), None, Some("E")),
                "https://work.example/",
                Some("W"),
            ),
        ] {
            let expected = Target {
                server: Url::parse(server).unwrap(),
                credential: credential.map(str::to_owned),
            };
            let found = remote.chosen(environment, &known()).unwrap();
            assert!(found == expected, "{remote:?}: {found:?} for {server}");
        }
        let nobody = remote(None, None).chosen(none.clone(), &Profiles::default());
        assert_eq!(nobody.unwrap().server.as_str(), "http://localhost:8080/");
        assert!(remote(Some("none"), None).chosen(none, &known()).is_err());
    }

    #[test]
    fn addresses_are_those_of_servers() {
        assert_eq!(
            address("svc.example").unwrap().as_str(),
            "https://svc.example/"
        );
        assert_eq!(
            address("http://[::1]:80/").unwrap().as_str(),
            "http://[::1]/"
        );
        for wrong in [
            "",
            "https://",
            "ftp://a.example",
            "https://a.example/x",
            "https://u:p@a.example",
            "https://a.example/?q",
        ] {
            assert!(address(wrong).is_err(), "{wrong}");
        }
        for (text, open) in [
            ("http://svc.example", true),
            ("https://svc.example", false),
            ("http://localhost:1", false),
            ("http://127.0.0.1:1", false),
            ("http://[::1]:1", false),
            ("http://10.0.0.1", true),
        ] {
            assert_eq!(is_open(&address(text).unwrap()), open, "{text}");
        }
    }

    #[test]
    fn the_file_is_its_users_alone() {
        let directory = tempfile::tempdir().unwrap();
        let ours = directory.path().join("svc");
        known().write_to(&ours).unwrap();
        let path = ours.join(FILE);
        let mode = |path: &Path| std::fs::metadata(path).unwrap().mode() & 0o7777;
        assert_eq!((mode(&ours), mode(&path)), (0o700, 0o600));
        let read = Profiles::read_from(&ours).unwrap();
        assert_eq!(read.profiles["work"].credential, "W");
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o640)).unwrap();
        let refused = Profiles::read_from(&ours).err().unwrap().text();
        assert!(
            refused.contains("0640") && !refused.contains('W'),
            "{refused}"
        );
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
        std::fs::write(&path, "current = \"home\"\ncredential = secret").unwrap();
        let refused = Profiles::read_from(&ours).err().unwrap().text();
        assert!(
            refused.contains("line 2") && !refused.contains("secret"),
            "{refused}"
        );
    }
}
