//! `svc status`.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::ExitCode;

use serde::Serialize;

use super::OperatorArgs;
use crate::backup::last::{self, LastBackupRecord};
use crate::cluster::found;
use crate::config::Limits;
use crate::content::ContentLocation;
use crate::guests::status::{is_server_running, read_status_file};
use crate::log::LoggedError;
use crate::operators::{Operation, ShowCounts};
use crate::overview::sizes::{self, DiskSizes};
use crate::overview::status_file::{self, StatusFile};
use crate::overview::{self, CapUseSummary, ResourceCounts};
use svc_base::clock::Timestamp;

#[derive(Debug, clap::Args)]
pub(super) struct StatusCommand {
    #[command(flatten)]
    args: OperatorArgs,
}

/// Answer of the command.
#[derive(Debug, Serialize)]
struct StatusAnswer {
    /// Version of this command.
    version: &'static str,
    /// Path of the data directory.
    data: String,
    /// Where sources and pages are stored.
    content: String,
    /// Whether a server uses the data directory.
    server_running: bool,
    /// That server, or the last one.
    server: Option<ServerInfo>,
    /// Counts of stored objects.
    counts: ResourceCounts,
    /// Counts that have a cap, by the name of the limit.
    caps: BTreeMap<&'static str, CapUseSummary>,
    /// Bytes on the disk.
    bytes: DiskSizes,
    /// Bytes that stay free: with less, no new content is accepted.
    free_disk_bytes: u64,
    /// Guests that serve, by the name of their world.
    guests: BTreeMap<&'static str, GuestInfo>,
    /// The last backups.
    backup: LastBackupRecord,
    /// The latest errors of that server, oldest first.
    errors: Vec<LoggedError>,
}

#[derive(Debug, Serialize)]
struct ServerInfo {
    version: String,
    process: u32,
    started_at: Timestamp,
    address: String,
    ops_address: Option<String>,
    base_url: String,
    sites_domain: Option<String>,
}

#[derive(Debug, Serialize)]
struct GuestInfo {
    /// SHA-256 of the guest; absent before it is loaded.
    digest: Option<String>,
    /// Reasons why an installed guest does not serve.
    failures: Vec<String>,
}

impl StatusCommand {
    pub(super) async fn run(self) -> anyhow::Result<ExitCode> {
        let counts = self
            .args
            .run_operation(Operation::Counts(ShowCounts))
            .await?;
        let counts: ResourceCounts = serde_json::from_str(&counts.document)?;
        let data = self.args.data();
        let said = status_file::read(&data)?;
        // The caps are those of the server; before a first start, the defaults.
        let limits = said
            .as_ref()
            .map_or_else(Limits::default, |said| said.limits.clone());
        let answer = StatusAnswer {
            version: env!("CARGO_PKG_VERSION"),
            data: std::path::absolute(&data)?.display().to_string(),
            content: describe_content(&data)?,
            server_running: is_server_running(&data)?,
            server: said.as_ref().map(server_info),
            counts,
            caps: overview::cap_uses(&counts, &limits).into(),
            bytes: sizes::measure(&data)?,
            free_disk_bytes: limits.free_disk_bytes,
            guests: guest_infos(&data)?,
            backup: last::read(&data)?,
            errors: said.map(|said| said.errors).unwrap_or_default(),
        };
        self.args.print_answer(&answer, &status_text(&answer))
    }
}

/// Describes where sources and pages are.
fn describe_content(data: &Path) -> anyhow::Result<String> {
    Ok(match found::installation_id(data)? {
        Some(_) => "in the bucket of the cluster".to_owned(),
        None => ContentLocation::read_recorded(data)?.to_string(),
    })
}

fn server_info(said: &StatusFile) -> ServerInfo {
    ServerInfo {
        version: said.version.clone(),
        process: said.process,
        started_at: said.started_at,
        address: said.address.to_string(),
        ops_address: said.ops_address.map(|address| address.to_string()),
        base_url: said.base_url.clone(),
        sites_domain: said.sites_domain.clone(),
    }
}

fn guest_infos(data: &Path) -> anyhow::Result<BTreeMap<&'static str, GuestInfo>> {
    let Some(said) = read_status_file(data)? else {
        return Ok(BTreeMap::new());
    };
    let worlds = [("render", said.render), ("gate", said.gate)];
    let guests = worlds.map(|(name, serves)| {
        let guest = GuestInfo {
            digest: serves.digest.map(|digest| digest.to_string()),
            failures: serves.failures,
        };
        (name, guest)
    });
    Ok(guests.into())
}

fn status_text(answer: &StatusAnswer) -> String {
    let mut lines = vec![
        ("data", answer.data.clone()),
        ("content", answer.content.clone()),
        ("server", describe_process(answer)),
    ];
    lines.extend(describe_contents(answer));
    for (name, guest) in &answer.guests {
        let digest = guest.digest.as_deref().unwrap_or("being loaded");
        let failures = guest
            .failures
            .iter()
            .map(|why| format!("; {}", why.escape_debug()));
        lines.push((name, digest.to_owned() + &failures.collect::<String>()));
    }
    lines.push(("backup", describe_backup(answer)));
    match answer.errors.is_empty() {
        true => lines.push(("errors", "none since the start".to_owned())),
        false => lines.extend(answer.errors.iter().map(|error| {
            let text = error.text.escape_debug();
            ("error", format!("{} {text}", error.at))
        })),
    }
    let lines = lines
        .into_iter()
        .map(|(name, value)| format!("{name:9} {value}"));
    lines.collect::<Vec<_>>().join("\n")
}

/// Describes the server's process.
fn describe_process(answer: &StatusAnswer) -> String {
    match (&answer.server, answer.server_running) {
        (Some(server), true) => format!(
            "svc {}, process {}, on http://{} ({}), since {}",
            server.version, server.process, server.address, server.base_url, server.started_at
        ),
        (Some(server), false) => format!("none runs; the last began {}", server.started_at),
        (None, true) => "runs, and has not said how it does".to_owned(),
        (None, false) => "none runs, and none has".to_owned(),
    }
}

/// Describes the last backup, and a failure after it.
fn describe_backup(answer: &StatusAnswer) -> String {
    let last = answer.backup.complete.as_ref();
    let last = last.map_or_else(
        || "never".to_owned(),
        |done| {
            format!(
                "{} in {}, {} bytes",
                done.moment, done.directory, done.bytes
            )
        },
    );
    let failed = answer.backup.failed_at;
    last + &failed.map_or_else(String::new, |at| format!("; one FAILED at {at}"))
}

/// Describes the contents of the installation, a line each.
fn describe_contents(answer: &StatusAnswer) -> Vec<(&'static str, String)> {
    let mut lines = Vec::new();
    let (counts, bytes) = (&answer.counts, &answer.bytes);
    let of = |name: &str| answer.caps.get(name).map_or(0, |used| used.cap);
    lines.push((
        "pages",
        format!(
            "{} of {}: {} shares, {} frontends; {} taken down",
            counts.deployments,
            of("active_deployments"),
            counts.shares,
            counts.frontends,
            counts.disabled
        ),
    ));
    lines.push((
        "backends",
        format!("{} of {}", counts.backends, of("backends")),
    ));
    lines.push((
        "projects",
        format!("{} in {} namespaces", counts.projects, counts.namespaces),
    ));
    lines.push((
        "files",
        format!(
            "{} of sites and {} of visitors with {} of {} bytes: {} wait for a publication, {} have ended; {} SHA-256s blocked",
            counts.files,
            counts.visitor_files,
            counts.file_bytes,
            of("storage_total_bytes"),
            counts.staged_files,
            counts.ended_visitor_files,
            counts.blocked
        ),
    ));
    lines.push(("reports", format!("{} open", counts.open_reports)));
    lines.push((
        "disk",
        format!(
            "{} bytes: control {}, content {}, once {}, databases {}, history {}; {} free, of which {} stay free",
            bytes.total,
            bytes.control,
            bytes.content,
            bytes.once,
            bytes.databases,
            bytes.history,
            bytes.free,
            answer.free_disk_bytes
        ),
    ));
    lines
}
