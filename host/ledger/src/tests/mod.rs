//! Random schedules, and broken protocols that they must catch.

mod beats;
mod process;
mod seeded_random;
mod writes;

use std::num::NonZero;
use std::thread;

use self::beats::{BeatProtocol, Troubles};
use self::process::Protocol;
pub(crate) use self::process::node;
use crate::memory::requests::Rules;

/// Schedules of writes.
const SCHEDULES: u64 = 100_000;
/// Schedules of beats, which are longer.
const BEAT_SCHEDULES: u64 = 4_000;

/// Runs the schedules of the seeds below `seeds`, on all processors, and returns their outcomes.
fn on_all_processors<T: Send>(seeds: u64, run: impl Fn(u64) -> T + Sync) -> Vec<T> {
    let threads = thread::available_parallelism().map_or(1, NonZero::get);
    let run = &run;
    thread::scope(|scope| {
        let parts = (0..threads).map(|first| {
            scope.spawn(move || (0..seeds).skip(first).step_by(threads).map(run).collect())
        });
        let parts: Vec<thread::ScopedJoinHandle<'_, Vec<T>>> = parts.collect();
        let parts = parts.into_iter();
        parts.flat_map(|part| part.join().unwrap()).collect()
    })
}

/// Holds the right protocol over an engine with broken rules to the checker.
fn assert_rules_caught(rules: Rules) {
    assert_caught(Protocol {
        rules,
        ..Protocol::default()
    });
}

/// Asserts that some schedule shows what is wrong with a protocol.
#[track_caller]
fn assert_caught(protocol: Protocol) {
    let mut violations = (0..SCHEDULES).map(|seed| writes::run(seed, protocol).violation);
    assert!(violations.any(|found| found.is_some()), "{protocol:?}");
}

#[test]
fn nothing_that_was_acknowledged_is_lost_in_any_schedule() {
    let outcomes = on_all_processors(SCHEDULES, |seed| {
        let outcome = writes::run(seed, Protocol::default());
        assert_eq!(outcome.violation, None, "seed {seed}");
        outcome
    });
    // The schedules do what they are for.
    let schedules = usize::try_from(SCHEDULES).unwrap();
    let sum = |count: fn(&process::Outcome) -> usize| outcomes.iter().map(count).sum::<usize>();
    assert!(sum(|outcome| outcome.acknowledged) > schedules);
    assert!(sum(|outcome| outcome.loaded) > schedules);
    assert!(sum(|outcome| outcome.followed) > schedules / 10);
}

#[test]
fn a_schedule_is_the_same_each_time() {
    let protocol = Protocol::default();
    assert_eq!(writes::run(7, protocol), writes::run(7, protocol));
}

#[test]
fn a_look_up_that_is_no_commit_is_caught() {
    let rules = Rules {
        find_beats: false,
        ..Rules::default()
    };
    assert_rules_caught(rules);
}

#[test]
fn a_look_up_on_one_server_with_a_beat_on_another_is_caught() {
    let rules = Rules {
        find_beats: false,
        ..Rules::default()
    };
    assert_caught(Protocol {
        rules,
        confirms_apart: true,
        ..Protocol::default()
    });
}

#[test]
fn a_trusted_file_without_the_chain_is_caught() {
    let rules = Rules {
        chain: false,
        ..Rules::default()
    };
    assert_caught(Protocol {
        rules,
        trusts_file: true,
        ..Protocol::default()
    });
}

#[test]
fn appends_without_fence_and_chain_are_caught() {
    for tail_beats in [true, false] {
        let rules = Rules {
            fence: false,
            chain: false,
            tail_beats,
            ..Rules::default()
        };
        assert_rules_caught(rules);
    }
}

#[test]
fn a_claim_from_the_living_without_the_chain_is_caught() {
    for tail_beats in [true, false] {
        let rules = Rules {
            claim_from_dead: false,
            chain: false,
            tail_beats,
            ..Rules::default()
        };
        assert_rules_caught(rules);
    }
}

#[test]
fn an_answer_before_the_append_is_caught() {
    assert_caught(Protocol {
        answers_early: true,
        ..Protocol::default()
    });
}

#[test]
fn a_follower_that_reads_ahead_of_the_feed_is_caught() {
    assert_caught(Protocol {
        reads_ahead: true,
        ..Protocol::default()
    });
}

#[test]
fn no_healthy_run_is_buried_and_no_two_answer() {
    let outcomes = on_all_processors(BEAT_SCHEDULES, |seed| {
        let outcome = beats::run(seed, BeatProtocol::default());
        assert_eq!(outcome.fault, None, "seed {seed}");
        outcome
    });
    let schedules = usize::try_from(BEAT_SCHEDULES).unwrap();
    let sum = |count: fn(&beats::Outcome) -> usize| outcomes.iter().map(count).sum::<usize>();
    assert!(sum(|outcome| outcome.buried) > schedules / 10);
    assert!(sum(|outcome| outcome.claimed) > schedules / 2);
}

#[test]
fn burying_without_comparing_the_beat_is_caught() {
    let rules = Rules {
        compare_beat: false,
        ..Rules::default()
    };
    let protocol = BeatProtocol {
        rules,
        ..BeatProtocol::default()
    };
    let mut faults = (0..BEAT_SCHEDULES).map(|seed| beats::run(seed, protocol).fault);
    assert!(faults.any(|fault| fault == Some(beats::Fault::HealthyBuried)));
}

#[test]
fn a_run_that_counts_its_time_from_the_answer_is_caught() {
    let protocol = BeatProtocol {
        counts_from_answer: true,
        ..BeatProtocol::default()
    };
    let mut faults = (0..BEAT_SCHEDULES).map(|seed| beats::run(seed, protocol).fault);
    assert!(faults.any(|fault| fault == Some(beats::Fault::TwoAnswer)));
}

/// A protocol over nodes that are all well.
fn among_the_well(suspect: u64, append: u64, reconnect: u64) -> BeatProtocol {
    let troubles = Troubles {
        has_pauses: false,
        suspect,
        append,
        reconnect,
    };
    BeatProtocol {
        troubles,
        ..BeatProtocol::default()
    }
}

#[test]
fn no_run_is_buried_because_its_beats_come_a_little_late() {
    for (suspect, append) in [(4_000, 300), (5_000, 1_000)] {
        let protocol = among_the_well(suspect, append, 1_000);
        on_all_processors(BEAT_SCHEDULES, |seed| {
            let outcome = beats::run(seed, protocol);
            assert_eq!(outcome.fault, None, "seed {seed}, {suspect} ms");
            assert_eq!(outcome.buried, 0, "seed {seed}, {suspect} ms");
        });
    }
}

#[test]
fn beats_that_come_too_late_are_caught() {
    for (append, reconnect) in [(9_000, 0), (0, 6_000)] {
        let protocol = among_the_well(4_000, append, reconnect);
        let mut faults = (0..BEAT_SCHEDULES).filter_map(|seed| beats::run(seed, protocol).fault);
        assert_eq!(faults.next(), Some(beats::Fault::HealthyBuried));
    }
}
