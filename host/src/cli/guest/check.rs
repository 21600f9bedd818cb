//! `svc guest check`: describes a component, and the differences that it would make.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use serde::Serialize;

use super::super::progress::Progress;
use super::{GuestArgs, GuestDirectories, guest_tester};
use crate::config::Config;
use crate::content::{Content, ContentLocation, OneTimeFiles};
use crate::guests::check::{ComponentCheck, GuestTester, candidate_choice, check_component};
use crate::guests::replay::{ComparisonCounts, Differences, Replay, ReplayResult, hold_content};
use svc_base::clock::Clock;
use svc_sandbox::{GuestDigest, World, read_component};

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct Check {
    /// The component
    file: PathBuf,
    /// Where differences go as files to look at: a folder that is missing or empty [default: a new one in this directory]
    #[arg(long)]
    out: Option<PathBuf>,
    #[command(flatten)]
    guest_args: GuestArgs,
}

/// Findings of a check.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    file: PathBuf,
    /// Whether it may be installed.
    ok: bool,
    #[serde(flatten)]
    checked: ComponentCheck,
    /// Absent where it was not asked for, or the component may not serve anyway.
    replay: Option<ReplayResult>,
    /// Where the differences are; absent where there are none.
    differences: Option<PathBuf>,
    /// How many differences are counted and not among the files.
    differences_left_out: u64,
}

impl Check {
    /// Fails where the component may not serve, or fails where the one that serves does not.
    pub(super) async fn run(self) -> anyhow::Result<ExitCode> {
        let (config, directories) = self.guest_args.config_and_directories()?;
        directories.require_same_guests().await?;
        let bytes = Arc::new(read_component(&self.file)?);
        let differences =
            Differences::in_folder(self.out.unwrap_or_else(|| differences_folder(&bytes)))?;
        let report = check_with_replay(
            (&config, &directories),
            &self.file,
            bytes,
            Some(differences),
        )
        .await?;
        self.guest_args
            .args
            .print_answer(&report, &report.to_text()?)?;
        Ok(if report.passed() {
            ExitCode::SUCCESS
        } else {
            ExitCode::FAILURE
        })
    }
}

/// A new folder for differences, named after the component and the moment.
fn differences_folder(component: &[u8]) -> PathBuf {
    let digest = GuestDigest::of(component).to_string();
    let short: String = digest.chars().take(12).collect();
    let now = Clock::system().now().0;
    PathBuf::from(format!("svc-guest-check-{short}-{now}"))
}

/// Checks a component; with a place for differences, on everything that is stored, too.
pub(super) async fn check_with_replay(
    (config, directories): (&Config, &GuestDirectories),
    file: &Path,
    bytes: Arc<Vec<u8>>,
    differences: Option<Differences>,
) -> anyhow::Result<Report> {
    let (tester, bar) = (guest_tester(config), Progress::new());
    bar.show_spinner("compile");
    let watch = |done, all| bar.show_count("corpus", done, all);
    let checked = check_component(&tester, file, bytes, &watch).await?;
    let mut report = Report {
        file: file.to_owned(),
        ok: checked.passed(),
        checked,
        replay: None,
        differences: None,
        differences_left_out: 0,
    };
    let (Some(world), Some(mut differences)) = (report.world().filter(|_| report.ok), differences)
    else {
        return Ok(report);
    };
    let replayed =
        replay_stored(directories, &tester, world, &report, &bar, &mut differences).await?;
    report.ok = replayed.newly_failing() == 0;
    report.replay = Some(replayed);
    report.differences = differences.path().map(std::path::absolute).transpose()?;
    report.differences_left_out = differences.left_out();
    Ok(report)
}

/// Tries it on everything that is stored.
async fn replay_stored(
    directories: &GuestDirectories,
    tester: &GuestTester,
    world: World,
    report: &Report,
    bar: &Progress,
    differences: &mut Differences,
) -> anyhow::Result<ReplayResult> {
    let now = Clock::system().now();
    let folder = directories.folder(world);
    let mut installed = folder.choice(&folder.read()?, now);
    installed.on_trial = false;
    let new = candidate_choice(&report.file, &report.checked.component);
    let data = &directories.data;
    let held = data.clone();
    let hold = tokio::task::spawn_blocking(move || hold_content(&held)).await??;
    let replay = Replay {
        control: directories.control()?,
        content: Content::open(&ContentLocation::read_recorded(data)?.require_directory()?)?,
        once: OneTimeFiles::open(&data.join("once"))?,
        now,
        guests: [
            tester.sandbox(world, installed)?,
            tester.sandbox(world, new)?,
        ],
        page_bytes: tester.page_bytes,
    };
    let watch = |done, all| bar.show_count("replay", done, all);
    replay.run(world, &hold, differences, &watch).await
}

impl Report {
    pub(super) fn passed(&self) -> bool {
        self.ok
    }

    pub(super) fn world(&self) -> Option<World> {
        self.checked.component.world
    }

    pub(super) fn digest(&self) -> GuestDigest {
        self.checked.component.digest
    }

    /// Why it may not serve: a sentence each.
    pub(super) fn reasons(&self) -> Vec<String> {
        let mut reasons = self.checked.component.refused.clone();
        if let Some(stood) = self
            .checked
            .corpus
            .as_ref()
            .filter(|stood| stood.failed > 0)
        {
            let (failed, cases) = (stood.failed, stood.cases);
            reasons.push(format!(
                "it fails {failed} of {cases} questions of the corpus"
            ));
        }
        if let Some(failing) = self
            .replay
            .as_ref()
            .map(ReplayResult::newly_failing)
            .filter(|count| *count > 0)
        {
            reasons.push(format!(
                "it fails on {failing} of what is stored, where the guest that serves does not"
            ));
        }
        reasons
    }

    /// Writes the report for people.
    pub(super) fn to_text(&self) -> Result<String, std::fmt::Error> {
        let mut text = String::new();
        let found = &self.checked.component;
        if let (Some(world), Some(version)) = (found.world, &found.version) {
            writeln!(
                text,
                "svc:{world}@{version}  {}  {} bytes",
                found.digest, found.bytes
            )?;
        }
        if let Some(end) = found.taken_until {
            writeln!(
                text,
                "svc {end} refuses this interface: build it against the current one"
            )?;
        }
        for why in &found.refused {
            writeln!(text, "refused: {why}")?;
        }
        if let Some(stood) = &self.checked.corpus {
            writeln!(
                text,
                "corpus: {} questions, {} failed",
                stood.cases, stood.failed
            )?;
            for failure in &stood.failures {
                let detail = failure.detail.escape_debug();
                writeln!(text, "    {}: {detail}", failure.case)?;
            }
        }
        if let Some(replayed) = &self.replay {
            write_replay(&mut text, replayed)?;
        }
        if let Some(folder) = &self.differences {
            writeln!(text, "differences: {}", folder.display())?;
        }
        if self.differences_left_out > 0 {
            writeln!(
                text,
                "{} differences are only counted",
                self.differences_left_out
            )?;
        }
        writeln!(
            text,
            "{}",
            if self.ok {
                "it may serve"
            } else {
                "it may not serve"
            }
        )?;
        Ok(text)
    }
}

fn write_replay(text: &mut String, replayed: &ReplayResult) -> std::fmt::Result {
    writeln!(text, "against guest {}:", replayed.installed)?;
    for (name, counts) in [("stored", &replayed.open), ("private", &replayed.private)] {
        let ComparisonCounts {
            identical,
            differing,
            newly_failing,
            newly_working,
            failing,
        } = counts;
        writeln!(
            text,
            "{name}: {identical} identical, {differing} differing, {newly_failing} newly failing, {newly_working} newly working, {failing} failing with both"
        )?;
    }
    if replayed.without_source > 0 {
        let count = replayed.without_source;
        writeln!(text, "{count} one-time shares have no source to try")?;
    }
    let used = &replayed.used;
    writeln!(
        text,
        "fuel: {} (now {}); time: {} ms (now {} ms), in {} calls",
        used.new.fuel,
        used.installed.fuel,
        used.new.microseconds / 1000,
        used.installed.microseconds / 1000,
        used.new.calls
    )
}
