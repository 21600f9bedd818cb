//! Check of a component before it may serve: its imports, its interface, and its answers to the corpus.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use futures_util::{StreamExt as _, stream};
use serde::Serialize;

use super::contract;
use super::corpus::{self, GateTestCase, RenderTestCase};
use svc_sandbox::{
    AllowedStatement, ComponentInspection, GateFailure, GuestCandidates, GuestCandidatesByWorld,
    GuestLimits, GuestOrigin, PageFooter, RenderFailure, RenderSource, RuntimeScript, Sandbox,
    SandboxConfig, World, inspect_component,
};

/// Maximum number of failures in a report.
const MAX_LISTED_FAILURES: usize = 20;

/// Settings for running guests that do not serve (yet).
#[derive(Clone, Debug)]
pub struct GuestTestSettings {
    /// Directory of compiled guests.
    pub cache: PathBuf,
    /// Budgets of a call.
    pub limits: GuestLimits,
    /// Size limit of a page, in bytes.
    pub page_bytes: usize,
}

impl GuestTestSettings {
    /// Starts a sandbox with a guest for one world and none for the other.
    ///
    /// # Errors
    /// An error of the cache or the engine.
    pub fn sandbox(&self, world: World, choice: GuestCandidates) -> anyhow::Result<Sandbox> {
        let nothing = GuestCandidates {
            origins: Vec::new(),
            on_trial: false,
        };
        let mut guests = GuestCandidatesByWorld {
            render: nothing.clone(),
            gate: nothing,
        };
        *guests.of(world) = choice;
        Sandbox::start(SandboxConfig {
            guests,
            limits: self.limits,
            ..SandboxConfig::new(self.cache.clone())
        })
    }
}

/// Findings about a component.
#[derive(Clone, Debug, Serialize)]
pub struct ComponentCheckFindings {
    /// Description of the component.
    #[serde(flatten)]
    pub component: ComponentInspection,
    /// Result of the corpus; absent if the component is refused before.
    pub corpus: Option<CorpusResult>,
}

impl ComponentCheckFindings {
    /// Whether the guest may serve.
    pub fn passed(&self) -> bool {
        self.component.refused.is_empty()
            && self.corpus.as_ref().is_some_and(|stood| stood.failed == 0)
    }
}

/// Result of running a component on the corpus.
#[derive(Clone, Debug, Default, Serialize)]
pub struct CorpusResult {
    /// Number of cases.
    pub cases: usize,
    /// Number of failed cases.
    pub failed: usize,
    /// The first failures.
    pub failures: Vec<CorpusCaseFailure>,
}

/// A failed case.
#[derive(Clone, Debug, Serialize)]
pub struct CorpusCaseFailure {
    /// Name of the case.
    pub case: String,
    /// Description of the fault.
    pub detail: String,
}

/// Callback for progress: done, of all.
pub type CorpusProgressFn<'w> = &'w (dyn Fn(u64, u64) + Sync);

/// Checks a component: compiles it, inspects it, and runs the corpus. `file` is where `bytes` were read from.
///
/// # Errors
/// Errors of the cache or of the engine, which say nothing about the component.
pub async fn check_component(
    tester: &GuestTestSettings,
    file: &Path,
    bytes: Arc<Vec<u8>>,
    watch: CorpusProgressFn<'_>,
) -> anyhow::Result<ComponentCheckFindings> {
    let (cache, limits) = (tester.cache.clone(), tester.limits);
    let looked = tokio::task::spawn_blocking(move || inspect_component(&cache, limits, &bytes));
    let component = looked.await??;
    let mut checked = ComponentCheckFindings {
        component,
        corpus: None,
    };
    if let (true, Some(world)) = (
        checked.component.refused.is_empty(),
        checked.component.world,
    ) {
        let candidate = tester.sandbox(world, candidate_choice(file, &checked.component))?;
        checked.corpus = Some(run_corpus(tester, &candidate, world, watch).await?);
    }
    Ok(checked)
}

/// Runs the corpus on the guest of a sandbox.
///
/// # Errors
/// Errors of the cache or of the engine, which say nothing about the guest.
pub async fn run_corpus(
    tester: &GuestTestSettings,
    candidate: &Sandbox,
    world: World,
    watch: CorpusProgressFn<'_>,
) -> anyhow::Result<CorpusResult> {
    Ok(match world {
        World::Render => run_render_cases(candidate, tester.page_bytes, watch).await,
        World::Gate => run_gate_cases(tester, candidate, watch).await?,
    })
}

/// Returns the choice of one component's file and no other.
pub fn candidate_choice(file: &Path, component: &ComponentInspection) -> GuestCandidates {
    GuestCandidates {
        origins: vec![GuestOrigin::File {
            path: file.to_owned(),
            digest: Some(component.digest),
        }],
        on_trial: false,
    }
}

impl CorpusResult {
    fn from_failures(cases: usize, failures: Vec<CorpusCaseFailure>) -> Self {
        Self {
            cases,
            failed: failures.len(),
            failures: failures.into_iter().take(MAX_LISTED_FAILURES).collect(),
        }
    }
}

/// Runs as many cases at once as calls can run.
async fn run_cases<C, F>(
    cases: Vec<C>,
    watch: CorpusProgressFn<'_>,
    question: impl Fn(C) -> F,
) -> (usize, Vec<CorpusCaseFailure>)
where
    F: Future<Output = Option<CorpusCaseFailure>>,
{
    let all = cases.len();
    let mut answers = stream::iter(cases)
        .map(question)
        .buffered(SandboxConfig::default_threads());
    let (mut done, mut failures) = (0, Vec::new());
    while let Some(failure) = answers.next().await {
        done += 1;
        watch(done, all as u64);
        failures.extend(failure);
    }
    (all, failures)
}

/// Renders each source with a runtime and without, twice each.
async fn run_render_cases(
    candidate: &Sandbox,
    page_bytes: usize,
    watch: CorpusProgressFn<'_>,
) -> CorpusResult {
    let cases = corpus::RENDER_CASES.iter();
    let cases = cases
        .flat_map(|case| [(case, false), (case, true)])
        .collect();
    let (all, failures) = run_cases(cases, watch, |(case, live)| async move {
        let source = source_of_case(case, live, page_bytes);
        let detail = render_fault(candidate, source, case.broken).await?;
        Some(CorpusCaseFailure {
            case: case.name.to_owned(),
            detail,
        })
    })
    .await;
    CorpusResult::from_failures(all, failures)
}

fn source_of_case(case: &RenderTestCase, live: bool, page_bytes: usize) -> RenderSource {
    RenderSource {
        content_type: case.content_type,
        title: Some(corpus::CASE_TITLE.to_owned()),
        name: None,
        text: case.text.to_owned(),
        runtime: live.then(|| RuntimeScript {
            src: "/_svc/runtime/0123456789abcdef.js".to_owned(),
            slug: "a-page".to_owned(),
        }),
        page_bytes,
        foot: live.then(|| PageFooter {
            raw: Some("/a-page/raw".to_owned()),
            expires_at: Some("2026-11-27T12:00:00.000Z".to_owned()),
            report: Some("/_svc/report/a-page".to_owned()),
        }),
        is_private: false,
    }
}

/// Renders a source, and describes the fault in the answer.
async fn render_fault(candidate: &Sandbox, source: RenderSource, broken: bool) -> Option<String> {
    let page = match candidate.render(source.clone()).await {
        Ok(page) => page,
        Err(RenderFailure::Malformed(_)) if broken => return None,
        Err(failure) => return Some(failure.to_string()),
    };
    let Ok(text) = std::str::from_utf8(&page.html) else {
        return Some("the page is not UTF-8".to_owned());
    };
    let faults = contract::find_faults(&source, text);
    if !faults.is_empty() {
        return Some(faults.join("; "));
    }
    match candidate.render(source).await {
        Ok(again) if again.html == page.html => None,
        _ => Some("the same source gives another page the second time".to_owned()),
    }
}

/// Judges each SQL text with the candidate and with the built-in gate: both must allow the same.
async fn run_gate_cases(
    tester: &GuestTestSettings,
    candidate: &Sandbox,
    watch: CorpusProgressFn<'_>,
) -> anyhow::Result<CorpusResult> {
    let ours = tester.sandbox(World::Gate, GuestCandidates::default())?;
    let ours = &ours;
    let (all, failures) = run_cases(corpus::gate_cases(), watch, |case| async move {
        let detail = gate_fault(ours, candidate, &case).await?;
        Some(CorpusCaseFailure {
            case: case.name,
            detail,
        })
    })
    .await;
    Ok(CorpusResult::from_failures(all, failures))
}

async fn gate_fault(ours: &Sandbox, candidate: &Sandbox, case: &GateTestCase) -> Option<String> {
    let expected = ours.check_sql(case.sql.as_str(), case.purpose).await;
    let found = candidate.check_sql(case.sql.as_str(), case.purpose).await;
    match (case.accepted, expected, found) {
        (true, Ok(expected), Ok(found)) => verdict_fault(&expected, &found),
        (false, _, Err(GateFailure::Refused(_))) => None,
        (false, _, Ok(_)) => Some(format!("it allows what nobody may run: {}", case.sql)),
        (true, _, Err(GateFailure::Refused(refusal))) => {
            Some(format!("it refuses {}: {}", case.sql, refusal.reason))
        }
        (_, _, Err(failure)) => Some(failure.to_string()),
        (true, Err(failure), _) => Some(format!("the gate that is built in: {failure}")),
    }
}

/// Describes the difference between two verdicts that allow.
fn verdict_fault(expected: &[AllowedStatement], found: &[AllowedStatement]) -> Option<String> {
    if expected == found {
        return None;
    }
    Some(format!("its verdict is {found:?}, not {expected:?}"))
}
