//! Sessions: identifies the visitor of a request, from a cache, and ends sessions.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use http::{HeaderMap, HeaderName, header};
use quick_cache::sync::Cache;
use ring::digest;
use serde::{Deserialize, Serialize};

use super::cookies;
use super::failures::not_offered;
use super::model::{
    SESSION_SECONDS, SessionTokenHash, SignInError, SignInFailure, VerifiedVisitor, VisitorError,
    VisitorId, VisitorSession,
};
use super::sign_in_page::FrontendWithSignIn;
use super::{Visitors, passkey, store};
use crate::config::Config;
use crate::control::{self, ControlChange, ControlDatabase, ErrandWork, Tx};
use crate::deployments::serving::pages::{PageKind, ServedPage};
use crate::http::hosts::HostKind;
use crate::projects;
use crate::projects::domains::is_served_by;
use crate::workspaces::credential;
use svc_base::clock::Timestamp;
use svc_base::fault;

/// Capacity of the cache of sessions.
const SESSION_CACHE_CAPACITY: usize = 100_000;
/// Least time between two updates of when a visitor was last seen, in milliseconds.
const SEEN_INTERVAL_MS: i64 = 3_600_000;
const FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// Cache of sessions. A session that was read while any session ended is not cached.
#[derive(Debug)]
pub(super) struct SessionCache {
    sessions: Cache<SessionTokenHash, Arc<VisitorSession>>,
    /// Number of ended sessions. Locked while the cache is written, so that no session ends in between.
    end_count: Mutex<u64>,
}

impl SessionCache {
    /// Makes a cache, which follows the changes of `control` from now on.
    pub(super) fn following(control: &ControlDatabase) -> Arc<Self> {
        let cache = Arc::new(Self {
            sessions: Cache::new(SESSION_CACHE_CAPACITY),
            end_count: Mutex::new(0),
        });
        let held = Arc::clone(&cache);
        control.on_change(move |change| held.follow(change));
        cache
    }

    /// Removes the sessions that a change has ended.
    fn follow(&self, change: &ControlChange) {
        match change {
            ControlChange::SessionEnded(key) => {
                *self.end_count() += 1;
                self.sessions.remove(key);
            }
            ControlChange::SessionsEnded(project) => {
                self.forget(|session| session.project == *project);
            }
            // The sessions of its former project have ended, if it is another project's now.
            ControlChange::DomainServed { name, .. } | ControlChange::DomainEnded(name) => {
                self.forget(|session| session.host.as_deref() == Some(name.as_str()));
            }
            ControlChange::Slug(_)
            | ControlChange::Origin(_)
            | ControlChange::BackendCreated(..)
            | ControlChange::BackendEnded(_)
            | ControlChange::RealtimeOff(_)
            | ControlChange::ActionsDefined(_)
            | ControlChange::ActionJudged(_)
            | ControlChange::ContentBlocked(_)
            | ControlChange::ContentAllowed(_) => {}
        }
    }

    fn forget(&self, may_have_ended: impl Fn(&VisitorSession) -> bool) {
        let mut end_count = self.end_count();
        *end_count += 1;
        self.sessions.retain(|_, session| !may_have_ended(session));
    }

    fn end_count(&self) -> MutexGuard<'_, u64> {
        self.end_count
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns a session that is in memory. One that has ended at another machine is still here while this one hears nothing.
    ///
    /// # Errors
    /// [`control::Error::Stale`] at a machine that follows another one, and may lack its end.
    fn get(
        &self,
        control: &ControlDatabase,
        key: &SessionTokenHash,
    ) -> Result<Option<Arc<VisitorSession>>, control::Error> {
        let held = self.sessions.get(key);
        if held.is_some() {
            control.check_fresh()?;
        }
        Ok(held)
    }

    fn insert_if_unchanged(&self, session: &Arc<VisitorSession>, seen: u64) {
        let end_count = self.end_count();
        if *end_count == seen {
            self.sessions.insert(session.key, Arc::clone(session));
        }
    }
}

/// Errand: a visitor was seen.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct VisitorSeen {
    pub visitor: String,
    pub at: Timestamp,
}

impl ErrandWork for VisitorSeen {
    const KIND: &'static str = "visitor_seen";
    type Answer = ();

    fn perform(self, tx: &Tx<'_>) -> Result<(), control::Error> {
        store::record_seen(tx, &VisitorId::from_stored(self.visitor), self.at)
    }
}

/// Hashes a session token.
pub(super) fn hash_token(token: &str) -> SessionTokenHash {
    let mut key = [0; 32];
    key.copy_from_slice(digest::digest(&digest::SHA256, token.as_bytes()).as_ref());
    key
}

/// Whether the request's host is the frontend's own origin: its project's, a domain of it, or the sites host where projects have none.
pub(super) fn is_own_origin(config: &Config, host: &HostKind, page: &ServedPage) -> bool {
    let PageKind::Frontend { host_label } = &page.kind else {
        return false;
    };
    match host {
        HostKind::Project(label) => label == host_label,
        HostKind::Domain(host) => host.domain.host_label == *host_label,
        HostKind::Sites => config.sites_domain.is_none(),
        HostKind::Api | HostKind::Preview(_) | HostKind::Landing | HostKind::Console => false,
    }
}

impl Visitors {
    /// Returns the session of the visitor who calls a page's backend, if the call comes from the page itself. Any page can send calls, so a
    /// session counts only if `Origin` is the frontend's own, or if `Origin` is absent and `Sec-Fetch-Site` is absent or `same-origin`.
    pub async fn caller_session(
        &self,
        host: &HostKind,
        page: &ServedPage,
        headers: &HeaderMap,
    ) -> Result<Option<Arc<VisitorSession>>, control::Error> {
        // Most calls have no session, and cost no more than this check.
        if !headers.contains_key(header::COOKIE) || !self.is_from_page(host, page, headers) {
            return Ok(None);
        }
        self.current_session(host, page, headers).await
    }

    /// Whether a request comes from the frontend itself, or not from a browser.
    pub(super) fn is_from_page(
        &self,
        host: &HostKind,
        page: &ServedPage,
        headers: &HeaderMap,
    ) -> bool {
        let mut origins = headers.get_all(header::ORIGIN).iter();
        match (origins.next(), origins.next()) {
            (Some(origin), None) => {
                let own = self.origin(host, page);
                own.is_some_and(|own| origin.as_bytes().eq_ignore_ascii_case(own.as_bytes()))
            }
            (Some(_), Some(_)) => false,
            (None, _) => {
                let site = headers.get(FETCH_SITE);
                site.is_none_or(|site| site.as_bytes() == b"same-origin")
            }
        }
    }

    /// Returns the session of a frontend that a request's cookie names, if it counts on the host of the request.
    pub(super) async fn current_session(
        &self,
        host: &HostKind,
        page: &ServedPage,
        headers: &HeaderMap,
    ) -> Result<Option<Arc<VisitorSession>>, control::Error> {
        if !is_own_origin(&self.infra.config, host, page) {
            return Ok(None);
        }
        let Some(token) = cookies::session_token(headers, &page.id, self.infra.config.secure)
        else {
            return Ok(None);
        };
        // The number is read before the session, so that a session that ends meanwhile is not cached.
        let end_count = *self.session_cache.end_count();
        let session = self.session(hash_token(token)).await?;
        let session = session.filter(|session| session.counts_on(host, &page.id));
        if let Some(session) = &session {
            self.record_seen(session, end_count);
        }
        Ok(session)
    }

    /// Whether a session has not ended.
    pub async fn is_live(&self, session: &VisitorSession) -> Result<bool, control::Error> {
        Ok(self.session(session.key).await?.is_some())
    }

    pub(super) async fn session(
        &self,
        key: SessionTokenHash,
    ) -> Result<Option<Arc<VisitorSession>>, control::Error> {
        let now = self.infra.clock.now();
        if let Some(held) = self.session_cache.get(&self.infra.control, &key)? {
            return Ok(Some(held).filter(|session| session.expires_at > now));
        }
        let seen = *self.session_cache.end_count();
        let found = self
            .infra
            .control
            .read(move |c| store::find_session(c, &key, now));
        let found = found.await?;
        // A session counts only as long as its provider is configured.
        let found =
            found.filter(|session| self.providers.find_by_name(&session.provider).is_some());
        let found = found.map(Arc::new);
        if let Some(session) = &found {
            self.session_cache.insert_if_unchanged(session, seen);
        }
        Ok(found)
    }

    /// Records that a visitor was seen, at most once an hour and in the background: nobody waits for it.
    fn record_seen(&self, session: &Arc<VisitorSession>, end_count: u64) {
        let now = self.infra.clock.now();
        if now.0 - session.seen_at.0 < SEEN_INTERVAL_MS {
            return;
        }
        let seen = VisitorSession {
            seen_at: now,
            ..VisitorSession::clone(session)
        };
        self.session_cache
            .insert_if_unchanged(&Arc::new(seen), end_count);
        let control = self.infra.control.clone();
        let errand = VisitorSeen {
            visitor: session.visitor.as_str().to_owned(),
            at: now,
        };
        tokio::spawn(async move {
            if let Err(error) = control.run_errand(errand).await {
                tracing::warn!(%error, "that a visitor was there could not be noted");
            }
        });
    }

    /// Begins a session and ends the browser's previous one there; returns the token of the new session, which is not stored, or why the
    /// visitor can no longer sign in so.
    ///
    /// # Errors
    /// `Gone` if the domain that the visitor is on is not served any more, and other [`VisitorError`]s.
    pub(super) async fn begin_session(
        &self,
        page: &FrontendWithSignIn,
        provider: &str,
        signed_in: VerifiedVisitor,
        before: Option<SessionTokenHash>,
    ) -> Result<Result<String, SignInFailure>, VisitorError> {
        let token = credential::random_secret(&self.infra.random)?;
        let fresh = VisitorId::new(&self.infra.random)?;
        let now = self.infra.clock.now();
        let (key, deployment, provider) =
            (hash_token(&token), page.frontend.id, provider.to_owned());
        let (project, domain) = (page.project.id, page.domain.clone());
        let begun = self.infra.control.write(move |tx| {
            let host: Option<Box<str>> = domain.map(|on| on.domain.name.as_str().into());
            if let Some(host) = &host
                && !is_served_by(tx, &project, host).map_err(control::Error::from)?
            {
                return Err(VisitorError::Gone);
            }
            if !projects::offers_provider(tx, &project, &provider, now)? {
                return Ok(Err(not_offered()));
            }
            if !passkey::store::admit(tx, &signed_in, now)? {
                let cause = "the passkey was removed, or is another account's";
                return Ok(Err(SignInFailure::new(SignInError::TokenInvalid, cause)));
            }
            let visitor = store::upsert_visitor(tx, &project, &provider, &signed_in, &fresh, now)?;
            projects::mark_had_visitors(tx, &project)?;
            if let Some(before) = before {
                store::end_session(tx, &before)?;
            }
            let session = VisitorSession {
                key,
                visitor,
                deployment,
                host,
                project,
                profile: signed_in.profile,
                provider,
                expires_at: now.plus_seconds(SESSION_SECONDS),
                seen_at: now,
            };
            store::insert_session(tx, &session, now)?;
            Ok(Ok(token))
        });
        let begun = begun.await?;
        fault::point("visitors.signed_in");
        Ok(begun)
    }

    /// Ends all sessions of a frontend that a request's cookies name: over plain HTTP another site may have added a cookie, and the
    /// visitor's own session must end all the same. Nothing is written for tokens of no session: anybody can send many of them.
    pub(super) async fn end_sessions(
        &self,
        page: &ServedPage,
        headers: &HeaderMap,
    ) -> Result<(), control::Error> {
        let tokens = cookies::session_tokens(headers, &page.id, self.infra.config.secure);
        let keys: Vec<SessionTokenHash> = tokens.into_iter().map(hash_token).collect();
        if keys.is_empty() {
            return Ok(());
        }
        let read = self
            .infra
            .control
            .read(move |c| store::existing_sessions(c, keys));
        let keys = read.await?;
        if keys.is_empty() {
            return Ok(());
        }
        self.infra
            .control
            .write(move |tx| keys.iter().try_for_each(|key| store::end_session(tx, key)))
            .await
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use svc_base::clock::Clock;
    use svc_base::ids::{DeploymentId, ProjectId};
    use svc_base::positions::CommitPosition;
    use svc_base::random::Random;
    use svc_database::BaseSnapshot;

    use super::*;
    use crate::control::Freshness;
    use crate::visitors::model::VisitorProfile;

    /// Freshness as a test says.
    struct SetFreshness(AtomicBool);

    impl Freshness for SetFreshness {
        fn is_fresh(&self) -> bool {
            self.0.load(Ordering::SeqCst)
        }
    }

    fn session() -> VisitorSession {
        let (clock, random) = (Clock::manual(Timestamp(0)), Random::system());
        VisitorSession {
            key: hash_token("secret"),
            visitor: VisitorId::from_stored("usr_1".to_owned()),
            deployment: DeploymentId::new(&clock, &random).unwrap(),
            host: None,
            project: ProjectId::new(&clock, &random).unwrap(),
            profile: VisitorProfile::default(),
            provider: "google".to_owned(),
            expires_at: Timestamp(1),
            seen_at: Timestamp(0),
        }
    }

    #[test]
    fn a_session_in_memory_counts_only_where_its_end_would_be_known() {
        let data = tempfile::tempdir().unwrap();
        ControlDatabase::open(data.path()).unwrap().close();
        let file = data.path().join("control.db");
        let snapshot = BaseSnapshot::begin(&file, CommitPosition(1), None).unwrap();
        let state = snapshot.write_to(&data.path().join("base")).unwrap();
        let fresh = Arc::new(SetFreshness(AtomicBool::new(true)));
        let control = ControlDatabase::open_follower(data.path(), state, fresh.clone()).unwrap();
        let sessions = SessionCache::following(&control);
        let session = Arc::new(session());
        sessions.insert_if_unchanged(&session, 0);
        assert!(sessions.get(&control, &session.key).unwrap().is_some());
        fresh.0.store(false, Ordering::SeqCst);
        let stale = sessions.get(&control, &session.key);
        assert!(matches!(stale, Err(control::Error::Stale)));
        // A session that is not in memory is read from the database, which refuses it.
        let other = hash_token("other");
        assert!(sessions.get(&control, &other).unwrap().is_none());
        control.close();
    }
}
