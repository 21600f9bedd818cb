//! The sign-in providers of this installation.

use std::sync::Arc;

use tokio::sync::Semaphore;

use super::kinds::email::EmailProvider;
use super::kinds::{ProviderResources, SignInProviderClient};
use crate::config::{Config, ProviderSettings as Settings};
use crate::outbound::OutboundClient;
use crate::outbound::mail::MailAddress;
use svc_base::clock::Clock;
use svc_base::random::Random;

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

    /// Sends a mail as its codes are sent; returns the faults, described for the operator. `None` if the provider sends no mails.
    pub async fn send_test_mail(&self, address: MailAddress) -> Option<Vec<String>> {
        self.kind.send_test_mail(address).await
    }

    /// Whether only projects that name the provider offer it, and others have it for pages that name it: mails that are shown instead of
    /// sent are for who wants to see them.
    fn is_offered_by_name_alone(&self) -> bool {
        self.kind
            .email()
            .is_some_and(|email| email.mailbox().is_some())
    }
}

impl SignInProviders {
    /// Creates the providers from their settings.
    ///
    /// # Errors
    /// An address that cannot be called; the checks of the settings refuse it before. No randomness.
    pub fn new(
        config: &Config,
        outbound: &OutboundClient,
        clock: &Clock,
        random: &Random,
    ) -> anyhow::Result<Self> {
        let with = ProviderResources {
            config,
            outbound,
            clock,
            random,
        };
        let made = config.providers.iter().map(|settings| {
            Ok(Arc::new(SignInProvider {
                settings: settings.clone(),
                kind: SignInProviderClient::from_settings(settings, with)?,
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
        let listed = move |one: &SignInProvider| match allowed {
            Some(list) => list.contains(&one.settings.name),
            None => !one.is_offered_by_name_alone(),
        };
        self.0.iter().filter(move |one| listed(one))
    }

    /// Returns the provider that sends codes by e-mail, if there is one.
    pub(super) fn email(&self) -> Option<&EmailProvider> {
        self.0.iter().find_map(|one| one.kind.email())
    }
}
