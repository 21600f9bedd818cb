//! Resources of a server process: memory and open files.

use crate::process::Process;

/// Amounts of both.
#[derive(Clone, Copy, Debug)]
pub struct Resources {
    /// Resident memory in kilobytes.
    pub memory: u64,
    /// Open files, sockets among them.
    pub files: usize,
}

impl Resources {
    /// Those of a process, now.
    ///
    /// # Panics
    /// When it has ended.
    pub fn of_process(process: &Process) -> Self {
        let proc = format!("/proc/{}", process.id());
        let status = std::fs::read_to_string(format!("{proc}/status")).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let kilobytes = line.unwrap().split_whitespace().next().unwrap();
        Self {
            memory: kilobytes.parse().unwrap(),
            files: std::fs::read_dir(format!("{proc}/fd")).unwrap().count(),
        }
    }
}
