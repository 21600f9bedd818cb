//! Decisions: a table of all cases, and histories of two folders and a stranger that race.

use std::collections::BTreeMap;

use super::*;

#[test]
fn each_case_has_its_decision() {
    use Decision::{Apply, Conflict, End, OnlyServer, Same, ServerNewer, Stale};
    use LastMeeting::{Unknown, With};
    let (a, b, c) = (Some("a"), Some("b"), Some("c"));
    for (local, met, remote, expected) in [
        (a, With(a), a, Same),
        (b, With(a), b, Same),
        (None, With(a), None, Same),
        (None, With(None), None, Same),
        (b, With(a), a, Apply),
        (b, With(None), None, Apply),
        (None, With(a), a, End),
        (a, With(a), b, ServerNewer),
        (a, With(a), None, ServerNewer),
        (None, With(None), b, OnlyServer),
        (b, With(a), c, Conflict),
        (b, With(a), None, Conflict),
        (None, With(a), b, Conflict),
        (b, With(None), c, Conflict),
        (a, Unknown, a, Same),
        (a, Unknown, None, Apply),
        (None, Unknown, a, OnlyServer),
        (b, Unknown, a, Apply),
        // The server has had `old` before.
        (Some("old"), Unknown, a, Stale),
        (Some("old"), Unknown, None, Apply),
        (Some("old"), With(a), a, Apply),
    ] {
        let shared = match &met {
            Unknown => Unknown,
            With(both) => With(both.as_ref()),
        };
        let found = decide(local.as_ref(), shared, remote.as_ref(), &["old"]);
        assert_eq!(found, expected, "{local:?} {met:?} {remote:?}");
    }
}

#[test]
fn each_rule_decides_about_what_differs() {
    use Decision::{Apply, Conflict, End, OnlyServer, Same, ServerNewer, Stale};
    for (decision, is_in_folder, forced, own) in [
        (Conflict, true, Apply, Apply),
        (Stale, true, Apply, Apply),
        // Nobody has named what only the server has changed.
        (ServerNewer, true, ServerNewer, Apply),
        (ServerNewer, false, ServerNewer, ServerNewer),
        (Conflict, false, End, End),
        (OnlyServer, false, OnlyServer, OnlyServer),
        (Same, true, Same, Same),
        (Apply, true, Apply, Apply),
    ] {
        for (rule, expected) in [
            (Precedence::Refuse, decision),
            (Precedence::FolderInConflicts, forced),
            (Precedence::Folder, own),
        ] {
            let found = decision.by(rule, is_in_folder);
            assert_eq!(found, expected, "{decision:?} {rule:?} {is_in_folder}");
        }
    }
}

/// A text, by the number of the write that made it.
type Text = u32;

/// Numbers at random, the same ones for a seed.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, most: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (self.0 >> 33) % most
    }
}

/// A folder with one part: its text, and what it knows.
#[derive(Clone, Default)]
struct Folder {
    local: Option<Text>,
    met: Option<Option<Text>>,
    /// Texts that its user has been told of or has written.
    seen: Vec<Option<Text>>,
}

/// A server with one part, with all that it had.
#[derive(Default)]
struct Server {
    live: Option<Text>,
    earlier: Vec<Text>,
    refused: usize,
}

impl Server {
    /// Releases a text, if what is live is what was expected.
    fn release(&mut self, expected: Option<Text>, text: Option<Text>) -> bool {
        if self.live != expected {
            return false;
        }
        self.earlier.extend(self.live);
        self.live = text;
        true
    }
}

impl Folder {
    /// Applies the folder. Somebody else may write between its look and its release.
    fn apply(&mut self, server: &mut Server, force: bool, between: Option<Option<Text>>) {
        let looked = server.live;
        let met = match &self.met {
            None => LastMeeting::Unknown,
            Some(both) => LastMeeting::With(both.as_ref()),
        };
        let earlier = server.earlier.clone();
        let mut decision = decide(self.local.as_ref(), met, looked.as_ref(), &earlier);
        let is_newer = decision == Decision::ServerNewer;
        if force {
            decision = decision.by(Precedence::FolderInConflicts, self.local.is_some());
        }
        assert_eq!(is_newer, decision == Decision::ServerNewer);
        if let Some(text) = between {
            assert!(server.release(server.live, text));
        }
        match decision {
            Decision::Apply | Decision::End => {
                // Without a meeting, a text that is no older one is the folder's change: its user has been asked.
                let knows = force || self.met.is_none() || self.seen.contains(&looked);
                assert!(knows, "{looked:?} would be lost");
                if server.release(looked, self.local) {
                    self.seen.push(self.local);
                    self.met = Some(self.local);
                } else {
                    server.refused += 1;
                }
            }
            Decision::Same if server.live == looked => {
                self.seen.push(looked);
                self.met = Some(looked);
            }
            Decision::Conflict | Decision::Stale => server.refused += 1,
            Decision::Same | Decision::ServerNewer | Decision::OnlyServer => {}
        }
    }

    fn pull(&mut self, server: &Server) {
        // A pull takes no file away.
        self.local = server.live.or(self.local);
        if self.local == server.live {
            self.seen.push(self.local);
            self.met = Some(self.local);
        }
    }
}

#[test]
fn no_text_is_lost_in_random_histories() {
    let mut kinds = BTreeMap::<&str, usize>::new();
    for seed in 0..200 {
        let mut numbers = Numbers(seed * 7919 + 1);
        let (mut server, mut folders) = (Server::default(), [Folder::default(), Folder::default()]);
        for text in 1..60 {
            let which = usize::try_from(numbers.below(2)).unwrap();
            match numbers.below(12) {
                0..=3 => folders[which].local = Some(text),
                4 => folders[which].local = None,
                5 => folders[which].pull(&server),
                6 => {
                    let ends = numbers.below(4) == 0;
                    assert!(server.release(server.live, (!ends).then_some(text)));
                }
                7 => {
                    let between = Some(Some(text));
                    folders[which].apply(&mut server, false, between);
                    *kinds.entry("race").or_default() += 1;
                    // Whatever was decided before, the text in between is live.
                    assert_eq!(Some(server.live), between, "seed {seed}");
                }
                8 => folders[which].apply(&mut server, numbers.below(8) == 0, None),
                _ => folders[which].apply(&mut server, false, None),
            }
        }
        *kinds.entry("refused").or_default() += server.refused;
        *kinds.entry("released").or_default() += server.earlier.len();
    }
    // The histories have what they are about.
    assert!(kinds.values().all(|count| *count > 200), "{kinds:?}");
}
