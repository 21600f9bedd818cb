//! Budgets of guests' calls, from the settings.

use std::time::Duration;

use crate::config::{self, Limits};
use svc_sandbox::{CallBudgets, GuestLimits, MIN_GATE_MEMORY, MIN_RENDER_MEMORY, SharedLimits};

// The settings refuse what the sandbox would; they do not know it.
const _: () = assert!(config::MIN_RENDER_MEMORY == MIN_RENDER_MEMORY);
const _: () = assert!(config::MIN_GATE_MEMORY == MIN_GATE_MEMORY);

/// Returns the budgets of guests' calls.
pub fn guest_limits(limits: &Limits) -> GuestLimits {
    let of = |fuel, bytes, millis| CallBudgets {
        fuel,
        memory_bytes: usize::try_from(bytes).unwrap_or(usize::MAX),
        wall: Duration::from_millis(millis),
    };
    GuestLimits {
        render: of(
            limits.render_fuel,
            limits.render_memory_bytes,
            limits.render_ms,
        ),
        gate: of(limits.gate_fuel, limits.gate_memory_bytes, limits.gate_ms),
        page: SharedLimits {
            fuel: limits.page_fuel,
            processor: Duration::from_millis(limits.page_processor_ms),
            wall: Duration::from_millis(limits.page_ms),
        },
    }
}
