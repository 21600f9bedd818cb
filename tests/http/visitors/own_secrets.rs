//! Secrets of sign-ins that need nobody else: the log at its most talkative has no code, no challenge and no credential.

use serde_json::Value;
use svc_tests::authenticator::{Authenticator, PasskeyPrompt};
use svc_tests::browser::{Browser, location};
use svc_tests::fake_smtp::FakeSmtp;
use tempfile::TempDir;

use super::secrets::{start_with_tables, whole_log};
use crate::owner::text;

/// Texts of a credential that nobody but its owner has a use for.
fn texts_of(credential: &str) -> Vec<String> {
    let credential: Value = serde_json::from_str(credential).unwrap();
    let response = credential["response"].as_object().unwrap().values();
    let response = response.filter_map(Value::as_str).map(str::to_owned);
    response.chain([text(&credential["rawId"])]).collect()
}

#[tokio::test]
async fn the_log_has_no_code_and_no_passkey() {
    let smtp = FakeSmtp::start().await;
    let tables = format!(
        "[sign_in]\npasskeys = true\n[smtp]\nurl = '{}'\nfrom = 'codes@sender.example'\n",
        smtp.url()
    );
    let (root, mut credential) = (TempDir::new().unwrap(), String::new());
    let (site, page) = start_with_tables(&root, &tables, &mut credential).await;
    let mut browser = Browser::new(site.process.address());
    let mut secrets = Vec::new();
    // By e-mail: a wrong code, then the right one.
    let login = format!("{}/auth/login?provider=email", page.url);
    let answer = browser.get(&login).await.expect(302);
    let at = location(&login, &answer);
    browser
        .submit(&at, "email=ada%40example.com")
        .await
        .expect(200);
    let code = smtp.newest().code();
    browser.submit(&at, "code=wrong").await.expect(400);
    let entered = browser.submit(&at, &format!("code={code}")).await;
    let (end, _) = browser.follow(&at, entered.expect(303)).await;
    assert_eq!(end, page.url);
    secrets.extend(["ada@example.com".to_owned(), format!(" {code}")]);
    // By passkey: one that is made, and the same one used.
    let mut device = Authenticator::default();
    for kind in ["create", "get"] {
        let login = format!("{}/auth/login?provider=passkey", page.url);
        let answer = browser.get(&login).await.expect(302);
        let at = location(&login, &answer);
        let shown = browser.get(&at).await.expect(200);
        let prompt = PasskeyPrompt::find(shown.text(), kind);
        let (name, said) = match kind {
            "create" => (
                Some("Ada Lovelace"),
                device.create(&prompt.options, &page.sites),
            ),
            _ => (None, device.get(&prompt.options, &page.sites)),
        };
        secrets.push(prompt.challenge.clone());
        secrets.push(text(&prompt.options["challenge"]));
        secrets.extend(texts_of(&said));
        let sent = browser.submit(&at, &prompt.form(name, &said)).await;
        let (end, _) = browser.follow(&at, sent.expect(303)).await;
        assert_eq!(end, page.url, "{kind}");
    }
    secrets.push("Ada Lovelace".to_owned());
    let log = whole_log(&site.process).await;
    assert!(log.contains("DEBUG"), "it is talkative");
    for secret in &secrets {
        let line = log.lines().find(|line| line.contains(secret));
        assert_eq!(line, None, "{secret}");
    }
}
