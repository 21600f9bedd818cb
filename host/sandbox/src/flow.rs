//! Flows: all the work of one caller, which shares the threads of a lane fairly with the work of others.
//!
//! The flow travels with the task, as the actor of the audit does: a route's layer sets it once, and whatever runs in a lane below it belongs
//! to that flow. Work without one is the server's own.

use std::net::{IpAddr, Ipv6Addr};
use std::sync::Arc;

tokio::task_local! {
    static CURRENT: Flow;
}

/// All the work of one caller.
#[derive(Clone, Debug, Default, Eq, Hash, PartialEq)]
pub enum Flow {
    /// The server's own work, such as rendering pages again after a new guest.
    #[default]
    Server,
    /// A caller with a valid credential, by its workspace or its user.
    Owner(Arc<str>),
    /// A client without a credential, by its network.
    Stranger(IpAddr),
    /// A client without a credential that looks at a page before it publishes it.
    Preview(IpAddr),
}

/// Class of a flow: where threads are short, each comes before those after it.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum FlowClass {
    /// Callers with a credential.
    Owner,
    /// Clients without one.
    Stranger,
    /// The server's own work, which nobody waits for.
    Server,
    /// Previews of pages that are not published.
    Preview,
}

impl FlowClass {
    /// All classes, the first one first.
    pub const ALL: [Self; 4] = [Self::Owner, Self::Stranger, Self::Server, Self::Preview];

    /// Returns the name in metrics.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Owner => "owner",
            Self::Stranger => "stranger",
            Self::Server => "server",
            Self::Preview => "preview",
        }
    }
}

impl Flow {
    /// Makes the flow of a client without a credential: one for each IPv4 address, and for each /48 of IPv6, which is what a
    /// provider gives to a customer.
    #[must_use]
    pub fn stranger(address: IpAddr) -> Self {
        Self::Stranger(match address.to_canonical() {
            IpAddr::V6(address) => {
                let [a, b, c, ..] = address.segments();
                IpAddr::V6(Ipv6Addr::new(a, b, c, 0, 0, 0, 0, 0))
            }
            v4 => v4,
        })
    }

    /// Makes the flow of what is only looked at: last of all for a stranger, an owner's own for an owner.
    #[must_use]
    pub fn preview(self) -> Self {
        match self {
            Self::Stranger(network) => Self::Preview(network),
            other => other,
        }
    }

    /// Returns the class.
    #[must_use]
    pub const fn class(&self) -> FlowClass {
        match self {
            Self::Owner(_) => FlowClass::Owner,
            Self::Stranger(_) => FlowClass::Stranger,
            Self::Server => FlowClass::Server,
            Self::Preview(_) => FlowClass::Preview,
        }
    }

    /// Returns the flow of the current task.
    #[must_use]
    pub fn current() -> Self {
        CURRENT.try_with(Self::clone).unwrap_or_default()
    }

    /// Does work as a part of this flow.
    pub async fn scope<T>(self, work: impl Future<Output = T>) -> T {
        CURRENT.scope(self, work).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_is_one_flow() {
        let flow = |address: &str| Flow::stranger(address.parse().unwrap());
        assert_eq!(flow("2001:db8:1:2::3"), flow("2001:db8:1:ffff::"));
        assert_ne!(flow("2001:db8:1::"), flow("2001:db8:2::"));
        assert_eq!(flow("::ffff:192.0.2.1"), flow("192.0.2.1"));
        assert_ne!(flow("192.0.2.1"), flow("192.0.2.2"));
        assert_ne!(flow("192.0.2.1"), flow("192.0.2.1").preview());
        let owner = Flow::Owner("usr_1".into());
        assert_eq!(owner.clone().preview(), owner);
    }

    #[tokio::test]
    async fn a_task_has_the_flow_that_it_was_given() {
        assert_eq!(Flow::current(), Flow::Server);
        let owner = Flow::Owner("usr_1".into());
        let seen = owner.clone().scope(async { Flow::current() }).await;
        assert_eq!(seen, owner);
    }
}
