//! `svc domain add|list|verify|remove`: the domains of a project.

use serde_json::{Value, json};

use super::backends::BackendTargetArgs;
use super::endpoints;
use super::error::{CliFailure, Result};
use super::output::{OutputFormat, member_text, table_of};
use super::profile::ServerSelectionArgs;
use super::projects::ProjectSelectionArgs;

/// Columns of the table of domains.
const COLUMNS: [&str; 5] = ["name", "state", "redirect_to", "verified_at", "created_at"];
/// Columns of the table of records.
const RECORD_COLUMNS: [&str; 3] = ["type", "name", "value"];

/// Adds, verifies and removes domains.
#[derive(Debug, clap::Subcommand)]
pub enum DomainChangeCommand {
    /// Add a domain to a project, and print the DNS records that prove it: one of them suffices
    Add {
        /// Host name, such as www.example.com
        #[arg(value_name = "DOMAIN")]
        name: String,
        /// Host that its visitors are sent to: another domain of the project, or its own host
        #[arg(long, value_name = "HOST")]
        redirect_to: Option<String>,
        #[command(flatten)]
        args: BackendTargetArgs,
    },
    /// Look in DNS now, and serve the domain if it is proven
    Verify {
        /// Host name, such as www.example.com
        #[arg(value_name = "DOMAIN")]
        name: String,
        #[command(flatten)]
        args: BackendTargetArgs,
    },
    /// Remove a domain from a project; it is served no more
    Remove {
        /// Host name, such as www.example.com
        #[arg(value_name = "DOMAIN")]
        name: String,
        #[command(flatten)]
        args: BackendTargetArgs,
    },
}

impl DomainChangeCommand {
    pub(super) async fn run(self) -> Result<()> {
        match self {
            Self::Add {
                name,
                redirect_to,
                args,
            } => {
                let at = args.find().await?;
                let body = json!({ "name": name, "redirect_to": redirect_to });
                let added = at.send(&endpoints::ADD_DOMAIN, body).await?;
                args.output().print_answer(&added, &domain_text(&added))
            }
            Self::Verify { name, args } => {
                let at = args.find().await?;
                let parts = [at.project.id.as_str(), &name];
                let proven = at.api.call(&endpoints::VERIFY_DOMAIN, &parts);
                let proven = proven.send().await.map_err(with_records)?;
                args.output().print_answer(&proven, &domain_text(&proven))
            }
            Self::Remove { name, args } => {
                let at = args.find().await?;
                let parts = [at.project.id.as_str(), &name];
                at.api
                    .call(&endpoints::REMOVE_DOMAIN, &parts)
                    .send()
                    .await?;
                let document = json!({ "name": name, "deleted": true });
                args.output()
                    .print_answer(&document, &format!("removed {name}"))
            }
        }
    }
}

/// Lists the domains of a project.
pub(super) async fn list(
    remote: &ServerSelectionArgs,
    json: bool,
    project: &ProjectSelectionArgs,
) -> Result<()> {
    let (api, project) = project.open(remote).await?;
    let domains = api.call(&endpoints::DOMAINS, &[&project.id]).send().await?;
    let text = table_of(&domains["domains"], &COLUMNS);
    OutputFormat { json }.print_answer(&domains, &text)
}

/// Adds to the failure of a domain that is not proven which records are wanted, and which are there.
fn with_records(mut failure: CliFailure) -> CliFailure {
    for (member, said) in [("records", "wanted"), ("seen", "seen")] {
        let Some(Value::Array(list)) = failure.member(member).cloned() else {
            continue;
        };
        let line = |record: &Value| {
            let texts = RECORD_COLUMNS.map(|column| member_text(record, column));
            format!("{said}: {}", texts.join(" "))
        };
        let lines = list.iter().map(line).collect();
        failure = failure.with_list(member, list, lines);
    }
    failure
}

/// Describes a domain, with the records that prove it while it is not served.
pub(super) fn domain_text(domain: &Value) -> String {
    let name = member_text(domain, "name");
    let state = format!("{name} is {}", member_text(domain, "state"));
    if domain["state"] == "active" {
        return state;
    }
    let records = table_of(&domain["records"], &RECORD_COLUMNS);
    format!(
        "{state}. Set one of these records at the provider of your DNS, then run `svc domain verify {name}`:\n\n{records}"
    )
}
