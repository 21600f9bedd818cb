//! Tests that take minutes: `cargo test -p svc-tests --test slow`.

mod attack;
mod attacker;
mod backends;
mod cluster;
mod counts;
mod files;
mod guests;
mod random_frames;
mod rooms;
mod serving;
mod silence;
mod uploads;

use svc_tests::{Binary, Installation};

fn svc() -> Binary {
    Binary::new(env!("CARGO_BIN_EXE_svc-server"))
}

#[tokio::test]
async fn fifty_kills_lose_no_promised_share() {
    let mut installation = Installation::new(svc());
    for round in 0..50 {
        // Early and late in a server's life: at its first answer, and in the middle of the flood.
        let answers = 1 + round % 5 * 8;
        let before = installation.acknowledged_shares();
        installation.kill_while_publishing(answers).await;
        assert!(installation.acknowledged_shares() >= before + answers);
    }
}

#[tokio::test]
async fn fifty_kills_bring_no_burnt_share_back() {
    let installation = Installation::new(svc());
    for round in 0..50 {
        let readers = if round % 5 == 0 { 1 } else { 50 };
        installation.kill_while_burning(readers).await;
    }
}
