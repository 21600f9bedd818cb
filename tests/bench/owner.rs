//! An owner on one connection, who sets up projects before a measurement.

use std::time::Instant;

use anyhow::{Context as _, ensure};
use serde_json::{Value, json};

use super::client::Client;
use super::report::millis;
use super::server::Running;

/// An owner.
pub(crate) struct Owner {
    pub(crate) client: Client,
    credential: String,
    /// Base path of the requests.
    pub(crate) path: String,
}

impl Owner {
    pub(crate) fn new(svc: &Running, credential: &str) -> anyhow::Result<Self> {
        Ok(Self {
            client: svc.client()?,
            credential: credential.to_owned(),
            path: String::new(),
        })
    }

    /// Connects anew: the server ends a connection on which nothing is requested for a while.
    pub(crate) fn reconnect(&mut self, svc: &Running) -> anyhow::Result<()> {
        self.client = svc.client()?;
        Ok(())
    }

    /// Creates a project, and makes it the target of further requests.
    pub(crate) fn create_project(&mut self, name: &str) -> anyhow::Result<()> {
        self.path = "/api/v1/projects".to_owned();
        let (project, _) = self.send("POST", "", &json!({ "name": name }))?;
        let id = text(&project, "id")?;
        self.path = format!("/api/v1/projects/{id}");
        Ok(())
    }

    /// Makes the first existing project the target of further requests.
    pub(crate) fn select_first_project(&mut self) -> anyhow::Result<()> {
        self.path = "/api/v1/projects".to_owned();
        let (projects, _) = self.send("GET", "", &json!({}))?;
        let id = text(&projects["projects"][0], "id")?;
        self.path = format!("/api/v1/projects/{id}");
        Ok(())
    }

    /// Deletes something; returns the time in milliseconds.
    pub(crate) fn delete(&mut self, path: &str) -> anyhow::Result<f64> {
        let path = format!("{}{path}", self.path);
        let began = Instant::now();
        let answer = self
            .client
            .send_as_owner("DELETE", &path, &self.credential, &json!({}))?;
        let took = millis(began.elapsed());
        ensure!(answer.status == 204, "DELETE {path}: {}", answer.status);
        Ok(took)
    }

    /// Sends a file.
    pub(crate) fn put_file(&mut self, path: &str, bytes: &[u8]) -> anyhow::Result<()> {
        let path = format!("{}{path}", self.path);
        let request = super::client::put(self.client.address(), &path, &self.credential, bytes);
        let answer = self.client.send(&request)?;
        ensure!(answer.status == 200, "PUT {path}: {}", answer.status);
        Ok(())
    }

    /// Sends a document; returns the answered document, and the time in milliseconds.
    pub(crate) fn send(
        &mut self,
        method: &str,
        path: &str,
        body: &Value,
    ) -> anyhow::Result<(Value, f64)> {
        let path = format!("{}{path}", self.path);
        let began = Instant::now();
        let answer = self
            .client
            .send_as_owner(method, &path, &self.credential, body)?;
        let took = millis(began.elapsed());
        let said = String::from_utf8_lossy(&answer.body);
        ensure!(
            matches!(answer.status, 200 | 201),
            "{method} {path}: {said}"
        );
        Ok((serde_json::from_slice(&answer.body)?, took))
    }
}

/// A text of a document.
pub(crate) fn text(document: &Value, field: &str) -> anyhow::Result<String> {
    let value = document[field].as_str();
    value
        .map(str::to_owned)
        .with_context(|| format!("no {field} in {document}"))
}
