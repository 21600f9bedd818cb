//! Guests that do everything wrong, installed in a server: every call of one is refused or contained, and the host has its memory back.

use std::path::Path;

use serde_json::json;
use svc_tests::{Process, hostile, until};
use tempfile::TempDir;

/// Misdeeds that end at once or with the fuel, by the letter that the guests go by.
const LETTERS: &str = "lsmMtzbiehWqpudDngxo";
/// So often is everything done before the memory is looked at, and after.
const ROUNDS: (usize, usize) = (3, 12);
/// What may be more in memory than before, in bytes. If what the last rounds had were kept, it would be gigabytes.
const KEPT: u64 = 256 << 20;

const SETTINGS: &str = "[limits]
render_fuel = 500000000
deploy_per_minute = 1000000
deploy_burst = 1000000
";

/// The bytes of a process that are in memory.
fn resident(process: &Process) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", process.id())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kilobytes = line.unwrap().split_whitespace().next().unwrap();
    kilobytes.parse::<u64>().unwrap() << 10
}

fn install(data: &Path, world: &str, component: &[u8]) {
    let folder = data.join("guests").join(world);
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("000001-hostile.wasm"), component).unwrap();
}

#[tokio::test]
async fn hostile_pages_fail_alone_and_their_memory_is_given_back() {
    let data = TempDir::new().unwrap();
    install(data.path(), "render", &hostile::renderer());
    let settings = data.path().join("svc.toml");
    std::fs::write(&settings, SETTINGS).unwrap();
    let settings = settings.to_str().unwrap();
    let svc = crate::svc()
        .serve(data.path(), &["--config", settings])
        .await;
    let ready = async || (svc.get("/readyz").await.status == 200).then_some(());
    until("the guests to be loaded", ready).await;
    let publish = async |content: &str, name: &str| {
        let share = json!({ "type": "markdown", "content": content, "name": name });
        svc.json("/api/v1/deploy", &share).await
    };
    publish("a page", "harmless").await.expect(201);

    let round = async || {
        for letter in LETTERS.chars() {
            let answer = publish(&letter.to_string(), "hostile").await;
            assert!(
                matches!(answer.status, 400 | 500),
                "{letter}: {} {}",
                answer.status,
                answer.text()
            );
            assert!(!answer.text().contains("wasm"), "{}", answer.text());
        }
        svc.get("/harmless").await.expect(200);
    };
    for _ in 0..ROUNDS.0 {
        round().await;
    }
    let before = resident(&svc);
    for _ in 0..ROUNDS.1 {
        round().await;
    }
    let after = resident(&svc);
    assert!(after < before + KEPT, "{before} bytes have become {after}");
    publish("another page", "harmless-too").await.expect(201);
}
