//! Numbers of mails an hour: to an address, for a client, and for a project.

use std::collections::{HashMap, VecDeque};
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use crate::config::Limits;
use crate::outbound::mail::MailAddress;
use svc_base::ids::ProjectId;

/// Time in which mails are counted.
const HOUR: Duration = Duration::from_secs(3600);

/// Limit on mails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::visitors) enum MailLimit {
    /// Mails to one address.
    Address,
    /// Mails that one client asks for.
    Client,
    /// Mails of one project.
    Project,
}

/// Refusal of a mail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::visitors) struct MailLimitReached {
    pub limit: MailLimit,
    /// Number of seconds until there is room for one.
    pub wait_seconds: u64,
}

/// Counters of one mail.
#[derive(Clone, Debug)]
pub(super) struct MailCounters {
    pub address: MailAddress,
    pub client: IpAddr,
    pub project: ProjectId,
}

/// Key of a counter.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum CounterKey {
    Address(MailAddress),
    Client(IpAddr),
    Project(ProjectId),
}

/// Times of the mails of the last hour, oldest first, by what they count for.
type SentMails = HashMap<CounterKey, VecDeque<Duration>>;

/// Mails of the last hour. A mail is counted before it is sent, and stays counted when that fails.
#[derive(Debug)]
pub(super) struct MailAllowance {
    /// Limits by address, client and project.
    limits: [usize; 3],
    sent: Mutex<SentMails>,
}

impl MailAllowance {
    pub(super) fn new(limits: &Limits) -> Self {
        let limits = [
            limits.mail_per_hour_address,
            limits.mail_per_hour_client,
            limits.mail_per_hour_project,
        ];
        Self {
            limits: limits.map(|limit| usize::try_from(limit).unwrap_or(usize::MAX)),
            sent: Mutex::default(),
        }
    }

    /// Counts a mail for all of its counters, or for none.
    ///
    /// # Errors
    /// The limit that has the longest wait.
    pub(super) fn take(
        &self,
        counters: MailCounters,
        now: Duration,
    ) -> Result<(), MailLimitReached> {
        let [address, client, project] = self.limits;
        let keys = [
            (
                CounterKey::Address(counters.address),
                MailLimit::Address,
                address,
            ),
            (
                CounterKey::Client(counters.client),
                MailLimit::Client,
                client,
            ),
            (
                CounterKey::Project(counters.project),
                MailLimit::Project,
                project,
            ),
        ];
        let mut sent = self.sent.lock().unwrap_or_else(PoisonError::into_inner);
        let reached = keys.iter().filter_map(|(key, limit, most)| {
            let times = sent.get_mut(key)?;
            drop_old(times, now);
            let first = times.len().checked_sub(*most)?;
            let wait = (*times.get(first)? + HOUR).saturating_sub(now);
            Some(MailLimitReached {
                limit: *limit,
                wait_seconds: wait
                    .as_millis()
                    .div_ceil(1_000)
                    .try_into()
                    .unwrap_or(u64::MAX),
            })
        });
        if let Some(reached) = reached.max_by_key(|reached| reached.wait_seconds) {
            return Err(reached);
        }
        for (key, ..) in keys {
            sent.entry(key).or_default().push_back(now);
        }
        Ok(())
    }

    /// Removes the counters that have no mail of the last hour.
    pub(super) fn forget_old(&self, now: Duration) {
        let mut sent = self.sent.lock().unwrap_or_else(PoisonError::into_inner);
        sent.retain(|_, times| {
            drop_old(times, now);
            !times.is_empty()
        });
    }
}

fn drop_old(times: &mut VecDeque<Duration>, now: Duration) {
    while times.front().is_some_and(|at| *at + HOUR <= now) {
        times.pop_front();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counters(address: &str, client: u8, project: u8) -> MailCounters {
        MailCounters {
            address: MailAddress::parse(&format!("{address}@example.com")).unwrap(),
            client: IpAddr::from([192, 0, 2, client]),
            project: format!("00000000-0000-7000-8000-0000000000{project:02}")
                .parse()
                .unwrap(),
        }
    }

    #[test]
    fn each_limit_counts_by_itself_and_says_when_there_is_room() {
        let limits = Limits {
            mail_per_hour_address: 2,
            mail_per_hour_client: 3,
            mail_per_hour_project: 4,
            ..Limits::default()
        };
        let allowance = MailAllowance::new(&limits);
        let at = Duration::from_secs;
        let take = |address: &str, client, project, now| {
            allowance.take(counters(address, client, project), now)
        };
        let reached = |limit, wait_seconds| {
            Err(MailLimitReached {
                limit,
                wait_seconds,
            })
        };
        assert_eq!(take("a", 1, 1, at(0)), Ok(()));
        assert_eq!(take("a", 1, 1, at(10)), Ok(()));
        assert_eq!(take("a", 2, 2, at(20)), reached(MailLimit::Address, 3580));
        // A refused mail counts for nothing.
        assert_eq!(take("b", 1, 1, at(20)), Ok(()));
        assert_eq!(take("c", 1, 2, at(30)), reached(MailLimit::Client, 3570));
        assert_eq!(take("c", 2, 1, at(30)), Ok(()));
        assert_eq!(take("d", 3, 1, at(40)), reached(MailLimit::Project, 3560));
        assert_eq!(take("d", 3, 2, at(40)), Ok(()));
        // The oldest mail makes room for one.
        let almost = at(3600) - Duration::from_millis(1);
        assert_eq!(take("a", 4, 3, almost), reached(MailLimit::Address, 1));
        assert_eq!(take("a", 4, 3, at(3600)), Ok(()));
        assert_eq!(take("a", 4, 3, at(3600)), reached(MailLimit::Address, 10));
        allowance.forget_old(at(7200));
        assert!(allowance.sent.lock().unwrap().is_empty());
    }

    #[test]
    fn a_race_sends_no_more() {
        let allowance = MailAllowance::new(&Limits::default());
        let taken = std::thread::scope(|scope| {
            let tries: Vec<_> = (0..16)
                .map(|_| scope.spawn(|| allowance.take(counters("a", 1, 1), HOUR).is_ok()))
                .collect();
            let taken = tries.into_iter().map(|one| one.join().unwrap());
            taken.filter(|taken| *taken).count()
        });
        assert_eq!(taken, 5);
    }
}
