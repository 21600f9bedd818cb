//! The sign-in providers of this installation.

use std::sync::Arc;

use tokio::sync::Semaphore;

use super::kinds::SignInProviderClient;
use crate::config::{IssuerAddressError, ProviderSettings as Settings};
use crate::outbound::OutboundClient;
use svc_base::clock::Clock;

/// Maximum number of sign-ins that use one provider at the same time.
const MAX_CONCURRENT_SIGN_INS: usize = 64;

/// All providers, in the order of the settings.
#[derive(Debug)]
pub struct SignInProviders(Vec<Arc<SignInProvider>>);

/// Sign-in provider.
#[derive(Debug)]
pub struct SignInProvider {
    pub settings: Settings,
    /// Implementation for the provider's kind of sign-in.
    pub(super) kind: SignInProviderClient,
    /// Permits for sign-ins that call the provider.
    pub(super) permits: Semaphore,
}

impl SignInProvider {
    /// Checks that the provider is reachable and knows the client; returns the faults, described for the operator.
    pub async fn find_faults(&self, redirect_uri: &str) -> Vec<String> {
        self.kind.find_faults(redirect_uri).await
    }
}

impl SignInProviders {
    /// Creates the providers from their settings.
    ///
    /// # Errors
    /// An address that cannot be called; the checks of the settings refuse it before.
    pub fn new(
        settings: &[Settings],
        outbound: &OutboundClient,
        clock: &Clock,
    ) -> Result<Self, IssuerAddressError> {
        let made = settings.iter().map(|settings| {
            Ok(Arc::new(SignInProvider {
                settings: settings.clone(),
                kind: SignInProviderClient::from_settings(settings, outbound, clock)?,
                permits: Semaphore::new(MAX_CONCURRENT_SIGN_INS),
            }))
        });
        made.collect::<Result<_, _>>().map(Self)
    }

    /// Finds a provider by its name.
    pub fn find_by_name(&self, name: &str) -> Option<&Arc<SignInProvider>> {
        self.0.iter().find(|one| one.settings.name == name)
    }

    /// Iterates over the providers that a project offers: all, if it has no list.
    pub fn allowed<'a>(
        &'a self,
        allowed: Option<&'a [String]>,
    ) -> impl Iterator<Item = &'a Arc<SignInProvider>> {
        let listed = move |name: &String| allowed.is_none_or(|list| list.contains(name));
        self.0.iter().filter(move |one| listed(&one.settings.name))
    }
}
