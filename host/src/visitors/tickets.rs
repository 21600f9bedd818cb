//! Tickets carry a sign-in from the callback, on the sites host, to the frontend's own origin, where the cookie is set. Each is valid once, for a minute, in one browser.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use super::model::{SessionKey, SignedIn};
use super::sessions::key_of;
use super::state::PendingSignIn;
use svc_base::clock::Timestamp;

/// Lifetime of a ticket, in milliseconds.
const LIFE: i64 = 60_000;
/// Maximum number of tickets; beyond it sign-ins fail.
const MOST: usize = 20_000;

/// Sign-in whose visitor is verified.
#[derive(Debug)]
pub(super) struct Ticket {
    pub sign_in: PendingSignIn,
    pub visitor: SignedIn,
}

/// Result of using a ticket.
#[derive(Debug)]
pub(super) enum TicketUse {
    /// The ticket was valid, and is used up now.
    Valid(Box<Ticket>),
    /// The ticket was used before, or has expired; contains the return path of its sign-in.
    Spent(String),
    /// The ticket is unknown.
    Unknown,
}

#[derive(Debug)]
struct StoredTicket {
    ticket: Option<Ticket>,
    return_to: String,
    at: i64,
}

/// Issued tickets, by the SHA-256 of their text.
#[derive(Debug, Default)]
pub(super) struct Tickets(Mutex<HashMap<SessionKey, StoredTicket>>);

impl Tickets {
    /// Stores a ticket under `text`; returns whether there was room.
    pub(super) fn give(&self, text: &str, ticket: Ticket, now: Timestamp) -> bool {
        let mut held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if held.len() >= MOST {
            // Used tickets are dropped only when there is no room.
            held.retain(|_, one| now.0 - one.at < LIFE && one.ticket.is_some());
        }
        if held.len() >= MOST {
            return false;
        }
        let return_to = ticket.sign_in.return_to.clone();
        let one = StoredTicket {
            ticket: Some(ticket),
            return_to,
            at: now.0,
        };
        held.insert(key_of(text), one);
        true
    }

    /// Uses a ticket up.
    pub(super) fn show(&self, text: &str, now: Timestamp) -> TicketUse {
        let mut held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(one) = held.get_mut(&key_of(text)) else {
            return TicketUse::Unknown;
        };
        match one.ticket.take() {
            Some(ticket) if now.0 - one.at < LIFE => TicketUse::Valid(Box::new(ticket)),
            _ => TicketUse::Spent(one.return_to.clone()),
        }
    }

    /// Removes old tickets.
    pub(super) fn tidy(&self, now: Timestamp) {
        let mut held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        held.retain(|_, one| now.0 - one.at < 10 * LIFE);
    }
}
