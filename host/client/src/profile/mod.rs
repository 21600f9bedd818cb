//! Profiles: servers and credentials of a user, in a file that only the user may read.

use std::collections::BTreeMap;
use std::io::{ErrorKind, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use url::Url;

use super::error::{CliFailure, FailureExitCode, Result};

/// Name of the profile, if the login names none.
pub(super) const DEFAULT_PROFILE: &str = "default";
/// Default address of `svc serve`.
const DEFAULT_SERVER: &str = "http://localhost:8080";
/// Name of our directory among the user's settings.
const SETTINGS_DIRECTORY: &str = "svc";
/// Name of the file with the profiles.
const PROFILES_FILE: &str = "profiles.toml";

/// How a command finds its server and its credential.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct ServerSelectionArgs {
    /// The profile to use, as `svc login --profile` named it [default: the one logged in last]
    #[arg(long, value_name = "NAME", conflicts_with = "server")]
    profile: Option<String>,
    /// The server to speak to in place of a profile's [default: http://localhost:8080 without a login]
    #[arg(long, value_name = "URL")]
    server: Option<String>,
}

/// Server that a folder is for.
#[derive(Clone, Debug, Default)]
pub(super) struct FolderTarget {
    /// Address of the server, if the folder names one.
    pub(super) server: Option<Url>,
    /// The profile that the folder uses.
    pub(super) profile: Option<String>,
    /// Name of the environment that was chosen.
    pub(super) environment: Option<String>,
}

/// Settings from environment variables.
#[derive(Clone, Debug, Default)]
struct EnvironmentSettings {
    profile: Option<String>,
    server: Option<String>,
    credential: Option<String>,
    /// Whether credentials may be sent without encryption.
    insecure: bool,
    /// Environment of the folder.
    environment: Option<String>,
}

/// A server, with the credential to send.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct ServerWithCredential {
    pub(super) server: Url,
    pub(super) credential: Option<String>,
    /// Whether the user has said that credentials may be sent to this server without encryption.
    pub(super) insecure: bool,
    /// Environment of the folder, where one was chosen.
    pub(super) environment: Option<String>,
}

impl std::fmt::Debug for ServerWithCredential {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ServerWithCredential")
            .field("server", &self.server.as_str())
            .finish_non_exhaustive()
    }
}

/// A server with its credential, as stored.
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
    /// Name of the default profile.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) current: Option<String>,
    #[serde(default)]
    pub(super) profiles: BTreeMap<String, Profile>,
}

impl ServerSelectionArgs {
    /// Whether the command line names a profile or a server.
    pub fn is_named(&self) -> bool {
        self.profile.is_some() || self.server.is_some()
    }

    /// Name of the profile from the command line or the environment.
    pub(super) fn profile(&self) -> Option<String> {
        self.profile.clone().or_else(|| read_environment().profile)
    }

    /// Resolves the server and its credential. A credential goes to no other server than its own.
    ///
    /// # Errors
    /// When the profile does not exist, the address is not valid, or no server is named for the environment's credential.
    pub(super) fn target(&self) -> Result<ServerWithCredential> {
        let environment = read_environment();
        match self.server_name(&environment).is_some() {
            true => self.resolve(environment, Profiles::read_if_permitted),
            false => self.resolve(environment, Profiles::read),
        }
    }

    /// Resolves the server and its credential for a folder. The user's own words, on the command line or in the environment, and the
    /// login decide about the server; a folder chooses among the logins, and is used for no server but its own.
    ///
    /// # Errors
    /// As of `target`, and when the login is for another server than the folder.
    pub(super) fn target_for(&self, folder: &FolderTarget) -> Result<ServerWithCredential> {
        let environment = read_environment();
        let read = match self.server_name(&environment).is_some() {
            true => Profiles::read_if_permitted,
            false => Profiles::read,
        };
        self.resolve_for(folder, environment, read)
    }

    fn resolve_for(
        &self,
        folder: &FolderTarget,
        environment: EnvironmentSettings,
        read_profiles: impl FnOnce() -> Result<Profiles>,
    ) -> Result<ServerWithCredential> {
        let is_chosen = self.is_named()
            || environment.server.is_some()
            || environment.profile.is_some()
            || environment.credential.is_some();
        let mut found = match (is_chosen, &folder.profile, &folder.server) {
            (true, _, _) | (false, None, None) => self.resolve(environment, read_profiles)?,
            (false, Some(name), _) => {
                let named = Self {
                    profile: Some(name.clone()),
                    server: None,
                };
                named.resolve(environment, read_profiles)?
            }
            (false, None, Some(server)) => {
                login_for(server, read_profiles()?, environment.insecure)
            }
        };
        if let Some(server) = folder.server.as_ref().filter(|one| **one != found.server) {
            return Err(another_server_failure(folder, server, &found.server));
        }
        found.environment.clone_from(&folder.environment);
        Ok(found)
    }

    /// Resolves the server for requests that send no credential.
    ///
    /// # Errors
    /// When the profile does not exist, or the address is not valid.
    pub(super) fn target_without_credential(&self) -> Result<ServerWithCredential> {
        let environment = EnvironmentSettings {
            credential: None,
            ..read_environment()
        };
        let found = match self.server_name(&environment).is_some() {
            // A file that cannot be used is no obstacle: only its credentials are for that server.
            true => self.resolve(environment, || {
                Ok(Profiles::read_if_permitted().unwrap_or_default())
            })?,
            false => self.resolve(environment, Profiles::read)?,
        };
        Ok(ServerWithCredential {
            credential: None,
            ..found
        })
    }

    /// Address of the server that the command line or the environment names, if not by a profile.
    fn server_name<'a>(&'a self, environment: &'a EnvironmentSettings) -> Option<&'a str> {
        match (&self.profile, &self.server) {
            (Some(_), _) => None,
            (None, Some(server)) => Some(server),
            (None, None) => environment.server.as_deref(),
        }
    }

    /// Resolves the server and its credential. The profiles are read only where the answer depends on them.
    fn resolve(
        &self,
        environment: EnvironmentSettings,
        read_profiles: impl FnOnce() -> Result<Profiles>,
    ) -> Result<ServerWithCredential> {
        if let Some(server) = self.server_name(&environment) {
            let server = parse_server_url(server)?;
            return resolve_server(server, environment, read_profiles);
        }
        let named = self.profile.clone().or(environment.profile);
        // The login may be for another server, and any process of this machine may listen on the default port.
        if named.is_none() && environment.credential.is_some() {
            return Err(unnamed_server_failure());
        }
        let known = read_profiles()?;
        let Some(name) = named.or_else(|| known.current.clone()) else {
            return Ok(ServerWithCredential {
                server: parse_server_url(DEFAULT_SERVER)?,
                credential: None,
                insecure: environment.insecure,
                environment: None,
            });
        };
        let profile = known.profiles.get(&name).ok_or_else(|| {
            CliFailure::new(
                FailureExitCode::NotFound,
                "No such profile",
                format!("There is no profile `{name}`: `svc login --profile {name} URL` makes it, `svc profile list` has those that there are."),
            )
        })?;
        Ok(ServerWithCredential {
            server: profile.server.clone(),
            credential: Some(profile.credential.clone()),
            insecure: true,
            environment: None,
        })
    }
}

/// Resolves the credential for a server that is named: the environment's if it is for this server, else that of a profile. A profile
/// of an unencrypted server was made with `svc login --insecure`.
fn resolve_server(
    server: Url,
    environment: EnvironmentSettings,
    read_profiles: impl FnOnce() -> Result<Profiles>,
) -> Result<ServerWithCredential> {
    let of_environment = environment.server.as_deref().map(parse_server_url);
    let is_for_another =
        of_environment.is_some_and(|named| !named.is_ok_and(|named| named == server));
    if let Some(credential) = environment.credential.filter(|_| !is_for_another) {
        return Ok(ServerWithCredential {
            server,
            credential: Some(credential),
            insecure: environment.insecure,
            environment: None,
        });
    }
    let Profiles { current, profiles } = read_profiles()?;
    // Of several for the server, the one that is used elsewhere is meant.
    let kept = current
        .and_then(|name| profiles.get(&name))
        .filter(|one| one.server == server)
        .or_else(|| profiles.values().find(|one| one.server == server))
        .cloned();
    Ok(ServerWithCredential {
        insecure: environment.insecure || kept.is_some(),
        credential: kept.map(|one| one.credential),
        server,
        environment: None,
    })
}

/// Returns the login for a server: the one in use if it is for this server, else another one for it. If there is none, the one in use
/// is returned, and no login at all is one for this server.
fn login_for(server: &Url, known: Profiles, insecure: bool) -> ServerWithCredential {
    let current = known.current.and_then(|name| known.profiles.get(&name));
    let of_server = |one: &&Profile| one.server == *server;
    let mut others = known.profiles.values();
    let found = current.filter(of_server).or_else(|| others.find(of_server));
    match found.or(current) {
        Some(login) => ServerWithCredential {
            server: login.server.clone(),
            credential: Some(login.credential.clone()),
            insecure: true,
            environment: None,
        },
        None => ServerWithCredential {
            server: server.clone(),
            credential: None,
            insecure,
            environment: None,
        },
    }
}

/// Failure of a folder that is for another server than the login.
fn another_server_failure(folder: &FolderTarget, wanted: &Url, found: &Url) -> CliFailure {
    let [wanted, found] = [wanted, found].map(|url| url.as_str().trim_end_matches('/'));
    let place = match &folder.environment {
        Some(name) => format!("The environment `{name}` of the folder"),
        None => "The folder".to_owned(),
    };
    CliFailure::new(
        FailureExitCode::Failed,
        "Another server",
        format!(
            "{place} is for {wanted}, and the login is for {found}. Log in with `svc login {wanted}`, or choose an environment of svc.toml that is for {found} with `--env`. Nothing was sent."
        ),
    )
}

/// Returns the name of the environment that the command line or the variable SVC_ENV chooses for a folder.
pub(super) fn chosen_environment(named: Option<&str>) -> Option<String> {
    named
        .map(str::to_owned)
        .or_else(|| read_environment().environment)
}

/// Failure of a credential in the environment for which no server is named.
fn unnamed_server_failure() -> CliFailure {
    CliFailure::new(
        FailureExitCode::Failed,
        "No server for the credential",
        format!(
            "SVC_CREDENTIAL is set, and nothing says which server it belongs to: set SVC_SERVER, such as SVC_SERVER={DEFAULT_SERVER}, or use `--server URL`. Without SVC_CREDENTIAL, or with `--profile NAME`, your login is used. Nothing was sent."
        ),
    )
}

#[allow(
    clippy::disallowed_methods,
    reason = "which server a client speaks to is the user's environment to say, and a credential must not be an argument"
)]
fn read_environment() -> EnvironmentSettings {
    let named = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    EnvironmentSettings {
        profile: named("SVC_PROFILE"),
        server: named("SVC_SERVER"),
        credential: named("SVC_CREDENTIAL"),
        insecure: named("SVC_INSECURE").is_some_and(|value| value == "1"),
        environment: named("SVC_ENV"),
    }
}

/// Parses the URL of a server, without a path. The default scheme is https, and http for this machine.
///
/// # Errors
/// When the text is no address of a server.
pub(super) fn parse_server_url(text: &str) -> Result<Url> {
    let written = |scheme: &str| match text.contains("://") {
        true => text.to_owned(),
        false => format!("{scheme}://{text}"),
    };
    let wrong = |why: &str| {
        let detail = format!(
            "`{text}` is not the address of a server: {why}. Write it as https://svc.example."
        );
        CliFailure::new(FailureExitCode::Failed, "Not an address", detail)
    };
    let parsed = |scheme| {
        let url = Url::parse(&written(scheme));
        url.map_err(|error| wrong(&error.to_string()))
    };
    let plain = parsed("http")?;
    let url = match is_local(&plain) {
        true => plain,
        false => parsed("https")?,
    };
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

/// Whether a server is on this machine, by its name or address.
pub(super) fn is_local(server: &Url) -> bool {
    match server.host() {
        Some(url::Host::Domain(name)) => name == "localhost" || name.ends_with(".localhost"),
        Some(url::Host::Ipv4(address)) => address.is_loopback(),
        Some(url::Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    }
}

/// Whether requests to a server are sent without encryption.
pub(super) fn is_unencrypted(server: &Url) -> bool {
    server.scheme() == "http" && !is_local(server)
}

/// Directory of our settings.
#[allow(
    clippy::disallowed_methods,
    reason = "where the user's directories are is the environment's to say"
)]
fn profile_directory() -> Result<PathBuf> {
    let named = std::env::var_os("XDG_CONFIG_HOME").map(PathBuf::from);
    let named = named.filter(|path| path.is_absolute());
    let base = named.or_else(|| Some(std::env::home_dir()?.join(".config")));
    base.map(|base| base.join(SETTINGS_DIRECTORY)).ok_or_else(|| {
        CliFailure::local(
            "You have no home directory: set XDG_CONFIG_HOME, which is where profiles are kept.",
        )
    })
}

impl Profiles {
    /// Reads the profiles; none if there is no file.
    ///
    /// # Errors
    /// When other users can read the file, or it does not hold profiles.
    pub(super) fn read() -> Result<Self> {
        match profile_directory() {
            Ok(directory) => Self::read_from(&directory),
            Err(_) => Ok(Self::default()),
        }
    }

    /// Reads the profiles; none if the user may not read the file, as where a service has the home directory of another.
    ///
    /// # Errors
    /// As of `read`.
    fn read_if_permitted() -> Result<Self> {
        let is_denied = |directory: PathBuf| {
            let opened = std::fs::File::open(directory.join(PROFILES_FILE));
            opened.is_err_and(|error| error.kind() == ErrorKind::PermissionDenied)
        };
        match profile_directory().is_ok_and(is_denied) {
            true => Ok(Self::default()),
            false => Self::read(),
        }
    }

    fn read_from(directory: &Path) -> Result<Self> {
        let path = directory.join(PROFILES_FILE);
        let shown = path.display();
        let text = match std::fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error)
                if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) =>
            {
                return Ok(Self::default());
            }
            Err(error) => return Err(CliFailure::file_system("Reading", &path, &error)),
        };
        let found = std::fs::metadata(&path);
        let mode = found.map_err(|error| CliFailure::file_system("Reading", &path, &error))?;
        if mode.mode() & 0o077 != 0 {
            return Err(CliFailure::local(format!(
                "Other users can reach {shown}, which holds credentials (mode {:04o}): chmod 600 it. If they may have read it, revoke its keys.",
                mode.mode() & 0o7777
            )));
        }
        // The parser's message quotes the line, which may hold a credential.
        toml::from_str(&text).map_err(|error| {
            let line = error.span().map_or(1, |at| text[..at.start].matches('\n').count() + 1);
            CliFailure::local(format!("{shown} holds no profiles: line {line} is not what `svc login` writes. Mend or delete it."))
        })
    }

    /// Writes the profiles atomically, to a file that only the user may read.
    pub(super) fn write(&self) -> Result<PathBuf> {
        let directory = profile_directory()?;
        self.write_to(&directory)?;
        Ok(directory.join(PROFILES_FILE))
    }

    fn write_to(&self, directory: &Path) -> Result<()> {
        let path = directory.join(PROFILES_FILE);
        let failed = |error: std::io::Error| CliFailure::file_system("Writing", &path, &error);
        std::fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(directory)
            .map_err(failed)?;
        let text = toml::to_string(self).map_err(|error| CliFailure::local(error.to_string()))?;
        // A named temporary file has mode 0600.
        let mut file = tempfile::NamedTempFile::new_in(directory).map_err(failed)?;
        file.write_all(text.as_bytes())
            .and_then(|()| file.as_file().sync_all())
            .map_err(failed)?;
        file.persist(&path).map_err(|error| failed(error.error))?;
        Ok(())
    }
}

#[cfg(test)]
mod tests;
