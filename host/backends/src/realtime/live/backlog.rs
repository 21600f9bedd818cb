//! Backlog of a socket: frames of its client that wait to be handled, in order.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use super::protocol::{LiveFrame, LiveFrameRefusal};

/// Parsed frame of a client, or its refusal.
pub(super) type ParsedFrame = Result<LiveFrame, LiveFrameRefusal>;

/// Queue of frames, with a maximum length.
#[derive(Debug)]
pub(super) struct FrameBacklog {
    most: usize,
    frames: Mutex<VecDeque<ParsedFrame>>,
    added: Notify,
}

impl FrameBacklog {
    /// Creates a backlog of at most `most` frames.
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

    /// Returns the maximum number of frames.
    pub(super) fn most(&self) -> usize {
        self.most
    }

    /// Adds a frame.
    ///
    /// # Errors
    /// The frame, if the backlog is full.
    pub(super) fn add(&self, frame: ParsedFrame) -> Result<(), ParsedFrame> {
        let mut frames = self.frames();
        if frames.len() >= self.most {
            return Err(frame);
        }
        frames.push_back(frame);
        self.added.notify_one();
        Ok(())
    }

    /// Waits for the next frame.
    pub(super) async fn next(&self) -> ParsedFrame {
        loop {
            if let Some(frame) = self.frames().pop_front() {
                return frame;
            }
            self.added.notified().await;
        }
    }

    /// Removes the subscribe frames of an id, because a later unsubscribe has not fit into the backlog.
    pub(super) fn remove_subscribes(&self, id: &str) {
        let subscribes = |frame: &ParsedFrame| matches!(frame, Ok(LiveFrame::Subscribe { id: one, .. }) if **one == *id);
        self.frames().retain(|frame| !subscribes(frame));
    }
}
