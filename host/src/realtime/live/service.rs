//! Live queries for routes: a seat, a subscription, and the tasks that evaluate.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use http::HeaderMap;

use super::board::Board;
use super::connection::{ConnectionContext, Transport};
use super::listener::{Listener, SubscribeRefusal};
use super::listeners::{Admission, Registration};
use super::problems;
use super::query::{Outcome, Query};
use super::subscriber::Subscriber;
use crate::backends::BackendError;
use crate::backends::calls::ActionCalls;
use crate::config::Config;
use crate::http::rate_limit::{BucketEmpty, Draw, RateLimits, Rule};
use crate::realtime::{Realtime, RoomError};
use crate::visitors::Visitors;
use svc_base::Stopwatch;
use svc_base::ids::{BackendId, DeploymentId};
use svc_database::values::Params;

/// How many queries of a backend are evaluated at once: a call of the same backend waits for no more than these.
const CONCURRENT_EVALUATIONS: usize = 2;

/// Live queries.
#[derive(Clone, Debug)]
pub struct Live {
    realtime: Arc<Realtime>,
    actions: Arc<ActionCalls>,
    pub(super) visitors: Arc<Visitors>,
    rate_limits: Arc<RateLimits>,
    pub(super) config: Arc<Config>,
    /// By which evaluations keep their distance.
    watch: Stopwatch,
}

/// Reason why there is no new subscription or connection.
#[derive(Debug, thiserror::Error)]
pub(super) enum LiveError {
    /// A bucket of calls is empty.
    #[error(transparent)]
    Spent(#[from] BucketEmpty),
    /// A quota of sockets is reached.
    #[error(transparent)]
    Quota(#[from] RoomError),
    /// A subscription of the connection has this id, which ends by that.
    #[error("{0} is in use")]
    IdInUse(Arc<str>),
    /// The connection has as many subscriptions as it may.
    #[error("there are {0} subscriptions")]
    Subscriptions(u64),
    /// As many frames of the connection wait as may.
    #[error("{0} frames wait")]
    Backlog(usize),
    /// The action cannot be listened to.
    #[error(transparent)]
    Backend(#[from] BackendError),
}

/// Request of a client to be told what an action answers.
#[derive(Debug)]
pub(super) struct SubscribeRequest {
    pub(super) id: Arc<str>,
    pub(super) action: String,
    pub(super) params: Params,
}

/// Tokens that are left after a subscription, for who is told.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct DrawnTokens {
    pub(super) of_client: Option<Draw>,
    pub(super) of_deployment: Option<Draw>,
}

impl Live {
    /// Live queries of these backends; they learn of every commit from now on.
    pub fn new(
        realtime: Arc<Realtime>,
        actions: Arc<ActionCalls>,
        visitors: Arc<Visitors>,
        rate_limits: Arc<RateLimits>,
        config: Arc<Config>,
    ) -> Self {
        let listeners = Arc::clone(&realtime.listeners);
        actions.follow(move |backend, touched| listeners.touch(backend, touched));
        Self {
            realtime,
            actions,
            visitors,
            rate_limits,
            config,
            watch: Stopwatch::start(),
        }
    }

    /// Ends the subscriptions of visitors who are not signed in any more. Runs once a second.
    pub async fn check_sessions(&self) -> anyhow::Result<()> {
        for listener in self.realtime.listeners.list() {
            let Some(sign_in) = listener.sign_in().filter(|one| !one.has_ended()) else {
                continue;
            };
            if !self.visitors.is_live(&sign_in.session).await? {
                sign_in.end();
                listener
                    .end_visitor_subscriptions(&Arc::new(BackendError::IdentityRequired.into()));
            }
        }
        Ok(())
    }

    /// Takes a place of the quotas for a connection that is yet to be opened.
    ///
    /// # Errors
    /// The quota that is reached.
    pub(super) fn admit(
        &self,
        backend: BackendId,
        client: IpAddr,
        slug: &Arc<str>,
        is_stream: bool,
    ) -> Result<Admission, LiveError> {
        Ok(self
            .realtime
            .admit_connection(backend, client, slug, is_stream)?)
    }

    /// Gives a connection its seat.
    pub(super) fn register(
        &self,
        backend: BackendId,
        place: Admission,
        opened: ConnectionContext,
        transport: Transport,
    ) -> Registration {
        let limits = &self.config.limits;
        let times = (self.now(), Duration::from_secs(limits.ping_seconds));
        let slug = Arc::clone(&opened.page.slug);
        let listeners = &self.realtime.listeners;
        let connection = (place, opened, transport);
        let (registration, new) =
            listeners.register(backend, connection, limits.live_per_second, times);
        if let Some(board) = new {
            tokio::spawn(self.clone().run_board(board));
        }
        // What ended while the connection was opened is seen by this look.
        self.realtime.schedule_check(&slug);
        registration
    }

    /// Now, by the clock that pings go by.
    pub(super) fn now(&self) -> Duration {
        self.realtime.elapsed()
    }

    /// Draws a client's token of a call.
    ///
    /// # Errors
    /// [`LiveError::Spent`].
    pub(super) fn draw_client_token(
        &self,
        client: &IpAddr,
        left: &mut DrawnTokens,
    ) -> Result<(), LiveError> {
        let bucket = self.rate_limits.by_client(Rule::Op);
        let draw = bucket.take(client);
        left.of_client = Some(draw);
        match draw {
            Draw::Left(_) => Ok(()),
            Draw::Empty => Err(bucket.empty_error().into()),
        }
    }

    /// Subscribes. The client's token is drawn already; the page's is drawn here, unless the query is being served.
    ///
    /// # Errors
    /// A call's, and those of subscriptions.
    pub(super) async fn subscribe(
        &self,
        listener: &Arc<Listener>,
        request: SubscribeRequest,
        left: &mut DrawnTokens,
    ) -> Result<(), LiveError> {
        let most = self.config.limits.live_per_socket;
        let subscriber =
            listener.begin_subscription(&request.id, usize::try_from(most).unwrap_or(usize::MAX));
        let SubscribeRequest { id, action, params } = request;
        let query = match &subscriber {
            Ok(_) => self
                .query(listener, action, params)
                .await
                .map_err(LiveError::from),
            Err(SubscribeRefusal::IdInUse) => Err(LiveError::IdInUse(id)),
            Err(SubscribeRefusal::TooMany) => Err(LiveError::Subscriptions(most)),
        };
        let board = listener.board();
        if !query.as_ref().is_ok_and(|query| board.has_query(query)) {
            self.draw_page_token(&listener.page().id, left)?;
        }
        let (query, subscriber) = (query?, subscriber.ok());
        if let Some(subscriber) = subscriber {
            board.join(query, &subscriber, self.watch.elapsed());
        }
        Ok(())
    }

    /// Says what is left in the buckets that were drawn from.
    pub(super) fn announce(&self, left: DrawnTokens, headers: &mut HeaderMap) {
        if let Some(draw) = left.of_client {
            self.rate_limits
                .by_client(Rule::Op)
                .add_headers(draw, headers);
        }
        if let Some(draw) = left.of_deployment {
            self.rate_limits.op_deployment.add_headers(draw, headers);
        }
    }

    /// Draws a page's token of a call.
    ///
    /// # Errors
    /// [`LiveError::Spent`].
    pub(super) fn draw_page_token(
        &self,
        page: &DeploymentId,
        left: &mut DrawnTokens,
    ) -> Result<(), LiveError> {
        let bucket = &self.rate_limits.op_deployment;
        let draw = bucket.take(page);
        left.of_deployment = Some(draw);
        match draw {
            Draw::Left(_) => Ok(()),
            Draw::Empty => Err(bucket.empty_error().into()),
        }
    }

    /// The query that an action is for whoever listens.
    async fn query(
        &self,
        listener: &Listener,
        action: String,
        params: Params,
    ) -> Result<Query, BackendError> {
        let visitor = listener.visitor();
        let backend = listener.backend;
        let found = self
            .actions
            .find_watchable(backend, &action, &params, visitor.is_some());
        let is_own = found.await?.requires_identity();
        Ok(Query {
            action,
            params,
            visitor: visitor.filter(|_| is_own),
        })
    }

    /// Evaluates the queries of a backend when they are due, for as long as somebody is connected.
    async fn run_board(self, board: Arc<Board>) {
        let mut running = FuturesUnordered::new();
        loop {
            let now = self.watch.elapsed();
            board.apply_changes(now);
            while running.len() < CONCURRENT_EVALUATIONS
                && let Some((number, query)) = board.start_next(now)
            {
                running.push(self.evaluate(board.backend(), number, query));
            }
            if running.is_empty() && board.is_unused() && self.realtime.listeners.forget(&board) {
                return;
            }
            let due = board
                .next_due(now)
                .filter(|_| running.len() < CONCURRENT_EVALUATIONS);
            tokio::select! {
                () = board.wait_for_change() => {}
                Some((number, query, outcome)) = running.next() => {
                    for one in board.finish(number, outcome, self.watch.elapsed()) {
                        self.rejoin(&one, &query).await;
                    }
                }
                () = tokio::time::sleep(due.unwrap_or_default()), if due.is_some() => {}
            }
        }
    }

    async fn evaluate(
        &self,
        backend: BackendId,
        number: u64,
        query: Arc<Query>,
    ) -> (u64, Arc<Query>, Outcome) {
        self.realtime.listeners.metrics.evaluations.inc();
        let outcome = match self.evaluate_query(backend, &query).await {
            Ok(outcome) => outcome,
            Err(error) => problems::evaluation_outcome(error),
        };
        (number, query, outcome)
    }

    async fn evaluate_query(
        &self,
        backend: BackendId,
        query: &Query,
    ) -> Result<Outcome, BackendError> {
        let Query {
            action,
            params,
            visitor,
        } = query;
        // Whether somebody is signed in shows when they join.
        let found = self.actions.find_watchable(backend, action, params, true);
        let found = found.await?;
        if found.requires_identity() != visitor.is_some() {
            return Ok(Outcome::IdentityChanged);
        }
        let seen = self
            .actions
            .evaluate(backend, &found, params, visitor.as_deref());
        Ok(Outcome::Answered(seen.await?))
    }

    /// Has a subscriber listen to what its action has become: everybody's answer, or its own visitor's.
    async fn rejoin(&self, subscriber: &Subscriber, query: &Query) {
        let listener = &subscriber.listener;
        let (action, params) = (query.action.clone(), query.params.clone());
        match self.query(listener, action, params).await {
            Ok(query) => listener
                .board()
                .join(query, subscriber, self.watch.elapsed()),
            Err(error) => subscriber.fail(Arc::new(error.into())),
        }
    }
}
