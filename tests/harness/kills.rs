//! An installation that is killed again and again, and what must be true of it each time.

use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use serde_json::json;
use tempfile::TempDir;
use tokio::task::JoinSet;

use crate::answer::ReadAnswer;
use crate::disk;
use crate::process::{Binary, Process};
use crate::wait::wait_until;

/// Clients that publish at once.
const PUBLISHERS: usize = 8;

/// A share that was answered 201.
#[derive(Clone, Debug)]
struct Share {
    slug: String,
    content: String,
}

/// A data directory, a configuration without rate limits, and the shares that were acknowledged so far.
#[derive(Debug)]
pub struct Installation {
    binary: Binary,
    directory: TempDir,
    acknowledged: Vec<Share>,
    share_numbers: Arc<AtomicUsize>,
}

impl Installation {
    pub fn new(binary: Binary) -> Self {
        let directory = TempDir::new().unwrap();
        let limits = "[limits]\ndeploy_burst = 1000000\nactive_deployments = 1000000\n";
        std::fs::write(directory.path().join("svc.toml"), limits).unwrap();
        Self {
            binary,
            directory,
            acknowledged: Vec::new(),
            share_numbers: Arc::default(),
        }
    }

    fn data(&self) -> PathBuf {
        self.directory.path().join("data")
    }

    async fn serve(&self) -> Process {
        let config = self.directory.path().join("svc.toml");
        let config = config.to_str().unwrap();
        self.binary.serve(&self.data(), &["--config", config]).await
    }

    /// Number of shares that were acknowledged so far.
    pub fn acknowledged_shares(&self) -> usize {
        self.acknowledged.len()
    }

    /// Publishes from all sides, kills the server once `answers` shares were answered, starts it again, and looks
    /// for every share that was ever acknowledged, byte for byte.
    pub async fn kill_while_publishing(&mut self, answers: usize) {
        let server = self.serve().await;
        let answered: Arc<Mutex<Vec<Share>>> = Arc::default();
        let mut publishers = JoinSet::new();
        for _ in 0..PUBLISHERS {
            let (client, url) = (server.client().clone(), server.url("/api/v1/deploy"));
            let (answered, made) = (Arc::clone(&answered), Arc::clone(&self.share_numbers));
            publishers.spawn(async move {
                loop {
                    let number = made.fetch_add(1, Ordering::Relaxed);
                    // Some of equal content, which share their objects, and some large enough to be torn.
                    let line = format!("<p>share {}</p>\n", number % 50);
                    let content = line.repeat(1 + number % 7 * 1000);
                    let body = json!({ "content": content });
                    // A request that the kill cuts off was promised nothing.
                    let Ok(response) = client.post(&url).json(&body).send().await else {
                        return;
                    };
                    assert_eq!(response.status(), 201);
                    let Ok(deployed) = response.json::<serde_json::Value>().await else {
                        return;
                    };
                    let slug = deployed["slug"].as_str().unwrap().to_owned();
                    answered.lock().unwrap().push(Share { slug, content });
                }
            });
        }
        let enough = async || (answered.lock().unwrap().len() >= answers).then_some(());
        wait_until("enough answers", enough).await;
        server.kill().await;
        publishers.join_all().await;
        self.acknowledged.append(&mut answered.lock().unwrap());
        self.assert_acknowledged_exist().await;
    }

    async fn assert_acknowledged_exist(&self) {
        let server = self.serve().await;
        for share in &self.acknowledged {
            for path in [format!("/{}", share.slug), format!("/{}/raw", share.slug)] {
                let answer = server.get(&path).await.expect(200);
                assert!(answer.body == share.content.as_bytes(), "{path}");
            }
        }
        let checked = self.binary.run(&self.data(), &["check", "--json"]).await;
        let checked = checked.json();
        assert_eq!(checked["errors"], json!([]));
        assert!(checked["deployments"].as_u64().unwrap() >= self.acknowledged.len() as u64);
        server.kill().await;
    }

    /// Lets `readers` race for a one-time share and kills the server after its first answer. At most one reader
    /// gets it; once the share no longer answers, its bytes are in no file.
    pub async fn kill_while_burning(&self, readers: usize) {
        let server = self.serve().await;
        let number = self.share_numbers.fetch_add(1, Ordering::Relaxed);
        let secret = format!("the-secret-of-share-{number}-and-no-other");
        let body = json!({ "content": secret, "one_time": true });
        let deployed = server
            .json("/api/v1/deploy", &body)
            .await
            .expect(201)
            .json();
        let path = format!("/{}", deployed["slug"].as_str().unwrap());
        assert_eq!(disk::holding(&self.data(), &secret).len(), 1);
        let mut racing = JoinSet::new();
        for _ in 0..readers {
            let request = server.client().post(server.url(&path));
            racing.spawn(async move {
                let response = request.send().await.ok()?;
                let status = response.status().as_u16();
                let body = response.text().await.ok()?;
                Some((status, body))
            });
        }
        let mut answers: Vec<_> = racing
            .join_next()
            .await
            .unwrap()
            .unwrap()
            .into_iter()
            .collect();
        server.kill().await;
        answers.extend(racing.join_all().await.into_iter().flatten());
        let got = answers.iter().filter(|(status, _)| *status == 200).count();
        assert!(got <= 1, "{got} readers got it");
        for (status, body) in &answers {
            assert_eq!(*status == 200, *body == secret);
            assert!(matches!(status, 200 | 404), "{status}");
        }
        if got == 1 {
            // Before the server is back, too.
            assert_eq!(disk::holding(&self.data(), &secret), Vec::<String>::new());
        }
        let server = self.serve().await;
        let there = server.get(&path).await.status == 200;
        assert!(!(there && got == 1), "it was read and is there again");
        if there {
            let url = server.url(&path);
            let opened = server.client().post(url).answer().await.expect(200);
            assert_eq!(opened.text(), secret);
        }
        server.get(&path).await.problem(404, "not_found");
        assert_eq!(disk::holding(&self.data(), &secret), Vec::<String>::new());
        server.kill().await;
    }
}
