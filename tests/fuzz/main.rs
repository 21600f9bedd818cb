//! Fuzzing by count, on the compiler that everything is built with: every text of the corpora, and changed ones.
//!
//! Every run uses the same texts. `FUZZ_ROUNDS` makes more of each, and `FUZZ_SEED` makes others. A finding is kept as a file of
//! `tests/corpus/fuzz`. For the guests natively `libfuzzer` beside this looks further; through the host, where the compiled guest is
//! opaque to it, this is the long run, too.

mod mutate;
mod seeds;
mod targets;

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use mutate::Mutator;
use targets::{agreement, cleaner, envelopes, frames, gate, host::Host, render};

fn setting(name: &str) -> Option<u64> {
    let value = std::env::var(name).ok()?;
    Some(
        value
            .parse()
            .unwrap_or_else(|_| panic!("{name} is no number: {value}")),
    )
}

/// Has a target look at texts: each `every`th as it is, and so many changed ones of it.
fn fuzz(seeds: &[Vec<u8>], every: usize, rounds: u64, target: impl Fn(&[u8])) {
    let rounds = setting("FUZZ_ROUNDS").unwrap_or(rounds);
    let mut mutator = Mutator::new(setting("FUZZ_SEED").unwrap_or(1));
    let look = |text: &[u8]| {
        let done = catch_unwind(AssertUnwindSafe(|| target(text)));
        if let Err(panic) = done {
            eprintln!("the text: {:?}", String::from_utf8_lossy(text));
            resume_unwind(panic);
        }
    };
    for seed in seeds.iter().step_by(every) {
        look(seed);
        for _ in 0..rounds {
            let other = &seeds[mutator.below(seeds.len())];
            look(&mutator.change(seed, other));
        }
    }
}

#[test]
fn the_gate_natively() {
    fuzz(&seeds::sql(), 1, 20, gate::judge);
}

#[test]
fn the_gate_beside_sqlite() {
    fuzz(&seeds::sql(), 1, 4, agreement::compare);
}

#[test]
fn the_renderer_natively() {
    fuzz(&seeds::sources(), 1, 6, render::render_all);
}

#[test]
fn the_cleaner_natively() {
    fuzz(&seeds::files(), 1, 2_000, cleaner::clean_all);
}

#[test]
fn frames_of_clients() {
    fuzz(&seeds::frames(), 1, 2_000, frames::decode);
}

#[test]
fn words_of_clients() {
    fuzz(&seeds::envelopes(), 1, 1_000, envelopes::judge);
}

#[test]
fn the_gate_through_the_host() {
    let host = Host::start(svc_tests::guest_cache_dir());
    fuzz(&seeds::sql(), 3, 2, |text| host.judge(text));
}

#[test]
fn the_renderer_through_the_host() {
    let host = Host::start(svc_tests::guest_cache_dir());
    fuzz(&seeds::sources(), 1, 2, |text| host.render(text));
}
