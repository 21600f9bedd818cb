//! The providers that this installation offers, each ready to be asked.

use std::sync::Arc;

use tokio::sync::Semaphore;

use crate::config::{Address, AddressError, Provider as Settings, ProviderKind};
use crate::issuers::Issuer;
use crate::outbound::Outbound;
use svc_base::clock::Clock;

/// How many sign-ins may wait for one provider at once.
const WAITING: usize = 64;

/// All providers, in the operator's order.
#[derive(Debug)]
pub struct Providers(Vec<Arc<Provider>>);

/// A provider.
#[derive(Debug)]
pub struct Provider {
    /// Settings of the operator.
    pub settings: Settings,
    /// Issuer of the provider's tokens; GitHub issues none.
    pub issuer: Issuer,
    /// Turns of sign-ins that wait for it.
    pub waiting: Semaphore,
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
            let address = Address::parse(&settings.issuer)?;
            Ok(Arc::new(Provider {
                settings: settings.clone(),
                issuer: Issuer::new(address, outbound.clone(), clock.clone()),
                waiting: Semaphore::new(WAITING),
            }))
        });
        made.collect::<Result<_, _>>().map(Self)
    }

    /// The provider of a name.
    pub fn named(&self, name: &str) -> Option<&Arc<Provider>> {
        self.0.iter().find(|one| one.settings.name == name)
    }

    /// Those that a project offers: all, if it has no list.
    pub fn allowed<'a>(
        &'a self,
        allowed: Option<&'a [String]>,
    ) -> impl Iterator<Item = &'a Arc<Provider>> {
        let listed = move |name: &String| allowed.is_none_or(|list| list.contains(name));
        self.0.iter().filter(move |one| listed(&one.settings.name))
    }

    /// The issuer inside the server, if it is offered.
    pub fn dev(&self) -> Option<&Arc<Provider>> {
        let mut all = self.0.iter();
        all.find(|one| one.settings.kind == ProviderKind::Dev)
    }
}
