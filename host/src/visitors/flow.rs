//! The way of a sign-in: begun on the frontend, come back from the provider, completed on the frontend.

use std::sync::Arc;
use std::time::Duration;

use super::failures::{fail, not_offered, said_no, unconfigured, unknown};
use super::model::{AuthError, Failure, SessionKey, SignedIn};
use super::oidc::Asking;
use super::places::Place;
use super::providers::Provider;
use super::state::{SignIn, States, challenge, hashed};
use super::tickets::{Shown, Ticket};
use super::{Visitors, github, oidc, return_to};
use crate::config::ProviderKind;
use crate::http::extract::invalid;
use crate::http::problem::Problem;
use crate::workspaces::credential;

/// How long a sign-in waits for its turn to ask a provider.
const TURN: Duration = Duration::from_secs(5);

/// Sign-in that a page asks for.
#[derive(Clone, Debug, Default)]
pub(super) struct Wanted {
    /// With which provider.
    pub provider: Option<String>,
    /// Where to lead back to.
    pub return_to: Option<String>,
}

/// Beginning of a sign-in.
#[derive(Debug)]
pub(super) enum Begun {
    /// The visitor chooses among these, on the way back to there.
    Choose(Vec<Arc<Provider>>, String),
    /// They go to the provider, from a browser that is known by this.
    Away(String, String),
    /// It has failed, and leads back to there.
    Back(String),
}

/// Answer of a provider, by its query.
#[derive(Clone, Debug, Default)]
pub(super) struct Answered {
    /// Which sign-in this is.
    pub state: Option<String>,
    /// Code that is exchanged for the visitor's identity.
    pub code: Option<String>,
    /// Which issuer says so.
    pub iss: Option<String>,
    /// Error in place of a code.
    pub error: Option<String>,
}

impl Visitors {
    /// Begins a sign-in from `browser`, which may be known from another one under way.
    ///
    /// # Errors
    /// `identity_unconfigured`; `invalid_request` for a place that cannot be led back to.
    pub(super) async fn begin(
        &self,
        place: &Place,
        wanted: Wanted,
        browser: Option<&str>,
    ) -> Result<Begun, Problem> {
        let (offered, back) = self.beginning(place, &wanted)?;
        let provider = match wanted.provider {
            None if offered.len() > 1 => return Ok(Begun::Choose(offered, back)),
            None => Arc::clone(&offered[0]),
            Some(name) => match offered.iter().find(|one| one.settings.name == name) {
                Some(provider) => Arc::clone(provider),
                None => {
                    // What nobody configured is a visitor's text, and no matter for the log.
                    let known = self.providers.named(&name);
                    let name = known.map_or("-", |one| one.settings.name.as_str());
                    let back = fail(&place.origin, &back, name, &not_offered());
                    return Ok(Begun::Back(back));
                }
            },
        };
        let browser = match browser {
            Some(known) => known.to_owned(),
            None => credential::secret(&self.random).map_err(|error| Problem::internal(&error))?,
        };
        let sign_in = SignIn {
            id: self
                .random
                .slug(26)
                .map_err(|error| Problem::internal(&error))?,
            slug: place.slug.clone(),
            deployment: place.page.id,
            provider: provider.settings.name.clone(),
            return_to: back,
            browser: hashed(&browser),
            at: self.clock.now().0,
        };
        match self.address(&provider, &sign_in).await {
            Ok(away) => Ok(Begun::Away(away, browser)),
            Err(failure) => Ok(Begun::Back(self.failed(&place.origin, &sign_in, &failure))),
        }
    }

    /// The providers that a sign-in may begin with, and where it leads back to.
    ///
    /// # Errors
    /// `identity_unconfigured`; `invalid_request` for a place that cannot be led back to.
    pub(super) fn beginning(
        &self,
        place: &Place,
        wanted: &Wanted,
    ) -> Result<(Vec<Arc<Provider>>, String), Problem> {
        let offered = self.offered(&place.project);
        if offered.is_empty() {
            return Err(unconfigured());
        }
        let back = self.back(place, wanted.return_to.as_deref())?;
        Ok((offered, back))
    }

    fn back(&self, place: &Place, wanted: Option<&str>) -> Result<String, Problem> {
        let Some(wanted) = wanted.filter(|wanted| !wanted.is_empty()) else {
            return Ok(format!("/{}", place.slug));
        };
        return_to::checked(&place.origin, &place.slug, wanted).ok_or_else(|| {
            invalid(format!(
                "`return_to` must be a path of this page, such as /{0} or /{0}?a=b, of at most {1} bytes.",
                place.slug,
                return_to::LENGTH
            ))
        })
    }

    /// Where a visitor signs in.
    async fn address(&self, provider: &Provider, sign_in: &SignIn) -> Result<String, Failure> {
        let settings = &provider.settings;
        let mut address = match settings.kind {
            ProviderKind::Github => github::page(provider, "/login/oauth/authorize")?,
            ProviderKind::Oidc | ProviderKind::Dev => oidc::authorization(provider).await?,
        };
        let state = self.states.seal(sign_in, &self.random);
        let state =
            state.map_err(|error| Failure::new(AuthError::ProviderError, error.to_string()))?;
        let verifier = self.states.verifier(sign_in);
        let mut query = address.query_pairs_mut();
        query
            .append_pair("response_type", "code")
            .append_pair("client_id", &settings.client_id)
            .append_pair("redirect_uri", &self.redirect_uri(provider))
            .append_pair("scope", &settings.scopes.join(" "))
            .append_pair("state", &state)
            .append_pair("code_challenge", &challenge(&verifier))
            .append_pair("code_challenge_method", "S256");
        if settings.kind != ProviderKind::Github {
            query.append_pair("nonce", &self.states.nonce(sign_in));
        }
        drop(query);
        Ok(address.to_string())
    }

    /// The one address that a provider leads back to.
    pub fn redirect_uri(&self, provider: &Provider) -> String {
        format!(
            "{}/_svc/auth/callback/{}",
            self.config.sites_url, provider.settings.name
        )
    }

    /// Ends a sign-in at the provider; returns where it goes on: to its completion, or back with an error.
    ///
    /// # Errors
    /// `invalid_request` where nothing tells which sign-in it is; `not_found` where its frontend is gone.
    pub(super) async fn come_back(
        &self,
        provider: &str,
        answered: Answered,
        browser: Option<&str>,
    ) -> Result<String, Problem> {
        let state = answered.state.as_deref();
        let sign_in = state
            .and_then(|state| self.states.open(state))
            .ok_or_else(unknown)?;
        let place = self.place_of(&sign_in).await?;
        match self
            .checked(&place, &sign_in, provider, answered, browser)
            .await
        {
            Ok(who) => self.give_ticket(&place, sign_in, who),
            Err(failure) => Ok(self.failed(&place.origin, &sign_in, &failure)),
        }
    }

    async fn checked(
        &self,
        place: &Place,
        sign_in: &SignIn,
        provider: &str,
        answered: Answered,
        browser: Option<&str>,
    ) -> Result<SignedIn, Failure> {
        let now = self.clock.now();
        let refused = |cause: &str| Err(Failure::new(AuthError::StateInvalid, cause));
        if sign_in.provider != provider {
            return refused("it came back from another provider than it went to");
        }
        if States::is_old(sign_in, now) {
            return refused("it took too long");
        }
        // Where frontends have origins of their own, the browser shows itself at the completion.
        let here = self.config.sites_domain.is_none();
        if here && browser.map(hashed).as_deref() != Some(sign_in.browser.as_str()) {
            return refused("it came back to another browser");
        }
        if !self.states.take(sign_in, now) {
            return refused("it came back before");
        }
        let provider = self.still_offered(place, sign_in)?;
        let turn = tokio::time::timeout(TURN, provider.waiting.acquire()).await;
        let Ok(Ok(_turn)) = turn else {
            let cause = "too many sign-ins wait for it";
            return Err(Failure::new(AuthError::ProviderUnavailable, cause));
        };
        self.exchanged(&provider, sign_in, answered).await
    }

    fn still_offered(&self, place: &Place, sign_in: &SignIn) -> Result<Arc<Provider>, Failure> {
        let mut offered = self.offered(&place.project).into_iter();
        let offered = offered.find(|one| one.settings.name == sign_in.provider);
        offered.ok_or_else(not_offered)
    }

    async fn exchanged(
        &self,
        provider: &Provider,
        sign_in: &SignIn,
        answered: Answered,
    ) -> Result<SignedIn, Failure> {
        let is_github = provider.settings.kind == ProviderKind::Github;
        if !is_github {
            oidc::check_issuer(provider, answered.iss.as_deref()).await?;
        }
        if let Some(error) = &answered.error {
            return Err(said_no(error));
        }
        let code = answered
            .code
            .filter(|code| !code.is_empty())
            .ok_or_else(|| Failure::new(AuthError::ProviderError, "it answered without a code"))?;
        let (nonce, verifier) = (self.states.nonce(sign_in), self.states.verifier(sign_in));
        let asking = Asking {
            redirect_uri: &self.redirect_uri(provider),
            nonce: &nonce,
            verifier: &verifier,
            issuer: answered.iss.as_deref(),
        };
        if is_github {
            github::signed_in(provider, &self.outbound, &code, &asking).await
        } else {
            oidc::signed_in(provider, &self.outbound, &code, &asking).await
        }
    }

    fn give_ticket(
        &self,
        place: &Place,
        sign_in: SignIn,
        who: SignedIn,
    ) -> Result<String, Problem> {
        let text = credential::secret(&self.random).map_err(|error| Problem::internal(&error))?;
        let (back, provider) = (sign_in.return_to.clone(), sign_in.provider.clone());
        if !self
            .tickets
            .give(&text, Ticket { sign_in, who }, self.clock.now())
        {
            let failure = Failure::new(AuthError::ProviderUnavailable, "too many sign-ins at once");
            return Ok(fail(&place.origin, &back, &provider, &failure));
        }
        Ok(format!(
            "{}/{}/auth/complete?ticket={text}",
            place.origin, place.slug
        ))
    }

    /// Completes a sign-in; returns the session's token, if it ends with one, and where it leads.
    pub(super) async fn complete(
        &self,
        place: &Place,
        ticket: Option<&str>,
        browser: Option<&str>,
        before: Option<SessionKey>,
    ) -> Result<(Option<String>, String), Problem> {
        let refused = |back: &str, cause: &str| {
            let failure = Failure::new(AuthError::TicketInvalid, cause);
            Ok((None, fail(&place.origin, back, "-", &failure)))
        };
        let home = format!("/{}", place.slug);
        let ticket = match ticket.map(|ticket| self.tickets.show(ticket, self.clock.now())) {
            Some(Shown::Good(ticket)) => *ticket,
            Some(Shown::Spent(back))
                if return_to::checked(&place.origin, &place.slug, &back).is_some() =>
            {
                return refused(&back, "the ticket is used, or too old");
            }
            _ => return refused(&home, "there is no such ticket"),
        };
        let Ticket { sign_in, who } = ticket;
        if sign_in.deployment != place.page.id {
            return refused(&home, "the ticket is of another page");
        }
        if browser.map(hashed).as_deref() != Some(sign_in.browser.as_str()) {
            return refused(&sign_in.return_to, "the ticket is another browser's");
        }
        if let Err(failure) = self.still_offered(place, &sign_in) {
            return Ok((None, self.failed(&place.origin, &sign_in, &failure)));
        }
        let (project, provider) = (place.project.id, &sign_in.provider);
        let begun = self.begin_session(&place.page, project, provider, who, before);
        match begun.await? {
            Some(token) => Ok((
                Some(token),
                format!("{}{}", place.origin, sign_in.return_to),
            )),
            None => Ok((None, self.failed(&place.origin, &sign_in, &not_offered()))),
        }
    }

    fn failed(&self, origin: &str, sign_in: &SignIn, failure: &Failure) -> String {
        fail(origin, &sign_in.return_to, &sign_in.provider, failure)
    }
}

/// The address with which a browser asks the frontend's own origin for the same.
pub(super) fn at_home(origin: &str, slug: &str, query: Option<&str>) -> String {
    let mut address = format!("{origin}/{slug}/auth/login");
    if let Some(query) = query.filter(|query| !query.is_empty()) {
        address.push('?');
        address.push_str(query);
    }
    address
}
