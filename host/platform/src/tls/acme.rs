//! An authority that speaks ACME (RFC 8555): the account there, and an order from its beginning to the certificate.

use std::fmt;
use std::pin::Pin;
use std::time::Duration;

use anyhow::Context as _;
use bytes::Bytes;
use futures_util::future::BoxFuture;
use http::{Request, Response};
use http_body_util::{BodyExt as _, Full};
use instant_acme::{
    Account, AccountCredentials, AuthorizationStatus, BodyWrapper, BytesResponse, ChallengeType,
    Error, ExternalAccountKey, HttpClient, Identifier, NewAccount, NewOrder, Order, OrderStatus,
    RetryPolicy,
};
use rcgen::{CertificateParams, DistinguishedName, KeyPair};
use serde::{Deserialize, Serialize};
use tokio::sync::Mutex;

use super::budget::IssuanceRefusal;
use super::challenges::PendingChallenges;
use super::issuance::{CertificateAuthority, NameProof};
use super::store::AuthorityDirectory;
use crate::config::AcmeSettings;
use crate::outbound::{OutboundClient, OutboundError};

/// Timeout of one request to the authority.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);
/// Timeout of the authority's validation of a challenge, and of the issuance.
const VALIDATION_TIMEOUT: Duration = Duration::from_secs(60);
/// Timeout of a whole order.
const ORDER_TIMEOUT: Duration = Duration::from_secs(180);
/// Most characters of an authority's error that are logged.
const MAX_LOGGED_CHARS: usize = 400;

pub(super) struct AcmeAuthority {
    settings: AcmeSettings,
    outbound: OutboundClient,
    store: AuthorityDirectory,
    challenges: PendingChallenges,
    /// Whether challenges of plain HTTP are answered.
    has_http: bool,
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
        has_http: bool,
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
            has_http,
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
                OrderFailure::Refused(format!("it does not offer the challenge {kind:?}"))
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
            return Err(OrderFailure::Refused(failure_reason(&mut order).await));
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

    /// Orders by a handshake, else by plain HTTP where that may be.
    async fn order_by_any(&self, name: &str, proof: NameProof) -> Result<String, OrderFailure> {
        let failure = match self.order_with_retry(name, ChallengeType::TlsAlpn01).await {
            Err(failure @ OrderFailure::Refused(_)) => failure,
            ended => return ended,
        };
        if proof == NameProof::Handshake || !self.has_http {
            return Err(failure);
        }
        self.order(name, ChallengeType::Http01).await
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
        Box::pin(async move {
            match tokio::time::timeout(ORDER_TIMEOUT, self.order_by_any(name, proof)).await {
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
async fn failure_reason(order: &mut Order) -> String {
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
            return error.to_string();
        }
    }
    "it does not say why".to_owned()
}

/// Reason for a failed order.
enum OrderFailure {
    /// The authority knows no such account.
    NoAccount,
    Refused(String),
    Busy(String),
    Unreached(String),
}

impl From<Error> for OrderFailure {
    fn from(error: Error) -> Self {
        let Error::Api(problem) = &error else {
            let text = error.to_string();
            return match error {
                Error::Timeout(_) => Self::Refused(text),
                _ => Self::Unreached(text),
            };
        };
        let kind = problem.r#type.as_deref().unwrap_or_default();
        match kind.rsplit(':').next().unwrap_or_default() {
            "accountDoesNotExist" => Self::NoAccount,
            "externalAccountRequired" => Self::Refused(
                "it wants an account that you have there: set `acme.eab_kid` and `acme.eab_hmac_key`"
                    .to_owned(),
            ),
            "rateLimited" => Self::Busy(problem.to_string()),
            // `orderNotReady`: the order was finalized by a request whose answer was lost.
            "serverInternal" | "badNonce" | "orderNotReady" => Self::Unreached(problem.to_string()),
            _ => Self::Refused(problem.to_string()),
        }
    }
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
            OrderFailure::Busy(text) => Self::Busy(short(text)),
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
            let mut response = Response::new(Full::new(answer.body));
            *response.status_mut() = answer.status;
            *response.headers_mut() = answer.headers;
            Ok(BytesResponse::from(response))
        })
    }
}
