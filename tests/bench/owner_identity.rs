//! Cost of identifying the caller: an owner's call with a key, beside an earlier build's, and with a user's token.

use std::net::SocketAddr;
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::Context as _;
use serde_json::json;
use svc_tests::{AUDIENCE, TokenIssuer};

use super::owner::{Owner, text};
use super::report::{Goals, print_title};
use super::rounds::{Contender, Figures, compare, print_head, print_ratio};
use super::server::Bench;

const CONNECTIONS: usize = 4;
/// The most processor time of a call, as a multiple of the same call of an earlier build with a key.
const KEY_COST_RATIO: f64 = 1.1;
const TOKEN_COST_RATIO: f64 = 1.3;

/// Measures one call, `GET /api/v1/projects/{id}`, with a key and with a token.
pub(crate) fn measure(
    bench: &Bench,
    before: Option<&Bench>,
    goals: &mut Goals,
) -> anyhow::Result<()> {
    print_title(
        "An owner's call, by what proves who calls: GET /api/v1/projects/{id}, 4 connections, in turns",
    )?;
    print_head("credential")?;
    // Whoever asks it for its keys is another process.
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()?;
    let issuer = runtime.block_on(TokenIssuer::start());
    let oauth = format!(
        "[oauth]\nissuer = \"{}\"\naudience = \"{AUDIENCE}\"\n",
        issuer.url()
    );
    let (svc, key) = bench.start_owned_with("identities", &oauth)?;
    let now = SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs();
    let token = issuer.sign(&issuer.claims_at("bench", i64::try_from(now)?));
    let mut user = Owner::new(&svc, &token)?;
    user.path = "/api/v1/workspaces".to_owned();
    user.send("POST", "", &json!({ "display_name": "Bench" }))?;
    let by_key = vec![request(svc.address, &key, &mut Owner::new(&svc, &key)?)?];
    let by_token = vec![request(svc.address, &token, &mut user)?];
    let ours = [
        Contender::new(&svc, &by_key),
        Contender::new(&svc, &by_token),
    ];
    let Some(before) = before else {
        let [key, token] = compare(&ours, CONNECTIONS)?;
        key.print("a key", "svc")?;
        token.print("a token", "svc")?;
        print_ratio(&token, &key, "of a key")?;
        goals.at_most(
            "a token's call: CPU, of a key's",
            cost(&token, &key),
            TOKEN_COST_RATIO,
        );
        return Ok(());
    };
    let (earlier, credential) = before.start_owned("identities-before")?;
    let mut owner = Owner::new(&earlier, &credential)?;
    let requests = vec![request(earlier.address, &credential, &mut owner)?];
    let [by_key, by_token] = ours;
    let all = [by_key, by_token, Contender::new(&earlier, &requests)];
    let [key, token, earlier] = compare(&all, CONNECTIONS)?;
    earlier.print("a key", "before")?;
    key.print("a key", "svc")?;
    print_ratio(&key, &earlier, "of before")?;
    token.print("a token", "svc")?;
    print_ratio(&token, &earlier, "of before")?;
    goals.at_most(
        "a key's call: CPU, of before",
        cost(&key, &earlier),
        KEY_COST_RATIO,
    );
    goals.at_most(
        "a token's call: CPU, of a key's before",
        cost(&token, &earlier),
        TOKEN_COST_RATIO,
    );
    Ok(())
}

fn cost(ours: &Figures, theirs: &Figures) -> f64 {
    ours.cost() / theirs.cost()
}

/// Makes a project; returns the request that asks for it.
fn request(address: SocketAddr, credential: &str, owner: &mut Owner) -> anyhow::Result<Vec<u8>> {
    owner.path = "/api/v1/projects".to_owned();
    let (project, _) = owner.send("POST", "", &json!({ "name": "Bench" }))?;
    let id = text(&project, "id").context("a project")?;
    Ok(format!(
        "GET /api/v1/projects/{id} HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {credential}\r\nAccept: */*\r\n\r\n"
    )
    .into_bytes())
}
