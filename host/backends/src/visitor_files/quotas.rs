//! Quotas of uploads: how many are under way, and how many bytes one visitor, else one client, uploads a day.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::config::Limits;
use svc_base::clock::Clock;

/// A day of the quota.
const DAY: Duration = Duration::from_secs(24 * 3600);
/// Most uploaders whose bytes are counted: further ones wait until a day of others is over.
const MAX_UPLOADERS: usize = 200_000;

/// Quota that an upload would pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UploadQuotaReached {
    /// The client has as many uploads under way as it may.
    #[error("{0} uploads of the client are under way")]
    AtOnce(u64),
    /// All clients have as many under way as the server takes.
    #[error("all uploads are under way")]
    Total,
    /// The uploader has sent as many bytes today as it may.
    #[error("the uploader has sent {0} bytes today")]
    Day(u64),
}

/// Bytes that somebody has uploaded since a moment.
#[derive(Debug)]
struct DayBytes {
    since: Duration,
    /// Bytes of files that are kept, or under way.
    bytes: u64,
    /// Bytes that were stored, and then refused by a statement. They take nothing of what may be kept, and have the same bound: nobody
    /// fills the disk with files that are refused.
    refused: u64,
}

/// Outcome of an upload, for the day.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum UploadEnd {
    /// Nothing was stored.
    Nothing,
    /// The bytes were stored, and refused.
    Refused,
    /// The file is there.
    Kept,
}

#[derive(Debug, Default)]
struct QuotaState {
    total: u64,
    /// Bytes that all uploads under way may bring.
    arriving: u64,
    by_client: HashMap<IpAddr, u64>,
    days: HashMap<String, DayBytes>,
}

/// Quotas of all uploads of this machine.
#[derive(Debug)]
pub(super) struct UploadQuotas {
    clock: Clock,
    at_once: u64,
    total: u64,
    day_bytes: u64,
    state: Mutex<QuotaState>,
}

/// Place of an upload that is under way. It is given back when this is dropped; so are its bytes, unless they were stored.
#[derive(Debug)]
pub(super) struct UploadTurn {
    quotas: Arc<UploadQuotas>,
    client: IpAddr,
    uploader: String,
    bytes: u64,
    end: UploadEnd,
}

impl UploadQuotas {
    /// Makes the quotas of an installation.
    pub(super) fn new(limits: &Limits, clock: Clock) -> Arc<Self> {
        Arc::new(Self {
            clock,
            at_once: limits.uploads_at_once,
            total: limits.uploads_total,
            day_bytes: limits.upload_day_bytes,
            state: Mutex::default(),
        })
    }

    /// Takes a place for an upload of so many bytes.
    ///
    /// # Errors
    /// The quota that it would pass.
    pub(super) fn begin(
        self: &Arc<Self>,
        client: IpAddr,
        uploader: String,
        bytes: u64,
    ) -> Result<UploadTurn, UploadQuotaReached> {
        let now = self.clock.elapsed();
        let mut state = self.lock();
        let running = state.by_client.get(&client).copied().unwrap_or(0);
        if running >= self.at_once {
            return Err(UploadQuotaReached::AtOnce(self.at_once));
        }
        if state.total >= self.total {
            return Err(UploadQuotaReached::Total);
        }
        state.count_bytes(&uploader, bytes, self.day_bytes, now)?;
        state.total += 1;
        state.arriving = state.arriving.saturating_add(bytes);
        *state.by_client.entry(client).or_default() += 1;
        Ok(UploadTurn {
            quotas: Arc::clone(self),
            client,
            uploader,
            bytes,
            end: UploadEnd::Nothing,
        })
    }

    /// Returns the bytes that the uploads under way may bring.
    pub(super) fn arriving_bytes(&self) -> u64 {
        self.lock().arriving
    }

    /// Forgets days that are over.
    pub(super) fn tidy(&self) {
        let now = self.clock.elapsed();
        self.lock().forget_old(now);
    }

    fn lock(&self) -> MutexGuard<'_, QuotaState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl QuotaState {
    /// Counts bytes for an uploader's day.
    fn count_bytes(
        &mut self,
        uploader: &str,
        bytes: u64,
        most: u64,
        now: Duration,
    ) -> Result<(), UploadQuotaReached> {
        if self.days.len() >= MAX_UPLOADERS && !self.days.contains_key(uploader) {
            self.forget_old(now);
            if self.days.len() >= MAX_UPLOADERS {
                return Err(UploadQuotaReached::Total);
            }
        }
        let is_over = |day: &DayBytes| now.saturating_sub(day.since) >= DAY;
        let day = self.days.entry(uploader.to_owned());
        let day = day.or_insert(DayBytes {
            since: now,
            bytes: 0,
            refused: 0,
        });
        if is_over(day) {
            (day.since, day.bytes, day.refused) = (now, 0, 0);
        }
        if day.bytes.max(day.refused).saturating_add(bytes) > most {
            return Err(UploadQuotaReached::Day(most));
        }
        day.bytes += bytes;
        Ok(())
    }

    fn forget_old(&mut self, now: Duration) {
        self.days
            .retain(|_, day| day.bytes.max(day.refused) > 0 && now.saturating_sub(day.since) < DAY);
    }
}

impl UploadTurn {
    /// Says that the bytes are stored, which a statement may yet refuse.
    pub(super) fn store(&mut self) {
        self.end = UploadEnd::Refused;
    }

    /// Says that the file is kept, so that its bytes count for the day.
    pub(super) fn keep(&mut self) {
        self.end = UploadEnd::Kept;
    }
}

impl Drop for UploadTurn {
    fn drop(&mut self) {
        let mut state = self.quotas.lock();
        state.total = state.total.saturating_sub(1);
        state.arriving = state.arriving.saturating_sub(self.bytes);
        if let Some(running) = state.by_client.get_mut(&self.client) {
            *running -= 1;
            if *running == 0 {
                state.by_client.remove(&self.client);
            }
        }
        if self.end != UploadEnd::Kept
            && let Some(day) = state.days.get_mut(&self.uploader)
        {
            day.bytes = day.bytes.saturating_sub(self.bytes);
            if self.end == UploadEnd::Refused {
                day.refused = day.refused.saturating_add(self.bytes);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use svc_base::clock::Timestamp;

    fn quotas(clock: &Clock) -> Arc<UploadQuotas> {
        let limits = Limits {
            uploads_at_once: 2,
            uploads_total: 3,
            upload_day_bytes: 10,
            ..Limits::default()
        };
        UploadQuotas::new(&limits, clock.clone())
    }

    fn client(number: u8) -> IpAddr {
        [192, 0, 2, number].into()
    }

    #[test]
    fn uploads_that_are_under_way_have_two_bounds() {
        let quotas = quotas(&Clock::manual(Timestamp(0)));
        let begin = |number: u8| quotas.begin(client(number), number.to_string(), 1);
        let first = begin(1).unwrap();
        let _second = begin(1).unwrap();
        assert_eq!(begin(1).unwrap_err(), UploadQuotaReached::AtOnce(2));
        let _other = begin(2).unwrap();
        assert_eq!(quotas.arriving_bytes(), 3);
        assert_eq!(begin(3).unwrap_err(), UploadQuotaReached::Total);
        drop(first);
        begin(3).unwrap();
    }

    #[test]
    fn what_is_kept_counts_for_a_day() {
        let clock = Clock::manual(Timestamp(0));
        let quotas = quotas(&clock);
        let begin = |bytes| quotas.begin(client(1), "usr_a".to_owned(), bytes);
        begin(6).unwrap().keep();
        drop(begin(4).unwrap());
        assert_eq!(begin(5).unwrap_err(), UploadQuotaReached::Day(10));
        begin(4).unwrap().keep();
        assert!(begin(1).is_err());
        clock.advance(DAY);
        begin(10).unwrap().keep();
        quotas.tidy();
        assert_eq!(quotas.lock().days.len(), 1);
        clock.advance(DAY);
        quotas.tidy();
        assert!(quotas.lock().days.is_empty());
    }
}
