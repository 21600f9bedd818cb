//! Why a socket is closed.

/// A close code (RFC 6455, section 7.4) with a reason for people.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Close {
    /// The code.
    pub code: u16,
    /// The reason, of at most 123 bytes.
    pub reason: &'static str,
}

impl Close {
    /// The server stops.
    pub const STOPPED: Self = Self::new(1001, "the server stops");
    /// The page, backend or room that the socket belongs to has ended.
    pub const ENDED: Self = Self::new(1001, "what this socket belongs to has ended");
    /// The client has not answered pings.
    pub const SILENT: Self = Self::new(1001, "no pong came");
    /// Bytes that are no frames of a client.
    pub const PROTOCOL: Self = Self::new(1002, "a frame breaks RFC 6455");
    /// A message that is no text.
    pub const BINARY: Self = Self::new(1003, "only text is relayed");
    /// A text that is not UTF-8.
    pub const TEXT: Self = Self::new(1007, "a text is not UTF-8");
    /// A client that goes on sending more than it may.
    pub const FLOOD: Self = Self::new(1008, "too many messages for too long");
    /// An operator has disabled the page.
    pub const DISABLED: Self = Self::new(1008, "the page is disabled");
    /// The visitor as whom the socket was opened is not signed in any more.
    pub const SIGNED_OUT: Self = Self::new(1008, "the visitor is not signed in any more");
    /// A message that is larger than one may be.
    pub const LARGE: Self = Self::new(1009, "the message is too large");
    /// A client that reads more slowly than others write.
    pub const SLOW: Self = Self::new(1013, "too many messages wait for this socket");

    const fn new(code: u16, reason: &'static str) -> Self {
        Self { code, reason }
    }
}
