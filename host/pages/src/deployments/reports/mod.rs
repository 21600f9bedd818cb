//! Reports of abuse: anybody may complain, operators read.

mod forms;
mod problems;
pub mod routes;
mod store;

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::config::Config;
use crate::control::audit::AuditAction;
use crate::control::kept_answers::AnswerRecorder;
use crate::control::{ControlDatabase, Error};
use crate::deployments::store as rows;
use crate::infra::Infra;
use svc_base::clock::Timestamp;
use svc_base::ids::ReportId;
use svc_base::random::RandomSourceError;

/// Why somebody complains.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum Reason {
    /// It pretends to be somebody else.
    Phishing,
    /// It spreads harmful software.
    Malware,
    /// It harms or harasses people.
    Abuse,
    /// It infringes somebody's rights.
    Copyright,
    /// Something else.
    Other,
}

impl Reason {
    /// Returns the name on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Phishing => "phishing",
            Self::Malware => "malware",
            Self::Abuse => "abuse",
            Self::Copyright => "copyright",
            Self::Other => "other",
        }
    }
}

/// A complaint; its fields are within their bounds.
#[derive(Clone, Debug)]
pub struct NewAbuseReport {
    /// About which page.
    pub slug: String,
    /// File below it, if the report is about one.
    pub path: Option<String>,
    /// Reason of the report.
    pub reason: Reason,
    /// In the reporter's words.
    pub details: Option<String>,
    /// How to reach the reporter.
    pub contact: Option<String>,
}

/// A complaint as operators read it.
#[derive(Clone, Debug, Serialize)]
pub struct AbuseReport {
    /// Identifier of the report.
    pub id: ReportId,
    /// About which page.
    pub slug: String,
    /// File below it, if the report is about one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// Reason of the report.
    pub reason: String,
    /// In the reporter's words.
    pub details: Option<String>,
    /// How to reach the reporter.
    pub contact: Option<String>,
    /// When it came.
    pub created_at: Timestamp,
    /// When an operator was done with it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub closed_at: Option<Timestamp>,
}

/// Why a report was not taken.
#[derive(Debug, thiserror::Error)]
pub enum ReportError {
    /// Nothing lives at the slug.
    #[error("nothing is at this slug")]
    NotFound,
    /// The database's.
    #[error(transparent)]
    Store(#[from] Error),
    /// No id could be made.
    #[error(transparent)]
    Random(#[from] RandomSourceError),
}

/// The receipt of a complaint.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct Reported {
    /// The report's id.
    #[schema(value_type = String, format = "uuid")]
    pub id: ReportId,
}

/// Reports of abuse.
#[derive(Debug)]
pub struct AbuseReportService {
    infra: Infra,
}

impl AbuseReportService {
    /// Makes the service of a server.
    pub fn new(infra: Infra) -> Self {
        Self { infra }
    }

    /// Returns the settings.
    fn config(&self) -> &Arc<Config> {
        &self.infra.config
    }

    /// Takes a report. Durable when it returns.
    ///
    /// # Errors
    /// [`ReportError`].
    pub async fn insert(
        &self,
        report: NewAbuseReport,
        keep: AnswerRecorder<Reported>,
    ) -> Result<Reported, ReportError> {
        let id = ReportId::new(&self.infra.clock, &self.infra.random)?;
        let now = self.infra.clock.now();
        self.infra
            .control
            .write(move |tx| {
                let there = rows::find_by_slug(tx, &report.slug).map_err(Error::from)?;
                if !there.is_some_and(|deployment| deployment.is_live(now)) {
                    return Err(ReportError::NotFound);
                }
                store::insert_report(tx, &id, &report, now)?;
                let reported = Reported { id };
                keep.store(tx, &reported)?;
                Ok(reported)
            })
            .await
    }
}

/// Lists reports, newest first: those that are open, or all.
pub async fn list(control: &ControlDatabase, all: bool) -> Result<Vec<AbuseReport>, Error> {
    control.read(move |c| store::list_reports(c, all)).await
}

/// Closes a report, which is listed no more; returns since when it is closed, if there is one. Closing twice keeps the first time.
pub async fn close(
    control: &ControlDatabase,
    id: ReportId,
    now: Timestamp,
) -> Result<Option<Timestamp>, Error> {
    control
        .write(move |tx| {
            let closed = store::close_report(tx, &id, now)?;
            if closed.is_some() {
                tx.record_audit(AuditAction::ReportClose, None, &id, now)?;
            }
            Ok(closed)
        })
        .await
}
