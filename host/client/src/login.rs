//! `svc login`, `svc logout` and `svc profile`.

use serde_json::json;

use super::api::ApiClient;
use super::error::{CliFailure, FailureExitCode, Result};
use super::output::grid;
use super::profile::{
    DEFAULT_PROFILE, Profile, Profiles, ServerSelectionArgs, ServerWithCredential, is_unencrypted,
    parse_server_url,
};
use super::{OutputFormat, endpoints, secret};

/// Keeps a credential for a server.
#[derive(Debug, clap::Args)]
pub struct LoginCommand {
    /// The server, such as https://svc.example
    url: String,
    /// Name for the profile [default: default]
    #[arg(long, value_name = "NAME")]
    profile: Option<String>,
    /// Send the credential although it can be read on the way
    #[arg(long)]
    insecure: bool,
    /// Answer with one JSON document
    #[arg(long)]
    json: bool,
}

/// Forgets a credential.
#[derive(Debug, clap::Args)]
pub struct LogoutCommand {
    /// The profile to forget [default: the one logged in last]
    #[arg(long, value_name = "NAME")]
    profile: Option<String>,
    /// Answer with one JSON document
    #[arg(long)]
    json: bool,
}

/// Lists profiles and chooses among them.
#[derive(Debug, clap::Subcommand)]
pub enum ProfileCommand {
    /// List the profiles; a star is at the one that is used
    List {
        /// Answer with one JSON document
        #[arg(long)]
        json: bool,
    },
    /// Use a profile from now on
    Use {
        /// Name of the profile
        name: String,
        /// Answer with one JSON document
        #[arg(long)]
        json: bool,
    },
}

impl LoginCommand {
    pub(super) async fn run(self) -> Result<()> {
        let server = parse_server_url(&self.url)?;
        if is_unencrypted(&server) && !self.insecure {
            return Err(CliFailure::local(format!(
                "What is sent to {server} can be read by everybody on the way: use https, or `--insecure` in a network that you trust."
            )));
        }
        // Errors of the file are reported before the user types a credential.
        let mut profiles = Profiles::read()?;
        let credential = secret::prompt("credential")?;
        let target = ServerWithCredential {
            server: server.clone(),
            credential: Some(credential.clone()),
            insecure: self.insecure,
            environment: None,
        };
        let api = ApiClient::for_server(target)?;
        api.call(&endpoints::PROJECTS, &[]).send().await.map_err(|failure| match failure.code() {
            "unauthorized" => CliFailure::new(
                FailureExitCode::Credential,
                "Not a credential",
                format!("{server} does not know this credential. Is it whole, and of this server? Nothing was kept."),
            ),
            _ => failure,
        })?;
        let name = self.profile.or_else(profile_of_environment);
        let name = name.unwrap_or_else(|| DEFAULT_PROFILE.to_owned());
        let document = json!({ "profile": name, "server": server });
        let text = format!("logged in to {server} as the profile `{name}`");
        profiles.current = Some(name.clone());
        let profile = Profile { server, credential };
        profiles.profiles.insert(name, profile);
        profiles.write()?;
        OutputFormat { json: self.json }.print_answer(&document, &text)
    }
}

impl LogoutCommand {
    pub(super) fn run(self) -> Result<()> {
        let mut profiles = Profiles::read()?;
        let name = self.profile.or_else(profile_of_environment);
        let name = name.or_else(|| profiles.current.clone());
        let name = name.unwrap_or_else(|| DEFAULT_PROFILE.to_owned());
        if profiles.profiles.remove(&name).is_none() {
            return Err(no_such_profile(&name));
        }
        if profiles.current.as_ref() == Some(&name) {
            profiles.current = None;
        }
        profiles.write()?;
        let document = json!({ "profile": name, "forgotten": true });
        let text =
            format!("forgot the profile `{name}`; its key lives on until the operator revokes it");
        OutputFormat { json: self.json }.print_answer(&document, &text)
    }
}

impl ProfileCommand {
    pub(super) fn run(self) -> Result<()> {
        match self {
            Self::List { json } => list(OutputFormat { json }),
            Self::Use { name, json } => {
                let mut profiles = Profiles::read()?;
                if !profiles.profiles.contains_key(&name) {
                    return Err(no_such_profile(&name));
                }
                profiles.current = Some(name.clone());
                profiles.write()?;
                let document = json!({ "profile": name });
                OutputFormat { json }
                    .print_answer(&document, &format!("using the profile `{name}`"))
            }
        }
    }
}

/// Name of the profile in the environment.
fn profile_of_environment() -> Option<String> {
    ServerSelectionArgs::default().profile()
}

fn list(out: OutputFormat) -> Result<()> {
    let profiles = Profiles::read()?;
    let used = profile_of_environment().or_else(|| profiles.current.clone());
    let is_used = |name: &String| used.as_ref() == Some(name);
    let all: Vec<_> = profiles
        .profiles
        .iter()
        .map(|(name, one)| json!({ "profile": name, "server": one.server, "used": is_used(name) }))
        .collect();
    let rows: Vec<_> = profiles
        .profiles
        .iter()
        .map(|(name, one)| {
            let star = if is_used(name) { "*" } else { "" };
            vec![star.to_owned(), name.clone(), one.server.to_string()]
        })
        .collect();
    out.print_answer(
        &json!({ "profiles": all }),
        &grid(&["", "profile", "server"], &rows),
    )
}

fn no_such_profile(name: &str) -> CliFailure {
    CliFailure::new(
        FailureExitCode::NotFound,
        "No such profile",
        format!("There is no profile `{name}`: `svc profile list` has those that there are."),
    )
}
