//! The providers that this installation offers, each ready to be asked.

use std::sync::Arc;

use tokio::sync::Semaphore;

use super::kinds::SignInKind;
use crate::config::{AddressError, Provider as Settings};
use crate::outbound::Outbound;
use svc_base::clock::Clock;

/// How many sign-ins may wait for one provider at once.
const MAX_CONCURRENT_SIGN_INS: usize = 64;

/// All providers, in the operator's order.
#[derive(Debug)]
pub struct Providers(Vec<Arc<Provider>>);

/// A provider.
#[derive(Debug)]
pub struct Provider {
    /// Settings of the operator.
    pub settings: Settings,
    /// The provider as one of its kind.
    pub(super) kind: SignInKind,
    /// Permits of sign-ins that wait for it.
    pub(super) permits: Semaphore,
}

impl Provider {
    /// Asks a provider to describe itself, and whether it knows the client; returns what is wrong, in the operator's words.
    pub async fn find_faults(&self, redirect_uri: &str) -> Vec<String> {
        self.kind.find_faults(redirect_uri).await
    }
}

impl Providers {
    /// Providers by their settings.
    ///
    /// # Errors
    /// An address that cannot be asked, which settings have refused before.
    pub fn new(
        settings: &[Settings],
        outbound: &Outbound,
        clock: &Clock,
    ) -> Result<Self, AddressError> {
        let made = settings.iter().map(|settings| {
            Ok(Arc::new(Provider {
                settings: settings.clone(),
                kind: SignInKind::from_settings(settings, outbound, clock)?,
                permits: Semaphore::new(MAX_CONCURRENT_SIGN_INS),
            }))
        });
        made.collect::<Result<_, _>>().map(Self)
    }

    /// The provider of a name.
    pub fn by_name(&self, name: &str) -> Option<&Arc<Provider>> {
        self.0.iter().find(|one| one.settings.name == name)
    }

    /// Providers that a project offers: all, if it has no list.
    pub fn allowed<'a>(
        &'a self,
        allowed: Option<&'a [String]>,
    ) -> impl Iterator<Item = &'a Arc<Provider>> {
        let listed = move |name: &String| allowed.is_none_or(|list| list.contains(name));
        self.0.iter().filter(move |one| listed(&one.settings.name))
    }
}
