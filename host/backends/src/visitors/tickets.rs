//! Tickets carry a sign-in from the callback, on the sites host, to the frontend's own origin, where the cookie is set. Each is valid once, for a minute, in one browser.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use super::model::{SessionTokenHash, VerifiedVisitor};
use super::sessions::hash_token;
use super::state::PendingSignIn;
use svc_base::clock::Timestamp;

/// Lifetime of a ticket, in milliseconds.
const TICKET_LIFETIME_MS: i64 = 60_000;
/// Maximum number of tickets; beyond it sign-ins fail.
const MAX_TICKETS: usize = 20_000;

/// Sign-in whose visitor is verified.
#[derive(Debug)]
pub(super) struct SignInTicket {
    pub sign_in: PendingSignIn,
    pub visitor: VerifiedVisitor,
}

/// Result of using a ticket.
#[derive(Debug)]
pub(super) enum TicketRedemption {
    /// The ticket was valid, and is used up now.
    Valid(Box<SignInTicket>),
    /// The ticket was used before, or has expired; contains the return path of its sign-in.
    Spent(String),
    /// The ticket is unknown.
    Unknown,
}

#[derive(Debug)]
struct StoredSignInTicket {
    ticket: Option<SignInTicket>,
    return_to: String,
    at: i64,
}

/// Issued tickets, by the SHA-256 of their text.
#[derive(Debug, Default)]
pub(super) struct SignInTickets(Mutex<HashMap<SessionTokenHash, StoredSignInTicket>>);

impl SignInTickets {
    /// Stores a ticket under `text`; returns whether there was room.
    pub(super) fn issue(&self, text: &str, ticket: SignInTicket, now: Timestamp) -> bool {
        let mut held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if held.len() >= MAX_TICKETS {
            // Used tickets are dropped only when there is no room.
            held.retain(|_, one| now.0 - one.at < TICKET_LIFETIME_MS && one.ticket.is_some());
        }
        if held.len() >= MAX_TICKETS {
            return false;
        }
        let return_to = ticket.sign_in.return_to.clone();
        let one = StoredSignInTicket {
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

    /// Removes old tickets.
    pub(super) fn remove_old(&self, now: Timestamp) {
        let mut held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        held.retain(|_, one| now.0 - one.at < 10 * TICKET_LIFETIME_MS);
    }
}
