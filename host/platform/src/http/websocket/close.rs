//! The close codes of sockets.

/// A close code (RFC 6455, section 7.4) with a reason for people.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CloseReason {
    /// The code.
    pub code: u16,
    /// The reason, of at most 123 bytes.
    pub reason: &'static str,
}

impl CloseReason {
    /// The server is stopping.
    pub const STOPPED: Self = Self::new(1001, "the server stops");
    /// The page, backend or room that the socket belongs to has ended.
    pub const ENDED: Self = Self::new(1001, "what this socket belongs to has ended");
    /// Another server may answer by now.
    pub const MOVED: Self = Self::new(1012, "another server may answer now: connect again");
    /// The client has not answered pings.
    pub const SILENT: Self = Self::new(1001, "no pong came");
    /// The client's bytes are not valid frames.
    pub const PROTOCOL: Self = Self::new(1002, "a frame breaks RFC 6455");
    /// The client sent a binary message.
    pub const BINARY: Self = Self::new(1003, "only text is relayed");
    /// The client sent a text that is not UTF-8.
    pub const TEXT: Self = Self::new(1007, "a text is not UTF-8");
    /// The client keeps exceeding its rate limit.
    pub const FLOOD: Self = Self::new(1008, "too many messages for too long");
    /// The operator has disabled the page.
    pub const DISABLED: Self = Self::new(1008, "the page is disabled");
    /// The visitor of the socket has signed out.
    pub const SIGNED_OUT: Self = Self::new(1008, "the visitor is not signed in any more");
    /// The client sent a message that is too large.
    pub const LARGE: Self = Self::new(1009, "the message is too large");
    /// The client reads too slowly.
    pub const SLOW: Self = Self::new(1013, "too many messages wait for this socket");

    const fn new(code: u16, reason: &'static str) -> Self {
        Self { code, reason }
    }
}
