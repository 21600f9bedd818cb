//! The layer of owner routes: a valid credential, then the bucket of its caller's principal.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use super::identity::{
    AuthenticationResult, Authenticator, credential_invalid, credential_missing,
};
use crate::control::audit::{AuditActor, with_actor};
use crate::http::context::HttpRequestContext;
use crate::http::held_answers::HeldAnswerBudget;
use crate::http::problem::Problem;
use crate::http::rate_limit::RateLimits;

/// State of the layer.
#[derive(Clone, Debug)]
pub struct AdmissionLayerState {
    /// Authenticates the credential.
    pub authenticator: Authenticator,
    /// Has the principals' buckets.
    pub rate_limits: Arc<RateLimits>,
    /// Bucket of the routes.
    pub bucket: OwnerBucket,
    /// Large answers that wait for their readers.
    pub answers: HeldAnswerBudget,
}

/// Bucket of a principal from which a request takes its token.
#[derive(Clone, Copy, Debug)]
pub enum OwnerBucket {
    /// Bucket of routes without a limit of their own.
    Usual,
    /// Bucket of files that are sent ahead of a publication: a folder has many.
    Blob,
}

/// Admits a request with a valid credential, and puts its caller into the extensions for the extractors.
pub async fn admit(
    State(admission): State<AdmissionLayerState>,
    mut request: Request,
    next: Next,
) -> Response {
    let caller = match admission.authenticator.identify(request.headers()).await {
        Ok(AuthenticationResult::Known(caller)) => caller,
        Ok(AuthenticationResult::Nobody) => return credential_missing().into_response(),
        Ok(AuthenticationResult::Invalid) => return credential_invalid().into_response(),
        Err(problem) => return problem.into_response(),
    };
    let Some(context) = request.extensions().get::<HttpRequestContext>() else {
        return Problem::internal(&"a request without a context").into_response();
    };
    let actor = AuditActor::new(caller.id(), &context.request_id);
    let (bucket, flow) = (caller.principal_name(), caller.flow());
    if let Err(full) = admission.answers.check(&flow) {
        return Problem::from(full).into_response();
    }
    request.extensions_mut().insert(caller);
    let limits = match admission.bucket {
        OwnerBucket::Usual => &admission.rate_limits.owner,
        OwnerBucket::Blob => &admission.rate_limits.blob,
    };
    let answer = limits.run_if_allowed(&bucket, request, next);
    let answer = flow.clone().scope(with_actor(actor, answer)).await;
    admission.answers.hold(flow, answer).await
}
