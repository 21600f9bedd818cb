//! Every number that an operator may change, with its default.

use std::net::IpAddr;

use anyhow::bail;
use serde::{Deserialize, Serialize};

use super::OpenFileShares;

/// Smallest memory limit of a rendering call, in bytes. It is the sandbox's, as `guests` makes sure.
pub const MIN_RENDER_MEMORY: u64 = 8 << 20;
/// Smallest memory limit of a judging call, in bytes. It is the sandbox's, too.
pub const MIN_GATE_MEMORY: u64 = 2 << 20;

macro_rules! limits {
    ($(#[doc = $about:literal] $name:ident = $default:expr, $least:expr;)+) => {
        /// The `[limits]` table.
        #[derive(Clone, Debug, Serialize, Deserialize)]
        #[serde(deny_unknown_fields, default)]
        pub struct Limits {
            $(#[doc = $about] pub $name: u64,)+
        }

        impl Default for Limits {
            fn default() -> Self {
                Self { $($name: $default,)+ }
            }
        }

        impl Limits {
            /// Every limit: its key, its default, and what it bounds.
            pub const ALL: &[(&str, u64, &str)] = &[$((stringify!($name), $default, $about),)+];

            /// Refuses numbers that cannot work, naming the first.
            ///
            /// # Errors
            /// When a limit is below the least that makes sense for it.
            pub fn check(&self) -> anyhow::Result<()> {
                $(if !($least..).contains(&self.$name) {
                    bail!("limits.{} must be at least {}: it is {}", stringify!($name), $least, self.$name);
                })+
                self.check_percents()?;
                Ok(())
            }
        }
    };
}

limits! {
    /// Deploys a minute and client.
    deploy_per_minute = 30, 1;
    /// Deploys at once.
    deploy_burst = 15, 1;
    /// Previews of what is yet to be published, a minute and client.
    preview_per_minute = 60, 1;
    /// Previews at once.
    preview_burst = 20, 1;
    /// Tool calls a minute and client.
    mcp_per_minute = 30, 1;
    /// Tool calls at once.
    mcp_burst = 15, 1;
    /// Action calls a minute and client.
    op_per_minute = 120, 1;
    /// Action calls at once.
    op_burst = 30, 1;
    /// Action calls a minute and deployment.
    op_deployment_per_minute = 300, 1;
    /// Action calls at once and deployment.
    op_deployment_burst = 60, 1;
    /// Password attempts a minute and client.
    auth_per_minute = 10, 1;
    /// Password attempts at once.
    auth_burst = 10, 1;
    /// Steps of visitors' sign-ins a minute and client.
    sign_in_per_minute = 300, 1;
    /// Steps of visitors' sign-ins at once.
    sign_in_burst = 100, 1;
    /// Mails with codes of visitors' sign-ins an hour and address.
    mail_per_hour_address = 5, 1;
    /// Such mails an hour and client.
    mail_per_hour_client = 20, 1;
    /// Such mails an hour and project.
    mail_per_hour_project = 200, 1;
    /// Reports a minute and client.
    report_per_minute = 10, 1;
    /// Reports at once.
    report_burst = 5, 1;
    /// Checkouts a minute and client.
    checkout_per_minute = 120, 1;
    /// Checkouts at once.
    checkout_burst = 200, 1;
    /// Owner calls a minute and principal.
    owner_per_minute = 600, 1;
    /// Owner calls at once.
    owner_burst = 100, 1;
    /// A request's body, in bytes.
    body_bytes = 1_048_576, 1;
    /// The body of a project's release, or of a site's publication, in bytes.
    site_body_bytes = 4_194_304, 1;
    /// Files of a site on the free plan.
    site_files_free = 2_000, 1;
    /// Files of a site on the pro plan.
    site_files_pro = 10_000, 1;
    /// Files of a site on the free plan together, in bytes.
    site_bytes_free = 52_428_800, 1;
    /// Files of a site on the pro plan together, in bytes.
    site_bytes_pro = 524_288_000, 1;
    /// One file of a project on the free plan, in bytes.
    file_bytes_free = 10_485_760, 1;
    /// One file of a project on the pro plan, in bytes.
    file_bytes_pro = 52_428_800, 1;
    /// Files of a project on the free plan together, each distinct one once, in bytes.
    storage_bytes_free = 104_857_600, 0;
    /// Files of a project on the pro plan together, each distinct one once, in bytes.
    storage_bytes_pro = 2_147_483_648, 0;
    /// Files of all projects together, in bytes.
    storage_total_bytes = 21_474_836_480, 0;
    /// Time for which a file that was sent waits for a publication that names it, in seconds.
    staged_seconds = 86_400, 1;
    /// Time for which a draft of a site is kept that was never live, in seconds.
    draft_seconds = 2_592_000, 1;
    /// Time for which tabs that were opened before a release of a site get the files of then, in seconds.
    skew_seconds = 86_400, 0;
    /// Files sent a minute and principal.
    blob_per_minute = 6_000, 1;
    /// Files sent at once.
    blob_burst = 2_000, 1;
    /// Files that a client uploads by actions, a minute.
    upload_per_minute = 20, 1;
    /// Files that a client uploads by actions at once.
    upload_burst = 10, 1;
    /// Files that are uploaded by actions of a page, a minute.
    upload_deployment_per_minute = 120, 1;
    /// Files that are uploaded by actions of a page at once.
    upload_deployment_burst = 60, 1;
    /// Files that a visitor, else a client, uploads a day, in bytes.
    upload_day_bytes = 52_428_800, 0;
    /// Uploads of a client that are under way.
    uploads_at_once = 4, 1;
    /// Uploads of all clients that are under way.
    uploads_total = 64, 1;
    /// Files that a client downloads by actions, a minute.
    file_per_minute = 1_200, 1;
    /// Files that a client downloads by actions at once.
    file_burst = 300, 1;
    /// The body of an op or query, in bytes.
    op_body_bytes = 65_536, 1;
    /// A backend's database, in bytes.
    database_bytes = 5_242_880, 65_536;
    /// The history of a backend's database, in bytes; 0 keeps none.
    history_bytes = 67_108_864, 0;
    /// The migrations, the versions of actions and the names of ended ones of a backend together, in bytes.
    definition_bytes = 8_388_608, 1_024;
    /// Rows of a result.
    query_rows = 500, 1;
    /// A result, in bytes.
    result_bytes = 4_194_304, 1;
    /// A tenant's statement, in milliseconds.
    statement_ms = 2_000, 1;
    /// The life of a quick share, in seconds.
    quick_share_seconds = 604_800, 1;
    /// Quick shares and frontends at once.
    active_deployments = 5_000, 0;
    /// Backends at once.
    backends = 250, 0;
    /// Databases that are kept open. A call of another one closes the one that was used longest ago.
    open_databases = 256, 16;
    /// Free disk below which nothing new is taken, in bytes.
    free_disk_bytes = 104_857_600, 0;
    /// Free disk beyond that which is kept for owners: callers without a credential publish nothing new below it, in bytes.
    free_disk_owners_bytes = 104_857_600, 0;
    /// Sources and pages of all quick shares together, with all of their encodings, in bytes.
    share_bytes = 4_294_967_296, 0;
    /// Sources and pages of one owner's frontends and revisions together, with all of their encodings, in bytes.
    owner_bytes = 4_294_967_296, 0;
    /// Part of each cap that all share which is kept for owners, in percent.
    cap_owners_percent = 20, 0;
    /// Part of each such cap that one client without a credential may hold, in percent; of IPv6, a client is a /48.
    cap_client_percent = 10, 0;
    /// Part of each such cap that one owner may hold, in percent: a workspace, or all free workspaces that one user made.
    cap_owner_percent = 50, 0;
    /// Least number that a client or an owner may hold, whatever the percentages say.
    cap_part_least = 10, 0;
    /// Projects of a workspace on the free plan.
    projects_free = 1, 0;
    /// Projects of a workspace on the pro plan.
    projects_pro = 5, 0;
    /// Domains of a project on the free plan.
    domains_free = 1, 0;
    /// Domains of a project on the pro plan.
    domains_pro = 10, 0;
    /// Workspaces that a user owns.
    workspaces_per_user = 1_000, 1;
    /// Workspaces on the free plan that a user has made.
    free_workspaces_per_user = 20, 1;
    /// WebSockets of a backend.
    sockets_per_backend = 100, 0;
    /// Connections of a client, beside its WebSockets; those of trusted proxies are not counted.
    connections_per_client = 1_000, 1;
    /// Connections of the server, beside its WebSockets.
    connections_total = 20_000, 1;
    /// WebSockets of a client.
    sockets_per_ip = 20, 0;
    /// WebSockets of the server.
    sockets_total = 25_000, 0;
    /// Active rooms of a backend.
    rooms_per_backend = 100, 0;
    /// A WebSocket message, in bytes.
    frame_bytes = 16_384, 1;
    /// WebSocket messages a second and socket.
    messages_per_second = 10, 1;
    /// Messages that wait for a slow WebSocket.
    outbound_queue = 32, 1;
    /// Evaluations of a live query, a second.
    live_per_second = 10, 1;
    /// Live queries of a socket.
    live_per_socket = 20, 0;
    /// Between two pings, in seconds.
    ping_seconds = 25, 1;
    /// Until a missing pong closes, in seconds.
    pong_seconds = 60, 1;
    /// A rendered page, in bytes.
    page_bytes = 16_777_216, 1_024;
    /// Pages and files kept in memory, in bytes; three eighths of it are for files of more than 1 MB.
    page_cache_bytes = 33_554_432, 0;
    /// Sources and pages in memory that are being rendered, stored, or sent as previews, in bytes.
    page_work_bytes = 268_435_456, 1_024;
    /// Fuel of a render call.
    render_fuel = 5_000_000_000, 1;
    /// Memory of a render call, in bytes.
    render_memory_bytes = 134_217_728, MIN_RENDER_MEMORY;
    /// Wall time of a render call, in milliseconds.
    render_ms = 5_000, 10;
    /// Fuel of a page with all its drawings; of a preview a quarter of it.
    page_fuel = 8_000_000_000, 1;
    /// Processor time of a page with all its drawings, in milliseconds; of a preview a quarter of it. The edits of a draft may take as much.
    page_processor_ms = 1_800, 10;
    /// Wall time of a page with all its drawings, in milliseconds, without what it waits for threads.
    page_ms = 10_000, 10;
    /// Fuel of a gate call; all SQL of a request has four times as much.
    gate_fuel = 500_000_000, 1;
    /// Memory of a gate call, in bytes.
    gate_memory_bytes = 33_554_432, MIN_GATE_MEMORY;
    /// Wall time of a gate call, in milliseconds; all SQL of a request has four times as much processor time.
    gate_ms = 1_000, 10;
}

impl Limits {
    /// Refuses percentages above 100.
    fn check_percents(&self) -> anyhow::Result<()> {
        let percents = [
            ("cap_owners_percent", self.cap_owners_percent),
            ("cap_client_percent", self.cap_client_percent),
            ("cap_owner_percent", self.cap_owner_percent),
        ];
        match percents.iter().find(|(_, percent)| *percent > 100) {
            Some((key, percent)) => bail!("limits.{key} must be at most 100: it is {percent}"),
            None => Ok(()),
        }
    }

    /// Returns the limits of a server that listens on an address. While it is for developing (`dev`) and only its own machine reaches
    /// it, an agent that builds an app calls tools as often as an owner calls REST; a limit that was set stays.
    #[must_use]
    pub fn for_listener(self, address: IpAddr, dev: bool) -> Self {
        if !dev || !address.is_loopback() {
            return self;
        }
        let usual = Self::default();
        let raised = |own: u64, usual: u64, owners: u64| match own == usual {
            true => own.max(owners),
            false => own,
        };
        Self {
            mcp_per_minute: raised(
                self.mcp_per_minute,
                usual.mcp_per_minute,
                self.owner_per_minute,
            ),
            mcp_burst: raised(self.mcp_burst, usual.mcp_burst, self.owner_burst),
            ..self
        }
    }

    /// Returns the limits of tenants' databases, of which no more are open than this process has files for.
    pub fn database_limits(&self) -> svc_database::DatabaseLimits {
        svc_database::DatabaseLimits {
            query_rows: self.query_rows,
            result_bytes: self.result_bytes,
            statement_ms: self.statement_ms,
            database_bytes: self.database_bytes,
            history_bytes: self.history_bytes,
            open_databases: OpenFileShares::of_process(self).databases,
            free_disk_bytes: self.free_disk_bytes,
        }
    }
}
