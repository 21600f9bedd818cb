//! Tickets: from the callback, on the sites host, to the frontend's own origin, where the cookie can be set. Single use, a minute, one browser.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use super::model::{SessionKey, VerifiedVisitor};
use super::sessions::hash_token;
use super::state::PendingSignIn;
use svc_base::clock::Timestamp;

/// How long a ticket may take to be used, in milliseconds.
const TICKET_LIFETIME_MS: i64 = 60_000;
/// Tickets at once: a sign-in that would be one more fails.
const MAX_TICKETS: usize = 20_000;

/// A sign-in whose visitor is verified.
#[derive(Debug)]
pub(super) struct Ticket {
    /// The sign-in that it ends.
    pub sign_in: PendingSignIn,
    /// Visitor who signed in.
    pub visitor: VerifiedVisitor,
}

/// Result of showing a ticket.
#[derive(Debug)]
pub(super) enum TicketRedemption {
    /// It is used up now.
    Valid(Box<Ticket>),
    /// It was used, or is too old; where its sign-in led back to.
    Spent(String),
    /// It never was one, or long ago.
    Unknown,
}

#[derive(Debug)]
struct StoredTicket {
    ticket: Option<Ticket>,
    return_to: String,
    at: i64,
}

/// Tickets that were given out, by the SHA-256 of their text.
#[derive(Debug, Default)]
pub(super) struct Tickets(Mutex<HashMap<SessionKey, StoredTicket>>);

impl Tickets {
    /// Gives `text` the meaning of `ticket`; returns whether there was room.
    pub(super) fn issue(&self, text: &str, ticket: Ticket, now: Timestamp) -> bool {
        let mut held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if held.len() >= MAX_TICKETS {
            // A spent ticket is remembered a little longer, where there is room.
            held.retain(|_, one| now.0 - one.at < TICKET_LIFETIME_MS && one.ticket.is_some());
        }
        if held.len() >= MAX_TICKETS {
            return false;
        }
        let return_to = ticket.sign_in.return_to.clone();
        let one = StoredTicket {
            ticket: Some(ticket),
            return_to,
            at: now.0,
        };
        held.insert(hash_token(text), one);
        true
    }

    /// Uses a ticket up.
    pub(super) fn redeem(&self, text: &str, now: Timestamp) -> TicketRedemption {
        let mut held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(one) = held.get_mut(&hash_token(text)) else {
            return TicketRedemption::Unknown;
        };
        match one.ticket.take() {
            Some(ticket) if now.0 - one.at < TICKET_LIFETIME_MS => {
                TicketRedemption::Valid(Box::new(ticket))
            }
            _ => TicketRedemption::Spent(one.return_to.clone()),
        }
    }

    /// Forgets tickets that are old.
    pub(super) fn remove_old(&self, now: Timestamp) {
        let mut held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        held.retain(|_, one| now.0 - one.at < 10 * TICKET_LIFETIME_MS);
    }
}
