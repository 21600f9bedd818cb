//! `svc project …`, and the look-up of a command's project.

use std::collections::BTreeSet;
use std::path::Path;

use serde::Deserialize;
use serde_json::{Value, json};

use super::api::ApiClient;
use super::error::{CliFailure, FailureExitCode, Result};
use super::manifest::{MANIFEST_FILE, Manifest, no_manifest_for};
use super::output::{escape_line, key_values, member_text, table_of};
use super::profile::{ServerSelectionArgs, chosen_environment};
use super::question::ChangeQuestion;
use super::{CommonArgs, endpoints};

/// The most projects that a message names.
const MAX_NAMED_PROJECTS: usize = 20;

/// A project as the server lists it.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct RemoteProject {
    pub(super) id: String,
    pub(super) name: String,
    pub(super) host_label: String,
    pub(super) description: Option<String>,
    pub(super) home: Option<String>,
    pub(super) backend: Option<Value>,
    /// Older servers do not send this.
    pub(super) workspace: Option<RemoteWorkspace>,
}

/// Workspace of a project.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct RemoteWorkspace {
    pub(super) slug: String,
}

#[derive(Debug, Deserialize)]
struct RemoteProjectList {
    projects: Vec<RemoteProject>,
}

/// Which project a command is about.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct ProjectSelectionArgs {
    /// The project: its id, its name or its label [default: that of ./svc.toml, else the only one]
    #[arg(long)]
    pub(super) project: Option<String>,
    #[command(flatten)]
    environment: EnvironmentArgs,
}

/// Which environment of a folder a command is for.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct EnvironmentArgs {
    /// The environment of svc.toml; SVC_ENV names it, too [default: what svc.toml says at its top]
    #[arg(long, value_name = "NAME")]
    env: Option<String>,
}

impl EnvironmentArgs {
    /// Name of the environment, from the command line or the variable.
    pub(super) fn name(&self) -> Option<String> {
        chosen_environment(self.env.as_deref())
    }
}

impl ProjectSelectionArgs {
    /// Whether the command line names a project, or an environment of a folder.
    pub fn is_named(&self) -> bool {
        self.project.is_some() || self.environment.env.is_some()
    }

    /// Name of the environment of a folder, where one is chosen.
    pub(super) fn environment(&self) -> Option<String> {
        self.environment.name()
    }

    /// Finds the project, as [`open`] does.
    pub(super) async fn open(
        &self,
        remote: &ServerSelectionArgs,
    ) -> Result<(ApiClient, RemoteProject)> {
        open(remote, self.project.as_deref(), &self.environment).await
    }
}

/// Finds the project that is named, else that of the manifest in the working directory, else the only one; returns it with a client of
/// its server.
///
/// # Errors
/// When there is none, several may be meant, or the login is for another server than the manifest.
pub(super) async fn open(
    remote: &ServerSelectionArgs,
    wanted: Option<&str>,
    environment: &EnvironmentArgs,
) -> Result<(ApiClient, RemoteProject)> {
    if let Some(wanted) = wanted {
        if environment.env.is_some() {
            return Err(CliFailure::local(
                "`--env` chooses among what svc.toml says, which is not read where a project is named: leave one of them out.",
            ));
        }
        let api = ApiClient::new(remote)?;
        let project = find(&api, wanted).await?;
        return Ok((api, project));
    }
    let name = environment.name();
    let Some(manifest) = Manifest::find_here(name.as_deref())? else {
        if let Some(name) = &environment.env {
            return Err(no_manifest_for(name, Path::new(MANIFEST_FILE)));
        }
        let api = ApiClient::new(remote)?;
        let project = expect_single_project(fetch_all(&api, None).await?)?;
        return Ok((api, project));
    };
    let api = ApiClient::for_folder(remote, &manifest.target()?)?;
    let found = find_of_manifest(&api, &manifest).await?;
    match found {
        Some(project) => Ok((api, project)),
        None => Err(missing_project_failure(&manifest.project)),
    }
}

/// Makes, changes and deletes projects.
#[derive(Debug, clap::Subcommand)]
pub enum ProjectChangeCommand {
    /// Make a project
    Create {
        /// Name for people
        name: String,
        /// Description of the project
        #[arg(long)]
        description: Option<String>,
        /// How long it lives, as in 12h or 30d [default: for good]
        #[arg(long, value_name = "TIME", value_parser = super::parse_seconds)]
        ttl: Option<u64>,
        /// The workspace that will own it; needed only by who has several
        #[arg(long)]
        workspace: Option<String>,
        /// Where, and how it is answered.
        #[command(flatten)]
        common: CommonArgs,
    },
    /// Change a project's name, description or home page
    Update {
        /// Id, name or label of the project [default: that of ./svc.toml, else the only one]
        project: Option<String>,
        /// A new name
        #[arg(long)]
        name: Option<String>,
        /// A new description; an empty one clears it
        #[arg(long)]
        description: Option<String>,
        /// The slug that the project's address leads to; an empty one for the oldest page
        #[arg(long, value_name = "SLUG")]
        home: Option<String>,
        #[command(flatten)]
        environment: EnvironmentArgs,
        /// Where, and how it is answered.
        #[command(flatten)]
        common: CommonArgs,
    },
    /// Delete a project with its pages and its database
    Delete {
        /// Id, name or label of the project [default: that of ./svc.toml, else the only one]
        project: Option<String>,
        /// Do not ask
        #[arg(long)]
        yes: bool,
        #[command(flatten)]
        environment: EnvironmentArgs,
        /// Where, and how it is answered.
        #[command(flatten)]
        common: CommonArgs,
    },
}

impl ProjectChangeCommand {
    pub(super) async fn run(self) -> Result<()> {
        match self {
            Self::Create {
                name,
                description,
                ttl,
                workspace,
                common,
            } => {
                let body = json!({ "name": name, "description": description, "ttl_seconds": ttl, "workspace": workspace });
                let api = ApiClient::new(&common.remote)?;
                let made = api
                    .call(&endpoints::CREATE_PROJECT, &[])
                    .body(body)
                    .send()
                    .await?;
                common
                    .output()
                    .print_answer(&made, &member_text(&made, "id"))
            }
            Self::Update {
                project,
                name,
                description,
                home,
                environment,
                common,
            } => {
                let wanted = project.as_deref();
                let (api, project) = open(&common.remote, wanted, &environment).await?;
                let body = json!({ "name": name, "description": description, "home": home });
                let changed = api
                    .call(&endpoints::UPDATE_PROJECT, &[&project.id])
                    .body(body)
                    .send()
                    .await?;
                common
                    .output()
                    .print_answer(&changed, &details_text(&changed))
            }
            Self::Delete {
                project,
                yes,
                environment,
                common,
            } => {
                let wanted = project.as_deref();
                let (api, project) = open(&common.remote, wanted, &environment).await?;
                let change = "Delete the project with its pages and its database";
                ChangeQuestion::about(&api, &project, change).confirm(common.output(), yes)?;
                api.call(&endpoints::DELETE_PROJECT, &[&project.id])
                    .send()
                    .await?;
                let document = json!({ "id": project.id, "deleted": true });
                common
                    .output()
                    .print_answer(&document, &format!("deleted {}", project.id))
            }
        }
    }
}

/// Lists the caller's projects.
pub(super) async fn list(remote: &ServerSelectionArgs, json: bool) -> Result<()> {
    let api = ApiClient::new(remote)?;
    let projects = api.call(&endpoints::PROJECTS, &[]).send().await?;
    let members = ["host_label", "name", "url", "expires_at", "id"];
    let text = table_of(&projects["projects"], &members);
    super::OutputFormat { json }.print_answer(&projects, &text)
}

/// Shows a project with its members.
pub(super) async fn show(
    remote: &ServerSelectionArgs,
    json: bool,
    (wanted, environment): (Option<&str>, &EnvironmentArgs),
) -> Result<()> {
    let (api, project) = open(remote, wanted, environment).await?;
    let detail = api.call(&endpoints::PROJECT, &[&project.id]).send().await?;
    let members = table_of(&detail["members"], &["slug", "type", "state", "visits"]);
    let text = format!("{}\n\n{members}", details_text(&detail));
    super::OutputFormat { json }.print_answer(&detail, &text)
}

fn details_text(project: &Value) -> String {
    let names = [
        "name",
        "description",
        "host_label",
        "url",
        "home",
        "created_at",
        "expires_at",
        "id",
    ];
    key_values(&names.map(|name| (name, member_text(project, name))))
}

/// Reads all projects of the caller, or those of one workspace.
async fn fetch_all(api: &ApiClient, workspace: Option<&str>) -> Result<Vec<RemoteProject>> {
    let listing = api.call(&endpoints::PROJECTS, &[]);
    let listing = listing.query("workspace", workspace);
    let found: RemoteProjectList = listing.send_and_parse().await?;
    Ok(found.projects)
}

/// Finds the project of a manifest: by its name, in the workspace that the manifest names. `None` if there is none.
///
/// # Errors
/// When several projects have that name.
pub(super) async fn find_of_manifest(
    api: &ApiClient,
    manifest: &Manifest,
) -> Result<Option<RemoteProject>> {
    let mut named = fetch_all(api, manifest.workspace.as_deref()).await?;
    named.retain(|project| project.name == manifest.project);
    match named.len() {
        0 | 1 => Ok(named.pop()),
        _ => Err(several_projects_failure(&manifest.project, &named)),
    }
}

/// Failure of a manifest's name that several projects have.
fn several_projects_failure(name: &str, found: &[RemoteProject]) -> CliFailure {
    let workspaces = found.iter().filter_map(|one| one.workspace.as_ref());
    let workspaces: BTreeSet<_> = workspaces.map(|one| one.slug.as_str()).collect();
    let remedy = match workspaces.len() {
        0 | 1 => "rename all but one, for the manifest means a project by its name.".to_owned(),
        _ => {
            let named = workspaces.iter().take(MAX_NAMED_PROJECTS);
            let named: Vec<_> = named.map(|slug| format!("`{slug}`")).collect();
            format!(
                "name its workspace in svc.toml, as in `workspace = \"acme\"`. They are in {}.",
                named.join(", ")
            )
        }
    };
    CliFailure::new(
        FailureExitCode::Conflict,
        "Several projects",
        format!(
            "{} projects are called `{}`: {remedy}",
            found.len(),
            escape_line(name)
        ),
    )
}

/// Finds a project by its id, label or name.
///
/// # Errors
/// When there is none, or several have the name.
pub(super) async fn find(api: &ApiClient, wanted: &str) -> Result<RemoteProject> {
    choose(&fetch_all(api, None).await?, wanted)
}

/// Chooses a project by its id, else by its label or its name.
fn choose(found: &[RemoteProject], wanted: &str) -> Result<RemoteProject> {
    let by = |is: &dyn Fn(&RemoteProject) -> bool| {
        found.iter().filter(|one| is(one)).collect::<Vec<_>>()
    };
    let mut matching = by(&|one| one.id == wanted);
    if matching.is_empty() {
        // Others may add the user to a workspace of theirs, with a project whose label is the name of one of the user's.
        matching = by(&|one| one.host_label == wanted || one.name == wanted);
    }
    match matching[..] {
        [one] => Ok(one.clone()),
        [] => Err(CliFailure::new(
            FailureExitCode::NotFound,
            "No such project",
            format!("You have no project `{wanted}`: {}", labels_sentence(found)),
        )),
        _ => Err(CliFailure::new(
            FailureExitCode::Conflict,
            "Several projects",
            format!(
                "{} projects are called `{wanted}` or have that label: name one by its id, which `svc project list` has. {}",
                matching.len(),
                labels_sentence(found)
            ),
        )),
    }
}

/// Failure of a manifest's project that is not there.
fn missing_project_failure(name: &str) -> CliFailure {
    CliFailure::new(
        FailureExitCode::NotFound,
        "No such project",
        format!(
            "You have no project `{}`, which svc.toml names: `svc apply` makes it, and `--project` names another.",
            escape_line(name)
        ),
    )
}

fn expect_single_project(mut found: Vec<RemoteProject>) -> Result<RemoteProject> {
    match (found.pop(), found.is_empty()) {
        (Some(one), true) => Ok(one),
        (None, _) => Err(CliFailure::new(
            FailureExitCode::NotFound,
            "No project",
            "You have no project: `svc project create NAME` makes one.",
        )),
        (Some(one), false) => {
            found.push(one);
            Err(CliFailure::local(format!(
                "Which project? Name one, as by `--project`. {}",
                labels_sentence(&found)
            )))
        }
    }
}

/// Sentence with the labels of projects.
fn labels_sentence(found: &[RemoteProject]) -> String {
    let named = found.iter().take(MAX_NAMED_PROJECTS);
    let mut labels: Vec<_> = named
        .map(|one| format!("`{}` ({})", one.host_label, escape_line(&one.name)))
        .collect();
    if found.len() > MAX_NAMED_PROJECTS {
        labels.push(format!("{} more", found.len() - MAX_NAMED_PROJECTS));
    }
    match labels.is_empty() {
        true => "there is none.".to_owned(),
        false => format!("You have {}.", labels.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn project(id: &str, name: &str, label: &str, workspace: &str) -> RemoteProject {
        RemoteProject {
            id: id.to_owned(),
            name: name.to_owned(),
            host_label: label.to_owned(),
            description: None,
            home: None,
            backend: None,
            workspace: Some(RemoteWorkspace {
                slug: workspace.to_owned(),
            }),
        }
    }

    #[test]
    fn a_label_does_not_win_over_a_name() {
        let found = [
            project("1", "my-shop", "my-shop-acme", "acme"),
            project("2", "My", "my-shop", "shop"),
            project("3", "1", "1-acme", "acme"),
        ];
        for (wanted, expected) in [
            ("my-shop", None),
            ("my-shop-acme", Some("1")),
            ("My", Some("2")),
            ("1", Some("1")),
            ("other", None),
        ] {
            let chosen = choose(&found, wanted).ok().map(|one| one.id);
            assert_eq!(chosen.as_deref(), expected, "{wanted}");
        }
    }

    #[test]
    fn projects_of_one_name_are_told_apart_by_their_workspaces() {
        for (workspaces, said) in [
            (&["acme", "acme"][..], "rename all but one"),
            (&["acme", "stranger"], "They are in `acme`, `stranger`."),
        ] {
            let found = workspaces
                .iter()
                .map(|slug| project("1", "Shop", "shop", slug));
            let failure = several_projects_failure("Shop", &found.collect::<Vec<_>>());
            let refused = failure.to_text();
            assert!(refused.contains(said), "{workspaces:?}: {refused}");
        }
    }
}
