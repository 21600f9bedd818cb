//! Threads of a pool. Dropping the pool waits until they have ended.

use std::io;
use std::thread::{self, JoinHandle};

/// Niceness of threads that work in the background, relative to the rest of the process.
pub const NICENESS: i32 = 10;

/// Threads that work until their queue is closed. Close the queue before you drop them: the drop joins them.
#[derive(Debug, Default)]
pub struct WorkerThreads(Vec<JoinHandle<()>>);

impl WorkerThreads {
    /// Starts another thread; `stack` is its stack size in bytes, if the default is too small.
    ///
    /// # Errors
    /// The system refuses another thread.
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

impl Drop for WorkerThreads {
    fn drop(&mut self) {
        let me = thread::current().id();
        for thread in self.0.drain(..) {
            // The last owner may be one of the threads, and a thread cannot join itself.
            if thread.thread().id() != me {
                // A panic was reported when it happened.
                let _ = thread.join();
            }
        }
    }
}

/// Makes the calling thread nicer by [`NICENESS`]; on Linux only.
pub fn lower_priority() {
    lower_priority_to(NICENESS);
}

/// Makes the calling thread nicer by `niceness`, relative to the process; on Linux only.
pub fn lower_priority_to(niceness: i32) {
    // On other systems it would change the whole process. Where the system refuses it, only fairness suffers.
    if cfg!(target_os = "linux") {
        let _ = rustix::process::setpriority_process(None, niceness);
    }
}
