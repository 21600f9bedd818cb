//! Sends a visitor to the provider's page. The session is stored first, so that a payment always finds its session.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use url::Url;

use super::buyer::{Buyer, CookieHost};
use super::model::{
    COOKIE_SECONDS, CheckoutSession, PaymentError, Price, SESSION_LIMIT_SECONDS, Status,
};
use super::service::{Payments, apply_verdict};
use super::views::CheckoutView;
use super::{cancellations, cookie_links, store};
use crate::control;
use crate::deployments::serving::PageMounts;
use crate::deployments::serving::pages::ServedPage;
use crate::projects;
use crate::stripe::{CheckoutPurchase, HostedCheckout, NewCheckout, StripeClient, StripeError};
use crate::visitors::return_to;
use crate::workspaces::credential;
use svc_base::clock::Timestamp;
use svc_base::fault;
use svc_base::ids::{ProjectId, SessionId};

/// Time within which a second click on the same button means the same purchase, in seconds.
const DOUBLE_CLICK_SECONDS: i64 = 60;

/// Request of a visitor to begin a checkout.
#[derive(Clone, Debug)]
pub struct CheckoutRequest {
    /// Id or key of the price.
    pub price: String,
    /// URL of the page on the requested host: an origin and a path.
    pub return_to: Url,
}

/// Checkout that has begun.
#[derive(Debug)]
pub struct StartedCheckout {
    /// Address of the hosted checkout, and the session.
    pub view: CheckoutView,
    /// Value of the checkout cookie; `None` if the browser's is not replaced.
    pub token: Option<String>,
}

/// Locks of sessions whose hosted checkout is being created: a second click waits for the first.
#[derive(Debug, Default)]
pub(super) struct CheckoutLocks(Mutex<HashMap<SessionId, Arc<tokio::sync::Mutex<()>>>>);

impl CheckoutLocks {
    fn lock_for(&self, id: SessionId) -> Arc<tokio::sync::Mutex<()>> {
        let mut locks = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // A lock that only the map holds is not in use.
        locks.retain(|_, lock| Arc::strong_count(lock) > 1);
        Arc::clone(locks.entry(id).or_default())
    }
}

impl Payments {
    /// Returns the configured provider.
    ///
    /// # Errors
    /// `Unconfigured`.
    pub fn provider(&self) -> Result<&StripeClient, PaymentError> {
        self.stripe.as_ref().ok_or(PaymentError::Unconfigured)
    }

    /// Begins a checkout. Callers run it to completion, even if the visitor hangs up.
    ///
    /// # Errors
    /// [`PaymentError`].
    pub async fn begin_checkout(
        self: Arc<Self>,
        page: Arc<ServedPage>,
        buyer: Buyer,
        request: CheckoutRequest,
    ) -> Result<StartedCheckout, PaymentError> {
        let stripe = self.provider()?;
        let project = self.project_of(&page).await?;
        let price = self.active_price(project, request.price.clone()).await?;
        // A visitor without a sign-in is recognised by a cookie alone, and of several none counts.
        let ambiguous = buyer.ambiguous;
        if ambiguous && buyer.user.is_none() {
            return Err(PaymentError::SeveralCookies);
        }
        let now = self.infra.clock.now();
        let fresh = credential::random_secret(&self.infra.random)?;
        let email = buyer.user.as_ref().and_then(|user| user.email.clone());
        let session = CheckoutSession {
            id: SessionId::new(&self.infra.clock, &self.infra.random)?,
            project,
            deployment: page.id,
            price: price.id.clone(),
            price_label: price.label.clone(),
            amount: price.amount,
            currency: price.currency.clone(),
            recurring: price.interval.is_some(),
            return_to: request.return_to.to_string(),
            user_id: buyer.user.map(|user| user.user_id),
            cookie: buyer.host.hash_token(&fresh),
            host_cookie: buyer.secure,
            provider_id: None,
            provider_url: None,
            attempt: 0,
            status: Status::Open,
            email: None,
            created_at: now,
            updated_at: now,
        };
        let (signed_in, host) = (session.user_id.is_some(), buyer.host.clone());
        let tokens = OfferedTokens {
            fresh,
            shown: buyer.token,
            ambiguous,
            host: buyer.host,
        };
        let control = &self.infra.control;
        let write = control.write(move |tx| store_session(tx, session, tokens, now));
        let UnansweredSession { id, token } = write.await?;
        fault::point("checkout.stored");
        let view = self
            .hosted_checkout(stripe, id, &price, email, &request.return_to)
            .await?;
        let gives_cookie = match signed_in {
            true => !ambiguous,
            false => self.has_cookie(id, host.hash_token(&token)).await?,
        };
        let token = gives_cookie.then_some(token);
        Ok(StartedCheckout { view, token })
    }

    /// Finds a price that is offered.
    async fn active_price(&self, project: ProjectId, price: String) -> Result<Price, PaymentError> {
        let price = self.price(project, price).await?;
        match price.active {
            true => Ok(price),
            false => Err(PaymentError::PriceInactive),
        }
    }

    /// Whether a session still has a cookie. While the provider was asked, another click of the browser may have moved the session to a
    /// fresh one, which a late answer must not replace.
    async fn has_cookie(&self, id: SessionId, cookie: [u8; 32]) -> Result<bool, control::Error> {
        let read = self
            .infra
            .control
            .read(move |c| store::find_by_id(c, &id))
            .await?;
        Ok(read.is_some_and(|session| session.cookie == cookie))
    }

    /// Returns the hosted checkout of a session, and creates it if there is none.
    async fn hosted_checkout(
        &self,
        stripe: &StripeClient,
        id: SessionId,
        price: &Price,
        email: Option<String>,
        return_to: &Url,
    ) -> Result<CheckoutView, PaymentError> {
        let lock = self.locks.lock_for(id);
        let _lock = lock.lock().await;
        let session = self
            .infra
            .control
            .read(move |c| store::find_by_id(c, &id))
            .await?;
        let refused = || PaymentError::Unavailable("it refused the click before this one".into());
        let session = session.ok_or_else(refused)?;
        let view = |url| CheckoutView {
            url,
            session_id: id,
        };
        if let Some(url) = &session.provider_url {
            return Ok(view(url.clone()));
        }
        let new = NewCheckout {
            session: id.to_string(),
            purchase: describe_purchase(price),
            email,
            success_url: outcome_url(return_to, "success"),
            cancel_url: outcome_url(return_to, "canceled"),
        };
        let key = format!("svc-checkout-{id}-{}", session.attempt);
        let hosted = match stripe.create_checkout(&new, &key).await {
            Ok(hosted) => hosted,
            Err(error) => return Err(self.record_failure(id, error).await),
        };
        fault::point("checkout.answered");
        let (url, now) = (hosted.url.clone(), self.infra.clock.now());
        let write = self
            .infra
            .control
            .write(move |tx| store_hosted_checkout(tx, id, &hosted, now));
        let can_be_paid = write.await?;
        fault::point("checkout.committed");
        if can_be_paid {
            Ok(view(url))
        } else {
            Err(PaymentError::NoProject)
        }
    }

    /// Records a failure of the provider in the session; returns the error for the visitor.
    async fn record_failure(&self, id: SessionId, error: StripeError) -> PaymentError {
        let (nothing, failed) = (
            error.created_nothing(),
            matches!(error, StripeError::Failed(_)),
        );
        let noted = self.infra.control.write(move |tx| {
            if nothing {
                return store::delete_session(tx, &id);
            }
            match store::find_by_id(tx, &id)? {
                Some(session) => store::mark_outcome_unknown(tx, &session, failed),
                None => Ok(()),
            }
        });
        if let Err(error) = noted.await {
            tracing::warn!(%error, session = %id, "a checkout that failed stays as it was");
        }
        match error {
            StripeError::AmountRefused(words) => PaymentError::AmountRefused(words),
            other => PaymentError::Unavailable(other.to_string()),
        }
    }
}

/// Values of the checkout cookie of a visitor: a new one, and what the browser has sent.
#[derive(Debug)]
struct OfferedTokens {
    fresh: String,
    shown: Option<String>,
    /// Whether the browser sent several.
    ambiguous: bool,
    host: CookieHost,
}

/// A stored session whose visitor has no answer yet.
#[derive(Debug)]
struct UnansweredSession {
    id: SessionId,
    /// The value of the visitor's cookie.
    token: String,
}

/// Stores a session, or finds the session of a recent click.
///
/// A visitor without a sign-in keeps the existing cookie, so that all purchases stay together. Over plain HTTP a sibling host may have set it
/// and would see the purchases; so a visitor with a sign-in gets a new one, which takes the place of the other when the browser sends it.
fn store_session(
    tx: &control::Tx<'_>,
    mut session: CheckoutSession,
    tokens: OfferedTokens,
    now: Timestamp,
) -> Result<UnansweredSession, PaymentError> {
    if !projects::is_live(tx, &session.project, now)? {
        return Err(PaymentError::NoProject);
    }
    let known = match tokens.shown {
        Some(value) => known_cookie(tx, &session, (value, &tokens.host), now)?,
        None => None,
    };
    let former = known.as_ref().map(|(cookie, _)| *cookie);
    let mut token = tokens.fresh;
    if session.user_id.is_none()
        && let Some((cookie, value)) = known
    {
        (session.cookie, token) = (cookie, value);
    }
    let clicked = now.plus_seconds(-DOUBLE_CLICK_SECONDS);
    let before = store::find_repeated_purchase(tx, &session, clicked);
    let repeated = before
        .map_err(control::Error::from)?
        .map(|before| before.id);
    if repeated.is_none() {
        let since = now.plus_seconds(-SESSION_LIMIT_SECONDS);
        let limit_reached = store::has_max_sessions(tx, &session, former.as_ref(), since);
        if limit_reached.map_err(control::Error::from)? {
            return Err(PaymentError::TooManySessions);
        }
        store::insert_session(tx, &session)?;
    }
    // A browser with several cookies is given none, so that it could never send this one.
    if !tokens.ambiguous {
        cookie_links::insert(tx, &session, former, repeated)?;
    }
    let id = repeated.unwrap_or(session.id);
    Ok(UnansweredSession { id, token })
}

/// Stores the hosted checkout of a session; returns whether it can be paid. If the project has ended meanwhile, the provider is told to end it:
/// now if the session was removed already, otherwise when it is.
fn store_hosted_checkout(
    tx: &control::Tx<'_>,
    id: SessionId,
    hosted: &HostedCheckout,
    now: Timestamp,
) -> Result<bool, control::Error> {
    let Some(session) = store::find_by_id(tx, &id)? else {
        cancellations::enqueue_checkout(tx, &hosted.id, now)?;
        return Ok(false);
    };
    store::set_hosted_checkout(tx, &session, &hosted.id, &hosted.url)?;
    // Events that came before the checkout's id was known count now.
    apply_verdict(tx, &id, now)?;
    projects::is_live(tx, &session.project, now)
}

/// Returns the cookie that the browser sent and its hash, if it counts. Sent for the first time, it gets the purchases of the one before.
fn known_cookie(
    tx: &control::Tx<'_>,
    session: &CheckoutSession,
    (value, host): (String, &CookieHost),
    now: Timestamp,
) -> Result<Option<([u8; 32], String)>, control::Error> {
    let hash = host.hash_token(&value);
    let cookie = (&hash, session.host_cookie);
    cookie_links::follow(tx, &session.deployment, cookie, now)?;
    let since = now.plus_seconds(-COOKIE_SECONDS);
    let known = store::is_known_cookie(tx, &session.deployment, cookie, since)?;
    Ok(known.then_some((hash, value)))
}

/// Describes the purchase on the provider's page.
fn describe_purchase(price: &Price) -> CheckoutPurchase {
    let description = match &price.product.description {
        Some(about) => format!("{} · {about}", price.label),
        None => price.label.clone(),
    };
    CheckoutPurchase {
        product: price.product.name.clone(),
        description,
        amount: price.amount,
        currency: price.currency.clone(),
        interval: price.interval,
    }
}

/// Returns the URL that the provider leads the visitor back to. It contains the claimed outcome, which proves nothing.
fn outcome_url(return_to: &Url, outcome: &str) -> String {
    const NAME: &str = "checkout";
    let mut url = return_to.clone();
    let kept: Vec<(String, String)> = return_to
        .query_pairs()
        .filter(|(name, _)| name != NAME)
        .map(|(name, value)| (name.into_owned(), value.into_owned()))
        .collect();
    url.query_pairs_mut()
        .clear()
        .extend_pairs(kept)
        .append_pair(NAME, outcome);
    url.into()
}

/// Resolves `return_to` on the requested host: a path of the page's mounts there; `None` for any other text.
pub(super) fn return_address(
    origin: &str,
    mounts: &PageMounts,
    return_to: Option<&str>,
) -> Option<Url> {
    let home = mounts.home();
    let path = return_to::validated_path(origin, mounts, return_to.unwrap_or(&home))?;
    Url::parse(&format!("{origin}{path}")).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_visitor_comes_back_to_the_page_or_below_it() {
        for (return_to, expected) in [
            (None, Some("http://a.example/shop?checkout=success")),
            (
                Some("/shop"),
                Some("http://a.example/shop?checkout=success"),
            ),
            (
                Some("/shop/a?b=c&checkout=x#d"),
                Some("http://a.example/shop/a?b=c&checkout=success#d"),
            ),
            (
                Some("/shop?"),
                Some("http://a.example/shop?checkout=success"),
            ),
            (Some("/shopping"), None),
            (Some("/"), None),
            (Some(""), None),
            (Some("shop"), None),
            (Some("//evil.example"), None),
            (Some("//evil.example/shop"), None),
            (Some("https://a.example/shop"), None),
            (Some("/shop/../other"), None),
            (Some("/shop/%2e%2e/other"), None),
            (Some("/shop/..\\other"), None),
            (Some("/shop/\n"), None),
            (Some("javascript:alert(1)"), None),
        ] {
            let url = return_address("http://a.example", &PageMounts::at_slug("shop"), return_to);
            let found = url.map(|url| outcome_url(&url, "success"));
            assert_eq!(found.as_deref(), expected, "{return_to:?}");
        }
    }
}
