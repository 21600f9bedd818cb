//! Gauges of everything that has a cap, and of the process: measured when `/metrics` is read.

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::Registry;

use crate::config::Config;
use crate::control::{self, ControlDatabase};
use crate::deployments::serving::PageService;
use crate::overview::{self, CapUseSummary};
use svc_base::clock::Timestamp;
use svc_base::disk;

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct LimitLabels {
    limit: &'static str,
}

#[derive(Debug, Default)]
pub struct ServerGauges {
    used: Family<LimitLabels, Gauge>,
    caps: Family<LimitLabels, Gauge>,
    shares: Gauge,
    frontends: Gauge,
    disabled: Gauge,
    projects: Gauge,
    namespaces: Gauge,
    reports: Gauge,
    files: Gauge,
    staged_files: Gauge,
    visitor_files: Gauge,
    ended_visitor_files: Gauge,
    blocked: Gauge,
    free: Gauge,
    reserved: Gauge,
}

impl ServerGauges {
    /// Makes and registers all gauges.
    pub fn register(registry: &mut Registry) -> Self {
        let gauges = Self::default();
        register_process(registry);
        registry.register(
            "svc_limit_used",
            "What there is of what a limit bounds",
            gauges.used.clone(),
        );
        registry.register("svc_limit", "What a limit allows", gauges.caps.clone());
        for (name, help, gauge) in [
            ("svc_shares", "Quick shares", &gauges.shares),
            ("svc_frontends", "Frontends", &gauges.frontends),
            (
                "svc_disabled_deployments",
                "Shares and frontends that are taken down",
                &gauges.disabled,
            ),
            ("svc_projects", "Projects", &gauges.projects),
            ("svc_namespaces", "Namespaces", &gauges.namespaces),
            (
                "svc_open_reports",
                "Reports that nobody has closed",
                &gauges.reports,
            ),
            (
                "svc_files",
                "Files of sites, each once for every project that has it",
                &gauges.files,
            ),
            (
                "svc_staged_files",
                "Files that wait for a publication",
                &gauges.staged_files,
            ),
            (
                "svc_visitor_files",
                "Files that visitors have uploaded",
                &gauges.visitor_files,
            ),
            (
                "svc_ended_visitor_files",
                "Deleted files of visitors that the history may bring back, with their smaller copies",
                &gauges.ended_visitor_files,
            ),
            (
                "svc_blocked_content",
                "SHA-256s of content that is blocked",
                &gauges.blocked,
            ),
            (
                "svc_disk_free_bytes",
                "Free disk where the data directory is",
                &gauges.free,
            ),
            (
                "svc_disk_reserved_bytes",
                "Free disk below which nothing new is taken",
                &gauges.reserved,
            ),
        ] {
            registry.register(name, help, gauge.clone());
        }
        gauges
    }

    /// Measures all gauges. Those of a node's control database keep their values while it may lack something.
    ///
    /// # Errors
    /// The database's or the disk's; the gauges then keep their values.
    pub async fn measure(
        &self,
        config: &Config,
        control: &ControlDatabase,
        serving: &PageService,
        now: Timestamp,
    ) -> anyhow::Result<()> {
        let limits = &config.limits;
        set_gauge(&self.reserved, limits.free_disk_bytes);
        set_gauge(&self.free, disk::free_bytes(&config.data)?);
        let counts = match overview::counts(control, now).await {
            Err(control::Error::Stale) => return Ok(()),
            counts => counts?,
        };
        let cached = CapUseSummary {
            used: serving.pages().size().1,
            cap: limits.page_cache_bytes,
        };
        let caps = overview::cap_uses(&counts, limits);
        for (limit, used) in caps.into_iter().chain([("page_cache_bytes", cached)]) {
            set_gauge(&self.used.get_or_create(&LimitLabels { limit }), used.used);
            set_gauge(&self.caps.get_or_create(&LimitLabels { limit }), used.cap);
        }
        set_gauge(&self.shares, counts.shares);
        set_gauge(&self.frontends, counts.frontends);
        set_gauge(&self.disabled, counts.disabled);
        set_gauge(&self.projects, counts.projects);
        set_gauge(&self.namespaces, counts.namespaces);
        set_gauge(&self.reports, counts.open_reports);
        set_gauge(&self.files, counts.files);
        set_gauge(&self.staged_files, counts.staged_files);
        set_gauge(&self.visitor_files, counts.visitor_files);
        set_gauge(&self.ended_visitor_files, counts.ended_visitor_files);
        set_gauge(&self.blocked, counts.blocked);
        Ok(())
    }
}

/// Registers what is known of the program and its process, whether it serves or stands by.
pub fn register_process(registry: &mut Registry) {
    let build = Info::new(vec![("version", env!("CARGO_PKG_VERSION"))]);
    registry.register("svc_build", "The program", build);
    #[cfg(target_os = "linux")]
    registry.register_collector(Box::new(process::ProcessCollector));
}

fn set_gauge(gauge: &Gauge, value: u64) {
    gauge.set(i64::try_from(value).unwrap_or(i64::MAX));
}

/// The usual metrics of a process, by the names that Prometheus clients use.
#[cfg(target_os = "linux")]
mod process {
    use procfs::process::{LimitValue, Process as Proc};
    use procfs::{ProcResult, WithCurrentSystemInfo as _};
    use prometheus_client::collector::Collector;
    use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
    use prometheus_client::metrics::counter::ConstCounter;
    use prometheus_client::metrics::gauge::ConstGauge;

    /// Reads `/proc`.
    #[derive(Debug)]
    pub(super) struct ProcessCollector;

    /// Values read from `/proc`.
    struct ProcessStats {
        cpu_seconds: f64,
        gauges: [(&'static str, &'static str, u64); 6],
    }

    impl ProcessStats {
        fn read() -> ProcResult<Self> {
            let process = Proc::myself()?;
            let stat = process.stat()?;
            let ticks = procfs::ticks_per_second();
            let most_files = match process.limits()?.max_open_files.soft_limit {
                LimitValue::Value(most) => most,
                LimitValue::Unlimited => u64::MAX,
            };
            let started = procfs::boot_time_secs()? + stat.starttime / ticks;
            let bytes = stat.rss_bytes().get();
            let files = process.fd_count()? as u64;
            Ok(Self {
                cpu_seconds: ticks_to_seconds(stat.utime + stat.stime, ticks),
                gauges: [
                    ("process_resident_memory_bytes", "Resident memory", bytes),
                    ("process_virtual_memory_bytes", "Virtual memory", stat.vsize),
                    ("process_open_fds", "Open files", files),
                    ("process_max_fds", "Files that may be open", most_files),
                    (
                        "process_threads",
                        "Threads",
                        stat.num_threads.unsigned_abs(),
                    ),
                    (
                        "process_start_time_seconds",
                        "When it began, since 1970",
                        started,
                    ),
                ],
            })
        }
    }

    #[allow(
        clippy::cast_precision_loss,
        reason = "ticks of a process stay far below 2 to the 52nd"
    )]
    fn ticks_to_seconds(ticks: u64, a_second: u64) -> f64 {
        ticks as f64 / a_second as f64
    }

    impl Collector for ProcessCollector {
        fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), std::fmt::Error> {
            // Without access to `/proc` there are no values.
            let Ok(figures) = ProcessStats::read() else {
                return Ok(());
            };
            let cpu = ConstCounter::<f64>::new(figures.cpu_seconds);
            let (name, help) = ("process_cpu_seconds", "Processor time");
            cpu.encode(encoder.encode_descriptor(name, help, None, cpu.metric_type())?)?;
            for (name, help, value) in figures.gauges {
                let gauge = ConstGauge::<u64>::new(value);
                gauge.encode(encoder.encode_descriptor(
                    name,
                    help,
                    None,
                    gauge.metric_type(),
                )?)?;
            }
            Ok(())
        }
    }
}
