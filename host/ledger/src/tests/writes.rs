//! Random schedules of writes: three nodes over a primary with one standby, whose waits are cut, which fails over, and whose nodes are
//! killed, paused and suspected wrongly. Requests are lost, and some are done late.

use std::mem;
use std::time::Duration;

use svc_base::positions::{Checksum, CommitPosition, Entry};

use super::process::{
    APPENDS, CONNECTIONS, Connection, OTHERS, Outcome, Ownership, Process, Protocol, Request,
    Response, Violation, commit, first_base, lost, node,
};
use super::seeded_random::SeededRandom;
use crate::appender::{self, Answer, Command};
use crate::memory::requests;
use crate::memory::store::{Key, Refusal, Row, Store, TransactionNumber};
use crate::types::{ClaimOutcome, DatabaseEntry, DatabaseName, LedgerError, RunId};

const NODES: usize = 3;
const DATABASES: usize = 2;
const STEPS: usize = 140;
/// Commits of a process that may be unanswered.
const UNANSWERED: usize = 4;

struct Schedule {
    random: SeededRandom,
    protocol: Protocol,
    databases: [DatabaseName; DATABASES],
    store: Store,
    processes: Vec<Process>,
    /// Transactions that wait, and whose callers are gone.
    orphans: Vec<TransactionNumber>,
    /// Requests whose answers are lost, and that the server will do some time.
    late: Vec<(RunId, Request)>,
    steps: u64,
    runs: u128,
    values: u64,
    acknowledged: [Vec<(CommitPosition, Checksum)>; DATABASES],
    follower: [Vec<Checksum>; DATABASES],
    outcome: Outcome,
}

/// Runs the schedule of a seed.
pub(super) fn run(seed: u64, protocol: Protocol) -> Outcome {
    let mut schedule = Schedule::new(seed, protocol);
    for _ in 0..STEPS {
        schedule.step();
    }
    schedule.check();
    schedule.outcome
}

impl Schedule {
    fn new(seed: u64, protocol: Protocol) -> Self {
        let backend = "01890a5d-ac96-774b-bcce-b302099a8057".parse().unwrap();
        let databases = [DatabaseName::Control, DatabaseName::Backend(backend)];
        let mut store = Store::default();
        for database in databases {
            let base = first_base(database);
            let key = Key::Base(database, base.position);
            let (_, number) = store
                .transact(|view| view.set(key, Some(Row::Base(base))))
                .unwrap();
            store.replicate(1);
            assert!(store.acknowledge(number.unwrap()));
        }
        Self {
            random: SeededRandom::new(seed),
            protocol,
            databases,
            store,
            processes: (1..).take(NODES).map(Process::new).collect(),
            orphans: Vec::new(),
            late: Vec::new(),
            steps: 0,
            runs: 9,
            values: 0,
            acknowledged: [Vec::new(), Vec::new()],
            follower: [vec![Checksum(0)], vec![Checksum(0)]],
            outcome: Outcome::default(),
        }
    }

    fn step(&mut self) {
        self.steps += 1;
        match self.random.below(100) {
            0..=39 => {
                let most = self.store.unreplicated() + 1;
                let transactions = self.random.index(most);
                self.store.replicate(transactions);
            }
            40..=44 => self.cut_a_wait(),
            45..=46 => self.fail_over(),
            47 => {
                let at = self.random.index(NODES);
                self.end(at);
            }
            48..=50 => self.lose_a_request(),
            51..=54 => self.do_late(),
            55..=59 => self.follow(),
            60..=61 => {
                let at = self.random.index(NODES);
                self.processes[at].paused_until = self.steps + self.random.below(60);
            }
            _ => {}
        }
        self.deliver();
        for _ in 0..3 {
            let at = self.random.index(NODES);
            if self.steps >= self.processes[at].paused_until {
                self.act(at);
            }
        }
    }

    fn violated(&mut self, violation: Violation) {
        self.outcome.violation.get_or_insert(violation);
    }

    // Faults.

    fn cut_a_wait(&mut self) {
        let mut waiting = Vec::new();
        for (at, process) in self.processes.iter().enumerate() {
            for connection in CONNECTIONS {
                if let Connection::Waits(_, _, number) = &process.connections[connection] {
                    waiting.push((at, connection, *number));
                }
            }
        }
        if !waiting.is_empty() {
            let (at, connection, number) = waiting[self.random.index(waiting.len())];
            self.store.cut(number);
            self.answer(at, connection, true);
        }
    }

    fn fail_over(&mut self) {
        self.store.fail_over();
        self.orphans.clear();
        self.late.clear();
        for at in 0..NODES {
            for connection in CONNECTIONS {
                self.answer(at, connection, true);
            }
        }
    }

    /// Ends a process: by `kill -9`, or because it was fenced. Another takes its place.
    fn end(&mut self, at: usize) {
        self.runs += 1;
        let old = mem::replace(&mut self.processes[at], Process::new(self.runs));
        for connection in old.connections {
            match connection {
                Connection::Sent(request) if self.random.percent(50) => {
                    self.late.push((old.run, request));
                }
                Connection::Waits(_, _, number) if self.random.percent(50) => {
                    self.orphans.push(number);
                }
                Connection::Waits(_, _, number) => self.store.cut(number),
                Connection::Free | Connection::Sent(_) | Connection::Answered(..) => {}
            }
        }
        let files = old.ownerships.into_iter().zip(old.files);
        let files = files.map(|(ownership, file)| match ownership {
            Ownership::Owned(_, past) => Some(past),
            Ownership::Nothing | Ownership::Claimed(_) | Ownership::Releasing(_) => file,
        });
        self.processes[at].files = files.collect();
    }

    /// Loses a request that is under way: it was not sent, it does not arrive, or it is done late.
    fn lose_a_request(&mut self) {
        let (at, connection) = (
            self.random.index(NODES),
            self.random.index(CONNECTIONS.len()),
        );
        let process = &mut self.processes[at];
        let Connection::Sent(request) = &process.connections[connection] else {
            return;
        };
        let request = request.clone();
        let error = match self.random.below(3) {
            0 => LedgerError::Unavailable(String::new()),
            1 => lost(),
            _ => {
                self.late.push((process.run, request.clone()));
                lost()
            }
        };
        process.connections[connection] = Connection::Answered(request, Err(error));
    }

    fn do_late(&mut self) {
        if self.late.is_empty() {
            return;
        }
        let at = self.random.index(self.late.len());
        let (run, request) = self.late.swap_remove(at);
        match self.perform(run, &request) {
            Ok((_, Some(number))) => self.orphans.push(number),
            Err(Refusal::Locked) => self.late.push((run, request)),
            Ok((_, None)) | Err(Refusal::Error(_)) => {}
        }
    }

    // The server.

    fn perform(
        &mut self,
        run: RunId,
        request: &Request,
    ) -> Result<(Response, Option<TransactionNumber>), Refusal> {
        let (rules, databases) = (self.protocol.rules, self.databases);
        self.store.transact(|view| {
            Ok(match request {
                Request::Join => {
                    requests::join(view, &node(run))?;
                    Response::Done
                }
                Request::Beat => Response::Nodes(requests::beat(view, run)?),
                Request::Bury(dead, seen) => {
                    requests::bury(rules, view, run, *dead, *seen)?;
                    Response::Done
                }
                Request::Claim(database) => {
                    let database = databases[*database];
                    Response::Claimed(requests::claim(rules, view, run, database)?)
                }
                Request::Load(database) => {
                    let (database, first) = (databases[*database], CommitPosition(0));
                    let reader = Some(run);
                    let entries = requests::tail(rules, view, reader, database, first, usize::MAX)?;
                    Response::Entries(entries)
                }
                Request::Release(place) => {
                    requests::release(view, *place)?;
                    Response::Done
                }
                Request::Append(appender::Request::Append(entries)) => {
                    requests::append(rules, view, run, entries)?;
                    Response::Done
                }
                Request::Append(request) => {
                    let at = request.positions();
                    Response::Found(requests::find(rules, view, run, &at)?)
                }
            })
        })
    }

    /// Answers some of the requests that the standby has.
    fn deliver(&mut self) {
        let store = &mut self.store;
        self.orphans
            .retain(|number| !store.acknowledge(*number) && store.waits(*number));
        for at in 0..NODES {
            for connection in CONNECTIONS {
                let Connection::Waits(_, _, number) = &self.processes[at].connections[connection]
                else {
                    continue;
                };
                let number = *number;
                if self.random.percent(60) && self.store.acknowledge(number) {
                    let lost = self.random.percent(3);
                    self.answer(at, connection, lost);
                }
            }
        }
    }

    /// Ends the wait of a request, if it waits.
    fn answer(&mut self, at: usize, connection: usize, loses: bool) {
        let connection = &mut self.processes[at].connections[connection];
        *connection = match mem::replace(connection, Connection::Free) {
            Connection::Waits(request, response, _) => {
                let answer = if loses { Err(lost()) } else { Ok(response) };
                Connection::Answered(request, answer)
            }
            other => other,
        };
    }

    // Processes.

    fn act(&mut self, at: usize) {
        for connection in CONNECTIONS {
            self.advance(at, connection);
        }
        let free = matches!(self.processes[at].connections[OTHERS], Connection::Free);
        if free && let Some(request) = self.next_request(at) {
            self.processes[at].connections[OTHERS] = Connection::Sent(request);
        }
        let database = self.random.index(DATABASES);
        if self.random.percent(40) {
            self.write(at, database);
        }
        if self.random.percent(30) {
            self.read(at, database);
        }
    }

    fn advance(&mut self, at: usize, connection: usize) {
        let process = &mut self.processes[at];
        match mem::replace(&mut process.connections[connection], Connection::Free) {
            Connection::Free => {}
            waits @ Connection::Waits(..) => process.connections[connection] = waits,
            Connection::Sent(request) => {
                let run = process.run;
                let next = match self.perform(run, &request) {
                    Ok((response, Some(number))) => Connection::Waits(request, response, number),
                    Ok((response, None)) => Connection::Answered(request, Ok(response)),
                    Err(Refusal::Locked) => Connection::Sent(request),
                    Err(Refusal::Error(error)) => Connection::Answered(request, Err(error)),
                };
                self.processes[at].connections[connection] = next;
            }
            Connection::Answered(request, answer) if connection == APPENDS => {
                self.append_answered(at, request, answer);
            }
            Connection::Answered(request, answer) => self.other_answered(at, &request, answer),
        }
    }

    fn append_answered(
        &mut self,
        at: usize,
        request: Request,
        answer: Result<Response, LedgerError>,
    ) {
        let apart = self.protocol.confirms_apart;
        let process = &mut self.processes[at];
        let answer = match (request, answer) {
            (Request::Append(appender::Request::Append(_)), answer) => {
                Answer::Appended(answer.map(|_| ()))
            }
            (Request::Append(_), Ok(Response::Found(found))) => {
                if apart && found.iter().all(Option::is_some) {
                    process.found = found;
                    process.connections[APPENDS] = Connection::Sent(Request::Beat);
                    return;
                }
                Answer::Found(Ok(found))
            }
            (Request::Append(_), Err(error)) => Answer::Found(Err(error)),
            // The beat that confirms.
            (_, Ok(_)) => Answer::Found(Ok(mem::take(&mut process.found))),
            (_, Err(LedgerError::Fenced)) => Answer::Found(Err(LedgerError::Fenced)),
            (request, Err(_)) => {
                process.connections[APPENDS] = Connection::Sent(request);
                return;
            }
        };
        for command in process.appender.answered(answer) {
            self.execute(at, command);
        }
    }

    fn execute(&mut self, at: usize, command: Command) {
        match command {
            Command::Send(request, _) => {
                self.processes[at].connections[APPENDS] =
                    Connection::Sent(Request::Append(request));
            }
            Command::Acknowledge(commits) => {
                for commit in commits.iter() {
                    self.acknowledge(at, commit);
                }
            }
            Command::End(_) => self.end(at),
        }
    }

    fn acknowledge(&mut self, at: usize, commit: &DatabaseEntry) {
        let database = usize::from(commit.database != DatabaseName::Control);
        let (position, after) = (commit.entry.position, commit.entry.after);
        if !self.protocol.answers_early {
            self.acknowledged[database].push((position, after));
        }
        self.outcome.acknowledged += 1;
        let Ownership::Owned(_, past) = &self.processes[at].ownerships[database] else {
            return;
        };
        let states = (0..).zip(past).skip(1);
        let mut states = states.take_while(|(number, _)| *number <= position.0);
        let same = states.all(|(number, state)| {
            let key = Key::Commit(commit.database, CommitPosition(number));
            matches!(self.store.get(&key), Some(Row::Commit(_, entry)) if entry.after == *state)
        });
        if !same {
            self.violated(Violation::OtherPast);
        }
    }

    fn other_answered(
        &mut self,
        at: usize,
        request: &Request,
        answer: Result<Response, LedgerError>,
    ) {
        let process = &mut self.processes[at];
        match (request, answer) {
            (_, Err(LedgerError::Fenced)) => self.end(at),
            (Request::Join, Ok(_)) => process.joined = true,
            (Request::Beat, Ok(Response::Nodes(nodes))) => process.seen = nodes,
            (Request::Claim(database), Ok(Response::Claimed(ClaimOutcome::Claimed(place)))) => {
                process.ownerships[*database] = Ownership::Claimed(place);
            }
            (Request::Load(database), Ok(Response::Entries(entries))) => {
                self.load(at, *database, &entries);
            }
            (Request::Release(place), Ok(_)) => {
                let database = usize::from(place.database != DatabaseName::Control);
                process.ownerships[database] = Ownership::Nothing;
            }
            // What was refused or lost is decided anew.
            _ => {}
        }
    }

    fn load(&mut self, at: usize, database: usize, entries: &[Entry]) {
        let Ownership::Claimed(place) = self.processes[at].ownerships[database] else {
            return;
        };
        let mut past = vec![Checksum(0)];
        for entry in entries {
            if past.last() != Some(&entry.before) {
                self.violated(Violation::Hole);
            }
            past.push(entry.after);
        }
        if self.protocol.trusts_file
            && let Some(file) = self.processes[at].files[database].take()
        {
            past = file;
        }
        self.processes[at].ownerships[database] = Ownership::Owned(place, past);
        self.outcome.loaded += 1;
    }

    /// Chooses the next request beside appends.
    fn next_request(&mut self, at: usize) -> Option<Request> {
        let process = &mut self.processes[at];
        if !process.joined {
            return Some(Request::Join);
        }
        let database = self.random.index(DATABASES);
        let idle = process.appender.unanswered_bytes() == 0;
        match process.ownerships[database] {
            Ownership::Claimed(_) => Some(Request::Load(database)),
            Ownership::Releasing(place) => Some(Request::Release(place)),
            Ownership::Owned(place, _) if idle && self.random.percent(4) => {
                process.ownerships[database] = Ownership::Releasing(place);
                Some(Request::Release(place))
            }
            Ownership::Owned(..) => self.random.percent(30).then_some(Request::Beat),
            Ownership::Nothing => self.next_claim(at, database),
        }
    }

    /// Chooses how to come by a database: its holder is suspected now and then, rightly or not.
    fn next_claim(&mut self, at: usize, database: usize) -> Option<Request> {
        let process = &self.processes[at];
        let key = Key::Place(self.databases[database]);
        let holder = match self.store.get(&key) {
            Some(Row::Place(place)) if place.run != process.run => place.run,
            _ => return Some(Request::Claim(database)),
        };
        if !self.protocol.rules.claim_from_dead && self.random.percent(10) {
            return Some(Request::Claim(database));
        }
        let mut seen = process.seen.iter();
        let Some(seen) = seen.find(|seen| seen.node.run == holder) else {
            return Some(Request::Beat);
        };
        if !seen.live {
            return Some(Request::Claim(database));
        }
        match self.random.below(100) {
            0..=19 => {
                let beat = self.random.percent(50).then_some(seen.beat);
                Some(Request::Bury(holder, beat))
            }
            20..=49 => Some(Request::Beat),
            _ => None,
        }
    }

    fn write(&mut self, at: usize, database: usize) {
        let process = &mut self.processes[at];
        let full = process.appender.unanswered_bytes() >= UNANSWERED;
        let Ownership::Owned(_, past) = &mut process.ownerships[database] else {
            return;
        };
        if full {
            return;
        }
        self.values += 1;
        let position = CommitPosition(u64::try_from(past.len()).unwrap());
        let (before, after) = (*past.last().unwrap(), Checksum(self.values));
        past.push(after);
        let commit = commit(self.databases[database], position, (before, after));
        if self.protocol.answers_early {
            self.acknowledged[database].push((position, after));
        }
        if let Some(command) = process.appender.submit(commit, Duration::ZERO) {
            self.execute(at, command);
        }
    }

    /// Looks whether the owner of a database has everything that was acknowledged. A process that has lost its place and does not
    /// know is kept from answering by the time, of which there is none here.
    fn read(&mut self, at: usize, database: usize) {
        let process = &self.processes[at];
        let Ownership::Owned(place, past) = &process.ownerships[database] else {
            return;
        };
        let key = Key::Place(place.database);
        let own = matches!(self.store.get(&key), Some(Row::Place(there)) if there == place);
        let key = Key::Node(process.run);
        let lives = matches!(self.store.get(&key), Some(Row::Node(state)) if state.live);
        let mut acknowledged = self.acknowledged[database].iter();
        let has_all = acknowledged.all(|(position, after)| {
            let at = usize::try_from(position.0).unwrap();
            past.get(at) == Some(after)
        });
        if own && lives && !has_all {
            self.violated(Violation::StaleRead);
        }
    }

    /// Has the follower take commits: those that the feed has named, which are acknowledged.
    fn follow(&mut self) {
        let database = self.random.index(DATABASES);
        let named = self.acknowledged[database].iter();
        let named = named.map(|(position, _)| *position).max();
        let named = match self.protocol.reads_ahead {
            true => Some(CommitPosition(u64::MAX)),
            false => named,
        };
        let (name, rules) = (self.databases[database], self.protocol.rules);
        let last = self.follower[database].len() - 1;
        let last = CommitPosition(u64::try_from(last).unwrap());
        let found = self
            .store
            .transact(|view| requests::tail(rules, view, None, name, last, usize::MAX));
        for entry in found.unwrap().0 {
            if Some(entry.position) > named {
                break;
            }
            if self.follower[database].last() != Some(&entry.before) {
                self.violated(Violation::TakenBack);
                break;
            }
            self.follower[database].push(entry.after);
            self.outcome.followed += 1;
        }
    }

    /// Compares what was promised with the ledger after the worst failover.
    fn check(&mut self) {
        self.store.fail_over();
        for (database, name) in self.databases.into_iter().enumerate() {
            let first = Key::Commit(name, CommitPosition(0));
            let rows = self
                .store
                .range(first..=Key::Commit(name, CommitPosition(u64::MAX)));
            let mut past = vec![Checksum(0)];
            let mut whole = true;
            for row in rows {
                let Row::Commit(_, entry) = row else { continue };
                let number = u64::try_from(past.len()).unwrap();
                whole &= entry.position.0 == number && past.last() == Some(&entry.before);
                past.push(entry.after);
            }
            let mut acknowledged = self.acknowledged[database].iter();
            let lost = acknowledged.any(|(position, after)| {
                let key = Key::Commit(name, *position);
                !matches!(self.store.get(&key), Some(Row::Commit(_, entry)) if entry.after == *after)
            });
            let shown = past.starts_with(&self.follower[database]);
            for (right, violation) in [
                (!lost, Violation::Lost),
                (whole, Violation::Hole),
                (shown, Violation::TakenBack),
            ] {
                if !right {
                    self.violated(violation);
                }
            }
        }
    }
}
