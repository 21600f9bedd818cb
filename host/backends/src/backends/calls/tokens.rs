//! Rate limit tokens of a call: from the buckets of the client and of the deployment.

use std::num::NonZeroU32;
use std::sync::Arc;

use http::HeaderMap;

use super::routes::CallServices;
use crate::deployments::serving::PageLookupError;
use crate::deployments::serving::pages::ServedPage;
use crate::http::client_ip::ClientIp;
use crate::http::hosts::HostKind;
use crate::http::rate_limit::{RateLimitExceeded, RateLimitRule, TokenDraw};

/// Tokens drawn for a call: from the client's bucket, then from the deployment's, if the page exists.
#[derive(Debug)]
pub struct CallRateTokens {
    of_client: TokenDraw,
    of_deployment: Option<TokenDraw>,
}

impl CallRateTokens {
    /// Draws the tokens; returns the page too, unless the client's bucket was empty.
    pub async fn draw(
        calls: &CallServices,
        host: &HostKind,
        client: &ClientIp,
        slug: &str,
    ) -> (Self, Option<Result<Arc<ServedPage>, PageLookupError>>) {
        let limits = &calls.rate_limits;
        let of_client = limits.by_client(RateLimitRule::Op).take(&client.bucket());
        let page = match of_client {
            TokenDraw::Left(_) => Some(calls.serving.page_on_host(host, slug).await),
            // A call that the client's bucket refuses does not draw from the deployment's.
            TokenDraw::Empty => None,
        };
        let found = page.as_ref().and_then(|page| page.as_ref().ok());
        let tokens = Self {
            of_client,
            of_deployment: found.map(|page| limits.op_deployment.take(&page.id)),
        };
        (tokens, page)
    }

    /// Draws the tokens of a batch's other ops: all of them, or none and the batch is refused.
    ///
    /// # Errors
    /// The bucket that has too few.
    pub(super) fn draw_more(
        &mut self,
        calls: &CallServices,
        client: &ClientIp,
        page: &ServedPage,
        more: usize,
    ) -> Result<(), RateLimitExceeded> {
        let Some(more) = u32::try_from(more).ok().and_then(NonZeroU32::new) else {
            return Ok(());
        };
        let limits = &calls.rate_limits;
        let of_client = limits.by_client(RateLimitRule::Op);
        self.of_client = of_client.take_many(&client.bucket(), more)?;
        self.of_deployment = Some(limits.op_deployment.take_many(&page.id, more)?);
        Ok(())
    }

    /// Returns the error of a call if a bucket was empty.
    pub fn refusal(&self, calls: &CallServices) -> Option<RateLimitExceeded> {
        match (self.of_client, self.of_deployment) {
            (TokenDraw::Empty, _) => {
                Some(calls.rate_limits.by_client(RateLimitRule::Op).empty_error())
            }
            (_, Some(TokenDraw::Empty)) => Some(calls.rate_limits.op_deployment.empty_error()),
            _ => None,
        }
    }

    /// Adds the rate limit headers.
    pub fn add_rate_limit_headers(&self, calls: &CallServices, headers: &mut HeaderMap) {
        let limits = &calls.rate_limits;
        limits
            .by_client(RateLimitRule::Op)
            .add_headers(self.of_client, headers);
        if let Some(draw) = self.of_deployment {
            limits.op_deployment.add_headers(draw, headers);
        }
    }
}
