//! Times of the stages of a publication, which an operator looks at when publishing is slow.

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;

use svc_base::Stopwatch;

/// Stage of a publication.
#[derive(Clone, Copy, Debug)]
pub(super) enum PublicationStage {
    /// The guest's calls, and waiting for a thread for them.
    Render,
    /// The page in every encoding, and waiting for a thread for that.
    Compress,
    /// Source and page on the disk.
    Store,
    /// The transaction that publishes, with those that it shares a commit with.
    Commit,
}

impl PublicationStage {
    fn as_str(self) -> &'static str {
        match self {
            Self::Render => "render",
            Self::Compress => "compress",
            Self::Store => "store",
            Self::Commit => "commit",
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct StageLabels {
    part: &'static str,
}

/// Times that each stage took.
#[derive(Debug)]
pub(super) struct StageTimings(Family<StageLabels, Histogram>);

impl Default for StageTimings {
    fn default() -> Self {
        // From a tenth of a millisecond to three seconds.
        let buckets = || Histogram::new(exponential_buckets(0.0001, 2.0, 16));
        Self(Family::new_with_constructor(buckets))
    }
}

impl StageTimings {
    /// Runs the work of a stage, and notes how long it took.
    pub(super) async fn time<T>(
        &self,
        stage: PublicationStage,
        work: impl Future<Output = T>,
    ) -> T {
        let watch = Stopwatch::start();
        let done = work.await;
        let label = StageLabels {
            part: stage.as_str(),
        };
        self.0.get_or_create(&label).observe(watch.seconds());
        done
    }

    /// Registers the times as a metric.
    pub(super) fn register(&self, registry: &mut Registry) {
        registry.register(
            "svc_publish_seconds",
            "Time of a stage of a publish",
            self.0.clone(),
        );
    }
}
