//! The application of a node of several, as the cluster and other nodes use it.

use std::sync::{Arc, Weak};

use futures_util::future::BoxFuture;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Limited};
use hyper::body::Incoming;

use super::App;
use crate::backends::Backends;
use crate::cluster::{self, DatabaseUsers, ERRANDS_SERVICE, PeerBody, ServingClusterNode};
use crate::control::{ControlDatabase, Error};
use crate::errands;
use crate::realtime::Realtime;
use svc_base::ids::BackendId;
use svc_ledger::RunId;

/// Largest message of an errand, in bytes: a verdict may be as long as an action.
const MAX_MESSAGE_BYTES: usize = 8 << 20;

/// Sockets of backends, and the databases that they are about. The application has the node, so the node must not keep it alive.
struct BackendSockets {
    realtime: Weak<Realtime>,
    backends: Weak<Backends>,
}

impl DatabaseUsers for BackendSockets {
    fn is_used(&self, id: &BackendId) -> bool {
        let realtime = self.realtime.upgrade();
        realtime.is_some_and(|realtime| realtime.has_sockets(id))
    }

    fn send_away(&self, id: &BackendId) {
        if let Some(realtime) = self.realtime.upgrade() {
            realtime.send_away_from(id);
        }
        if let Some(backends) = self.backends.upgrade() {
            backends.close_database(id);
        }
    }

    fn note_arrival(&self, id: &BackendId) {
        if let Some(backends) = self.backends.upgrade() {
            backends.note_file_changes(*id);
        }
    }
}

/// Has a node ask its application about databases, and answer the errands of others once it has control.
pub(super) fn join(node: &ServingClusterNode, app: &App) {
    node.set_database_users(Arc::new(BackendSockets {
        realtime: Arc::downgrade(&app.realtime),
        backends: Arc::downgrade(&app.backends),
    }));
    let control = app.control.clone();
    let handler =
        move |_: RunId, request: Request<Incoming>| -> BoxFuture<'static, Response<PeerBody>> {
            Box::pin(answer_errand(control.clone(), request))
        };
    node.run().peers().serve(ERRANDS_SERVICE, Arc::new(handler));
}

/// Does an errand of another node. Without control nothing is done, and the other node looks who has it.
async fn answer_errand(control: ControlDatabase, request: Request<Incoming>) -> Response<PeerBody> {
    let body = Limited::new(request.into_body(), MAX_MESSAGE_BYTES).collect();
    let Ok(body) = body.await else {
        return cluster::refusal();
    };
    let Ok(message) = String::from_utf8(body.to_bytes().into()) else {
        return failure(&Error::from_errand("it is no text"));
    };
    // It is done to its end if the other node hangs up.
    let done = tokio::spawn(async move { errands::perform_message(&control, &message).await });
    match done.await {
        Ok(Ok(text)) => Response::new(cluster::full_body(text)),
        Ok(Err(Error::Elsewhere)) => cluster::refusal(),
        Ok(Err(error)) => failure(&error),
        // The panic is in the log.
        Err(_) => failure(&Error::Panicked),
    }
}

/// Answers that an errand has failed here, with the failure as the other node is to have it.
fn failure(error: &Error) -> Response<PeerBody> {
    let mut response = Response::new(cluster::full_body(error.to_errand_failure()));
    *response.status_mut() = StatusCode::INTERNAL_SERVER_ERROR;
    response
}
