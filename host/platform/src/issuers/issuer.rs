//! An issuer over the network: its documents are fetched, cached, and refreshed within bounds.
//!
//! Callers that wait for a slow or dead issuer share one fetch. Unknown keys cause one fetch a minute at most.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use bytes::Bytes;
use http::header;
use tokio::sync::Mutex;
use url::Url;

use super::keys::IssuerKeySet;
use super::metadata::IssuerMetadata;
use super::tokens::{AccessTokenClaims, IdTokenClaims, TokenError, UnverifiedToken};
use crate::config::IssuerAddress;
use crate::outbound::{OutboundClient, OutboundError};
use svc_base::clock::Clock;

/// Timeout of a request to an issuer.
pub const CALL_TIMEOUT: Duration = Duration::from_secs(5);
/// Age at which a cached document is refreshed.
const REFRESH_AFTER: Duration = Duration::from_secs(60 * 60);
/// Age up to which a cached document is used while the issuer does not answer.
const MAX_AGE: Duration = Duration::from_secs(24 * 60 * 60);
/// Pause between two fetches for an unknown key, and between two that failed while a document is cached.
const RETRY_PAUSE: Duration = Duration::from_secs(60);

/// Error of checking a token with its issuer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum IssuerError {
    /// The issuer does not answer in time.
    #[error("the issuer cannot be reached: {0}")]
    Unreachable(String),
    /// The issuer's answer is not usable.
    #[error("the issuer's answer cannot be used: {0}")]
    Unusable(String),
    /// The token is not valid.
    #[error("the token is not valid: {0}")]
    Token(#[from] TokenError),
}

impl From<OutboundError> for IssuerError {
    fn from(error: OutboundError) -> Self {
        match error {
            OutboundError::TooLarge => Self::Unusable(error.to_string()),
            OutboundError::Timeout | OutboundError::Unconnected(_) | OutboundError::Failed(_) => {
                Self::Unreachable(error.to_string())
            }
        }
    }
}

/// An OpenID Connect issuer, with its cached documents.
#[derive(Debug)]
pub struct Issuer {
    address: IssuerAddress,
    outbound: OutboundClient,
    clock: Clock,
    metadata: CachedIssuerDocument<IssuerMetadata>,
    keys: CachedIssuerDocument<IssuerKeySet>,
}

impl Issuer {
    /// Makes the issuer at an address; nothing is fetched yet.
    pub fn new(address: IssuerAddress, outbound: OutboundClient, clock: Clock) -> Self {
        Self {
            address,
            outbound,
            clock,
            metadata: CachedIssuerDocument::default(),
            keys: CachedIssuerDocument::default(),
        }
    }

    /// Returns the address, as the operator wrote it.
    pub fn address(&self) -> &IssuerAddress {
        &self.address
    }

    /// Returns how often the keys were fetched: tokens that an earlier set accepted may be invalid since.
    pub fn key_fetches(&self) -> u64 {
        self.keys.ended.load(Ordering::Acquire)
    }

    /// Returns its discovery document.
    ///
    /// # Errors
    /// [`IssuerError::Unreachable`] or [`IssuerError::Unusable`].
    pub async fn metadata(&self) -> Result<Arc<IssuerMetadata>, IssuerError> {
        let fetch = async || {
            let document = self.get(self.address.discovery_url()).await?;
            IssuerMetadata::parse(&self.address, &document)
                .map_err(|error| IssuerError::Unusable(error.to_string()))
        };
        self.metadata.get(&self.clock, fetch).await
    }

    /// Returns its keys.
    ///
    /// # Errors
    /// Like [`Issuer::metadata`].
    pub async fn keys(&self) -> Result<Arc<IssuerKeySet>, IssuerError> {
        let metadata = self.metadata().await?;
        let fetch = async || self.fetch_keys(&metadata.jwks_uri).await;
        self.keys.get(&self.clock, fetch).await
    }

    /// Verifies an ID token of a sign-in that we started.
    ///
    /// # Errors
    /// [`IssuerError`].
    pub async fn verify_id_token(
        &self,
        token: &str,
        client_id: &str,
        nonce: &str,
    ) -> Result<IdTokenClaims, IssuerError> {
        let token = UnverifiedToken::parse(token)?;
        let metadata = self.metadata().await?;
        let keys = self.keys_for(&token, &metadata).await?;
        Ok(token.verify_id(&metadata, &keys, client_id, nonce, self.clock.now())?)
    }

    /// Verifies an access token of a request.
    ///
    /// # Errors
    /// [`IssuerError`].
    pub async fn verify_access_token(
        &self,
        token: &str,
        audience: &str,
    ) -> Result<AccessTokenClaims, IssuerError> {
        let token = UnverifiedToken::parse(token)?;
        let metadata = self.metadata().await?;
        let keys = self.keys_for(&token, &metadata).await?;
        Ok(token.verify_access(&metadata, &keys, audience, self.clock.now())?)
    }

    /// Returns the keys, fetched once more if none of them can have signed the token.
    async fn keys_for(
        &self,
        token: &UnverifiedToken<'_>,
        metadata: &IssuerMetadata,
    ) -> Result<Arc<IssuerKeySet>, IssuerError> {
        let keys = self.keys().await?;
        if token.has_candidate_key(&keys) {
            return Ok(keys);
        }
        let fetch = async || self.fetch_keys(&metadata.jwks_uri).await;
        self.keys.refetch(&self.clock, fetch).await
    }

    async fn fetch_keys(&self, address: &Url) -> Result<IssuerKeySet, IssuerError> {
        let document = self.get(address.to_string()).await?;
        IssuerKeySet::parse(&document)
            .map_err(|error| IssuerError::Unusable(format!("its keys cannot be read: {error}")))
    }

    async fn get(&self, address: String) -> Result<Bytes, IssuerError> {
        let call = self.outbound.call(CALL_TIMEOUT, |client| {
            client
                .get(address)
                .header(header::ACCEPT, "application/json")
        });
        let answer = call.await?;
        if answer.status.is_success() {
            Ok(answer.body)
        } else {
            let status = answer.status.as_u16();
            Err(IssuerError::Unusable(format!("it answered {status}")))
        }
    }
}

/// A cached document of an issuer.
#[derive(Debug)]
struct CachedIssuerDocument<T> {
    value: RwLock<Option<CachedValue<T>>>,
    /// Held during a fetch.
    calls: Mutex<LastFetches>,
    /// Number of finished fetches.
    ended: AtomicU64,
}

#[derive(Debug)]
struct CachedValue<T> {
    value: Arc<T>,
    at: Duration,
}

/// Results of the last fetches.
#[derive(Debug, Default)]
struct LastFetches {
    failed: Option<(Duration, IssuerError)>,
    /// Time of the last fetch for an unknown key.
    again: Option<Duration>,
}

impl<T> Default for CachedIssuerDocument<T> {
    fn default() -> Self {
        Self {
            value: RwLock::default(),
            calls: Mutex::default(),
            ended: AtomicU64::new(0),
        }
    }
}

impl<T> CachedIssuerDocument<T> {
    /// Returns the cached document with its age, if it is not too old.
    fn cached(&self, clock: &Clock) -> Option<(Arc<T>, Duration)> {
        let held = self.value.read().unwrap_or_else(PoisonError::into_inner);
        let held = held.as_ref()?;
        let age = clock.elapsed().saturating_sub(held.at);
        (age < MAX_AGE).then(|| (Arc::clone(&held.value), age))
    }

    /// Returns the document; fetches it if it is missing or old.
    async fn get(
        &self,
        clock: &Clock,
        fetch: impl AsyncFnOnce() -> Result<T, IssuerError>,
    ) -> Result<Arc<T>, IssuerError> {
        let old = match self.cached(clock) {
            Some((value, age)) if age < REFRESH_AFTER => return Ok(value),
            held => held.map(|(value, _)| value),
        };
        let seen = self.ended.load(Ordering::Acquire);
        let mut last_calls = match &old {
            None => self.calls.lock().await,
            Some(old) => match self.calls.try_lock() {
                Ok(last_calls) => last_calls,
                // Another caller is fetching it; the old one is used meanwhile.
                Err(_) => return Ok(Arc::clone(old)),
            },
        };
        if self.ended.load(Ordering::Acquire) != seen {
            return self.last_outcome(clock, &last_calls);
        }
        let failed = last_calls.failed.as_ref().map(|(at, _)| *at);
        let pausing = failed.is_some_and(|at| clock.elapsed().saturating_sub(at) < RETRY_PAUSE);
        match old {
            Some(old) if pausing => Ok(old),
            old => {
                let fetched = self.fetch_now(clock, &mut last_calls, fetch).await;
                fetched.or_else(|error| old.ok_or(error))
            }
        }
    }

    /// Fetches the document although it is cached, because it lacks a key; at most once in [`RETRY_PAUSE`].
    async fn refetch(
        &self,
        clock: &Clock,
        fetch: impl AsyncFnOnce() -> Result<T, IssuerError>,
    ) -> Result<Arc<T>, IssuerError> {
        let seen = self.ended.load(Ordering::Acquire);
        let mut last_calls = self.calls.lock().await;
        let recent = last_calls.again;
        let recent = recent.is_some_and(|at| clock.elapsed().saturating_sub(at) < RETRY_PAUSE);
        if recent || self.ended.load(Ordering::Acquire) != seen {
            return self.last_outcome(clock, &last_calls);
        }
        last_calls.again = Some(clock.elapsed());
        self.fetch_now(clock, &mut last_calls, fetch).await
    }

    async fn fetch_now(
        &self,
        clock: &Clock,
        last_calls: &mut LastFetches,
        fetch: impl AsyncFnOnce() -> Result<T, IssuerError>,
    ) -> Result<Arc<T>, IssuerError> {
        let fetched = fetch().await;
        let outcome = match fetched {
            Ok(value) => {
                let value = Arc::new(value);
                let held = CachedValue {
                    value: Arc::clone(&value),
                    at: clock.elapsed(),
                };
                *self.value.write().unwrap_or_else(PoisonError::into_inner) = Some(held);
                last_calls.failed = None;
                Ok(value)
            }
            Err(error) => {
                last_calls.failed = Some((clock.elapsed(), error.clone()));
                Err(error)
            }
        };
        self.ended.fetch_add(1, Ordering::Release);
        outcome
    }

    /// Returns the result of the last fetch.
    fn last_outcome(&self, clock: &Clock, last_calls: &LastFetches) -> Result<Arc<T>, IssuerError> {
        match (&last_calls.failed, self.cached(clock)) {
            (Some((_, error)), _) => Err(error.clone()),
            (None, Some((value, _))) => Ok(value),
            (None, None) => Err(IssuerError::Unreachable("it was not last_calls".to_owned())),
        }
    }
}
