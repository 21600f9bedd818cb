//! An authority that speaks ACME (RFC 8555): the account there, and an order from its beginning to the certificate.

use std::fmt;
use std::pin::Pin;
use std::time::Duration;

use anyhow::Context as _;
use bytes::Bytes;
use futures_util::future::BoxFuture;
use http::header::RETRY_AFTER;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Full};
use instant_acme::{
    Account, AccountCredentials, AuthorizationStatus, BodyWrapper, BytesResponse, ChallengeType,
    Error, ExternalAccountKey, HttpClient, Identifier, NewAccount, NewOrder, Order, OrderStatus,
    Problem, RetryPolicy,
};
use rcgen::{CertificateParams, DistinguishedName, KeyPair};
use serde::{Deserialize, Serialize};
use tokio::sync::Mutex;

use super::budget::{IssuanceRefusal, NameProof, RateLimit};
use super::challenges::PendingChallenges;
use super::issuance::CertificateAuthority;
use super::store::AuthorityDirectory;
use crate::config::AcmeSettings;
use crate::outbound::{OutboundClient, OutboundError, OutboundResponse};

/// Timeout of one request to the authority.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);
/// Timeout of the authority's validation of a challenge, and of the issuance.
const VALIDATION_TIMEOUT: Duration = Duration::from_secs(60);
/// Timeout of a whole order.
const ORDER_TIMEOUT: Duration = Duration::from_secs(180);
/// Seconds that an authority rests that is not available and does not say for how long.
const UNAVAILABLE_WAIT: u64 = 60;
/// Most characters of an authority's error that are logged.
const MAX_LOGGED_CHARS: usize = 400;

pub(super) struct AcmeAuthority {
    settings: AcmeSettings,
    outbound: OutboundClient,
    store: AuthorityDirectory,
    challenges: PendingChallenges,
    account: Mutex<Option<Account>>,
}

impl fmt::Debug for AcmeAuthority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let directory = self.settings.directory.as_str();
        f.debug_tuple("AcmeAuthority").field(&directory).finish()
    }
}

/// The account as it is stored.
#[derive(Serialize, Deserialize)]
struct StoredAcmeAccount {
    contact: Option<String>,
    credentials: AccountCredentials,
}

impl AcmeAuthority {
    /// Makes the authority of the settings.
    ///
    /// # Errors
    /// When the file of its root certificates cannot be read.
    pub(super) fn new(
        settings: &AcmeSettings,
        store: AuthorityDirectory,
        challenges: PendingChallenges,
    ) -> anyhow::Result<Self> {
        let outbound = match &settings.root {
            None => OutboundClient::new()?,
            Some(root) => OutboundClient::with_roots_from(root).context("acme.root")?,
        };
        Ok(Self {
            settings: settings.clone(),
            outbound,
            store,
            challenges,
            account: Mutex::default(),
        })
    }

    async fn order(&self, name: &str, kind: ChallengeType) -> Result<String, OrderFailure> {
        let account = self.account().await?;
        let identifiers = [Identifier::Dns(name.to_owned())];
        let mut order = account.new_order(&NewOrder::new(&identifiers)).await?;
        let mut shown = Vec::new();
        let mut authorizations = order.authorizations();
        while let Some(authorization) = authorizations.next().await {
            let mut authorization = authorization?;
            if authorization.status == AuthorizationStatus::Valid {
                continue;
            }
            let challenge = authorization.challenge(kind.clone());
            let mut challenge = challenge.ok_or_else(|| {
                // Another kind of challenge may do.
                OrderFailure::Unproven(format!("it does not offer the challenge {kind:?}"))
            })?;
            let answer = challenge.key_authorization();
            shown.push(match kind {
                ChallengeType::Http01 => {
                    let token = challenge.token.as_str();
                    self.challenges.show_http(name, token, answer.as_str())
                }
                _ => self.challenges.show(name, answer.digest().as_ref())?,
            });
            challenge.set_ready().await?;
        }
        let retries = RetryPolicy::new().timeout(VALIDATION_TIMEOUT);
        if order.poll_ready(&retries).await? != OrderStatus::Ready {
            return Err(failure_of(&mut order).await);
        }
        drop(shown);
        let key = KeyPair::generate().map_err(anyhow::Error::from)?;
        let request = certificate_request(name, &key)?;
        order.finalize_csr(&request).await?;
        let chain = order.poll_certificate(&retries).await?;
        Ok(format!("{}{chain}", key.serialize_pem()))
    }

    /// Returns the account, which is created or read when it is first needed.
    async fn account(&self) -> Result<Account, OrderFailure> {
        let mut known = self.account.lock().await;
        if let Some(account) = &*known {
            return Ok(account.clone());
        }
        let store = self.store.clone();
        let kept = tokio::task::spawn_blocking(move || store.account::<StoredAcmeAccount>());
        let account = match kept.await.map_err(anyhow::Error::from)?? {
            Some(kept) => self.restore_account(kept).await?,
            None => self.create_account().await?,
        };
        Ok(known.insert(account).clone())
    }

    fn builder(&self) -> instant_acme::AccountBuilder {
        Account::builder_with_http(Box::new(AcmeHttpClient(self.outbound.clone())))
    }

    async fn restore_account(&self, kept: StoredAcmeAccount) -> Result<Account, OrderFailure> {
        let credentials = serde_json::to_value(&kept.credentials).map_err(anyhow::Error::from)?;
        let account = self.builder().from_credentials(kept.credentials).await?;
        if kept.contact != self.settings.contact {
            let contact: Vec<&str> = self.settings.contact.as_deref().into_iter().collect();
            account.update_contacts(&contact).await?;
            let credentials = serde_json::from_value(credentials).map_err(anyhow::Error::from)?;
            self.store_account(credentials).await?;
        }
        Ok(account)
    }

    async fn create_account(&self) -> Result<Account, OrderFailure> {
        let contact: Vec<&str> = self.settings.contact.as_deref().into_iter().collect();
        let new = NewAccount {
            contact: &contact,
            // The operator agrees by setting `https` without files, as the documents say.
            terms_of_service_agreed: true,
            only_return_existing: false,
        };
        let directory = self.settings.directory.to_string();
        let binding = self.settings.external_account_binding()?;
        let binding = binding.map(|(kid, key)| ExternalAccountKey::new(kid.to_owned(), &key));
        let builder = self.builder();
        let (account, credentials) = builder.create(&new, directory, binding.as_ref()).await?;
        self.store_account(credentials).await?;
        Ok(account)
    }

    async fn store_account(&self, credentials: AccountCredentials) -> Result<(), OrderFailure> {
        let (store, contact) = (self.store.clone(), self.settings.contact.clone());
        let kept = StoredAcmeAccount {
            contact,
            credentials,
        };
        let keep = tokio::task::spawn_blocking(move || store.put_account(&kept));
        Ok(keep.await.map_err(anyhow::Error::from)??)
    }

    /// Drops the account in memory, so that the next order reads the authority's directory again; `for_good` deletes the stored one, too.
    async fn forget_account(&self, for_good: bool) -> Result<(), OrderFailure> {
        *self.account.lock().await = None;
        if for_good {
            let store = self.store.clone();
            let removed = tokio::task::spawn_blocking(move || store.remove_account());
            removed.await.map_err(anyhow::Error::from)??;
        }
        Ok(())
    }

    async fn order_with_retry(
        &self,
        name: &str,
        kind: ChallengeType,
    ) -> Result<String, OrderFailure> {
        let failure = match self.order(name, kind.clone()).await {
            Err(failure) => failure,
            issued => return issued,
        };
        self.forget_account(matches!(failure, OrderFailure::NoAccount))
            .await?;
        match failure {
            OrderFailure::NoAccount => self.order(name, kind).await,
            failure => Err(failure),
        }
    }
}

impl CertificateAuthority for AcmeAuthority {
    fn issue<'a>(
        &'a self,
        name: &'a str,
        proof: NameProof,
    ) -> BoxFuture<'a, Result<String, IssuanceRefusal>> {
        let kind = match proof {
            NameProof::Handshake => ChallengeType::TlsAlpn01,
            NameProof::Http => ChallengeType::Http01,
        };
        Box::pin(async move {
            match tokio::time::timeout(ORDER_TIMEOUT, self.order_with_retry(name, kind)).await {
                Ok(issued) => issued.map_err(IssuanceRefusal::from),
                Err(_) => Err(IssuanceRefusal::Refused(
                    "it did not issue in time".to_owned(),
                )),
            }
        })
    }
}

/// Makes a certificate signing request.
fn certificate_request(name: &str, key: &KeyPair) -> anyhow::Result<Vec<u8>> {
    let mut params = CertificateParams::new(vec![name.to_owned()])?;
    params.distinguished_name = DistinguishedName::new();
    Ok(params.serialize_request(key)?.der().to_vec())
}

/// Reads from the challenges why an order failed.
async fn failure_of(order: &mut Order) -> OrderFailure {
    let mut authorizations = order.authorizations();
    while let Some(authorization) = authorizations.next().await {
        let Ok(mut authorization) = authorization else {
            break;
        };
        let Ok(state) = authorization.refresh().await else {
            break;
        };
        let mut errors = state.challenges.iter().filter_map(|one| one.error.as_ref());
        if let Some(error) = errors.next() {
            return OrderFailure::from(error);
        }
    }
    OrderFailure::Refused("it does not say why".to_owned())
}

/// Reason for a failed order.
enum OrderFailure {
    /// The authority knows no such account.
    NoAccount,
    Refused(String),
    /// The challenge failed; another one may succeed.
    Unproven(String),
    Busy(RateLimit),
    Unreached(String),
}

impl From<Error> for OrderFailure {
    fn from(error: Error) -> Self {
        match error {
            Error::Api(problem) => Self::from(&problem),
            Error::Timeout(_) => Self::Refused(error.to_string()),
            Error::Other(error) => match error.downcast::<RateLimit>() {
                Ok(limit) => Self::Busy(*limit),
                Err(error) => Self::Unreached(error.to_string()),
            },
            error => Self::Unreached(error.to_string()),
        }
    }
}

impl From<&Problem> for OrderFailure {
    fn from(problem: &Problem) -> Self {
        let text = problem.to_string();
        let kind = problem.r#type.as_deref().unwrap_or_default();
        match kind.rsplit(':').next().unwrap_or_default() {
            "accountDoesNotExist" => Self::NoAccount,
            "externalAccountRequired" => Self::Refused(
                "it wants an account that you have there: set `acme.eab_kid` and `acme.eab_hmac_key`"
                    .to_owned(),
            ),
            // The name leads elsewhere by this challenge. Refusals of policy, such as CAA, are the same for every challenge.
            "connection" | "tls" | "unauthorized" => Self::Unproven(text),
            "rateLimited" => Self::Busy(RateLimit {
                is_for_all: is_for_all_names(&text),
                detail: text,
                wait_seconds: None,
            }),
            // `orderNotReady`: the order was finalized by a request whose answer was lost.
            "serverInternal" | "badNonce" | "orderNotReady" => Self::Unreached(text),
            _ => Self::Refused(text),
        }
    }
}

/// Whether a rate limit bounds the account or the address rather than names, by the words of Let's Encrypt: there is no other mark. A name
/// has no spaces, so that no tenant can choose these words.
fn is_for_all_names(text: &str) -> bool {
    ["from this account", "from this IP"]
        .iter()
        .any(|words| text.contains(words))
}

/// Returns the rate limit that an answer tells of, with the time that the library does not hand on.
fn rate_limit(answer: &OutboundResponse) -> Option<RateLimit> {
    let is_down = answer.status == StatusCode::SERVICE_UNAVAILABLE;
    if !is_down && answer.status != StatusCode::TOO_MANY_REQUESTS {
        return None;
    }
    let problem = serde_json::from_slice::<Problem>(&answer.body);
    let detail = problem.map_or_else(|_| answer.status.to_string(), |told| told.to_string());
    let told = answer.headers.get(RETRY_AFTER);
    // The form with a date is not read: no authority is known that sends it.
    let told = told.and_then(|value| value.to_str().ok()?.trim().parse::<u64>().ok());
    Some(RateLimit {
        is_for_all: is_down || is_for_all_names(&detail),
        detail,
        wait_seconds: told.or(is_down.then_some(UNAVAILABLE_WAIT)),
    })
}

impl From<anyhow::Error> for OrderFailure {
    fn from(error: anyhow::Error) -> Self {
        Self::Unreached(format!("{error:#}"))
    }
}

impl From<std::io::Error> for OrderFailure {
    fn from(error: std::io::Error) -> Self {
        Self::Unreached(error.to_string())
    }
}

impl From<OrderFailure> for IssuanceRefusal {
    fn from(failure: OrderFailure) -> Self {
        // Escaped and shortened, so that it stays one line of the log.
        let short = |text: String| text.escape_debug().take(MAX_LOGGED_CHARS).collect();
        match failure {
            OrderFailure::NoAccount => Self::Refused("it does not know the account".to_owned()),
            OrderFailure::Refused(text) => Self::Refused(short(text)),
            OrderFailure::Unproven(text) => Self::Unproven(short(text)),
            OrderFailure::Busy(limit) => Self::Busy(RateLimit {
                detail: short(limit.detail),
                ..limit
            }),
            OrderFailure::Unreached(text) => Self::Unreached(short(text)),
        }
    }
}

/// Adapter from the outbound client to the library's trait.
struct AcmeHttpClient(OutboundClient);

impl HttpClient for AcmeHttpClient {
    fn request(
        &self,
        request: Request<BodyWrapper<Bytes>>,
    ) -> Pin<Box<dyn Future<Output = Result<BytesResponse, Error>> + Send>> {
        let outbound = self.0.clone();
        Box::pin(async move {
            let (parts, body) = request.into_parts();
            let body = body
                .collect()
                .await
                .map_or_else(|never| match never {}, |b| b.to_bytes());
            let call = |client: &reqwest::Client| {
                let request = client.request(parts.method.clone(), parts.uri.to_string());
                request.headers(parts.headers.clone()).body(body.clone())
            };
            let mut answer = outbound.call(REQUEST_TIMEOUT, call).await;
            // Retried once: a pooled connection may just have been closing. If the first request has arrived all the same, the second is
            // refused for its nonce, and the library retries that.
            let is_broken = |error: &OutboundError| {
                matches!(
                    error,
                    OutboundError::Unconnected(_) | OutboundError::Failed(_)
                )
            };
            if answer.as_ref().is_err_and(is_broken) {
                answer = outbound.call(REQUEST_TIMEOUT, call).await;
            }
            let answer = answer.map_err(|error| Error::Other(Box::new(error)))?;
            if let Some(limit) = rate_limit(&answer) {
                return Err(Error::Other(Box::new(limit)));
            }
            let mut response = Response::new(Full::new(answer.body));
            *response.status_mut() = answer.status;
            *response.headers_mut() = answer.headers;
            Ok(BytesResponse::from(response))
        })
    }
}

#[cfg(test)]
mod tests {
    use http::{HeaderMap, HeaderValue};

    use super::*;

    fn answer(status: u16, retry_after: Option<&str>, detail: &str) -> OutboundResponse {
        let mut headers = HeaderMap::new();
        if let Some(told) = retry_after {
            headers.insert(RETRY_AFTER, HeaderValue::from_str(told).unwrap());
        }
        let kind = "urn:ietf:params:acme:error:rateLimited";
        let body = serde_json::json!({ "type": kind, "detail": detail, "status": status });
        OutboundResponse {
            status: StatusCode::from_u16(status).unwrap(),
            headers,
            body: body.to_string().into(),
        }
    }

    #[test]
    fn a_rate_limit_says_what_it_bounds_and_for_how_long() {
        let of_name =
            "too many certificates (50) already issued for \"evil.com\" in the last 168h0m0s";
        let of_account = "too many new orders (300) from this account in the last 3h0m0s";
        let named_so = "too many failed authorizations (5) for \"from-this-account.evil.com\"";
        for (status, retry_after, detail, expected) in [
            (429, Some("120"), of_name, Some((false, Some(120)))),
            (429, None, of_account, Some((true, None))),
            (429, Some("soon"), named_so, Some((false, None))),
            (
                503,
                None,
                "Service busy; retry later.",
                Some((true, Some(60))),
            ),
            (
                503,
                Some("7"),
                "Service busy; retry later.",
                Some((true, Some(7))),
            ),
            (400, Some("7"), of_account, None),
            (201, Some("7"), "", None),
        ] {
            let limit = rate_limit(&answer(status, retry_after, detail));
            let found = limit.map(|limit| (limit.is_for_all, limit.wait_seconds));
            assert_eq!(found, expected, "{status} {detail}");
        }
    }

    #[test]
    fn only_a_challenge_that_failed_leads_to_another() {
        for (kind, is_unproven) in [
            ("connection", true),
            ("tls", true),
            ("unauthorized", true),
            ("caa", false),
            ("dns", false),
            ("rejectedIdentifier", false),
            ("rateLimited", false),
            ("serverInternal", false),
        ] {
            let kind = format!("urn:ietf:params:acme:error:{kind}");
            let problem = serde_json::json!({ "type": kind, "detail": "no" });
            let problem: Problem = serde_json::from_value(problem).unwrap();
            let failure = OrderFailure::from(&problem);
            let found = matches!(failure, OrderFailure::Unproven(_));
            assert_eq!(found, is_unproven, "{kind}");
        }
        let problem = serde_json::json!({
            "type": "urn:ietf:params:acme:error:caa",
            "detail": "CAA record for shop.com prevents issuance",
        });
        let problem: Problem = serde_json::from_value(problem).unwrap();
        let refusal = IssuanceRefusal::from(OrderFailure::from(&problem));
        assert!(
            refusal.to_string().contains("prevents issuance"),
            "{refusal}"
        );
    }
}
