//! A disk that is slow or broken for a while: the syncs of tenants' logs are held back, or fail, as a test says.

use std::path::PathBuf;
use std::process::Command;

use tempfile::TempDir;

use crate::wait::wait_until;

/// The orders that a server's syncs follow.
#[derive(Debug)]
pub struct SyncGate {
    directory: TempDir,
}

impl Default for SyncGate {
    fn default() -> Self {
        Self::new()
    }
}

impl SyncGate {
    /// Compiles what is loaded before the C library.
    ///
    /// # Panics
    /// When there is no C compiler.
    pub fn new() -> Self {
        let directory = TempDir::new().unwrap();
        let source = directory.path().join("sync_gate.c");
        std::fs::write(&source, include_str!("sync_gate.c")).unwrap();
        let mut compiler = Command::new("cc");
        compiler.args(["-shared", "-fPIC", "-O1", "-o"]);
        compiler.arg(library(&directory)).arg(source).arg("-ldl");
        assert!(compiler.status().expect("a C compiler").success());
        Self { directory }
    }

    /// The variables of a server whose syncs follow these orders.
    pub fn environment(&self) -> [(&'static str, String); 2] {
        let text = |path: PathBuf| path.to_str().unwrap().to_owned();
        [
            ("LD_PRELOAD", text(library(&self.directory))),
            ("SYNC_GATE", text(self.directory.path().to_owned())),
        ]
    }

    /// Holds back every sync from now on.
    pub fn hold(&self) {
        self.write_order("hold");
    }

    /// Waits until a sync is held back.
    pub async fn wait_until_held(&self) {
        let held = self.directory.path().join("held");
        wait_until("a sync to be held back", async || {
            held.exists().then_some(())
        })
        .await;
    }

    /// Lets syncs through.
    pub fn release(&self) {
        for order in ["hold", "held", "fail"] {
            // There may be no such order.
            let _ = std::fs::remove_file(self.directory.path().join(order));
        }
    }

    /// Fails every sync from now on.
    pub fn fail(&self) {
        self.write_order("fail");
    }

    fn write_order(&self, name: &str) {
        std::fs::write(self.directory.path().join(name), "").unwrap();
    }
}

fn library(directory: &TempDir) -> PathBuf {
    directory.path().join("sync_gate.so")
}
