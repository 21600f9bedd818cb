//! The kernel's calls of a server, as the program `strace` writes them down from its start to its end.

use std::path::PathBuf;

use tempfile::TempDir;

use crate::process::Binary;

/// File to which a tracer writes.
#[derive(Debug)]
pub struct KernelTrace {
    directory: TempDir,
    /// Kinds of calls that are written down, in the tracer's words.
    kinds: &'static str,
}

impl KernelTrace {
    /// Makes a trace of these kinds of calls, such as `trace=fsync,fdatasync`.
    pub fn new(kinds: &'static str) -> Self {
        let directory = TempDir::new().unwrap();
        Self { directory, kinds }
    }

    /// Returns a program under the tracer, whose parent it stays: signals reach it.
    ///
    /// # Panics
    /// When `strace` is not installed.
    pub fn of(&self, program: Binary) -> Binary {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let mut places = std::env::split_paths(&path).map(|directory| directory.join("strace"));
        let strace = places.find(|place| place.is_file());
        let strace = strace.expect("strace is not installed: install the package `strace`");
        let (strace, file) = (strace.to_str().unwrap(), self.file());
        let file = file.to_str().unwrap();
        program.started_by([strace, "-D", "-f", "-q", "-o", file, "-e", self.kinds])
    }

    /// Returns what was written down until now.
    pub fn read(&self) -> String {
        std::fs::read_to_string(self.file()).unwrap_or_default()
    }

    fn file(&self) -> PathBuf {
        self.directory.path().join("trace")
    }
}

/// Calls of a trace: the name of each, and the rest of its line.
pub fn kernel_calls(trace: &str) -> impl Iterator<Item = (&str, &str)> {
    trace.lines().filter_map(|line| {
        let (_thread, call) = line.split_once(' ')?;
        call.trim_start().split_once('(')
    })
}
