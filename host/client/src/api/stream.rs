//! Streams of events: answers that go on.

use super::ApiRequestBuilder;
use crate::error::Result;

impl ApiRequestBuilder<'_> {
    /// Sends the request for a stream of events, and passes its bytes on as they come, until the stream ends. It begins after the event with
    /// the id `after`.
    ///
    /// # Errors
    /// As of `send`, and those of `take`.
    pub(crate) async fn follow(
        mut self,
        after: String,
        mut take: impl FnMut(&[u8]) -> Result<()>,
    ) -> Result<()> {
        self.events = Some(after);
        let api = self.api;
        let mut response = self.send_for_response(None).await?;
        loop {
            match response.chunk().await {
                Ok(Some(part)) => take(&part)?,
                Ok(None) => return Ok(()),
                Err(error) => return Err(api.unreachable_failure(&error)),
            }
        }
    }
}
