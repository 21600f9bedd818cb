//! The mail server, as its operator tries it: over TLS, or not at all.

use serde_json::json;
use svc_tests::fake_smtp::{FakeSmtp, SmtpBehaviour};
use svc_tests::run_command;
use svc_tests::tls::CertificateFiles;
use tempfile::TempDir;

use crate::svc;

#[tokio::test]
async fn operators_try_their_mail_server() {
    let smtp = FakeSmtp::start().await;
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("svc.toml");
    let toml = format!(
        "base_url = 'https://svc.example'\ncache = '/tmp/none'\n[smtp]\nurl = '{}'\nfrom = 'codes@sender.example'\n",
        smtp.url()
    );
    std::fs::write(&file, toml).unwrap();
    let check = async |more: &[&str]| {
        let file = file.to_str().unwrap();
        let all = [&["provider", "check", "email", "--config", file][..], more].concat();
        svc().run(folder.path(), &all).await
    };
    let good = check(&[]).await;
    assert!(
        good.success && good.stdout.contains("ok: the mail server answers"),
        "{good:?}"
    );
    assert_eq!(smtp.mails(), []);
    let sent = check(&["--mail-to", "Ada@example.com", "--json"]).await;
    assert_eq!(sent.json()["errors"], json!([]), "{sent:?}");
    assert_eq!(smtp.newest().to, "ada@example.com");
    let odd = check(&["--mail-to", "ada"]).await;
    assert!(!odd.success && odd.stderr.contains("--mail-to"), "{odd:?}");
    smtp.set_behaviour(SmtpBehaviour::Refuse);
    let refused = check(&["--mail-to", "ada@example.com"]).await;
    assert!(
        !refused.success && refused.stdout.contains("550"),
        "{refused:?}"
    );
}

/// An address of this machine that is not known as such, so that TLS is required.
const ELSEWHERE: &str = "0.0.0.0";

#[tokio::test]
async fn what_is_not_on_this_machine_is_told_nothing_without_tls() {
    let certificate = CertificateFiles::new(&[ELSEWHERE]);
    let other = CertificateFiles::new(&[ELSEWHERE]);
    let (sink, plain) = (
        FakeSmtp::start_with_tls(&certificate).await,
        FakeSmtp::start().await,
    );
    let folder = TempDir::new().unwrap();
    let send = async |smtp: &FakeSmtp, believed: &CertificateFiles| {
        let file = folder.path().join("svc.toml");
        let toml = format!(
            "base_url = 'https://svc.example'\ncache = '/tmp/none'\n[smtp]\nurl = 'smtp://me:sesame@{ELSEWHERE}:{}'\nfrom = 'codes@sender.example'\n",
            smtp.port()
        );
        std::fs::write(&file, toml).unwrap();
        let mut command = svc().command();
        command
            .env("SSL_CERT_FILE", believed.cert())
            .args(["provider", "check", "email", "--config"])
            .arg(&file)
            .args(["--mail-to", "ada@example.com"]);
        run_command(command).await
    };
    let sent = send(&sink, &certificate).await;
    assert!(sent.success, "{sent:?}");
    let mail = sink.newest();
    assert!(mail.is_encrypted, "{mail:?}");
    assert_eq!(
        (mail.to.as_str(), sink.mails().len()),
        ("ada@example.com", 1)
    );
    // A certificate that nobody vouches for, and no TLS at all.
    for (smtp, believed) in [(&sink, &other), (&plain, &certificate)] {
        let refused = send(smtp, believed).await;
        assert!(!refused.success, "{refused:?}");
        assert!(!refused.stdout.contains("sesame"), "{refused:?}");
    }
    assert_eq!((sink.mails().len(), plain.mails().len()), (1, 0));
    for smtp in [&sink, &plain] {
        let said = smtp.clear_commands();
        let harmless = |line: &String| {
            let verbs = ["EHLO", "STARTTLS", "QUIT"];
            verbs.iter().any(|verb| line.starts_with(verb))
        };
        assert!(said.iter().all(harmless), "{said:?}");
    }
}
