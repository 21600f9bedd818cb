//! `svc guest check`: describes a component, and finds the pages and verdicts that it would change.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use serde::Serialize;

use super::super::progress::TerminalProgressBar;
use super::{GuestArgs, GuestDirectories, guest_tester};
use crate::config::Config;
use crate::content::{ContentLocation, ContentStore, OneTimeFileDirectory};
use crate::guests::check::{
    ComponentCheckFindings, GuestTestSettings, candidate_choice, check_component,
};
use crate::guests::replay::{
    ComparisonCounts, DifferencesFolder, ReplayResult, ReplaySetup, hold_content,
};
use svc_base::clock::Clock;
use svc_sandbox::{GuestDigest, World, read_component};

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct GuestCheckCommand {
    /// The component
    file: PathBuf,
    /// Where differences go as files to look at: a folder that is missing or empty [default: a new one in this directory]
    #[arg(long)]
    out: Option<PathBuf>,
    #[command(flatten)]
    guest_args: GuestArgs,
}

/// Findings about a component.
#[derive(Debug, Serialize)]
pub(super) struct ComponentReport {
    file: PathBuf,
    /// Whether it may be installed.
    ok: bool,
    #[serde(flatten)]
    checked: ComponentCheckFindings,
    /// Absent if no replay was asked for, or the component was refused before.
    replay: Option<ReplayResult>,
    /// Folder of the differences; absent if there are none.
    differences: Option<PathBuf>,
    /// Number of differences that are counted only, and not written to files.
    differences_left_out: u64,
}

impl GuestCheckCommand {
    /// Runs the command. It fails if the component is refused, or fails where the installed guest does not.
    pub(super) async fn run(self) -> anyhow::Result<ExitCode> {
        let (config, directories) = self.guest_args.config_and_directories()?;
        directories.require_same_guests().await?;
        let bytes = Arc::new(read_component(&self.file)?);
        let differences =
            DifferencesFolder::in_folder(self.out.unwrap_or_else(|| differences_folder(&bytes)))?;
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

/// Returns a folder for differences that is named after the component and the time.
fn differences_folder(component: &[u8]) -> PathBuf {
    let digest = GuestDigest::of(component).to_string();
    let short: String = digest.chars().take(12).collect();
    let now = Clock::system().now().0;
    PathBuf::from(format!("svc-guest-check-{short}-{now}"))
}

/// Checks a component. With `differences`, also replays everything stored.
pub(super) async fn check_with_replay(
    (config, directories): (&Config, &GuestDirectories),
    file: &Path,
    bytes: Arc<Vec<u8>>,
    differences: Option<DifferencesFolder>,
) -> anyhow::Result<ComponentReport> {
    if differences.is_some() {
        directories.require_stored_pages()?;
    }
    let (tester, bar) = (guest_tester(config), TerminalProgressBar::new());
    bar.show_spinner("compile");
    let watch = |done, all| bar.show_count("corpus", done, all);
    let checked = check_component(&tester, file, bytes, &watch).await?;
    let mut report = ComponentReport {
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

/// Replays everything stored with the installed guest and with the component.
async fn replay_stored(
    directories: &GuestDirectories,
    tester: &GuestTestSettings,
    world: World,
    report: &ComponentReport,
    bar: &TerminalProgressBar,
    differences: &mut DifferencesFolder,
) -> anyhow::Result<ReplayResult> {
    let now = Clock::system().now();
    let folder = directories.folder(world);
    let mut installed = folder.choice(&folder.read()?, now);
    installed.on_trial = false;
    let new = candidate_choice(&report.file, &report.checked.component);
    let data = &directories.data;
    let held = data.clone();
    let hold = tokio::task::spawn_blocking(move || hold_content(&held)).await??;
    let replay = ReplaySetup {
        control: directories.control()?,
        content: ContentStore::open(&ContentLocation::read_recorded(data)?.require_directory()?)?,
        once: OneTimeFileDirectory::open(&data.join("once"))?,
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

impl ComponentReport {
    pub(super) fn passed(&self) -> bool {
        self.ok
    }

    pub(super) fn world(&self) -> Option<World> {
        self.checked.component.world
    }

    pub(super) fn digest(&self) -> GuestDigest {
        self.checked.component.digest
    }

    /// Returns the reasons why it is refused, a sentence each.
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

    /// Formats the report for people.
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
