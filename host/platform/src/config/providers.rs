//! Settings of sign-in providers, checked before the server starts.

use anyhow::bail;
use serde::{Deserialize, Serialize, Serializer};

use super::address::IssuerAddress;
use super::{SignInSettings, masked};

/// Name of the development provider inside the server.
const DEV_PROVIDER_NAME: &str = "dev";
/// Name of the provider that sends codes by e-mail.
const EMAIL_PROVIDER_NAME: &str = "email";
/// Name of the provider of passkeys.
const PASSKEY_PROVIDER_NAME: &str = "passkey";
/// Most characters of a provider's name.
const MAX_NAME: usize = 32;

/// Kind of a provider: its protocol.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ProviderKind {
    /// OpenID Connect.
    #[default]
    Oidc,
    /// GitHub's OAuth, which has no ID tokens.
    Github,
    /// The issuer inside the server, which no file can name.
    #[serde(skip_deserializing)]
    Dev,
    /// Codes by e-mail, which `[smtp]` brings along.
    #[serde(skip_deserializing)]
    Email,
    /// Passkeys, which `[sign_in]` brings along.
    #[serde(skip_deserializing)]
    Passkey,
}

/// Rules for the settings of a kind.
struct ProviderKindRules {
    /// Default issuer.
    issuer: &'static str,
    /// Default scopes.
    scopes: &'static [&'static str],
    /// Required scope, and the reason.
    needed: Option<(&'static str, &'static str)>,
    /// Whether the provider requires a client secret.
    needs_secret: bool,
}

impl ProviderKind {
    /// Whether visitors sign in on pages of the server itself, which no other one has a part in. A file has no such provider.
    pub fn has_own_pages(self) -> bool {
        match self {
            Self::Email | Self::Passkey => true,
            Self::Oidc | Self::Github | Self::Dev => false,
        }
    }

    fn rules(self) -> ProviderKindRules {
        match self {
            Self::Oidc | Self::Dev => ProviderKindRules {
                issuer: "",
                scopes: &["openid", "profile", "email"],
                needed: Some(("openid", "without it there is no ID token")),
                needs_secret: false,
            },
            Self::Email | Self::Passkey => ProviderKindRules {
                issuer: "",
                scopes: &[],
                needed: None,
                needs_secret: false,
            },
            Self::Github => ProviderKindRules {
                issuer: "https://github.com",
                scopes: &["read:user", "user:email"],
                needed: None,
                needs_secret: true,
            },
        }
    }
}

/// A sign-in provider.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProviderSettings {
    /// Name in addresses and lists.
    pub name: String,
    /// Name for people.
    #[serde(default)]
    pub display_name: String,
    /// How it speaks.
    #[serde(default)]
    pub kind: ProviderKind,
    /// The address of its issuer.
    #[serde(default)]
    pub issuer: String,
    /// Name of this installation at the provider.
    #[serde(default)]
    pub client_id: String,
    /// The secret that it gave out with that; `SVC_PROVIDERS_<NAME>_CLIENT_SECRET` beats it.
    #[serde(default, serialize_with = "masked")]
    pub client_secret: String,
    /// Scopes that a sign-in asks for.
    #[serde(default)]
    pub scopes: Vec<String>,
    /// Values of OpenID Connect's `prompt`, with spaces between them: questions that the issuer is told to ask visitors.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt: Option<String>,
}

/// Checks the providers of a file, and fills in the defaults.
///
/// # Errors
/// An error that names the key.
pub(super) fn check_providers(
    providers: Vec<ProviderSettings>,
) -> anyhow::Result<Vec<ProviderSettings>> {
    let mut checked: Vec<ProviderSettings> = Vec::with_capacity(providers.len());
    for (index, provider) in providers.into_iter().enumerate() {
        let name = &provider.name;
        let shaped = !name.is_empty()
            && name.len() <= MAX_NAME
            && !name.starts_with('-')
            && name
                .bytes()
                .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b"-_".contains(&b));
        if !shaped {
            bail!(
                "providers[{index}].name must have 1 to {MAX_NAME} characters of a-z, 0-9, `-` and `_`: {name:?}"
            );
        }
        if checked.iter().any(|known| known.name == *name) {
            bail!("providers[{index}].name is taken by another provider: {name:?}");
        }
        provider.check_prompt()?;
        checked.push(provider.with_defaults()?);
    }
    Ok(checked)
}

/// Adds the provider that sends codes by e-mail, where mails can be sent, or shown in their place (`is_dev`).
///
/// # Errors
/// Another provider has its name.
pub(super) fn add_email(
    providers: &mut Vec<ProviderSettings>,
    base_url: &str,
    has_smtp: bool,
    is_dev: bool,
) -> anyhow::Result<()> {
    let is_taken = providers.iter().any(|one| one.name == EMAIL_PROVIDER_NAME);
    if has_smtp && is_taken {
        bail!(
            "providers.{EMAIL_PROVIDER_NAME} has the name of the provider that [smtp] brings along: choose another name"
        );
    }
    if has_smtp || is_dev && !is_taken {
        let (name, kind) = (EMAIL_PROVIDER_NAME, ProviderKind::Email);
        providers.push(ProviderSettings::own(name, "E-mail", kind, base_url));
    }
    Ok(())
}

/// Adds the provider of passkeys, where the settings have it on.
///
/// # Errors
/// Another provider has its name.
pub(super) fn add_passkeys(
    providers: &mut Vec<ProviderSettings>,
    base_url: &str,
    sign_in: SignInSettings,
) -> anyhow::Result<()> {
    if !sign_in.passkeys {
        return Ok(());
    }
    if providers
        .iter()
        .any(|one| one.name == PASSKEY_PROVIDER_NAME)
    {
        bail!(
            "providers.{PASSKEY_PROVIDER_NAME} has the name of the provider that sign_in.passkeys brings along: choose another name"
        );
    }
    let (name, kind) = (PASSKEY_PROVIDER_NAME, ProviderKind::Passkey);
    providers.push(ProviderSettings::own(name, "Passkey", kind, base_url));
    Ok(())
}

/// Serializes the providers that a file can have: what `[smtp]` and `[sign_in]` bring along is none.
pub(super) fn serialize_configured<S: Serializer>(
    providers: &[ProviderSettings],
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let configured = providers.iter();
    serializer.collect_seq(configured.filter(|one| !one.kind.has_own_pages()))
}

impl ProviderSettings {
    /// Makes the development provider, whose issuer is at `issuer`.
    pub(super) fn dev(issuer: String) -> Self {
        Self {
            name: DEV_PROVIDER_NAME.to_owned(),
            display_name: "Developer sign-in (not real)".to_owned(),
            kind: ProviderKind::Dev,
            issuer,
            client_id: "svc".to_owned(),
            client_secret: String::new(),
            scopes: to_strings(ProviderKind::Dev.rules().scopes),
            prompt: None,
        }
    }

    /// Makes a provider of the server's own, whose issuer is below `base_url`.
    fn own(name: &str, display_name: &str, kind: ProviderKind, base_url: &str) -> Self {
        Self {
            name: name.to_owned(),
            display_name: display_name.to_owned(),
            kind,
            issuer: format!("{base_url}/_svc/auth/{name}"),
            client_id: String::new(),
            client_secret: String::new(),
            scopes: Vec::new(),
            prompt: None,
        }
    }

    fn check_prompt(&self) -> anyhow::Result<()> {
        let name = &self.name;
        let Some(prompt) = &self.prompt else {
            return Ok(());
        };
        if self.kind == ProviderKind::Github {
            bail!(
                "providers.{name}.prompt is for OpenID Connect: leave it out, GitHub is always told to ask for the account"
            );
        }
        let is_value = |value: &str| {
            let shaped = value.bytes().all(|b| b.is_ascii_lowercase() || b == b'_');
            shaped && !value.is_empty() && value != "none"
        };
        if !prompt.split(' ').all(is_value) {
            bail!(
                "providers.{name}.prompt must be a value such as \"login\", or several with a space between two; \"none\" would let nobody sign in: {prompt:?}"
            );
        }
        Ok(())
    }

    fn with_defaults(mut self) -> anyhow::Result<Self> {
        let name = self.name.clone();
        let rules = self.kind.rules();
        if self.issuer.is_empty() {
            rules.issuer.clone_into(&mut self.issuer);
        }
        if let Err(error) = IssuerAddress::parse(&self.issuer) {
            bail!("providers.{name}.issuer {error}");
        }
        if self.client_id.is_empty() {
            bail!(
                "providers.{name}.client_id is missing: the provider gives it out when you register with it"
            );
        }
        let variable = format!(
            "SVC_PROVIDERS_{}_CLIENT_SECRET",
            name.to_ascii_uppercase().replace('-', "_")
        );
        if let Some(secret) = read_environment_variable(&variable) {
            self.client_secret = secret;
        }
        if self.client_secret.is_empty() && rules.needs_secret {
            bail!("providers.{name}.client_secret is missing: set it in the file, or {variable}");
        }
        let is_scope = |scope: &String| {
            !scope.is_empty()
                && scope
                    .bytes()
                    .all(|b| b.is_ascii_graphic() && b != b'"' && b != b'\\')
        };
        if let Some(scope) = self.scopes.iter().find(|scope| !is_scope(scope)) {
            bail!("providers.{name}.scopes has one that is no scope: {scope:?}");
        }
        if self.scopes.is_empty() {
            self.scopes = to_strings(rules.scopes);
        }
        if let Some((needed, why)) = rules.needed
            && !self.scopes.iter().any(|scope| scope == needed)
        {
            bail!("providers.{name}.scopes must have {needed:?}: {why}");
        }
        if self.display_name.is_empty() {
            self.display_name.clone_from(&self.name);
        }
        Ok(self)
    }
}

fn to_strings(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

#[allow(
    clippy::disallowed_methods,
    reason = "secrets of tables come from the environment"
)]
pub(super) fn read_environment_variable(variable: &str) -> Option<String> {
    std::env::var(variable)
        .ok()
        .filter(|value| !value.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(toml: &str) -> anyhow::Result<Vec<ProviderSettings>> {
        #[derive(Deserialize)]
        struct File {
            providers: Vec<ProviderSettings>,
        }
        check_providers(toml::from_str::<File>(toml)?.providers)
    }

    const GOOD: &str =
        "[[providers]]\nname = 'a'\nissuer = 'https://a.example'\nclient_id = 'me'\n";

    #[test]
    fn what_is_left_out_is_filled_in() {
        let found = read(GOOD).unwrap();
        assert_eq!(found[0].display_name, "a");
        assert_eq!(found[0].scopes, ["openid", "profile", "email"]);
        let github =
            "[[providers]]\nname = 'g'\nkind = 'github'\nclient_id = 'me'\nclient_secret = 's'";
        let found = read(github).unwrap();
        assert_eq!(found[0].issuer, "https://github.com");
        assert_eq!(found[0].scopes, ["read:user", "user:email"]);
    }

    #[test]
    fn mistakes_are_named() {
        for (toml, named) in [
            (GOOD.replace("'a'", "'A'"), "providers[0].name"),
            (GOOD.replace("'a'", "''"), "providers[0].name"),
            (format!("{GOOD}{GOOD}"), "providers[1].name"),
            (GOOD.replace("https", "http"), "providers.a.issuer"),
            (GOOD.replace("https://a.example", "a"), "providers.a.issuer"),
            (GOOD.replace("issuer", "isuer"), "isuer"),
            (
                GOOD.replace("client_id = 'me'", ""),
                "providers.a.client_id",
            ),
            (format!("{GOOD}scopes = ['email']"), "providers.a.scopes"),
            (format!("{GOOD}scopes = ['open id']"), "providers.a.scopes"),
            (format!("{GOOD}scopes = 'openid'"), "scopes"),
            (format!("{GOOD}prompt = ''"), "providers.a.prompt"),
            (format!("{GOOD}prompt = 'none'"), "providers.a.prompt"),
            (format!("{GOOD}prompt = 'login&x'"), "providers.a.prompt"),
            (
                format!("{GOOD}kind = 'github'\nprompt = 'login'"),
                "providers.a.prompt",
            ),
            (format!("{GOOD}kind = 'saml'"), "kind"),
            (format!("{GOOD}kind = 'dev'"), "kind"),
            (format!("{GOOD}kind = 'passkey'"), "kind"),
            (
                "[[providers]]\nname = 'g'\nkind = 'github'\nclient_id = 'me'".to_owned(),
                "providers.g.client_secret",
            ),
        ] {
            let error = format!("{:#}", read(&toml).unwrap_err());
            assert!(error.contains(named), "{toml}: {error}");
        }
    }

    #[test]
    fn a_secret_is_never_shown() {
        let mut provider = read(GOOD).unwrap().remove(0);
        provider.client_secret = "sesame".to_owned();
        let shown = toml::to_string(&provider).unwrap();
        assert!(
            !shown.contains("sesame") && shown.contains("****"),
            "{shown}"
        );
    }
}
