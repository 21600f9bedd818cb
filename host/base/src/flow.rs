//! Flows: a flow is all the work of one caller, or of those who count as one. Flows share the threads of a lane fairly.
//!
//! The flow is task-local, like the audit's actor: a layer of the routes sets it, and everything that the task runs in a lane
//! belongs to it. Work without a flow is the server's.

use std::net::{IpAddr, Ipv6Addr};
use std::sync::Arc;

tokio::task_local! {
    static CURRENT_FLOW: CallerFlow;
}

/// A caller, as the unit of fair sharing.
#[derive(Clone, Debug, Default, Eq, Hash, PartialEq)]
pub enum CallerFlow {
    /// The server's own work, such as rendering pages again with a new guest.
    #[default]
    Server,
    /// Callers with a valid credential that limits are counted for together: the name of their principal.
    Owner(Arc<str>),
    /// A client without a credential: its network.
    Stranger(IpAddr),
    /// A client without a credential that previews a page before publishing it.
    Preview(IpAddr),
}

/// Priority class of a flow: where threads are short, earlier classes go first.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum CallerClass {
    /// Callers with a credential.
    Owner,
    /// Clients without one.
    Stranger,
    /// The server's own work: no client waits for it.
    Server,
    /// Previews of pages that are not published.
    Preview,
}

impl CallerClass {
    /// All classes, in order of priority.
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

impl CallerFlow {
    /// Returns the flow of a client without a credential: one for each IPv4 address, and for each /48 of IPv6, which is what a
    /// provider assigns to a customer.
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

    /// Returns the flow for a preview: a stranger's has the lowest priority, an owner's stays the same.
    #[must_use]
    pub fn preview(self) -> Self {
        match self {
            Self::Stranger(network) => Self::Preview(network),
            other => other,
        }
    }

    /// Returns the class.
    #[must_use]
    pub const fn class(&self) -> CallerClass {
        match self {
            Self::Owner(_) => CallerClass::Owner,
            Self::Stranger(_) => CallerClass::Stranger,
            Self::Server => CallerClass::Server,
            Self::Preview(_) => CallerClass::Preview,
        }
    }

    /// Returns the flow of the current task.
    #[must_use]
    pub fn current() -> Self {
        CURRENT_FLOW.try_with(Self::clone).unwrap_or_default()
    }

    /// Runs a future as part of this flow.
    pub fn scope<T>(self, work: impl Future<Output = T>) -> impl Future<Output = T> {
        // No `async fn`: it would keep the work's future twice, and calls of actions are many.
        CURRENT_FLOW.scope(self, work)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_is_one_flow() {
        let flow = |address: &str| CallerFlow::stranger(address.parse().unwrap());
        assert_eq!(flow("2001:db8:1:2::3"), flow("2001:db8:1:ffff::"));
        assert_ne!(flow("2001:db8:1::"), flow("2001:db8:2::"));
        assert_eq!(flow("::ffff:192.0.2.1"), flow("192.0.2.1"));
        assert_ne!(flow("192.0.2.1"), flow("192.0.2.2"));
        assert_ne!(flow("192.0.2.1"), flow("192.0.2.1").preview());
        let owner = CallerFlow::Owner("usr_1".into());
        assert_eq!(owner.clone().preview(), owner);
    }

    #[tokio::test]
    async fn a_task_has_the_flow_that_it_was_given() {
        assert_eq!(CallerFlow::current(), CallerFlow::Server);
        let owner = CallerFlow::Owner("usr_1".into());
        let seen = owner.clone().scope(async { CallerFlow::current() }).await;
        assert_eq!(seen, owner);
    }
}
