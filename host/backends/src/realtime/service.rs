//! Service of rooms, for routes, tools and the server.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use prometheus_client::registry::Registry;
use serde_json::value::RawValue;

use super::client::RoomClient;
use super::hub::{RoomHub, RoomMembership};
use super::identified::SessionSockets;
use super::live::{ConnectionAdmission, LiveConnections};
use super::page::SocketPage;
use super::protocol::ClientMessage;
use super::quotas::SocketQuotaReached;
use super::requests::SendMessage;
use super::room::RoomSummary;
use crate::backends::{RoomOccupancy, RoomOccupancySource};
use crate::config::Config;
use crate::control::ControlChange;
use crate::deployments::serving::{PageLookupError, PageService};
use crate::http::websocket::CloseReason;
use crate::infra::Infra;
use crate::tls::ServedDomains;
use crate::visitors::Visitors;
use svc_base::ids::BackendId;
use svc_base::pluralize;
use svc_base::random::{Random, RandomSourceError};

#[derive(Debug)]
pub struct Realtime {
    hub: Arc<RoomHub>,
    pub(super) listeners: Arc<LiveConnections>,
    /// Sockets that show a signed-in visitor.
    pub(super) identified: Arc<SessionSockets>,
    /// Whether a domain has changed since sockets were last checked.
    domains_changed: Arc<AtomicBool>,
    config: Arc<Config>,
    random: Random,
}

/// Reason for refusing a room.
#[derive(Clone, Debug, thiserror::Error)]
pub enum RoomError {
    /// The backend has no rooms.
    #[error("realtime is off")]
    Closed,
    /// A quota of sockets or rooms is exhausted.
    #[error("{0}")]
    Full(String),
}

impl From<SocketQuotaReached> for RoomError {
    fn from(reached: SocketQuotaReached) -> Self {
        Self::Full(match reached {
            SocketQuotaReached::Client(most) => format!(
                "Your address has {} open, which is the most. Close one, or try again later.",
                pluralize(most, "socket")
            ),
            SocketQuotaReached::Network(most) => format!(
                "Your network has {} open, which is the most of `sockets_total` that one may have. Close one, or try again later.",
                pluralize(most, "socket")
            ),
            SocketQuotaReached::Reserved => {
                "What is left of the server's sockets (`sockets_total`) is kept for backends that have few. Try again later.".to_owned()
            }
            SocketQuotaReached::Backend(most) => format!(
                "The backend of this page has {} open, which is the most. Try again later.",
                pluralize(most, "socket")
            ),
            SocketQuotaReached::Rooms(most) => format!(
                "The backend of this page has {} in use, which is the most. Join one of them, or try again later.",
                pluralize(most, "room")
            ),
            SocketQuotaReached::Server => {
                "The server has as many sockets open as it may (`sockets_total`). Try again later.".to_owned()
            }
        })
    }
}

impl Realtime {
    /// Creates the service, without rooms. It follows the changes that end sockets from now on: after the pages and the domains, because
    /// it looks up those that a change affects.
    pub fn new(infra: Infra) -> Self {
        let limits = infra.config.limits.clone();
        let made = Self {
            hub: Arc::new(RoomHub::new(infra.clock, limits)),
            listeners: Arc::default(),
            identified: Arc::default(),
            domains_changed: Arc::default(),
            config: infra.config,
            random: infra.random,
        };
        let (hub, listeners) = (Arc::clone(&made.hub), Arc::clone(&made.listeners));
        let domains_changed = Arc::clone(&made.domains_changed);
        infra.control.on_change(move |change| match change {
            ControlChange::Slug(slug) => hub.schedule_check(slug),
            ControlChange::BackendEnded(backend) => {
                hub.end(backend, CloseReason::ENDED);
                listeners.end(backend, CloseReason::ENDED);
            }
            ControlChange::RealtimeOff(backend) => hub.end(backend, CloseReason::ENDED),
            ControlChange::DomainServed { .. } | ControlChange::DomainEnded(_) => {
                domains_changed.store(true, Ordering::Release);
            }
            // Live queries learn of new definitions as of a commit of their database.
            ControlChange::Origin(_)
            | ControlChange::BackendCreated(..)
            | ControlChange::ActionsDefined(_)
            | ControlChange::ActionJudged(_)
            | ControlChange::SessionEnded(_)
            | ControlChange::SessionsEnded(_)
            | ControlChange::ContentBlocked(_)
            | ControlChange::ContentAllowed(_) => {}
        });
        made
    }

    /// Returns the number of times that the rooms of any backend were closed. If it is the same before a look at a backend
    /// and after the admission of a socket, no close was missed in between.
    pub(super) fn room_close_count(&self) -> u64 {
        self.hub.room_close_count()
    }

    /// Admits a socket to a room before its upgrade.
    pub(super) fn admit(
        &self,
        backend: BackendId,
        client: IpAddr,
        room: &str,
        page: SocketPage,
    ) -> Result<RoomMembership, RoomError> {
        Ok(self.hub.admit(backend, client, room, page)?)
    }

    /// Admits a connection of live queries before it is opened.
    pub(super) fn admit_connection(
        &self,
        backend: BackendId,
        client: IpAddr,
        slug: &Arc<str>,
        is_stream: bool,
    ) -> Result<ConnectionAdmission, RoomError> {
        let (_permit, _page) = self
            .hub
            .admit_connection(backend, client, slug, is_stream)?;
        Ok(ConnectionAdmission { _permit, _page })
    }

    /// Schedules a check whether a page still exists.
    pub(super) fn schedule_check(&self, slug: &str) {
        self.hub.schedule_check(slug);
    }

    /// Returns the time since the start, on the clock of pings.
    pub(super) fn elapsed(&self) -> Duration {
        self.hub.now().elapsed
    }

    /// Creates a client with an unguessable id.
    pub(super) fn new_client(&self) -> Result<RoomClient, RandomSourceError> {
        let bytes: [u8; 16] = self.random.bytes()?;
        Ok(RoomClient::anonymous(&format!(
            "c_{}",
            URL_SAFE_NO_PAD.encode(bytes)
        )))
    }

    /// Returns the maximum size of a message, in bytes.
    pub(super) fn frame_bytes(&self) -> u64 {
        self.hub.limits.frame_bytes
    }

    /// Lists the rooms of a backend that have members, by id.
    pub fn rooms(&self, backend: &BackendId) -> Vec<RoomSummary> {
        self.hub.rooms(backend)
    }

    /// Sends a message into a room in the owner's name; returns its number, or 0 if the room is empty.
    pub fn send(&self, backend: &BackendId, room: &str, message: &SendMessage) -> u64 {
        let Some(room) = self.hub.room(backend, room) else {
            return 0;
        };
        let message = ClientMessage {
            kind: message.kind.as_str().into(),
            data: message.data.as_deref().map_or("null", RawValue::get),
            client_message_id: None,
        };
        self.hub.publish(&room, &message, None)
    }

    /// Sends presence updates that are due, and closes the sockets of pages that have ended, and of domains that do not answer as their
    /// project's any more. Runs ten times a second.
    ///
    /// # Errors
    /// Errors of the database; pages that could not be checked are checked again.
    pub async fn send_updates(
        &self,
        serving: &PageService,
        domains: &ServedDomains,
    ) -> anyhow::Result<()> {
        self.hub.send_updates();
        let has_host = |page: &SocketPage| {
            let domain = page.domain.as_ref();
            domain.is_none_or(|domain| domain.is_current(&self.config, domains))
        };
        if self.domains_changed.swap(false, Ordering::AcqRel) {
            let why = |page: &SocketPage| (!has_host(page)).then_some(CloseReason::ENDED);
            self.hub.close_pages(&why);
            self.listeners.close_pages(&|page, _| why(page));
        }
        for slug in self.hub.take_scheduled_checks() {
            let found = match serving.page(&slug).await {
                Ok(page) => serving
                    .check_available(&page)
                    .map(|()| Some((page.id, page.backend))),
                Err(error) => Err(error),
            };
            let now = match found {
                Ok(found) => Ok(found),
                Err(PageLookupError::Disabled) => Err(CloseReason::DISABLED),
                Err(PageLookupError::NotFound) => Ok(None),
                Err(error) => {
                    self.hub.schedule_check(&slug);
                    return Err(error.into());
                }
            };
            // A socket that was opened while its domain ended is found here, too.
            self.hub.close_pages(&|page: &SocketPage| match now {
                _ if page.slug != slug => None,
                Ok(Some((id, _))) if id == page.id && has_host(page) => None,
                Ok(_) => Some(CloseReason::ENDED),
                Err(close) => Some(close),
            });
            self.listeners.close_pages(&|page, backend| match now {
                _ if page.slug != slug => None,
                Ok(Some((id, live)))
                    if id == page.id && live == Some(*backend) && has_host(page) =>
                {
                    None
                }
                Ok(_) => Some(CloseReason::ENDED),
                Err(close) => Some(close),
            });
        }
        Ok(())
    }

    /// Closes the sockets whose visitor's session has ended. Runs once a second.
    ///
    /// # Errors
    /// Errors of the database; the affected sockets are checked again later.
    pub async fn check_sessions(&self, visitors: &Visitors) -> anyhow::Result<()> {
        Ok(self.identified.close_ended(visitors).await?)
    }

    /// Pings the connections that are due, closes those that have not answered, and updates the gauges.
    pub fn ping(&self) {
        self.hub.ping();
        let limits = &self.hub.limits;
        let every = Duration::from_secs(limits.ping_seconds);
        let within = Duration::from_secs(limits.pong_seconds);
        self.listeners.tick(self.elapsed(), every, within);
        self.hub.count();
    }

    /// Closes all sockets with code 1012 and ends all event streams, so that their clients come back to the machine that serves.
    pub fn send_away(&self) {
        self.listeners.close_all(CloseReason::MOVED);
        self.hub.end_all(CloseReason::MOVED);
    }

    /// Whether a backend has sockets or event streams open.
    pub fn has_sockets(&self, backend: &BackendId) -> bool {
        !self.hub.rooms(backend).is_empty() || self.listeners.has_any(backend)
    }

    /// Closes the sockets of a backend with code 1012 and ends its event streams: another node has it from now on.
    pub fn send_away_from(&self, backend: &BackendId) {
        self.listeners.end(backend, CloseReason::MOVED);
        self.hub.end(backend, CloseReason::MOVED);
    }

    /// Closes all sockets with code 1001, and waits until they are gone.
    pub async fn stop(&self) {
        self.listeners.stop();
        self.hub.stop().await;
    }

    /// Registers the metrics.
    pub fn register(&self, registry: &mut Registry) {
        self.hub.metrics.register(registry);
        self.listeners.metrics.register(registry);
    }
}

impl RoomOccupancySource for Realtime {
    fn occupancy(&self, backend: &BackendId) -> RoomOccupancy {
        let rooms = self.hub.rooms(backend);
        RoomOccupancy {
            rooms: rooms.len() as u64,
            sockets: rooms.iter().map(|room| room.members as u64).sum(),
        }
    }
}
