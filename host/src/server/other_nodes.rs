//! Other nodes, as the front reaches them: where databases are, and how requests get there.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::response::Response;
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use http::Request;
use svc_ledger::{DatabaseName, PostgresLedger, RunId};

use super::proxied_messages::SERVICE;
use crate::cluster::{
    DatabaseLocation, KnownPlaces, PeerBody, PeerError, PeerHandlerFn, Run, ServingClusterNode,
};

/// Other nodes of the installation.
pub(super) trait OtherNodes: fmt::Debug + Send + Sync {
    /// Returns where a database is believed to be, if that is known without asking anybody.
    fn known_location(&self, database: DatabaseName) -> Option<DatabaseLocation>;

    /// Returns where a database is believed to be.
    fn locate(&self, database: DatabaseName) -> BoxFuture<'_, DatabaseLocation>;

    /// Forgets where a database is, since it was not there.
    fn forget(&self, database: DatabaseName);

    /// Sends a request to a run, for as long as that is believed to live.
    fn send(
        &self,
        run: RunId,
        request: Request<PeerBody>,
    ) -> BoxFuture<'_, Result<Response, PeerError>>;

    /// Waits until a run is not believed to live any more.
    fn wait_until_gone(&self, run: RunId) -> BoxFuture<'static, ()>;

    /// Has requests that other nodes pass on be answered; without a handler they are refused.
    fn serve(&self, handler: Option<PeerHandlerFn>);

    /// Counts a request that another node was asked to answer.
    fn count(&self, took: Duration);
}

/// Other nodes of an installation whose ledger is PostgreSQL.
#[derive(Debug)]
pub(super) struct ClusterNodes {
    run: Arc<Run<PostgresLedger>>,
    places: Arc<KnownPlaces<PostgresLedger>>,
}

impl ClusterNodes {
    /// Reaches the other nodes of this one.
    pub(super) fn new(node: &ServingClusterNode) -> Self {
        Self {
            run: Arc::clone(node.run()),
            places: Arc::clone(node.places()),
        }
    }
}

impl OtherNodes for ClusterNodes {
    fn known_location(&self, database: DatabaseName) -> Option<DatabaseLocation> {
        self.places.known_location(database)
    }

    fn locate(&self, database: DatabaseName) -> BoxFuture<'_, DatabaseLocation> {
        self.places.locate(database).boxed()
    }

    fn forget(&self, database: DatabaseName) {
        self.places.forget(database);
    }

    fn send(
        &self,
        run: RunId,
        request: Request<PeerBody>,
    ) -> BoxFuture<'_, Result<Response, PeerError>> {
        let sending = self.run.peers().client().send(run, request);
        async move { sending.await.map(|answer| answer.map(Body::new)) }.boxed()
    }

    fn wait_until_gone(&self, run: RunId) -> BoxFuture<'static, ()> {
        let known = self.run.peers().known().clone();
        async move { known.wait_until_distrusted(run).await }.boxed()
    }

    fn serve(&self, handler: Option<PeerHandlerFn>) {
        match handler {
            Some(handler) => self.run.peers().serve(SERVICE, handler),
            None => self.run.peers().withdraw(SERVICE),
        }
    }

    fn count(&self, took: Duration) {
        self.run.metrics().count_proxied(took);
    }
}
