//! Backlog of a socket: frames of its client that wait for those before them, in their order.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use super::protocol::{Frame, Refusal};

/// A frame of a client, or what is wrong with it.
pub(super) type ParsedFrame = Result<Frame, Refusal>;

/// Frames that wait.
#[derive(Debug)]
pub(super) struct Backlog {
    most: usize,
    frames: Mutex<VecDeque<ParsedFrame>>,
    added: Notify,
}

impl Backlog {
    /// Makes a backlog of at most `most` frames.
    pub(super) fn new(most: usize) -> Self {
        Self {
            most,
            frames: Mutex::default(),
            added: Notify::new(),
        }
    }

    fn frames(&self) -> MutexGuard<'_, VecDeque<ParsedFrame>> {
        self.frames.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns how many frames may wait.
    pub(super) fn most(&self) -> usize {
        self.most
    }

    /// Adds a frame.
    ///
    /// # Errors
    /// The frame, where as many wait as may.
    pub(super) fn add(&self, frame: ParsedFrame) -> Result<(), ParsedFrame> {
        let mut frames = self.frames();
        if frames.len() >= self.most {
            return Err(frame);
        }
        frames.push_back(frame);
        self.added.notify_one();
        Ok(())
    }

    /// Takes the frame that has waited longest, once there is one.
    pub(super) async fn next(&self) -> ParsedFrame {
        loop {
            if let Some(frame) = self.frames().pop_front() {
                return frame;
            }
            self.added.notified().await;
        }
    }

    /// Removes the subscribes of an id, so that none of them outlives an unsubscribe that finds no room behind them.
    pub(super) fn remove_subscribes(&self, id: &str) {
        let subscribes = |frame: &ParsedFrame| matches!(frame, Ok(Frame::Subscribe { id: one, .. }) if **one == *id);
        self.frames().retain(|frame| !subscribes(frame));
    }
}
