//! Threads of a pool: each has a name, and who drops the pool waits for them.

use std::io;
use std::thread::{self, JoinHandle};

/// How much nicer than the rest of the process threads are that work in the background.
pub const NICENESS: i32 = 10;

/// Threads that work until their queue is closed. Dropping them waits for their ends, so the queue is closed before.
#[derive(Debug, Default)]
pub struct Threads(Vec<JoinHandle<()>>);

impl Threads {
    /// Starts another one; `stack` is a size in bytes, if the system's does not do.
    ///
    /// # Errors
    /// When the system has none to give.
    pub fn start(
        &mut self,
        name: String,
        stack: Option<usize>,
        work: impl FnOnce() + Send + 'static,
    ) -> io::Result<()> {
        let mut builder = thread::Builder::new().name(name);
        if let Some(stack) = stack {
            builder = builder.stack_size(stack);
        }
        self.0.push(builder.spawn(work)?);
        Ok(())
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        let me = thread::current().id();
        for thread in self.0.drain(..) {
            // The last owner may be one of the threads, which cannot wait for itself.
            if thread.thread().id() != me {
                // A thread that panicked has said so.
                let _ = thread.join();
            }
        }
    }
}

/// Makes the calling thread nicer by [`NICENESS`], where a thread has a priority of its own: on Linux.
pub fn lower_priority() {
    lower_priority_to(NICENESS);
}

/// Makes the calling thread so much nicer than the rest of the process, on Linux.
pub fn lower_priority_to(niceness: i32) {
    // Elsewhere it would be the process's. Unprivileged processes may always be nicer; where they may not, fairness is all that
    // suffers.
    if cfg!(target_os = "linux") {
        let _ = rustix::process::setpriority_process(None, niceness);
    }
}
