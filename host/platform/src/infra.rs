//! Values that services are built on: the control database, the time, randomness, and the settings.

use std::sync::Arc;

use crate::config::Config;
use crate::control::ControlDatabase;
use svc_base::clock::Clock;
use svc_base::random::Random;

/// Values that services are built on. Clones share them.
#[derive(Clone, Debug)]
pub struct Infra {
    /// The control database.
    pub control: ControlDatabase,
    /// The time.
    pub clock: Clock,
    /// Source of ids, tokens and salts.
    pub random: Random,
    /// The effective settings.
    pub config: Arc<Config>,
}
