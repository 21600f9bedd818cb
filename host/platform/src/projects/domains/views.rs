//! Views of domains.

use serde::Serialize;
use utoipa::ToSchema;

use super::dns::DnsRecord;
use super::model::{Domain, DomainError, DomainState};
use super::service::Domains;
use crate::tls::DomainCertificate;
use svc_base::clock::Timestamp;

/// A domain of a project.
#[derive(Debug, Serialize, ToSchema)]
pub struct DomainView {
    /// Host name, in lower case and ASCII.
    #[schema(example = "www.example.com")]
    name: String,
    /// Where it is in its life; an active and a failing one are served.
    state: DomainState,
    /// Records of DNS that prove it, the best first: one of them suffices.
    records: Vec<DnsRecord>,
    /// Host that its requests are sent to, if any.
    redirect_to: Option<String>,
    /// Certificate, where this server asks an authority for it.
    certificate: CertificateView,
    /// When it was added.
    #[schema(value_type = String, format = "date-time")]
    created_at: Timestamp,
    /// When DNS proved it for the last time.
    #[schema(value_type = Option<String>, format = "date-time")]
    verified_at: Option<Timestamp>,
    /// When DNS answered for the last time.
    #[schema(value_type = Option<String>, format = "date-time")]
    checked_at: Option<Timestamp>,
}

/// State of a certificate.
#[derive(Clone, Copy, Debug, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum CertificateState {
    /// None is asked for: the domain is not served, or another program has the certificates.
    None,
    /// One is asked for, or is about to be.
    Waiting,
    /// One is served; `detail` says why it was not renewed, if that was refused.
    Issued,
    /// The authority refused, and none is valid; it is asked again later.
    Refused,
}

/// Certificate of a domain.
#[derive(Debug, Serialize, ToSchema)]
pub struct CertificateView {
    /// State of the certificate.
    state: CertificateState,
    /// When it ends, or has ended.
    #[schema(value_type = Option<String>, format = "date-time")]
    not_after: Option<Timestamp>,
    /// Reason for which the authority refused.
    detail: Option<String>,
}

/// All domains of a project.
#[derive(Debug, Serialize, ToSchema)]
pub struct DomainList {
    /// Oldest first.
    domains: Vec<DomainView>,
}

impl From<DomainCertificate> for CertificateView {
    fn from(certificate: DomainCertificate) -> Self {
        let (state, not_after, detail) = match certificate {
            DomainCertificate::None => (CertificateState::None, None, None),
            DomainCertificate::Waiting => (CertificateState::Waiting, None, None),
            DomainCertificate::Issued { not_after, detail } => {
                (CertificateState::Issued, Some(not_after), detail)
            }
            DomainCertificate::Refused { not_after, detail } => {
                (CertificateState::Refused, not_after, Some(detail))
            }
        };
        Self {
            state,
            not_after,
            detail,
        }
    }
}

impl DomainView {
    /// Returns the view of a domain.
    ///
    /// # Errors
    /// [`DomainError::Unconfigured`].
    pub(super) fn new(domain: Domain, domains: &Domains) -> Result<Self, DomainError> {
        let proof = domains.proofs()?.of(&domain.project, &domain.name);
        Ok(Self {
            records: proof.wanted(&domain.name),
            certificate: domains.certificate(&domain).into(),
            name: domain.name,
            state: domain.state,
            redirect_to: domain.redirect_to,
            created_at: domain.created_at,
            verified_at: domain.verified_at,
            checked_at: domain.checked_at,
        })
    }
}

impl DomainList {
    /// Returns the view of several domains.
    ///
    /// # Errors
    /// [`DomainError::Unconfigured`].
    pub(super) fn new(found: Vec<Domain>, domains: &Domains) -> Result<Self, DomainError> {
        let found = found.into_iter();
        Ok(Self {
            domains: found
                .map(|domain| DomainView::new(domain, domains))
                .collect::<Result<_, _>>()?,
        })
    }
}
