//! Histories of two folders and a stranger that race for one project, with the real program and the real server.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::json;
use svc_tests::{Output, run_command};

use super::ClientFixture;
use crate::owner::text;

/// Steps of a history.
const STEPS: u32 = 60;
/// Parts that are fought for.
const PARTS: [&str; 2] = ["page wall", "action recent"];

/// Numbers at random, the same ones each time.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, most: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (self.0 >> 33) % most
    }
}

/// File of a part in a folder.
fn file_of(folder: &str, part: &str) -> String {
    let name = match part {
        "page wall" => "wall.md",
        _ => "actions/recent.sql",
    };
    format!("{folder}/{name}")
}

/// A text that nobody else writes.
fn text_of(part: &str, number: u32) -> String {
    match part {
        "page wall" => format!("# Text {number}\n"),
        _ => format!("SELECT {number} AS n\n"),
    }
}

/// A project with two folders, and the texts that the users of each have seen.
struct History {
    fixture: ClientFixture,
    project: String,
    seen: BTreeMap<&'static str, BTreeSet<String>>,
}

impl History {
    async fn begin() -> Self {
        let fixture = ClientFixture::without_owner_rate_limit().await;
        fixture.write(
            "one/svc.toml",
            "project = \"Wall\"\n[pages]\nwall = \"wall.md\"\n",
        );
        fixture.write(
            "one/migrations/0001.sql",
            "CREATE TABLE notes (id INTEGER PRIMARY KEY);\n",
        );
        for part in PARTS {
            fixture.write(&file_of("one", part), &text_of(part, 0));
        }
        fixture.run_for_stdout(&["apply", "one", "--yes"]).await;
        fixture
            .run_for_stdout(&["pull", "two", "--project", "Wall"])
            .await;
        let listed = fixture.json(&["project", "list"]).await;
        let project = text(&listed["projects"][0]["id"]);
        let first: BTreeSet<_> = PARTS.iter().map(|part| text_of(part, 0)).collect();
        Self {
            fixture,
            project,
            seen: [("one", first.clone()), ("two", first)].into(),
        }
    }

    /// Texts that are live.
    async fn live(&self) -> BTreeMap<&'static str, String> {
        let page = self.fixture.fetch_source("wall").await;
        let shown = ["action", "show", "recent", "--project", "Wall", "--json"];
        let action = self.fixture.run(&shown).await.json();
        [(PARTS[0], page), (PARTS[1], text(&action["sql"]))].into()
    }

    /// Writes a part as somebody without a folder does.
    async fn write_by_rest(&self, part: &str, number: u32) {
        let project = format!("/api/v1/projects/{}", self.project);
        let (path, body) = match part {
            "page wall" => (
                format!("{project}/frontends/wall"),
                json!({ "type": "markdown", "content": text_of(part, number) }),
            ),
            _ => (
                format!("{project}/backend/actions"),
                json!({ "actions": [{ "name": "recent", "sql": text_of(part, number) }] }),
            ),
        };
        let client = self.fixture.server.client();
        let sent = client.put(self.fixture.server.url(&path));
        let answer = sent
            .bearer_auth(&self.fixture.credential)
            .json(&body)
            .send();
        let status = answer.await.unwrap().status();
        assert_eq!(status, 200, "{part} {number}");
    }

    async fn run(&self, arguments: &[&str]) -> Output {
        run_command(self.fixture.command(arguments)).await
    }

    /// Applies a folder, and checks what has become of the texts that were live. Returns whether that was refused.
    async fn apply(&mut self, folder: &'static str, force: bool) -> bool {
        let before = self.live().await;
        let mut words = vec!["apply", folder, "--yes"];
        words.extend(force.then_some("--force"));
        let output = self.run(&words).await;
        let after = self.live().await;
        let seen = self.seen.get_mut(folder).unwrap();
        for part in PARTS {
            let is_replaced = before[part] != after[part];
            let knows = force || seen.contains(&before[part]);
            assert!(
                !is_replaced || knows,
                "{part} of {folder}: {} was lost: {output:?}",
                before[part]
            );
        }
        if output.code == Some(5) {
            assert_eq!(before, after, "{output:?}");
            let named = PARTS.iter().any(|part| {
                let line = format!("  {part}: both have changed it; the server's was released 20");
                output.stderr.contains(&line)
            });
            assert!(named, "{output:?}");
            return true;
        }
        assert!(output.success, "{output:?}");
        for part in PARTS {
            let local = self.fixture.read(&file_of(folder, part));
            if local == after[part] {
                seen.insert(local);
            }
        }
        false
    }

    async fn pull(&mut self, folder: &'static str) {
        let output = self.run(&["pull", folder, "--yes"]).await;
        assert!(output.success, "{output:?}");
        let live = self.live().await;
        self.seen
            .get_mut(folder)
            .unwrap()
            .extend(live.into_values());
    }
}

#[tokio::test]
async fn no_text_is_lost_that_nobody_has_replaced_knowingly() {
    let mut history = History::begin().await;
    let mut numbers = Numbers(20_261_128);
    let mut refused = 0;
    for number in 1..=STEPS {
        let folder = ["one", "two"][usize::try_from(numbers.below(2)).unwrap()];
        let part = PARTS[usize::try_from(numbers.below(2)).unwrap()];
        match numbers.below(9) {
            0..=3 => history
                .fixture
                .write(&file_of(folder, part), &text_of(part, number)),
            4 => history.write_by_rest(part, number).await,
            5 => history.pull(folder).await,
            _ => refused += u32::from(history.apply(folder, numbers.below(8) == 0).await),
        }
    }
    assert!(refused > 0, "nobody has raced");
}
