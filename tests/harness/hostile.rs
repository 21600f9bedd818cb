//! Guests that do everything wrong that can be done: what the first byte of their input says (`tests/guests/hostile`).

const HOST: &str = include_str!("../guests/hostile/host.wat");
const MISDEEDS: &str = include_str!("../guests/hostile/misdeeds.wat");
const RENDER: &str = include_str!("../guests/hostile/render.wat");
const GATE: &str = include_str!("../guests/hostile/gate.wat");

/// The renderer, as a component.
pub fn renderer() -> Vec<u8> {
    parse_wat(&assemble_component(RENDER))
}

/// The gate, as a component.
pub fn gate() -> Vec<u8> {
    parse_wat(&assemble_component(GATE))
}

/// The gate with the interfaces of WASI in another version of 0.2.
pub fn gate_of(version: &str) -> Vec<u8> {
    parse_wat(&assemble_component(GATE).replace("@0.2.6", &format!("@{version}")))
}

fn assemble_component(world: &str) -> String {
    world
        .replace("HOST\n", HOST)
        .replace("MISDEEDS\n", MISDEEDS)
}

fn parse_wat(text: &str) -> Vec<u8> {
    wat::parse_str(text).expect("the guests are well formed")
}
