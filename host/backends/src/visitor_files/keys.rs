//! `Idempotency-Key` of uploads: hashes by which an upload is known again, and the keys whose first upload is running.

use ring::hmac;

use crate::access::in_flight::{InFlightGuard, InFlightKeys, KeyInFlight};
use crate::content::Digest;
use svc_base::ids::DeploymentId;

/// Hash of a key, with the page, the uploader and the action that it belongs to.
pub(super) type KeyHash = [u8; 32];

/// Keys of uploads, which are stored as hashes alone.
#[derive(Debug)]
pub(super) struct UploadKeys {
    secret: hmac::Key,
    running: InFlightKeys<KeyHash>,
}

impl UploadKeys {
    /// Makes keys whose hashes are made with `secret`.
    pub(super) fn new(secret: hmac::Key) -> Self {
        Self {
            secret,
            running: InFlightKeys::default(),
        }
    }

    /// Begins an upload with a key.
    ///
    /// # Errors
    /// While the first upload with it runs.
    pub(super) fn begin(
        &self,
        page: &DeploymentId,
        (uploader, action, key): (&str, &str, &str),
    ) -> Result<InFlightGuard<KeyHash>, KeyInFlight> {
        let page = page.to_string();
        let texts = [&page, uploader, action, key].map(str::as_bytes);
        let hash = self.hash(&[b"\0upload", texts[0], texts[1], texts[2], texts[3]]);
        self.running.begin(hash)
    }

    /// Hashes what was sent with a key.
    pub(super) fn hash_upload(&self, sent: Digest, name: &str, params: Option<&str>) -> [u8; 32] {
        self.hash(&[
            b"\0uploaded",
            sent.as_bytes(),
            name.as_bytes(),
            params.unwrap_or_default().as_bytes(),
        ])
    }

    fn hash(&self, parts: &[&[u8]]) -> [u8; 32] {
        let mut context = hmac::Context::with_key(&self.secret);
        for part in parts {
            context.update(&(part.len() as u64).to_be_bytes());
            context.update(part);
        }
        let mut hash = [0; 32];
        hash.copy_from_slice(context.sign().as_ref());
        hash
    }
}
