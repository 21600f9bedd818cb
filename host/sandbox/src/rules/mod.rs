//! Rules of sites, judged by the renderer that serves, with checks of what it answers.

mod checked;
mod values;

use std::sync::Arc;

use super::SharedSandboxState;
use super::bindings::rules::exports::svc::rules::judge as wit;
use super::engine::{self, CallFailure, GuestFunction};
use super::lane::{JobCancellation, LaneBusy};
use super::limits::SharedBudget;
use super::renderer::truncate_message;
use super::slot::{GuestNotReady, LoadedGuest};
use super::trial::{AttemptOutcome, GuestAttempt, resolve_attempt};
use super::versions::PreparedRenderer;
use checked::checked_rules;

pub use values::{
    HeaderRule, MAX_RULE_FILE_BYTES, PatternPart, RedirectRule, RedirectTarget, RuleFault,
    RuleFile, RuleFiles, RulesFailure, SiteRules, TargetPart,
};

impl From<LaneBusy> for RulesFailure {
    fn from(_: LaneBusy) -> Self {
        Self::Busy
    }
}

impl From<CallFailure> for RulesFailure {
    fn from(failure: CallFailure) -> Self {
        match failure {
            CallFailure::Budget(budget) => Self::Budget(budget),
            CallFailure::Abandoned => Self::Busy,
            CallFailure::Broken(error) => Self::Broken(error),
        }
    }
}

impl From<GuestNotReady> for RulesFailure {
    fn from(unready: GuestNotReady) -> Self {
        match unready {
            GuestNotReady::Loading => Self::Preparing,
            GuestNotReady::Failed(error) => Self::Broken(error),
        }
    }
}

/// Judges the rules of a site with the serving guest, or with the previous one if the serving one fails.
pub(super) async fn judge(
    inner: &SharedSandboxState,
    files: RuleFiles,
) -> Result<SiteRules, RulesFailure> {
    check_lengths(&files)?;
    let serving = inner.registry.render.serving().await?;
    let files = Arc::new(files);
    let budget = &SharedBudget::new(inner.engine.page_limits());
    let guest = Arc::clone(&serving.guest);
    let first = judge_with_guest(inner, guest, Arc::clone(&files), budget).await;
    let again = |guest| {
        budget.raise_to_half();
        judge_with_guest(inner, guest, files, budget)
    };
    resolve_attempt(inner, &serving, first, again).await
}

/// Refuses a file that is too long for a call.
fn check_lengths(files: &RuleFiles) -> Result<(), RulesFailure> {
    let both = [
        (RuleFile::Redirects, &files.redirects),
        (RuleFile::Headers, &files.headers),
    ];
    for (file, bytes) in both {
        let length = bytes.as_ref().map_or(0, |bytes| bytes.len());
        if length > MAX_RULE_FILE_BYTES {
            return Err(RulesFailure::Refused(RuleFault {
                file,
                line: 1,
                reason: format!(
                    "The file has more than {MAX_RULE_FILE_BYTES} bytes: leave rules out."
                ),
            }));
        }
    }
    Ok(())
}

/// Judges rules with one guest.
async fn judge_with_guest(
    inner: &SharedSandboxState,
    guest: Arc<LoadedGuest<PreparedRenderer>>,
    files: Arc<RuleFiles>,
    budget: &SharedBudget,
) -> GuestAttempt<Result<SiteRules, RulesFailure>> {
    let function = GuestFunction::Judge;
    let allowance = budget.allowance(*inner.engine.limits(function.world()));
    let span = engine::call_span(function, guest.digest);
    let (asked, judge) = (Arc::clone(&files), Arc::clone(&guest));
    let job = move |stop: &JobCancellation| {
        let code = judge.code();
        span.in_scope(|| {
            let engine = &code.engine;
            engine.call((function, &judge.tally), allowance, stop, |store| {
                code.world.judge_rules(store, &files_to_wit(&asked))
            })
        })
    };
    let called = match inner.pages.run(job).await {
        Ok(called) => called,
        Err(busy) => return GuestAttempt::busy(busy),
    };
    budget.charge(&called.used);
    let (outcome, end) = match called.outcome {
        Ok(Some(Ok(rules))) => match checked_rules(&files, rules) {
            Ok(rules) => (Ok(rules), AttemptOutcome::Answered),
            Err(error) => {
                guest.tally.count_rejected();
                let error = error.context("the guest's rules have what no rule may have");
                (Err(RulesFailure::Broken(error)), AttemptOutcome::Broken)
            }
        },
        Ok(Some(Err(fault))) => (
            Err(RulesFailure::Refused(fault_from_wit(fault))),
            AttemptOutcome::Answered,
        ),
        Ok(None) => (Err(RulesFailure::Unsupported), AttemptOutcome::Unsupported),
        Err(failure) => {
            let end = AttemptOutcome::from(&failure);
            (Err(failure.into()), end)
        }
    };
    GuestAttempt {
        outcome,
        end,
        used: called.used,
    }
}

fn files_to_wit(files: &RuleFiles) -> wit::RuleFiles {
    wit::RuleFiles {
        redirects: files.redirects.as_ref().map(|bytes| bytes.to_vec()),
        headers: files.headers.as_ref().map(|bytes| bytes.to_vec()),
        within_site: files.within_site,
    }
}

/// Converts a fault, and shortens what it says.
fn fault_from_wit(fault: wit::Fault) -> RuleFault {
    RuleFault {
        file: match fault.file {
            wit::RuleFile::Redirects => RuleFile::Redirects,
            wit::RuleFile::Headers => RuleFile::Headers,
        },
        line: fault.line.max(1),
        reason: truncate_message(fault.reason),
    }
}
