//! The log on standard error, and the latest errors in memory.

use std::collections::VecDeque;
use std::fmt::Write as _;
use std::io::IsTerminal as _;
use std::sync::{Mutex, PoisonError};

use serde::{Deserialize, Serialize};
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::{Context, SubscriberExt as _};
use tracing_subscriber::util::SubscriberInitExt as _;

use crate::config::LogFormat;
use svc_base::clock::{Clock, Timestamp};

/// `tracing` target of the access log.
pub const ACCESS_TARGET: &str = "access";
/// Most errors in memory.
const MAX_RECENT: usize = 10;
/// Most bytes of an error's text.
const MAX_TEXT_BYTES: usize = 1000;

static RECENT_ERRORS: Mutex<VecDeque<LoggedError>> = Mutex::new(VecDeque::new());

/// A logged error.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoggedError {
    /// Time of the line.
    pub at: Timestamp,
    /// Message and fields of the line.
    pub text: String,
}

/// Starts the log. `SVC_LOG` is its filter: a level, and levels of modules, with commas between them; `info` by default.
#[allow(
    clippy::disallowed_methods,
    reason = "the filter has a variable of its own, as loggers do"
)]
pub fn init(format: LogFormat) {
    let wanted = std::env::var("SVC_LOG").unwrap_or_default();
    let (filter, unread) = filter(&wanted);
    let lines = tracing_subscriber::fmt::layer()
        .with_ansi(std::io::stderr().is_terminal())
        .with_writer(std::io::stderr);
    let lines = match format {
        LogFormat::Text => lines.with_target(false).boxed(),
        LogFormat::Json => lines.json().flatten_event(true).boxed(),
    };
    let log = tracing_subscriber::registry()
        .with(filter)
        .with(lines)
        .with(RecentErrorsLayer);
    // Fails if a log was started before, as by tests.
    let _ = log.try_init();
    for directive in unread {
        tracing::warn!(
            directive,
            "SVC_LOG: not a level, or a module with a level, as in svc=debug"
        );
    }
}

/// Composes the filter, the operator's directives after the defaults, and returns the directives that cannot be read, too. The MCP
/// library logs three lines a call, so only its errors are logged by default.
fn filter(wanted: &str) -> (Targets, Vec<&str>) {
    let mut filter = Targets::new()
        .with_default(Level::INFO)
        .with_target("rmcp", Level::ERROR)
        .with_target(ACCESS_TARGET, Level::INFO);
    let mut unread = Vec::new();
    for directive in wanted
        .split(',')
        .map(str::trim)
        .filter(|one| !one.is_empty())
    {
        // A span in brackets would be read as the name of a module.
        match directive.parse::<Targets>() {
            Ok(read) if !directive.contains('[') => {
                if let Some(level) = read.default_level() {
                    filter = filter.with_default(level);
                }
                filter = filter.with_targets(read);
            }
            _ => unread.push(directive),
        }
    }
    (filter, unread)
}

/// Returns the latest errors of this process, oldest first.
pub fn recent_errors() -> Vec<LoggedError> {
    let recent = RECENT_ERRORS.lock().unwrap_or_else(PoisonError::into_inner);
    recent.iter().cloned().collect()
}

/// Layer that keeps the latest errors in memory.
struct RecentErrorsLayer;

impl<S: Subscriber> Layer<S> for RecentErrorsLayer {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        if *event.metadata().level() != Level::ERROR {
            return;
        }
        let mut text = EventText::default();
        event.record(&mut text);
        let mut recent = RECENT_ERRORS.lock().unwrap_or_else(PoisonError::into_inner);
        if recent.len() == MAX_RECENT {
            recent.pop_front();
        }
        recent.push_back(LoggedError {
            at: Clock::system().now(),
            text: text.into_text(),
        });
    }
}

/// Text of an event: its message, then its fields.
#[derive(Default)]
struct EventText {
    message: String,
    fields: String,
}

impl EventText {
    fn into_text(self) -> String {
        let mut text = self.message + &self.fields;
        let end = (0..=MAX_TEXT_BYTES.min(text.len()))
            .rev()
            .find(|end| text.is_char_boundary(*end));
        text.truncate(end.unwrap_or(0));
        text
    }
}

impl Visit for EventText {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.record_debug(field, &format_args!("{value}"));
    }

    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        // Writing to memory does not fail.
        let _ = match field.name() {
            "message" => write!(self.message, "{value:?}"),
            name => write!(self.fields, " {name}={value:?}"),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_remembered_with_their_fields_and_nothing_else_is() {
        let log = tracing_subscriber::registry().with(RecentErrorsLayer);
        tracing::subscriber::with_default(log, || {
            tracing::warn!("not this");
            for n in 0..MAX_RECENT + 2 {
                tracing::error!(n, why = "a reason", error = %"x".repeat(2 * MAX_TEXT_BYTES), "it failed");
            }
        });
        let recent = recent_errors();
        assert_eq!(recent.len(), MAX_RECENT);
        let last = &recent[MAX_RECENT - 1].text;
        assert!(
            last.starts_with("it failed n=11 why=a reason error=xx"),
            "{last}"
        );
        assert_eq!(last.len(), MAX_TEXT_BYTES);
    }

    #[test]
    fn the_library_is_silent_unless_it_is_named() {
        let shown = |wanted: &str, target: &str, level: Level| {
            let (filter, unread) = filter(wanted);
            assert!(unread.is_empty(), "{unread:?}");
            filter.would_enable(target, &level)
        };
        assert!(shown("", "svc_api", Level::INFO));
        assert!(!shown("", "svc_api", Level::DEBUG));
        assert!(!shown("", "rmcp", Level::WARN));
        assert!(!shown("debug", "rmcp::service", Level::WARN));
        assert!(shown("debug", "rmcp::service", Level::ERROR));
        assert!(shown("debug", "svc_api", Level::DEBUG));
        assert!(shown("svc=debug", "svc_api::mcp", Level::DEBUG));
        assert!(!shown("svc=debug", "hyper", Level::DEBUG));
        assert!(shown("rmcp=trace", "rmcp", Level::TRACE));
        assert!(shown("warn", ACCESS_TARGET, Level::INFO));
        assert!(!shown("warn, access=off", ACCESS_TARGET, Level::ERROR));
        assert!(!shown("off", "svc_api", Level::ERROR));
    }

    #[test]
    fn what_cannot_be_read_of_a_filter_is_told_and_the_rest_holds() {
        let (filter, unread) = filter("svc=loud,[request]=debug,,svc_api=trace");
        assert_eq!(unread, ["svc=loud", "[request]=debug"]);
        assert!(filter.would_enable("svc_api", &Level::TRACE));
        assert!(filter.would_enable("svc_pages", &Level::INFO));
    }
}
