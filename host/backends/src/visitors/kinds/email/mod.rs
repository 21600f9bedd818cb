//! Sign-in by a code that is sent to an e-mail address. Its pages are the server's own (`visitors/email`).

mod allowance;
mod codes;
mod mail;
mod mailbox;

use std::net::IpAddr;
use std::time::Duration;

use tokio::sync::Semaphore;
use url::Url;

pub(in crate::visitors) use self::allowance::{MailLimit, MailLimitReached};
pub(in crate::visitors) use self::codes::CodeVerdict;
pub(in crate::visitors) use self::mailbox::DevMailbox;

use self::allowance::{MailAllowance, MailCounters};
use self::codes::PendingCodes;
use crate::config::Config;
use crate::outbound::mail::{MailAddress, MailError, Mailer, OutgoingMail};
use crate::projects::Project;
use crate::visitors::model::{SignInError, SignInFailure, VerifiedVisitor, VisitorProfile};
use svc_base::clock::{Clock, Timestamp};
use svc_base::random::{Random, RandomSourceError};

/// Time for which a visitor waits until a mail is handed over: the page is answered within five seconds.
const MAIL_TIMEOUT: Duration = Duration::from_millis(4_500);
/// Maximum number of mails that are handed over at the same time.
const MAX_CONCURRENT_MAILS: usize = 64;

/// Provider that sends codes.
#[derive(Debug)]
pub(in crate::visitors) struct EmailProvider {
    /// URL of the page that asks for the address.
    page: String,
    issuer: String,
    delivery: MailDelivery,
    permits: Semaphore,
    codes: PendingCodes,
    allowance: MailAllowance,
    clock: Clock,
    random: Random,
}

/// Way of a mail.
#[derive(Debug)]
enum MailDelivery {
    /// To the operator's mail server.
    Server(Box<Mailer>),
    /// Shown on a page, for developing.
    Mailbox(DevMailbox),
}

/// Request for a code.
#[derive(Debug)]
pub(in crate::visitors) struct CodeRequest<'a> {
    /// Id of the sign-in.
    pub sign_in: &'a str,
    /// Hash of the token of the browser that asks.
    pub browser: &'a str,
    pub address: MailAddress,
    pub client: IpAddr,
    pub project: &'a Project,
    /// Page that the visitor signs in to, for the reader of the mail.
    pub place: &'a str,
}

/// Reason why no code was sent.
#[derive(Debug)]
pub(in crate::visitors) enum CodeRefusal {
    /// Too many mails were sent.
    TooMany(MailLimitReached),
    /// The mail cannot be sent.
    Failed(SignInFailure),
}

impl From<RandomSourceError> for CodeRefusal {
    fn from(error: RandomSourceError) -> Self {
        Self::Failed(unavailable(error.to_string()))
    }
}

impl EmailProvider {
    /// Creates the provider: with the mail server of the settings, or else with a mailbox for developing.
    ///
    /// # Errors
    /// Settings that are not valid, or no randomness.
    pub(in crate::visitors) fn new(
        config: &Config,
        issuer: &str,
        clock: &Clock,
        random: &Random,
    ) -> anyhow::Result<Self> {
        Ok(Self {
            page: format!("{}/_svc/auth/email", config.sites_url),
            issuer: issuer.to_owned(),
            delivery: match &config.smtp {
                Some(smtp) => MailDelivery::Server(Box::new(Mailer::new(smtp.server()?))),
                None => MailDelivery::Mailbox(DevMailbox::default()),
            },
            permits: Semaphore::new(MAX_CONCURRENT_MAILS),
            codes: PendingCodes::new(random)?,
            allowance: MailAllowance::new(&config.limits),
            clock: clock.clone(),
            random: random.clone(),
        })
    }

    /// Returns the mails that are shown instead of sent, if they are.
    pub(in crate::visitors) fn mailbox(&self) -> Option<&DevMailbox> {
        match &self.delivery {
            MailDelivery::Mailbox(mailbox) => Some(mailbox),
            MailDelivery::Server(_) => None,
        }
    }

    /// Returns the URL of the page that asks for an address.
    pub(super) fn authorization_url(&self, state: &str) -> Result<Url, SignInFailure> {
        let page = Url::parse_with_params(&self.page, [("state", state)]);
        page.map_err(|error| SignInFailure::new(SignInError::ProviderError, error.to_string()))
    }

    /// Sends a code. It replaces an earlier one of the same sign-in.
    ///
    /// # Errors
    /// [`CodeRefusal`].
    pub(in crate::visitors) async fn send_code(
        &self,
        request: CodeRequest<'_>,
    ) -> Result<(), CodeRefusal> {
        let counters = MailCounters {
            address: request.address.clone(),
            client: request.client,
            project: request.project.id,
        };
        let taken = self.allowance.take(counters, self.clock.elapsed());
        taken.map_err(CodeRefusal::TooMany)?;
        let code = codes::random_code(&self.random)?;
        let mail = self.mail(
            request.address.clone(),
            mail::code_mail(&code, &request.project.name, request.place),
        )?;
        // A mail can be faster than the answer of the server.
        let (sign_in, now) = (request.sign_in, self.clock.now());
        let kept = self
            .codes
            .insert(sign_in, (&code, request.browser), request.address, now);
        if !kept {
            return Err(CodeRefusal::Failed(unavailable("too many codes at once")));
        }
        self.deliver(mail).await.map_err(|error| {
            self.codes.remove(sign_in, &code);
            CodeRefusal::Failed(unavailable(error.to_string()))
        })
    }

    /// Compares a code with the one that was sent for a sign-in.
    pub(in crate::visitors) fn check_code(
        &self,
        sign_in: &str,
        browser: Option<&str>,
        code: &str,
    ) -> CodeVerdict {
        self.codes.check(sign_in, browser, code, self.clock.now())
    }

    /// Returns the visitor who has proved that an address is theirs.
    pub(in crate::visitors) fn visitor(&self, address: &MailAddress) -> VerifiedVisitor {
        VerifiedVisitor {
            issuer: self.issuer.clone(),
            subject: address.to_string(),
            profile: VisitorProfile {
                email: Some(address.to_string()),
                ..VisitorProfile::default()
            },
            passkey: None,
        }
    }

    /// Removes what no longer counts.
    pub(in crate::visitors) fn forget_old(&self, now: Timestamp) {
        self.codes.remove_old(now);
        self.allowance.forget_old(self.clock.elapsed());
    }

    /// Checks that mails can be sent; returns the faults, described for the operator.
    pub(super) async fn find_faults(&self) -> Vec<String> {
        let MailDelivery::Server(mailer) = &self.delivery else {
            return Vec::new();
        };
        let checked = mailer.check(MAIL_TIMEOUT).await;
        checked.err().iter().map(fault).collect()
    }

    /// Sends a mail without a code; returns the faults, described for the operator.
    pub(super) async fn send_test_mail(&self, address: MailAddress) -> Vec<String> {
        let mail = self.mail(address, mail::test_mail());
        match mail {
            Ok(mail) => {
                let sent = self.deliver(mail).await;
                sent.err().iter().map(fault).collect()
            }
            Err(error) => vec![error.to_string()],
        }
    }

    fn mail(
        &self,
        to: MailAddress,
        content: mail::MailContent,
    ) -> Result<OutgoingMail, RandomSourceError> {
        let since_epoch = u64::try_from(self.clock.now().0).unwrap_or_default();
        Ok(OutgoingMail {
            to,
            subject: content.subject,
            text: content.text,
            html: content.html,
            id: self.random.slug(26)?,
            at: std::time::SystemTime::UNIX_EPOCH + Duration::from_millis(since_epoch),
        })
    }

    async fn deliver(&self, mail: OutgoingMail) -> Result<(), MailError> {
        let mailer = match &self.delivery {
            MailDelivery::Server(mailer) => mailer,
            MailDelivery::Mailbox(mailbox) => {
                mailbox.put(mail);
                return Ok(());
            }
        };
        let sending = async {
            // The semaphore is never closed.
            let _permit = self.permits.acquire().await;
            mailer.send(&mail, MAIL_TIMEOUT).await
        };
        // The wait for a permit counts, too.
        tokio::time::timeout(MAIL_TIMEOUT, sending)
            .await
            .unwrap_or(Err(MailError::Timeout))
    }
}

fn unavailable(cause: impl Into<String>) -> SignInFailure {
    SignInFailure::new(SignInError::ProviderUnavailable, cause)
}

/// Describes a failure to the operator.
fn fault(error: &MailError) -> String {
    let hint = match error {
        MailError::Refused(code) if code.starts_with("53") => {
            ": check the user and the password in smtp.url"
        }
        MailError::Refused(_) => ": its log says why",
        MailError::Timeout => ": check the host and the port in smtp.url",
        MailError::Connection(_) => {
            ": check the host, the port and the scheme in smtp.url, and the server's certificate"
        }
        MailError::Message(_) => "",
    };
    format!("{error}{hint}")
}
