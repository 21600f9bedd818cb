//! Tests that get one machine alone in a run against several nodes: see [`crate::nodes`].
//!
//! Tests that start the program as a process never begin here: what they look at is that process. `tests/cluster` does the same to nodes.

use std::thread;

use svc::config::Settings;

/// Answer to a test that looks into the disk of its server, which it has none of for itself.
pub(crate) const NO_DISK: &str = "several nodes have no data directory in common: if the test is about the disk of one machine, \
     name it in ONE_MACHINE of tests/harness/one_machine.rs";

/// Tests of something that one machine has and several nodes do not. Each row has a reason, and the tests by the beginnings of their
/// names. There are no more than ten reasons.
const ONE_MACHINE: [(&str, &[&str]); 0] = [];

/// Whether the server of the test that runs in this thread is one machine, whatever the environment asks for.
pub(crate) fn is_required(settings: &Settings) -> bool {
    let test = thread::current();
    let test = test.name().unwrap_or_default();
    let mut named = ONE_MACHINE.iter().flat_map(|(_, tests)| *tests);
    !can_be_a_node(settings) || named.any(|name| test.starts_with(name))
}

/// Whether a node may have these settings: it refuses a store of content of its own, certificates by ACME, and stand-ins for development.
fn can_be_a_node(settings: &Settings) -> bool {
    let asks_for_certificates = settings.is_https() && settings.tls_cert.is_none();
    settings.content_url.is_none()
        && settings.acme.is_none()
        && !asks_for_certificates
        && !settings.dev
}
