//! `just bench`: a release build of `svc`, measured beside minimal servers that answer the same.
//!
//! Everything runs on the loopback of one machine and in one run, so that what else the machine does hits both
//! servers. Ratios travel between machines, absolute figures do not.

mod arguments;
mod backend;
mod background_load;
mod beside_live;
mod beside_rooms;
mod calls;
mod client;
mod cluster;
mod density;
mod domains;
mod earlier_build;
mod guests;
mod handshakes;
mod history;
mod items;
mod live;
mod live_pocketbase;
mod load;
mod many_databases;
mod many_pages;
mod minimal;
mod minimal_ledger;
mod minimal_rooms;
mod minimal_sql;
mod nats;
mod neighbours;
mod nginx;
mod owner;
mod owner_identity;
mod payments;
mod pocketbase;
mod project_releases;
mod publish;
mod relay;
mod relay_protocol;
mod releases;
mod report;
mod rerender;
mod rooms;
mod rounds;
mod server;
mod sites;
mod sockets;
mod source_generator;
mod startup;
mod tenant;
mod uploads;
mod views;
mod visitor_identity;
mod visitor_sign_ins;
mod worker_pool;

use anyhow::Context as _;

use arguments::Arguments;
use report::Goals;
use server::Bench;

/// Function that measures a part.
type Measure = fn(&Run, &mut Goals) -> anyhow::Result<()>;

/// Parts to measure, in the order of the report.
const PARTS: &[(&str, Measure)] = &[
    ("startup", |run, goals| startup::measure(&run.bench, goals)),
    ("calls", |run, goals| {
        calls::measure(&run.bench, goals)?;
        let before = run.before.as_ref();
        before.map_or(Ok(()), |before| {
            earlier_build::measure(&run.bench, before, goals)
        })
    }),
    ("views", views::measure),
    ("many", |run, goals| many_pages::measure(&run.bench, goals)),
    ("publish", |run, _| publish::measure(&run.bench)),
    ("releases", |run, goals| {
        releases::measure(&run.bench, goals)?;
        project_releases::measure(&run.bench, goals)
    }),
    ("sites", sites::measure),
    ("domains", |run, goals| domains::measure(&run.bench, goals)),
    ("handshakes", |run, goals| {
        handshakes::measure(&run.bench, goals)
    }),
    ("uploads", uploads::measure),
    ("backend", |run, goals| {
        backend::measure(&run.bench, run.before.as_ref(), goals)
    }),
    ("owner", |run, goals| {
        owner_identity::measure(&run.bench, run.before.as_ref(), goals)
    }),
    ("history", |run, goals| history::measure(&run.bench, goals)),
    ("identity", |run, goals| {
        visitor_identity::measure(&run.bench, goals)?;
        visitor_sign_ins::measure(&run.bench, goals)
    }),
    ("pocketbase", |run, goals| {
        pocketbase::measure(&run.bench, run.arguments.pocketbase.clone(), goals)
    }),
    ("neighbours", |run, goals| {
        neighbours::measure(&run.bench, goals)
    }),
    ("pool", |run, goals| worker_pool::measure(&run.bench, goals)),
    ("guests", |run, goals| guests::measure(&run.bench, goals)),
    ("rerender", |run, goals| {
        rerender::measure(&run.bench, goals)
    }),
    ("crowd", |run, goals| {
        many_databases::measure(&run.bench, goals)
    }),
    ("density", |run, goals| {
        density::measure(&run.bench, run.arguments.databases, goals)
    }),
    ("rooms", rooms::measure),
    ("rooms-steady", rooms::measure_steady),
    ("sockets", sockets::measure),
    ("beside-rooms", |run, goals| {
        beside_rooms::measure(&run.bench, goals)
    }),
    ("live", |run, goals| {
        live::measure(&run.bench, goals)?;
        live_pocketbase::measure(&run.bench, run.arguments.pocketbase.clone())
    }),
    ("beside-live", |run, goals| {
        beside_live::measure(&run.bench, goals)
    }),
    ("payments", |run, goals| {
        payments::measure(&run.bench, goals)
    }),
    ("cluster", cluster::measure),
];

/// One run of the bench.
struct Run {
    arguments: Arguments,
    /// The build that is measured.
    bench: Bench,
    /// An earlier build, whose views, calls and rendering are measured beside it.
    before: Option<Bench>,
}

fn main() -> anyhow::Result<()> {
    let mut words = std::env::args().skip(1).peekable();
    // The minimal servers are this program again, in processes of their own.
    match words.peek().map(String::as_str) {
        Some(minimal::ARGUMENT) => {
            return minimal::serve(&words.nth(1).context("a directory")?);
        }
        Some(minimal_sql::ARGUMENT) => {
            let commits = words.nth(1).context("how it commits")?;
            return minimal_sql::serve(&commits, &words.next().context("a path")?);
        }
        Some(minimal_rooms::ARGUMENT) => return minimal_rooms::serve(),
        Some(minimal_ledger::ARGUMENT) => {
            return minimal_ledger::serve(&words.nth(1).context("a path")?);
        }
        _ => {}
    }
    let parts: Vec<&str> = PARTS.iter().map(|(name, _)| *name).collect();
    let arguments = Arguments::read(words, &parts)?;
    let me = std::env::current_exe()?;
    let svc = arguments.svc_beside(&me)?;
    // Beside the build, which is on a disk, as a data directory would be; /tmp often is not.
    let home = me.parent().context("a program without a directory")?;
    let work = tempfile::tempdir_in(home)?;
    let before = match &arguments.before {
        None => None,
        Some(before) => {
            let home = work.path().join("before");
            std::fs::create_dir(&home)?;
            let before = Bench::new(before.clone(), me.clone(), &home)?;
            before.compile_guests()?;
            Some(before)
        }
    };
    let run = Run {
        bench: Bench::new(svc, me, work.path())?,
        arguments,
        before,
    };
    run.bench.compile_guests()?;
    let mut goals = Goals::default();
    for (name, measure) in PARTS {
        if run.arguments.selects(name) {
            measure(&run, &mut goals)?;
        }
    }
    goals.print()
}
