//! Errands: small writes that requests cause wherever they are answered, and that are done where the control database is written.
//!
//! A machine alone does them at once. A node whose control database follows another's sends them there, and gets the answer.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, OnceLock, PoisonError, RwLock};

use futures_util::future::BoxFuture;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::audit::{self, AuditActor};
use super::{ControlDatabase, Error, Tx};

/// A small write, with everything that it needs to be done on another machine.
pub trait ErrandWork: fmt::Debug + Serialize + DeserializeOwned + Send + 'static {
    /// Name of this kind of errand in a message.
    const KIND: &'static str;
    /// Answer to the sender.
    type Answer: Serialize + DeserializeOwned + Send + 'static;

    /// Does the errand in a transaction.
    ///
    /// # Errors
    /// Errors of the database; then nothing is done.
    fn perform(self, tx: &Tx<'_>) -> Result<Self::Answer, Error>;
}

/// Sends errands to the machine that writes the control database.
pub trait ErrandSender: fmt::Debug + Send + Sync {
    /// Sends an errand, as [`ErrandMessage`] in JSON; returns the answer, in JSON. Some errands must not be done twice, so one that may
    /// have been received is not sent again.
    fn send(&self, message: String) -> BoxFuture<'_, Result<String, Error>>;
}

/// An errand on its way. The errand is an object with one member, whose name is the kind.
#[derive(Debug, Serialize, Deserialize)]
pub struct ErrandMessage<T> {
    /// Actor of the request that causes it: entries of the audit name the actor, wherever they are written.
    pub actor: Option<AuditActor>,
    pub errand: T,
}

/// Failure of an errand on its way back to the machine that has sent it, which answers as the machine that writes would have.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum ErrandFailure {
    /// The disk is full.
    Full,
    /// It waited for too long.
    Busy,
    /// The machine stops, and may have done it.
    Closed,
    /// Anything else, for the log.
    Failed(String),
}

impl Error {
    /// Writes this failure of an errand for the machine that has sent the errand.
    pub fn to_errand_failure(&self) -> String {
        let failure = match self {
            Self::Full => ErrandFailure::Full,
            Self::Busy => ErrandFailure::Busy,
            Self::Closed => ErrandFailure::Closed,
            other => ErrandFailure::Failed(other.to_string()),
        };
        serde_json::to_string(&failure).unwrap_or_default()
    }

    /// Reads what [`Error::to_errand_failure`] has written.
    pub fn from_errand_failure(text: &str) -> Self {
        match serde_json::from_str(text) {
            Ok(ErrandFailure::Full) => Self::Full,
            Ok(ErrandFailure::Busy) => Self::Busy,
            Ok(ErrandFailure::Closed) => Self::Unanswered,
            Ok(ErrandFailure::Failed(why)) => Self::Errand(why),
            Err(_) => Self::from_errand(text),
        }
    }
}

/// Way of errands: none where this machine does them. A machine alone never has one, and takes no lock.
#[derive(Debug, Default)]
pub(super) struct ErrandRoute(OnceLock<RwLock<Option<Arc<dyn ErrandSender>>>>);

impl ErrandRoute {
    fn sender(&self) -> Option<Arc<dyn ErrandSender>> {
        let held = self.0.get()?.read();
        held.unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl ControlDatabase {
    /// Has an errand done. It is durable when its answer is here.
    ///
    /// # Errors
    /// Errors of the database, where nothing was done; errors of the sender, where it may have been done.
    pub async fn run_errand<E: ErrandWork>(&self, errand: E) -> Result<E::Answer, Error> {
        match self.errand_route().sender() {
            None => self.write(move |tx| errand.perform(tx)).await,
            Some(sender) => {
                let message = message(&errand)?;
                let answer = sender.send(message).await?;
                serde_json::from_str(&answer).map_err(Error::from_errand)
            }
        }
    }

    /// Has errands be sent from now on, or be done here if `sender` is `None`.
    pub fn set_errand_sender(&self, sender: Option<Arc<dyn ErrandSender>>) {
        let held = self.errand_route().0.get_or_init(RwLock::default);
        *held.write().unwrap_or_else(PoisonError::into_inner) = sender;
    }

    /// Does an errand that another machine has sent; returns the answer for it, in JSON.
    ///
    /// # Errors
    /// Errors of the database; then nothing is done.
    pub async fn perform_errand<E: ErrandWork>(&self, errand: E) -> Result<String, Error> {
        let answer = self.write(move |tx| errand.perform(tx)).await?;
        serde_json::to_string(&answer).map_err(Error::from_errand)
    }
}

/// Writes the message of an errand of this task's actor.
fn message<E: ErrandWork>(errand: &E) -> Result<String, Error> {
    let message = ErrandMessage {
        actor: audit::current_actor(),
        errand: BTreeMap::from([(E::KIND, errand)]),
    };
    serde_json::to_string(&message).map_err(Error::from_errand)
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;
    use crate::control::audit::AuditAction;
    use svc_base::clock::Timestamp;

    /// Adds an audit entry; answers how many there are.
    #[derive(Debug, Serialize, Deserialize)]
    struct Entry {
        target: String,
    }

    impl ErrandWork for Entry {
        const KIND: &'static str = "entry";
        type Answer = i64;

        fn perform(self, tx: &Tx<'_>) -> Result<i64, Error> {
            tx.record_audit(AuditAction::KeyCreate, None, &self.target, Timestamp(0))?;
            Ok(tx.query_row("SELECT count(*) FROM audit", [], |row| row.get(0))?)
        }
    }

    /// Another machine: it writes its own database.
    #[derive(Debug)]
    struct Elsewhere {
        control: ControlDatabase,
        messages: Mutex<Vec<String>>,
    }

    impl ErrandSender for Elsewhere {
        fn send(&self, message: String) -> BoxFuture<'_, Result<String, Error>> {
            self.messages.lock().unwrap().push(message.clone());
            Box::pin(async move {
                type Received = ErrandMessage<BTreeMap<String, Entry>>;
                let mut received: Received = serde_json::from_str(&message).unwrap();
                let entry = received.errand.remove(Entry::KIND).unwrap();
                let work = self.control.perform_errand(entry);
                audit::with_optional_actor(received.actor, work).await
            })
        }
    }

    #[test]
    fn a_failure_is_the_same_on_both_machines() {
        let sent = |error: &Error| Error::from_errand_failure(&error.to_errand_failure());
        assert!(matches!(sent(&Error::Full), Error::Full));
        assert!(matches!(sent(&Error::Busy), Error::Busy));
        assert!(matches!(sent(&Error::Closed), Error::Unanswered));
        let panicked = sent(&Error::Panicked).to_string();
        assert!(panicked.contains("a control database job panicked"));
        for text in ["", "\"from_later\""] {
            let unknown = Error::from_errand_failure(text);
            assert!(matches!(unknown, Error::Errand(_)), "{unknown}");
        }
    }

    async fn entries(control: &ControlDatabase) -> Vec<(String, String)> {
        let now = Timestamp(0);
        let found = audit::list_entries(control, None, None, 100, now).await;
        let found = found.unwrap().entries.into_iter();
        found.map(|one| (one.principal, one.target)).collect()
    }

    #[tokio::test]
    async fn an_errand_is_done_here_or_sent_with_its_actor() {
        let directories = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
        let [here, there] = directories
            .each_ref()
            .map(|directory| ControlDatabase::open(directory.path()).unwrap());
        let run = |target: &str| {
            let target = target.to_owned();
            let actor = AuditActor::new("usr_1", &"r-1".into());
            audit::with_actor(actor, here.run_errand(Entry { target }))
        };
        assert_eq!(run("first").await.unwrap(), 1);
        assert!(here.errand_route().0.get().is_none(), "no lock is there");
        let elsewhere = Arc::new(Elsewhere {
            control: there.clone(),
            messages: Mutex::default(),
        });
        here.set_errand_sender(Some(Arc::clone(&elsewhere) as _));
        assert_eq!(run("second").await.unwrap(), 1);
        here.set_errand_sender(None);
        assert_eq!(run("third").await.unwrap(), 2);
        let by_user = |target: &str| ("usr_1".to_owned(), target.to_owned());
        assert_eq!(entries(&here).await, [by_user("third"), by_user("first")]);
        assert_eq!(entries(&there).await, [by_user("second")]);
        let messages = elsewhere.messages.lock().unwrap();
        assert!(messages[0].ends_with(r#""errand":{"entry":{"target":"second"}}}"#));
    }
}
