//! `just bench`: a release build of `svc`, measured beside minimal servers that answer the same.
//!
//! Everything runs on the loopback of one machine and in one run, so that what else the machine does hits both
//! servers. Ratios travel between machines, absolute figures do not.

mod backend;
mod beside;
mod calls;
mod client;
mod crowd;
mod guests;
mod history;
mod items;
mod load;
mod many;
mod minimal;
mod minimal_rooms;
mod minimal_sql;
mod neighbours;
mod nginx;
mod owner;
mod pocketbase;
mod publish;
mod relay;
mod releases;
mod report;
mod rerender;
mod rooms;
mod rounds;
mod server;
mod source;
mod startup;
mod tenant;
mod views;

use std::path::PathBuf;

use anyhow::{Context, bail};

use report::Goals;

/// What is measured, in the order of the report.
const PARTS: [&str; 14] = [
    "startup",
    "calls",
    "views",
    "many",
    "publish",
    "releases",
    "backend",
    "history",
    "pocketbase",
    "neighbours",
    "guests",
    "rerender",
    "crowd",
    "rooms",
];

fn main() -> anyhow::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let mut parts: Vec<String> = Vec::new();
    let (mut svc, mut page) = (None, None);
    let (mut nginx, mut pocketbase) = (None, None);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            // The minimal server is this program again, in a process of its own.
            minimal::ARGUMENT => return minimal::serve(&arguments.next().context("a directory")?),
            minimal_sql::ARGUMENT => {
                let commits = arguments.next().context("how it commits")?;
                return minimal_sql::serve(&commits, &arguments.next().context("a path")?);
            }
            minimal_rooms::ARGUMENT => return minimal_rooms::serve(),
            "--svc" => {
                let path = arguments.next().context("--svc needs a path")?;
                svc = Some(PathBuf::from(path));
            }
            // One size of page alone, for whoever is looking for what it costs.
            "--page" => page = Some(arguments.next().context("--page needs a size, as in 10")?),
            "--nginx" => {
                let path = arguments.next().context("--nginx needs a path")?;
                nginx = Some(PathBuf::from(path));
            }
            "--pocketbase" => {
                let path = arguments.next().context("--pocketbase needs a path")?;
                pocketbase = Some(PathBuf::from(path));
            }
            part if PARTS.contains(&part) => parts.push(argument),
            other => {
                bail!(
                    "unknown argument {other}: give any of {PARTS:?}, --page KB, --svc PATH, --nginx PATH or --pocketbase PATH"
                )
            }
        }
    }
    let wanted = |part: &str| parts.is_empty() || parts.iter().any(|named| named == part);
    let me = std::env::current_exe()?;
    let svc = svc.unwrap_or_else(|| me.with_file_name("svc"));
    if !svc.is_file() {
        bail!(
            "there is no {}: build it, or name it with --svc",
            svc.display()
        );
    }
    // Beside the build, which is on a disk, as a data directory would be; /tmp often is not.
    let home = me.parent().context("a program without a directory")?;
    let work = tempfile::tempdir_in(home)?;
    let bench = server::Bench::new(svc, me, work.path())?;

    let mut goals = Goals::default();
    bench.compile_guests()?;
    if wanted("startup") {
        startup::measure(&bench, &mut goals)?;
    }
    if wanted("calls") {
        calls::measure(&bench, &mut goals)?;
    }
    if wanted("views") {
        views::measure(&bench, page.as_deref(), nginx, &mut goals)?;
    }
    if wanted("many") {
        many::measure(&bench, &mut goals)?;
    }
    if wanted("publish") {
        publish::measure(&bench)?;
    }
    if wanted("releases") {
        releases::measure(&bench, &mut goals)?;
    }
    if wanted("backend") {
        backend::measure(&bench, &mut goals)?;
    }
    if wanted("history") {
        history::measure(&bench, &mut goals)?;
    }
    if wanted("pocketbase") {
        pocketbase::measure(&bench, pocketbase, &mut goals)?;
    }
    if wanted("neighbours") {
        neighbours::measure(&bench, &mut goals)?;
    }
    if wanted("guests") {
        guests::measure(&bench, &mut goals)?;
    }
    if wanted("rerender") {
        rerender::measure(&bench, &mut goals)?;
    }
    if wanted("crowd") {
        crowd::measure(&bench, &mut goals)?;
    }
    if wanted("rooms") {
        rooms::measure(&bench, &mut goals)?;
    }
    goals.print()
}
