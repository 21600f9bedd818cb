//! Settings of a bucket: `s3://` in `content_url` or in `bucket` of a cluster, at Amazon or another provider of the S3 protocol.

use std::net::Ipv6Addr;

use anyhow::bail;
use serde::{Deserialize, Serialize};
use url::Url;

/// Access to a bucket. The usual environment variables of S3 tools beat the file.
#[derive(Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct S3Settings {
    /// Endpoint URL without the bucket; Amazon's endpoint of the region by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub endpoint: Option<Url>,
    /// Region of the bucket.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub region: Option<String>,
    /// Id of the access key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub access_key_id: Option<String>,
    /// Secret of the access key.
    #[serde(serialize_with = "super::masked")]
    pub secret_access_key: String,
    /// Settings that only the environment has, by their names in lower case.
    #[serde(skip)]
    more: Vec<(String, String)>,
}

impl std::fmt::Debug for S3Settings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut shown = f.debug_struct("S3Settings");
        shown.field("endpoint", &self.endpoint.as_ref().map(Url::as_str));
        shown.field("region", &self.region);
        shown.finish_non_exhaustive()
    }
}

/// Variable that allows plain HTTP to another machine.
const ALLOW_HTTP_VARIABLE: &str = "AWS_ALLOW_HTTP";
/// Variable of the session token of a temporary key.
const SESSION_TOKEN_VARIABLE: &str = "AWS_SESSION_TOKEN";
/// Further variables of the environment: the role of a machine, a container or a cluster's account, and how
/// the bucket is named in addresses.
const OBJECT_STORE_VARIABLES: &[&str] = &[
    "AWS_VIRTUAL_HOSTED_STYLE_REQUEST",
    "AWS_WEB_IDENTITY_TOKEN_FILE",
    "AWS_ROLE_ARN",
    "AWS_ROLE_SESSION_NAME",
    "AWS_ENDPOINT_URL_STS",
    "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
    "AWS_CONTAINER_CREDENTIALS_FULL_URI",
    "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE",
    "AWS_METADATA_ENDPOINT",
];

/// IPv6 addresses at which Amazon's machines and containers get their keys.
const METADATA_IPV6: [Ipv6Addr; 2] = [
    Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254),
    Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x23),
];
/// Settings that name endpoints of credentials.
const CREDENTIAL_ENDPOINTS: &[&str] = &[
    "aws_endpoint_url_sts",
    "aws_container_credentials_full_uri",
    "aws_metadata_endpoint",
];

impl S3Settings {
    /// Returns the access to the bucket that `store` names, if it is one: the file's settings, overridden by the environment.
    ///
    /// # Errors
    /// When one of them cannot be used.
    #[allow(
        clippy::disallowed_methods,
        reason = "secrets of tables come from the environment"
    )]
    pub(super) fn from_settings(
        store: Option<&Url>,
        file: Option<Self>,
    ) -> anyhow::Result<Option<Self>> {
        let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
        let bucket = store.filter(|url| url.scheme() == "s3");
        let access = bucket.map(|_| file.unwrap_or_default().with_environment(variable));
        access.transpose()
    }

    fn with_environment(
        mut self,
        variable: impl Fn(&str) -> Option<String>,
    ) -> anyhow::Result<Self> {
        let first = |names: &[&str]| names.iter().find_map(|name| variable(name));
        if let Some(url) = first(&["AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT"]) {
            let Ok(url) = url.parse() else {
                bail!("AWS_ENDPOINT_URL is no URL: name one as https://s3.example.com");
            };
            self.endpoint = Some(url);
        }
        self.region = first(&["AWS_REGION", "AWS_DEFAULT_REGION"]).or(self.region);
        let mut names = OBJECT_STORE_VARIABLES.to_vec();
        // Id and secret come from one source: halves of two keys would not work.
        if let Some(id) = variable("AWS_ACCESS_KEY_ID") {
            self.access_key_id = Some(id);
            self.secret_access_key = variable("AWS_SECRET_ACCESS_KEY").unwrap_or_default();
            names.push(SESSION_TOKEN_VARIABLE);
        }
        let named = names
            .iter()
            .filter_map(|name| Some((name, variable(name)?)));
        self.more = named.map(|(name, it)| (name.to_lowercase(), it)).collect();
        if self.access_key_id.is_some() == self.secret_access_key.is_empty() {
            bail!(
                "s3: an access key has two parts: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or `access_key_id` and `secret_access_key` of [s3]"
            );
        }
        let allow_http = variable(ALLOW_HTTP_VARIABLE).as_deref() == Some("true");
        self.check_endpoint(allow_http)?;
        self.check_credential_endpoints(allow_http)?;
        Ok(self)
    }

    /// Refuses credential endpoints on other machines over plain HTTP. Link-local addresses are allowed: containers and machines get
    /// their roles there.
    fn check_credential_endpoints(&self, allow_http: bool) -> anyhow::Result<()> {
        let places = self.more.iter();
        for (name, place) in places.filter(|it| CREDENTIAL_ENDPOINTS.contains(&&*it.0)) {
            let name = name.to_uppercase();
            let Ok(url) = place.parse::<Url>() else {
                bail!("{name} is no URL");
            };
            let near = super::address::is_loopback(&url) || is_link_local(&url);
            if url.scheme() != "https" && !near && !allow_http {
                bail!(
                    "{name} is plain HTTP to another machine, where anybody on the way can read keys: use https, or set {ALLOW_HTTP_VARIABLE}=true if the network is yours alone"
                );
            }
        }
        Ok(())
    }

    fn check_endpoint(&self, allow_http: bool) -> anyhow::Result<()> {
        let Some(url) = &self.endpoint else {
            return Ok(());
        };
        let plain = url.username().is_empty()
            && url.password().is_none()
            && url.query().is_none()
            && url.fragment().is_none();
        if !plain || !matches!(url.scheme(), "http" | "https") {
            bail!(
                "s3.endpoint must be a URL such as https://s3.example.com, without a user, a password or a query: keys have settings of their own"
            );
        }
        if url.scheme() == "http" && !allow_http && !super::address::is_loopback(url) {
            bail!(
                "s3.endpoint is plain HTTP to another machine, where anybody on the way can read and change content: use https, or set {ALLOW_HTTP_VARIABLE}=true if the network is yours alone"
            );
        }
        Ok(())
    }

    /// Lists the settings by the names of the store's library.
    pub fn client_options(&self) -> impl Iterator<Item = (&str, &str)> {
        let secret = Some(self.secret_access_key.as_str());
        let own = [
            ("aws_endpoint", self.endpoint.as_ref().map(Url::as_str)),
            ("aws_region", self.region.as_deref()),
            ("aws_access_key_id", self.access_key_id.as_deref()),
            ("aws_secret_access_key", secret.filter(|it| !it.is_empty())),
        ];
        let own = own.into_iter();
        let own = own.filter_map(|(name, value)| Some((name, value?)));
        own.chain(self.more.iter().map(|(name, it)| (&**name, &**it)))
    }
}

/// Whether a URL has a link-local address, or one of Amazon's IPv6 metadata addresses.
fn is_link_local(url: &Url) -> bool {
    match url.host() {
        Some(url::Host::Ipv4(address)) => address.is_link_local(),
        Some(url::Host::Ipv6(address)) => {
            address.is_unicast_link_local() || METADATA_IPV6.contains(&address)
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(toml: &str, environment: &[(&str, &str)]) -> anyhow::Result<S3Settings> {
        let settings: S3Settings = toml::from_str(toml)?;
        let value = |name: &str| environment.iter().find(|it| it.0 == name);
        settings.with_environment(|name| value(name).map(|it| it.1.to_owned()))
    }

    #[test]
    fn the_environment_beats_the_file_and_secrets_stay_unseen() {
        let toml = "endpoint = 'https://s3.example.com'\nregion = 'eu'\naccess_key_id = 'file'\nsecret_access_key = 'hush'";
        let named = |s3: &S3Settings| {
            s3.client_options()
                .map(|(n, v)| format!("{n}={v}"))
                .collect::<Vec<_>>()
        };
        let file = read(toml, &[]).unwrap();
        assert_eq!(
            named(&file),
            [
                "aws_endpoint=https://s3.example.com/",
                "aws_region=eu",
                "aws_access_key_id=file",
                "aws_secret_access_key=hush"
            ]
        );
        let environment = [
            ("AWS_ENDPOINT_URL", "http://127.0.0.1:9000"),
            ("AWS_DEFAULT_REGION", "us"),
            ("AWS_ACCESS_KEY_ID", "id"),
            ("AWS_SECRET_ACCESS_KEY", "quiet"),
            ("AWS_SESSION_TOKEN", "silent"),
        ];
        let both = read(toml, &environment).unwrap();
        assert_eq!(
            named(&both),
            [
                "aws_endpoint=http://127.0.0.1:9000/",
                "aws_region=us",
                "aws_access_key_id=id",
                "aws_secret_access_key=quiet",
                "aws_session_token=silent"
            ]
        );
        let shown = format!("{both:?}{}", toml::to_string(&both).unwrap());
        for secret in ["hush", "quiet", "silent"] {
            assert!(!shown.contains(secret), "{shown}");
        }
        assert_eq!(named(&read("", &[]).unwrap()), Vec::<String>::new());
    }

    #[test]
    fn what_cannot_be_used_is_named() {
        let key = "access_key_id = 'id'\nsecret_access_key = 'hush'\n";
        for (toml, environment, says) in [
            ("access_key_id = 'id'", None, "two parts"),
            ("secret_access_key = 'hush'", None, "two parts"),
            (key, Some(("AWS_ACCESS_KEY_ID", "other")), "two parts"),
            ("", Some(("AWS_ENDPOINT_URL", "hush")), "is no URL"),
            (
                "endpoint = 'https://me:hush@s3.example.com'",
                None,
                "without a user",
            ),
            (
                "endpoint = 'https://s3.example.com/?hush'",
                None,
                "without a user",
            ),
            (
                "endpoint = 'ftp://hush.example.com'",
                None,
                "without a user",
            ),
            (
                "endpoint = 'http://hush.example.com'",
                None,
                "AWS_ALLOW_HTTP",
            ),
            ("bucket = 'hush'", None, "unknown field"),
            (
                "",
                Some((
                    "AWS_CONTAINER_CREDENTIALS_FULL_URI",
                    "http://hush.example.com/",
                )),
                "AWS_CONTAINER_CREDENTIALS_FULL_URI is plain HTTP",
            ),
            (
                "",
                Some(("AWS_ENDPOINT_URL_STS", "http://10.0.0.1/hush")),
                "AWS_ENDPOINT_URL_STS is plain HTTP",
            ),
            ("", Some(("AWS_METADATA_ENDPOINT", "hush")), "is no URL"),
        ] {
            let environment = Vec::from_iter(environment);
            let error = format!("{:#}", read(toml, &environment).unwrap_err());
            assert!(error.contains(says), "{toml}: {error}");
            assert!(
                says == "unknown field" || !error.contains("hush"),
                "{error}"
            );
        }
        for place in [
            "http://169.254.170.2/",
            "http://[fd00:ec2::254]",
            "https://sts.example.com",
        ] {
            for name in [
                "AWS_CONTAINER_CREDENTIALS_FULL_URI",
                "AWS_METADATA_ENDPOINT",
            ] {
                assert!(read("", &[(name, place)]).is_ok(), "{name} {place}");
            }
        }
        let rest = [("AWS_SESSION_TOKEN", "of another key")];
        let of_file = read(key, &rest).unwrap();
        assert!(
            of_file
                .client_options()
                .all(|(name, _)| name != "aws_session_token")
        );
        let allowed = [("AWS_ALLOW_HTTP", "true")];
        assert!(read("endpoint = 'http://minio:9000'", &allowed).is_ok());
        assert!(read("endpoint = 'http://localhost:9000'", &[]).is_ok());
    }
}
