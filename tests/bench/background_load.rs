//! Work that is measured while clients repeat requests.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use anyhow::Context as _;

use super::client::Client;
use super::server::Running;

/// Clients that repeat a request while other work is measured.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BackgroundLoad {
    /// Number of clients, with a connection each.
    pub(crate) clients: usize,
    /// Lead before the work begins.
    pub(crate) ahead: Duration,
}

impl BackgroundLoad {
    /// Runs the work while the clients repeat their request. Waits for their last answers, because the server might still process
    /// abandoned requests during the next measurement.
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
