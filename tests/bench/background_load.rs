//! Work that is measured beside clients who ask again and again.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use anyhow::Context as _;

use super::client::Client;
use super::server::Running;

/// Those who ask again and again.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BackgroundLoad {
    /// How many they are, with a connection each.
    pub(crate) clients: usize,
    /// How long they ask before the work begins.
    pub(crate) ahead: Duration,
}

impl BackgroundLoad {
    /// Does the work while they ask. What they have asked last is waited for: an answer that nobody waits for might still be worked on in what
    /// comes next.
    pub(crate) fn run_during(
        self,
        svc: &Running,
        send_request: impl Fn(&mut Client) -> anyhow::Result<()> + Sync,
        work: impl FnOnce() -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        let stop = AtomicBool::new(false);
        let send_until_stopped = |mut client: Client| -> anyhow::Result<()> {
            while !stop.load(Ordering::Relaxed) {
                send_request(&mut client)?;
            }
            Ok(())
        };
        let clients: Result<Vec<Client>, _> = (0..self.clients).map(|_| svc.client()).collect();
        thread::scope(|scope| {
            let asking: Vec<_> = clients?
                .into_iter()
                .map(|client| scope.spawn(|| send_until_stopped(client)))
                .collect();
            thread::sleep(self.ahead);
            let done = work();
            stop.store(true, Ordering::Relaxed);
            for one in asking {
                one.join().ok().context("a client panicked")??;
            }
            done
        })
    }
}
