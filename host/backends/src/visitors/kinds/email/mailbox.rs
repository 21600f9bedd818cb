//! Mails that are shown instead of sent, for developing.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use serde::Serialize;

use crate::outbound::mail::OutgoingMail;

/// Maximum number of mails that are kept.
const MAX_MAILS: usize = 50;

/// The newest mails.
#[derive(Debug, Default)]
pub(in crate::visitors) struct DevMailbox(Mutex<VecDeque<DevMail>>);

/// Mail that was not sent.
#[derive(Clone, Debug, Serialize)]
pub(in crate::visitors) struct DevMail {
    pub to: String,
    pub subject: String,
    pub text: String,
}

impl DevMailbox {
    /// Keeps a mail in the place of the oldest.
    pub(super) fn put(&self, mail: OutgoingMail) {
        let mut mails = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        mails.truncate(MAX_MAILS - 1);
        mails.push_front(DevMail {
            to: mail.to.to_string(),
            subject: mail.subject,
            text: mail.text,
        });
    }

    /// Lists the mails, newest first.
    pub(in crate::visitors) fn mails(&self) -> Vec<DevMail> {
        let mails = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        mails.iter().cloned().collect()
    }
}
