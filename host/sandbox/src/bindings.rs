//! The host's side of the WIT packages: the only place that generates bindings.

#![allow(
    missing_docs,
    unreachable_pub,
    reason = "generated: the packages are documented in wit/"
)]

pub(super) mod render {
    wasmtime::component::bindgen!({ path: "../../wit/render", world: "render" });
}

/// Previous version of the interface: see `versions.rs`.
pub(super) mod render_1 {
    wasmtime::component::bindgen!({ path: "../../wit/render-1", world: "render" });
}

pub(super) mod gate {
    wasmtime::component::bindgen!({ path: "../../wit/gate", world: "gate" });
}

/// Interfaces that a renderer may have beside its own.
pub(super) mod files {
    wasmtime::component::bindgen!({ path: "../../wit/files", world: "files" });
}

pub(super) mod rules {
    wasmtime::component::bindgen!({ path: "../../wit/rules", world: "rules" });
}
