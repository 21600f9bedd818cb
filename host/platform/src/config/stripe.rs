//! The payment provider's settings.

use anyhow::bail;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use url::Url;

use super::address::is_loopback;

/// A payment provider that speaks as Stripe does.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StripeSettings {
    /// The key of its API; `SVC_STRIPE_SECRET_KEY` beats it.
    #[serde(default, serialize_with = "super::masked")]
    pub secret_key: String,
    /// Secret that webhooks are signed with, or several while they are changed; `SVC_STRIPE_WEBHOOK_SECRET` beats them,
    /// with commas between several.
    #[serde(default)]
    pub webhook_secret: WebhookSecrets,
    /// Base URL of its API.
    #[serde(default = "default_api_base")]
    pub api_base: Url,
    /// The provider's price of the plan `pro`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan_price: Option<String>,
}

impl StripeSettings {
    /// Whether real money moves: with a live key, and a provider that is not a stand-in on this machine.
    pub fn is_live(&self) -> bool {
        let key = ["sk_live_", "rk_live_"];
        let live = key.iter().any(|prefix| self.secret_key.starts_with(prefix));
        live && self.api_base.scheme() == "https"
    }
}

impl std::fmt::Debug for StripeSettings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut shown = f.debug_struct("StripeSettings");
        shown.field("api_base", &self.api_base.as_str());
        shown.field("plan_price", &self.plan_price);
        shown.finish_non_exhaustive()
    }
}

/// Secrets of webhooks.
#[derive(Clone, Default)]
pub struct WebhookSecrets(pub Vec<String>);

impl Serialize for WebhookSecrets {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let shown = self.0.iter().map(|_| "********");
        serializer.collect_seq(shown)
    }
}

impl<'de> Deserialize<'de> for WebhookSecrets {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged, expecting = "a secret or an array of them")]
        enum OneOrSeveral {
            One(String),
            Several(Vec<String>),
        }
        Ok(Self(match OneOrSeveral::deserialize(deserializer)? {
            OneOrSeveral::One(one) => vec![one],
            OneOrSeveral::Several(several) => several,
        }))
    }
}

#[allow(clippy::expect_used, reason = "a constant")]
fn default_api_base() -> Url {
    Url::parse("https://api.stripe.com").expect("a URL")
}

impl StripeSettings {
    /// Overrides the secrets of the file with those of the environment, and checks the settings.
    ///
    /// # Errors
    /// When one is missing or cannot be used.
    #[allow(
        clippy::disallowed_methods,
        reason = "secrets of tables come from the environment"
    )]
    pub(super) fn with_environment(mut self) -> anyhow::Result<Self> {
        if let Ok(key) = std::env::var("SVC_STRIPE_SECRET_KEY") {
            self.secret_key = key;
        }
        if let Ok(secrets) = std::env::var("SVC_STRIPE_WEBHOOK_SECRET") {
            self.webhook_secret = WebhookSecrets(secrets.split(',').map(str::to_owned).collect());
        }
        self.check()?;
        Ok(self)
    }

    fn check(&self) -> anyhow::Result<()> {
        if self.secret_key.is_empty() {
            bail!("stripe.secret_key is missing: set it in the file, or SVC_STRIPE_SECRET_KEY");
        }
        let secrets = &self.webhook_secret.0;
        if secrets.is_empty() || secrets.iter().any(String::is_empty) {
            bail!(
                "stripe.webhook_secret is missing: set it in the file, or SVC_STRIPE_WEBHOOK_SECRET"
            );
        }
        let base = &self.api_base;
        let safe = base.scheme() == "https" || base.scheme() == "http" && is_loopback(base);
        if !safe || base.query().is_some() || base.fragment().is_some() {
            bail!("stripe.api_base must be https, or http on this machine: {base}");
        }
        if self.plan_price.as_deref().is_some_and(str::is_empty) {
            bail!(
                "stripe.plan_price is empty: name the provider's price of the plan `pro`, or leave it out"
            );
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(toml: &str) -> anyhow::Result<StripeSettings> {
        let settings: StripeSettings = toml::from_str(toml)?;
        settings.check()?;
        Ok(settings)
    }

    #[test]
    fn one_secret_or_several() {
        let one = read("secret_key = 'sk'\nwebhook_secret = 'a'").unwrap();
        assert_eq!(one.webhook_secret.0, ["a"]);
        assert_eq!(one.api_base.as_str(), "https://api.stripe.com/");
        let two = read("secret_key = 'sk'\nwebhook_secret = ['a', 'b']").unwrap();
        assert_eq!(two.webhook_secret.0, ["a", "b"]);
        let shown = format!("{two:?}{}", toml::to_string(&two).unwrap());
        assert!(!shown.contains("sk") && !shown.contains("'b'"), "{shown}");
    }

    #[test]
    fn what_cannot_work_is_named() {
        for (toml, name) in [
            ("webhook_secret = 'a'", "secret_key"),
            ("secret_key = 'sk'", "webhook_secret"),
            ("secret_key = 'sk'\nwebhook_secret = []", "webhook_secret"),
            (
                "secret_key = 'sk'\nwebhook_secret = ['a', '']",
                "webhook_secret",
            ),
            (
                "secret_key = 'sk'\nwebhook_secret = 7",
                "a secret or an array",
            ),
            (
                "secret_key = 'sk'\nwebhook_secret = 'a'\napi_base = 'http://example.com'",
                "api_base",
            ),
            (
                "secret_key = 'sk'\nwebhook_secret = 'a'\nprice = 'x'",
                "price",
            ),
        ] {
            let error = format!("{:#}", read(toml).unwrap_err());
            assert!(error.contains(name), "{error}");
        }
        let local = "secret_key = 'sk'\nwebhook_secret = 'a'\napi_base = 'http://127.0.0.1:9/v1'";
        assert!(read(local).is_ok());
    }
}
