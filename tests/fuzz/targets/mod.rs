//! Targets of fuzzing: functions that panic where something does not hold.

pub(crate) mod agreement;
pub(crate) mod cleaner;
pub(crate) mod envelopes;
pub(crate) mod frames;
pub(crate) mod gate;
pub(crate) mod host;
pub(crate) mod page;
pub(crate) mod render;
