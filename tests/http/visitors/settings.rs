//! Settings of sign-in: what cannot be is refused at the start by its name, and who does not answer stops no start.

use std::io::Read as _;
use std::process::{Child, Stdio};

use svc_tests::wait_until;
use tempfile::TempDir;

use crate::svc;

const PROVIDER: &str =
    "[[providers]]\nname = 'acme'\nissuer = 'https://id.example'\nclient_id = 'me'\n";
const OAUTH: &str = "[oauth]\nissuer = 'https://id.example'\naudience = 'https://svc.example'\n";
const STRIPE: &str = "[stripe]\nsecret_key = 'sk_test_1'\nwebhook_secret = 'whsec_1'\n";

const SMTP: &str = "[smtp]\nurl = 'smtps://me:sesame@mail.example'\nfrom = 'codes@svc.example'\n";

/// A server that must refuse to start. Dropping it kills the process.
struct RefusedStart(Child);

impl Drop for RefusedStart {
    fn drop(&mut self) {
        // The process may have ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts a server that cannot start; answers what it says on standard output and on standard error.
async fn run_refused_start(config: &str) -> (String, String) {
    let root = TempDir::new().unwrap();
    let file = root.path().join("svc.toml");
    std::fs::write(&file, config).unwrap();
    let data = root.path().join("data");
    let mut command = svc().command();
    command.env("SVC_DATA", &data);
    command.args(["serve", "--listen", "127.0.0.1:0", "--config"]);
    command.arg(&file).stdin(Stdio::null());
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut starting = RefusedStart(command.spawn().unwrap());
    let ended = format!("a start to fail with {config}");
    let status = wait_until(&ended, async || starting.0.try_wait().unwrap()).await;
    assert!(!status.success(), "{config}");
    assert!(!data.exists(), "{config}: a start that fails makes nothing");
    let (mut said, mut wrong) = (String::new(), String::new());
    let (stdout, stderr) = (starting.0.stdout.take(), starting.0.stderr.take());
    stdout.unwrap().read_to_string(&mut said).unwrap();
    stderr.unwrap().read_to_string(&mut wrong).unwrap();
    (said, wrong)
}

#[tokio::test]
async fn a_mistake_stops_the_start_and_is_named() {
    let provider = |from: &str, to: &str| PROVIDER.replace(from, to);
    let oauth = |from: &str, to: &str| OAUTH.replace(from, to);
    let stripe = |from: &str, to: &str| STRIPE.replace(from, to);
    let smtp = |from: &str, to: &str| SMTP.replace(from, to);
    let wrong = [
        (provider("'acme'", "'Acme'"), "providers[0].name"),
        (provider("'acme'", "''"), "providers[0].name"),
        (provider("'acme'", "'-a'"), "providers[0].name"),
        (
            provider("'acme'", &format!("'{}'", "a".repeat(33))),
            "providers[0].name",
        ),
        (format!("{PROVIDER}{PROVIDER}"), "providers[1].name"),
        (provider("name = 'acme'\n", ""), "name"),
        (
            provider("issuer = 'https://id.example'\n", ""),
            "providers.acme.issuer",
        ),
        (provider("https", "http"), "providers.acme.issuer"),
        (provider("https", "ftp"), "providers.acme.issuer"),
        (
            provider("https://id", "https://me:pw@id"),
            "providers.acme.issuer",
        ),
        (
            provider("id.example", "id.example/?a=b"),
            "providers.acme.issuer",
        ),
        (
            provider("https://id.example", "id"),
            "providers.acme.issuer",
        ),
        (provider("'me'", "''"), "providers.acme.client_id"),
        (
            format!("{PROVIDER}scopes = ['email']"),
            "providers.acme.scopes",
        ),
        (
            format!("{PROVIDER}scopes = ['openid', 'a b']"),
            "providers.acme.scopes",
        ),
        (format!("{PROVIDER}scopes = 'openid email'"), "scopes"),
        (format!("{PROVIDER}kind = 'saml'"), "kind"),
        (format!("{PROVIDER}kind = 'dev'"), "kind"),
        (format!("{PROVIDER}secret = 'x'"), "secret"),
        (
            format!("{PROVIDER}kind = 'github'"),
            "providers.acme.client_secret",
        ),
        (oauth("'https://id.example'", "'id'"), "oauth.issuer"),
        (oauth("https://id", "http://id"), "oauth.issuer"),
        (oauth("issuer = 'https://id.example'\n", ""), "issuer"),
        (oauth("'https://svc.example'", "''"), "oauth.audience"),
        (oauth("audience = 'https://svc.example'\n", ""), "audience"),
        (format!("{OAUTH}scopes = ['a b']"), "oauth.scopes"),
        (format!("{OAUTH}scope = ['a']"), "scope"),
        (stripe("'sk_test_1'", "''"), "stripe.secret_key"),
        (stripe("'whsec_1'", "''"), "stripe.webhook_secret"),
        (
            stripe("'whsec_1'", "['whsec_1', '']"),
            "stripe.webhook_secret",
        ),
        (format!("{STRIPE}plan_price = ''"), "stripe.plan_price"),
        (
            format!("{STRIPE}api_base = 'http://pay.example'"),
            "stripe.api_base",
        ),
        (format!("{STRIPE}price = 'x'"), "price"),
        (
            "base_url = 'http://svc.example'\n[sign_in]\npasskeys = true\n".to_owned(),
            "sign_in.passkeys",
        ),
        ("[sign_in]\npasskey = true\n".to_owned(), "passkey"),
        (
            format!(
                "[sign_in]\npasskeys = true\n{}",
                provider("'acme'", "'passkey'")
            ),
            "providers.passkey",
        ),
        (smtp("smtps://", "https://"), "smtp.url"),
        (smtp("mail.example", "mail.example/x"), "smtp.url"),
        (smtp("'codes@svc.example'", "'codes'"), "smtp.from"),
        (smtp("from = 'codes@svc.example'\n", ""), "from"),
        (format!("{SMTP}name = ''"), "smtp.name"),
        (format!("{SMTP}password = 'x'"), "password"),
        (
            format!("{SMTP}{}", provider("'acme'", "'email'")),
            "providers.email",
        ),
    ];
    let tried = wrong.into_iter().map(async |(config, named)| {
        let (said, wrong) = run_refused_start(&config).await;
        assert_eq!(said, "", "{config}");
        assert!(wrong.contains(named), "{config}: {wrong}");
        for secret in ["sk_test_1", "whsec_1", "sesame"] {
            assert!(!wrong.contains(secret), "{config}: {wrong}");
        }
    });
    futures_util::future::join_all(tried).await;
}

#[tokio::test]
async fn who_does_not_answer_stops_no_start() {
    let root = TempDir::new().unwrap();
    let file = root.path().join("svc.toml");
    let dead = "http://127.0.0.1:1";
    let config = [
        PROVIDER.replace("https://id.example", dead),
        OAUTH.replace("https://id.example", dead),
        format!("{STRIPE}api_base = '{dead}'\n"),
    ]
    .concat();
    std::fs::write(&file, config).unwrap();
    let arguments = ["--config", file.to_str().unwrap()];
    let process = svc().serve(&root.path().join("data"), &arguments).await;
    process.get("/healthz").await.expect(200);
    process.kill().await;
}
