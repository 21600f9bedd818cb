//! Resources of a process: memory, open files, threads.

use crate::process::Process;

#[derive(Clone, Copy, Debug)]
pub struct Resources {
    /// Resident memory in kilobytes.
    pub memory: u64,
    /// Open files, sockets among them.
    pub files: usize,
    pub threads: usize,
}

impl Resources {
    /// Measures a process.
    ///
    /// # Panics
    /// When it has ended.
    pub fn of_process(process: &Process) -> Self {
        Self::of_id(process.id())
    }

    /// Measures the process that asks.
    ///
    /// # Panics
    /// Where there is no `/proc`.
    pub fn of_this_process() -> Self {
        Self::of_id(std::process::id())
    }

    fn of_id(id: u32) -> Self {
        let proc = format!("/proc/{id}");
        let status = std::fs::read_to_string(format!("{proc}/status")).unwrap();
        let number = |name: &str| -> u64 {
            let line = status.lines().find_map(|line| line.strip_prefix(name));
            let number = line.unwrap().split_whitespace().next().unwrap();
            number.parse().unwrap()
        };
        Self {
            memory: number("VmRSS:"),
            files: std::fs::read_dir(format!("{proc}/fd")).unwrap().count(),
            threads: number("Threads:") as usize,
        }
    }
}
