//! Service of live queries: admits connections, subscribes, and runs the tasks that evaluate.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use http::HeaderMap;

use super::board::LiveQueryBoard;
use super::connection::{ConnectionContext, LiveTransport};
use super::error::LiveError;
use super::listener::{LiveConnection, SubscribeRefusal};
use super::listeners::{ConnectionAdmission, ConnectionRegistration};
use super::opening::{LiveQueryLog, LiveQueryOpening};
use super::problems;
use super::query::{EvaluationOutcome, LiveQuery};
use super::subscriber::QuerySubscriber;
use crate::backends::BackendError;
use crate::backends::calls::ActionCalls;
use crate::config::Config;
use crate::deployments::serving::PageService;
use crate::deployments::serving::pages::ServedPage;
use crate::http::client_ip::ClientIp;
use crate::http::rate_limit::{RateLimitRule, RateLimits, TokenDraw};
use crate::realtime::Realtime;
use crate::visitors::Visitors;
use svc_base::Stopwatch;
use svc_base::ids::{BackendId, DeploymentId};
use svc_database::values::Params;

/// Number of queries of a backend that are evaluated at once, which limits how long a call of the backend waits.
const CONCURRENT_EVALUATIONS: usize = 2;

#[derive(Clone, Debug)]
pub struct LiveQueries {
    realtime: Arc<Realtime>,
    actions: Arc<ActionCalls>,
    pub(super) visitors: Arc<Visitors>,
    rate_limits: Arc<RateLimits>,
    pub(super) config: Arc<Config>,
    /// Clock of the evaluations.
    watch: Stopwatch,
}

/// Request of a client to subscribe to the answer of an action.
#[derive(Debug)]
pub(super) struct SubscribeRequest {
    pub(super) id: Arc<str>,
    pub(super) action: String,
    pub(super) params: Params,
}

/// Tokens that were drawn for a subscription, for the headers of the response.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct SubscriptionRateTokens {
    pub(super) of_client: Option<TokenDraw>,
    pub(super) of_deployment: Option<TokenDraw>,
}

impl LiveQueries {
    /// Creates the service, which learns of every commit of these backends from now on.
    pub fn new(
        realtime: Arc<Realtime>,
        actions: Arc<ActionCalls>,
        visitors: Arc<Visitors>,
        rate_limits: Arc<RateLimits>,
        config: Arc<Config>,
    ) -> Self {
        let listeners = Arc::clone(&realtime.listeners);
        actions.on_commit(move |backend, touched| listeners.touch(backend, touched));
        Self {
            realtime,
            actions,
            visitors,
            rate_limits,
            config,
            watch: Stopwatch::start(),
        }
    }

    /// Ends the subscriptions of visitors whose session has ended. Runs once a second.
    ///
    /// # Errors
    /// Errors of the database; the other connections are checked nevertheless.
    pub async fn check_sessions(&self) -> anyhow::Result<()> {
        let mut checked = Ok(());
        for listener in self.realtime.listeners.list() {
            let Some(sign_in) = listener.sign_in().filter(|one| !one.has_ended()) else {
                continue;
            };
            match self.visitors.is_live(&sign_in.session).await {
                Ok(true) => {}
                Ok(false) => {
                    sign_in.end();
                    let error = BackendError::IdentityRequired.into();
                    listener.end_visitor_subscriptions(&Arc::new(error));
                }
                Err(error) => checked = Err(error),
            }
        }
        Ok(checked?)
    }

    /// Takes the database that a connection is about, unless another node has it.
    ///
    /// # Errors
    /// When another node has it, or it cannot be loaded.
    pub(super) async fn claim(&self, backend: BackendId) -> Result<(), LiveError> {
        Ok(self.actions.claim(backend).await?)
    }

    /// Admits a connection before it is opened.
    ///
    /// # Errors
    /// The quota that is exhausted.
    pub(super) fn admit(
        &self,
        backend: BackendId,
        client: IpAddr,
        slug: &Arc<str>,
        is_stream: bool,
    ) -> Result<ConnectionAdmission, LiveError> {
        Ok(self
            .realtime
            .admit_connection(backend, client, slug, is_stream)?)
    }

    /// Registers a connection, and starts the task of its board if that is new.
    pub(super) fn register(
        &self,
        backend: BackendId,
        place: ConnectionAdmission,
        opened: ConnectionContext,
        transport: LiveTransport,
    ) -> ConnectionRegistration {
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
        // This check finds a page that ended while the connection was opened.
        self.realtime.schedule_check(&slug);
        registration
    }

    /// Returns the time on the clock of pings.
    pub(super) fn now(&self) -> Duration {
        self.realtime.elapsed()
    }

    /// Draws a token from the client's bucket of calls.
    ///
    /// # Errors
    /// [`LiveError::BucketEmpty`].
    pub(super) fn draw_client_token(
        &self,
        client: &IpAddr,
        left: &mut SubscriptionRateTokens,
    ) -> Result<(), LiveError> {
        let bucket = self.rate_limits.by_client(RateLimitRule::Op);
        let draw = bucket.take(client);
        left.of_client = Some(draw);
        match draw {
            TokenDraw::Left(_) => Ok(()),
            TokenDraw::Empty => Err(bucket.empty_error().into()),
        }
    }

    /// Subscribes. The client's token is drawn already; the page's is drawn here, unless the query is served already.
    ///
    /// # Errors
    /// Errors of a call and of subscriptions.
    pub(super) async fn subscribe(
        &self,
        listener: &Arc<LiveConnection>,
        request: SubscribeRequest,
        left: &mut SubscriptionRateTokens,
    ) -> Result<(), LiveError> {
        let most = self.config.limits.live_per_socket;
        let subscriber =
            listener.begin_subscription(&request.id, usize::try_from(most).unwrap_or(usize::MAX));
        let began = self.now();
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
            subscriber.set_opening(LiveQueryOpening {
                action: query.action.clone(),
                began,
            });
            board.join(query, &subscriber, self.watch.elapsed());
        }
        Ok(())
    }

    /// Adds the rate limit headers of the buckets that were drawn from.
    pub(super) fn add_rate_limit_headers(
        &self,
        left: SubscriptionRateTokens,
        headers: &mut HeaderMap,
    ) {
        if let Some(draw) = left.of_client {
            self.rate_limits
                .by_client(RateLimitRule::Op)
                .add_headers(draw, headers);
        }
        if let Some(draw) = left.of_deployment {
            self.rate_limits.op_deployment.add_headers(draw, headers);
        }
    }

    /// Draws a token from the page's bucket of calls.
    ///
    /// # Errors
    /// [`LiveError::BucketEmpty`].
    pub(super) fn draw_page_token(
        &self,
        page: &DeploymentId,
        left: &mut SubscriptionRateTokens,
    ) -> Result<(), LiveError> {
        let bucket = &self.rate_limits.op_deployment;
        let draw = bucket.take(page);
        left.of_deployment = Some(draw);
        match draw {
            TokenDraw::Left(_) => Ok(()),
            TokenDraw::Empty => Err(bucket.empty_error().into()),
        }
    }

    /// Returns the log of a page's project, for the live queries of a client.
    pub(super) fn log_of(
        &self,
        serving: &Arc<PageService>,
        page: &ServedPage,
        (backend, client): (BackendId, ClientIp),
    ) -> Option<LiveQueryLog> {
        Some(LiveQueryLog {
            serving: Arc::clone(serving),
            actions: Arc::clone(&self.actions),
            page: page.activity.clone()?,
            backend,
            client,
        })
    }

    /// Builds the query of an action for a listener.
    async fn query(
        &self,
        listener: &LiveConnection,
        action: String,
        params: Params,
    ) -> Result<LiveQuery, BackendError> {
        let visitor = listener.visitor();
        let backend = listener.backend;
        let found = self
            .actions
            .find_watchable(backend, &action, &params, visitor.is_some());
        let is_own = found.await?.requires_identity();
        Ok(LiveQuery {
            action,
            params,
            visitor: visitor.filter(|_| is_own),
        })
    }

    /// Evaluates the queries of a backend when they are due, as long as a connection exists.
    async fn run_board(self, board: Arc<LiveQueryBoard>) {
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
        query: Arc<LiveQuery>,
    ) -> (u64, Arc<LiveQuery>, EvaluationOutcome) {
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
        query: &LiveQuery,
    ) -> Result<EvaluationOutcome, BackendError> {
        let LiveQuery {
            action,
            params,
            visitor,
        } = query;
        // Whether a visitor is signed in is checked when a subscriber joins.
        let found = self.actions.find_watchable(backend, action, params, true);
        let found = found.await?;
        if found.requires_identity() != visitor.is_some() {
            return Ok(EvaluationOutcome::IdentityChanged);
        }
        let seen = self
            .actions
            .evaluate(backend, &found, params, visitor.as_deref());
        Ok(EvaluationOutcome::Answered(seen.await?))
    }

    /// Moves a subscriber to the query that its action has become: shared, or dependent on the visitor.
    async fn rejoin(&self, subscriber: &QuerySubscriber, query: &LiveQuery) {
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
