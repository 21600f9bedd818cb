//! Settings from each place.

use super::*;

fn resolve(toml: &str) -> anyhow::Result<Config> {
    let settings: Settings = toml::from_str(toml)?;
    settings.resolve(SocketAddr::from(([127, 0, 0, 1], 4321)))
}

#[test]
fn defaults_follow_the_port() {
    let config = resolve("cache = '/c'").unwrap();
    assert_eq!(config.base_url, "http://localhost:4321");
    assert_eq!(config.sites_url, "http://localhost:4321");
    assert_eq!(config.sites_domain.as_deref(), Some("localhost:4321"));
    assert_eq!(config.guests, Path::new("data/guests"));
    assert!(!config.secure);
}

#[test]
fn a_real_host_has_no_sites_domain_unless_told() {
    let config = resolve("cache = '/c'\nbase_url = 'https://API.example.com/'").unwrap();
    assert_eq!(config.base_url, "https://api.example.com");
    assert_eq!(config.sites_domain, None);
    assert!(config.secure);
}

#[test]
fn a_contact_is_an_address_that_can_be_followed() {
    for (written, expected) in [
        ("abuse@example.com", "mailto:abuse@example.com"),
        ("mailto:abuse@example.com", "mailto:abuse@example.com"),
        ("https://example.com/contact", "https://example.com/contact"),
    ] {
        let config = resolve(&format!("cache = '/c'\ncontact = '{written}'")).unwrap();
        assert_eq!(config.contact.as_deref(), Some(expected));
    }
}

#[test]
fn mistakes_are_named() {
    for (toml, name) in [
        ("lissen = '127.0.0.1:1'", "lissen"),
        ("[limits]\nbody_byte = 1", "body_byte"),
        ("base_url = 'https://example.com/path'", "base_url"),
        (
            "base_url = 'http://a.example'\nsites_url = 'https://b.example'",
            "base_url and sites_url must have the same scheme",
        ),
        (
            "base_url = 'https://a.example'\nsites_url = 'http://b.example'",
            "base_url and sites_url must have the same scheme",
        ),
        // The base URL is this machine's by default.
        (
            "sites_url = 'https://b.example'",
            "base_url and sites_url must have the same scheme",
        ),
        ("[limits]\ndeploy_burst = 0", "deploy_burst"),
        ("contact = 'somebody'", "contact"),
        ("contact = 'javascript:alert(1)'", "contact"),
        ("contact = \"a@example.com\\nExpires: never\"", "contact"),
    ] {
        let error = format!("{:#}", resolve(toml).unwrap_err());
        assert!(error.contains(name), "{error}");
    }
}

#[test]
fn a_public_host_of_sites_has_no_stand_ins() {
    let settings = Settings {
        dev: true,
        cache: Some("/c".into()),
        sites_url: Some("http://sites.example".parse().unwrap()),
        ..Settings::default()
    };
    let config = settings.resolve("127.0.0.1:80".parse().unwrap()).unwrap();
    assert!(!config.dev && config.providers.is_empty());
}

#[test]
fn what_others_reach_is_not_for_trying_out() {
    for (listen, base_url, refused, dev) in [
        ("127.0.0.1:80", None, false, true),
        ("[::1]:80", None, false, true),
        ("[::ffff:127.0.0.1]:80", None, false, true),
        ("0.0.0.0:80", None, true, false),
        ("[::]:80", None, true, false),
        ("192.0.2.1:80", None, true, false),
        ("192.0.2.1:80", Some("https://svc.example"), true, false),
        // Behind a proxy, perhaps: there are no stand-ins then.
        ("127.0.0.1:80", Some("https://svc.example"), false, false),
        ("127.0.0.1:80", Some("http://192.0.2.1"), false, false),
    ] {
        let settings = |dev| Settings {
            dev,
            cache: Some("/c".into()),
            base_url: base_url.map(|url| url.parse().unwrap()),
            ..Settings::default()
        };
        let address: SocketAddr = listen.parse().unwrap();
        assert!(settings(false).resolve(address).is_ok(), "{listen}");
        match settings(true).resolve(address) {
            Ok(config) => {
                assert!(!refused, "{listen} {base_url:?}");
                assert_eq!(config.dev, dev, "{listen} {base_url:?}");
                let is_raised = config.limits.mcp_per_minute > Limits::default().mcp_per_minute;
                assert!(dev || !is_raised, "{listen} {base_url:?}");
                let names: Vec<_> = config
                    .providers
                    .iter()
                    .map(|one| one.name.as_str())
                    .collect();
                let stand_ins: &[&str] = if dev { &["dev", "email"] } else { &[] };
                assert_eq!(names, stand_ins, "{listen}");
            }
            Err(error) => assert!(refused && error.to_string().contains("--dev"), "{error}"),
        }
    }
}

#[test]
fn a_mail_server_brings_a_provider_along() {
    let resolve = |more: &str, dev: bool| {
        let smtp = "[smtp]\nurl = 'smtp://localhost'\nfrom = 'svc@example.com'\n";
        let settings: Settings = toml::from_str(&format!("cache = '/c'\n{smtp}{more}")).unwrap();
        let settings = Settings { dev, ..settings };
        settings.resolve("127.0.0.1:80".parse().unwrap())
    };
    for dev in [false, true] {
        let config = resolve("", dev).unwrap();
        let [email] = config.providers.as_slice() else {
            panic!("{:?}", config.providers);
        };
        assert_eq!(email.name, "email");
        assert_eq!(email.issuer, "http://localhost:80/_svc/auth/email");
        // What is shown can be a file again.
        let shown = toml::to_string(&config).unwrap();
        assert!(
            !shown.contains("[[providers]]") && shown.contains("[smtp]"),
            "{shown}"
        );
    }
    let taken = "[[providers]]\nname = 'email'\nissuer = 'https://a.example'\nclient_id = 'me'\n";
    let error = resolve(taken, false).unwrap_err().to_string();
    assert!(error.contains("providers.email"), "{error}");
}

#[test]
fn flags_beat_the_file() {
    let flags = Settings {
        data: Some("/flag".into()),
        ..Settings::default()
    };
    let file: Settings = toml::from_str("data = '/file'\nlanding_host = 'x'").unwrap();
    let both = flags.fill_from(file);
    assert_eq!(both.data(), Path::new("/flag"));
    assert_eq!(both.landing_host.as_deref(), Some("x"));
}
