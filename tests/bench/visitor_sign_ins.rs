//! Sign-ins that need nobody else: processor time of one by passkey, and whether the time of a code tells that an address is known.

use std::time::Instant;

use anyhow::{Context as _, ensure};
use svc_tests::authenticator::{Authenticator, PasskeyPrompt};
use svc_tests::browser::Browser;
use svc_tests::fake_smtp::FakeSmtp;

use super::owner::Owner;
use super::report::{Goals, median, millis, print_line, print_title};
use super::server::{Bench, Running};
use super::tenant;

const DATA: &str = "sign-ins";
const SLUG: &str = "items";
/// Sign-ins by passkey that are measured.
const SIGN_INS: u32 = 200;
/// Codes that are sent to a known address, and to unknown ones.
const CODES: usize = 400;
/// An address that has signed in.
const KNOWN: &str = "known@example.com";

/// A server whose visitors have passkeys, and codes of a mail server.
struct Site {
    svc: Running,
    smtp: FakeSmtp,
    /// The sites host.
    sites: String,
}

pub(crate) fn measure(bench: &Bench, goals: &mut Goals) -> anyhow::Result<()> {
    print_title(&format!(
        "Sign-ins that need nobody else: {SIGN_INS} by passkey, {CODES} codes to a known address and as many to others"
    ))?;
    let runtime = tokio::runtime::Runtime::new()?;
    let smtp = runtime.block_on(FakeSmtp::start());
    let settings = format!(
        "sign_in_per_minute = 100000000\nsign_in_burst = 100000000\nmail_per_hour_address = 1000000\nmail_per_hour_client = 1000000\nmail_per_hour_project = 1000000\n[sign_in]\npasskeys = true\n[smtp]\nurl = \"{}\"\nfrom = \"codes@sender.example\"\n",
        smtp.url()
    );
    let (svc, credential) = bench.start_owned_with(DATA, &settings)?;
    tenant::create_tenant(&mut Owner::new(&svc, &credential)?, SLUG, &[])?;
    svc.await_rest()?;
    let sites = format!("http://localhost:{}", svc.address.port());
    let site = Site { svc, smtp, sites };
    let cost = runtime.block_on(site.passkey_cost())?;
    print_line(&format!(
        "a sign-in by passkey, from the page and back: {cost:.2} ms of processor time"
    ))?;
    goals.at_most(
        "processor time of a sign-in by passkey, in milliseconds",
        cost,
        2.0,
    );
    let (known, unknown) = runtime.block_on(site.code_times())?;
    print_line(&format!(
        "a code, p50: {known:.2} ms to a known address, {unknown:.2} ms to others"
    ))?;
    let apart = (known / unknown).max(unknown / known);
    goals.at_most(
        "p50 of a code to a known address and to others, apart",
        apart,
        1.05,
    );
    Ok(())
}

impl Site {
    /// Opens the page of a sign-in by a provider; returns its address and text.
    async fn open(
        &self,
        browser: &mut Browser,
        provider: &str,
    ) -> anyhow::Result<(String, String)> {
        let login = format!("{}/{SLUG}/auth/login?provider={provider}", self.sites);
        let (at, page) = browser.open(&login).await;
        ensure!(page.status == 200, "{page:?}");
        Ok((at, page.text().to_owned()))
    }

    /// Measures the server's processor time of a sign-in by passkey, in milliseconds.
    async fn passkey_cost(&self) -> anyhow::Result<f64> {
        let mut device = Authenticator::default();
        let mut browser = Browser::new(self.svc.address);
        let (at, page) = self.open(&mut browser, "passkey").await?;
        let prompt = PasskeyPrompt::find(&page, "create");
        let made = device.create(&prompt.options, &self.sites);
        let form = prompt.form(Some("Somebody"), &made);
        finish(&mut browser, &at, &form).await?;
        let before = self.svc.cpu()?;
        for _ in 0..SIGN_INS {
            let mut browser = Browser::new(self.svc.address);
            let (at, page) = self.open(&mut browser, "passkey").await?;
            let prompt = PasskeyPrompt::find(&page, "get");
            let form = prompt.form(None, &device.get(&prompt.options, &self.sites));
            finish(&mut browser, &at, &form).await?;
        }
        Ok(millis(self.svc.cpu()? - before) / f64::from(SIGN_INS))
    }

    /// Measures the time until the form for a code comes, in milliseconds: for a known address, and for unknown ones in turn.
    async fn code_times(&self) -> anyhow::Result<(f64, f64)> {
        let mut browser = Browser::new(self.svc.address);
        let (at, _) = self.open(&mut browser, "email").await?;
        ask(&mut browser, &at, KNOWN).await?;
        let mail = self.smtp.mails().pop().context("no mail has come")?;
        let form = format!("code={}", mail.code());
        finish(&mut browser, &at, &form).await?;
        let (at, _) = self.open(&mut browser, "email").await?;
        let (mut known, mut unknown) = (Vec::new(), Vec::new());
        for number in 0..CODES {
            let other = format!("other{number:0>4}@example.com");
            known.push(ask(&mut browser, &at, KNOWN).await?);
            unknown.push(ask(&mut browser, &at, &other).await?);
        }
        Ok((median(&known), median(&unknown)))
    }
}

/// Sends the last form of a sign-in, and follows it to the frontend.
async fn finish(browser: &mut Browser, at: &str, form: &str) -> anyhow::Result<()> {
    let sent = browser.submit(at, form).await;
    ensure!(sent.status == 303, "{sent:?}");
    let (end, _) = browser.follow(at, sent).await;
    ensure!(!end.contains("auth_error"), "{end}");
    Ok(())
}

/// Asks for a code; returns the time until its form comes, in milliseconds.
async fn ask(browser: &mut Browser, at: &str, address: &str) -> anyhow::Result<f64> {
    let form = format!("email={}", address.replace('@', "%40"));
    let began = Instant::now();
    let answer = browser.submit(at, &form).await;
    let took = millis(began.elapsed());
    ensure!(answer.status == 200, "{answer:?}");
    Ok(took)
}
