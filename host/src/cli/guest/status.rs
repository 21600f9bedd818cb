//! `svc guest status`.

use std::fmt::Write as _;
use std::process::ExitCode;

use serde::Serialize;

use super::{GuestArgs, GuestDirectories, describe_rerender};
use crate::cluster::found;
use crate::deployments::rerender::{self, RerenderProgress};
use crate::guests::GuestRecord;
use crate::guests::record::ServingGuestChange;
use crate::guests::status::{
    GuestStatusFile, WorldGuestStatus, is_server_running, read_status_file,
};
use svc_base::clock::{Clock, Timestamp};
use svc_sandbox::{
    CallPercentiles, GuestDigest, GuestUsage, InterfaceVersion, World, built_in_component,
    built_in_digest, read_component,
};

/// Number of changes in the text output.
const SHOWN_CHANGES: usize = 5;

#[derive(Debug, Serialize)]
struct GuestStatusCommand {
    /// Whether the data directory is that of a node of several.
    #[serde(skip)]
    is_node: bool,
    /// Whether a server runs on the data directory.
    server_running: bool,
    /// Time at which that server, or the last one, wrote its status.
    said_at: Option<Timestamp>,
    render: GuestStatus,
    gate: GuestStatus,
    /// The latest rerender.
    rerender: Option<RerenderProgress>,
}

#[derive(Debug, Serialize)]
struct GuestStatus {
    /// Package and version of the guest's interface; absent if this host does not know it.
    interface: Option<String>,
    /// First version of this program that refuses the interface; absent for the current interface.
    taken_until: Option<&'static str>,
    /// Digest of the installed guest.
    digest: GuestDigest,
    built_in: bool,
    bytes: u64,
    installed_at: Option<Timestamp>,
    from: Option<String>,
    /// End of the trial, if it is on trial.
    trial_until: Option<Timestamp>,
    /// Guest that a rollback puts back.
    previous: GuestDigest,
    /// Guest that the server has loaded. It is not `digest` if that one cannot be loaded.
    serving: Option<GuestDigest>,
    /// Reasons why installed guests cannot be loaded.
    failures: Vec<String>,
    /// Calls of the guest since the server loaded it.
    usage: GuestUsage,
    history: Vec<ServingGuestChange>,
}

pub(super) async fn run(guest_args: &GuestArgs) -> anyhow::Result<ExitCode> {
    let directories = guest_args.directories()?;
    directories.require_same_guests().await?;
    let said = read_status_file(&directories.data)?;
    let of = |world: World| -> anyhow::Result<GuestStatus> {
        let serves = said.as_ref().map(|said| said.of_world(world).clone());
        let mut serves = serves.unwrap_or_default();
        // The server's status is shown even if the record of installed guests cannot be read.
        let record = directories.folder(world).read().unwrap_or_else(|error| {
            let why = format!("{error:#}");
            if !serves.failures.contains(&why) {
                serves.failures.push(why);
            }
            GuestRecord::default()
        });
        let interface = installed_interface(&directories, world, &record);
        Ok(guest_status(world, interface, record, serves))
    };
    let status = GuestStatusCommand {
        is_node: found::installation_id(&directories.data)?.is_some(),
        server_running: is_server_running(&directories.data)?,
        said_at: said.as_ref().map(|said: &GuestStatusFile| said.at),
        render: of(World::Render)?,
        gate: of(World::Gate)?,
        rerender: rerender::progress(&directories.control()?).await?,
    };
    guest_args
        .args
        .print_answer(&status, &status_text(&status)?)
}

/// Finds the interface of the installed guest.
fn installed_interface(
    directories: &GuestDirectories,
    world: World,
    record: &GuestRecord,
) -> Option<InterfaceVersion> {
    match record.current_guest() {
        None => Some(InterfaceVersion::current(world)),
        Some(top) => InterfaceVersion::of_component(
            &read_component(&directories.folder(world).component_path(top)).ok()?,
        ),
    }
}

fn guest_status(
    world: World,
    interface: Option<InterfaceVersion>,
    record: GuestRecord,
    serves: WorldGuestStatus,
) -> GuestStatus {
    let own = built_in_digest(world);
    let top = record.current_guest().cloned();
    let before = record.serving.iter().rev().nth(1);
    let now = Clock::system().now();
    GuestStatus {
        interface: interface.map(|interface| interface.to_string()),
        taken_until: interface.and_then(InterfaceVersion::taken_until),
        digest: top.as_ref().map_or(own, |top| top.digest),
        built_in: top.is_none(),
        bytes: top
            .as_ref()
            .map_or(built_in_component(world).len() as u64, |top| top.bytes),
        previous: before.map_or(own, |before| before.digest),
        trial_until: record.trial_until().filter(|until| now < *until),
        installed_at: top.as_ref().map(|top| top.installed_at),
        from: top.map(|top| top.from),
        serving: serves.digest,
        failures: serves.failures,
        usage: serves.usage,
        history: record.history,
    }
}

fn status_text(status: &GuestStatusCommand) -> Result<String, std::fmt::Error> {
    let mut text = String::new();
    for guest in [&status.render, &status.gate] {
        let origin = match (&guest.from, guest.installed_at) {
            (Some(from), Some(at)) => format!("installed {at} from {}", from.escape_debug()),
            _ => "built in".to_owned(),
        };
        let interface = guest.interface.as_deref().unwrap_or("no known interface");
        writeln!(
            text,
            "{interface}  {}  {} bytes, {origin}",
            guest.digest, guest.bytes
        )?;
        if let Some(end) = guest.taken_until {
            writeln!(
                text,
                "    svc {end} refuses this interface: build the guest against the current one"
            )?;
        }
        if let Some(serving) = guest.serving.filter(|serving| *serving != guest.digest) {
            writeln!(text, "    NOT SERVING: {serving} serves instead")?;
        }
        for failure in &guest.failures {
            writeln!(text, "    error: {}", failure.escape_debug())?;
        }
        if let Some(until) = guest.trial_until {
            writeln!(
                text,
                "    on trial until {until}, against {}",
                guest.previous
            )?;
        }
        write_usage(&mut text, &guest.usage)?;
        let old = guest.history.len().saturating_sub(SHOWN_CHANGES);
        for change in guest.history.iter().skip(old) {
            writeln!(text, "    {}", change.describe())?;
        }
    }
    if status.is_node {
        writeln!(
            text,
            "what is installed is the same at every node; what serves, and its calls, are those of this one"
        )?;
    }
    match (status.server_running, status.said_at) {
        (true, _) => {}
        (false, Some(at)) => writeln!(text, "no server runs; the last one said this at {at}")?,
        (false, None) => writeln!(text, "no server runs")?,
    }
    if let Some(rerender) = &status.rerender {
        writeln!(text, "{}", describe_rerender(rerender))?;
    }
    Ok(text)
}

fn write_usage(text: &mut String, usage: &GuestUsage) -> std::fmt::Result {
    if usage.calls == 0 {
        return writeln!(text, "    no calls yet");
    }
    let spread =
        |one: &CallPercentiles| format!("{} / {} / {} / {}", one.p50, one.p90, one.p99, one.max);
    writeln!(
        text,
        "    {} calls, {} trapped, {} ran out of a budget",
        usage.calls, usage.traps, usage.exhausted
    )?;
    writeln!(
        text,
        "    p50 / p90 / p99 / most: fuel {}",
        spread(&usage.fuel)
    )?;
    writeln!(
        text,
        "        bytes of memory {}",
        spread(&usage.memory_bytes)
    )?;
    writeln!(text, "        microseconds {}", spread(&usage.microseconds))
}
