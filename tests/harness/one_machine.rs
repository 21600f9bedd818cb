//! Tests that get one machine alone in a run against several nodes: see [`crate::nodes`].
//!
//! Tests that start the program as a process never begin here: what they look at is that process. `tests/cluster` does the same to nodes.

use std::thread;

use svc::config::Settings;

/// Answer to a test that looks into the disk of its server, which it has none of for itself.
pub(crate) const NO_DISK: &str = "several nodes have no data directory in common: if the test is about the disk of one machine, \
     name it in ONE_MACHINE of tests/harness/one_machine.rs";

/// Tests of something that one machine has and several nodes do not. Each row has a reason, and the tests by the beginnings of their
/// names. There are no more than ten reasons.
pub const ONE_MACHINE: [(&str, &[&str]); 10] = [
    (
        "they look into the files of a machine, or change them: what nodes have on their disks is a cache, and content is in the bucket",
        &[
            "backends::ends::",
            "changes::",
            "durability::",
            "earlier_installation::",
            "edge::what_an_operator_does_while_no_server_runs",
            "errands::",
            "exports::it_is_one_plain_file",
            "frontends::ids::",
            "hosting::deployments_are_listed_and_shown",
            "idempotency::a_body_is_compared",
            "limits::caps::nothing_says_who_has_published",
            "members::operator::what_cannot_be_is_said",
            "migrations::what_no_migration_has_made",
            "one_time::a_file_that_cannot_be_removed",
            "one_time::a_reader_who_hangs_up",
            "one_time::an_expired_one_burns",
            "one_time::it_survives_a_restart",
            "one_time::opening_answers_the_page",
            "one_time::what_is_to_burn_is_in_one_private_file",
            "operators::namespaces::namespaces_and_keys",
            "passwords::a_password_is_stored_as_a_hash",
            "projects::origins::a_client_who_hangs_up",
            "project_releases::sites::a_release_with_sites_leaves_nothing",
            "projects::origins::five_thousand_members",
            "restores::bounds::nothing_is_kept",
            "restores::history_outlives_restarts",
            "sharing::a_token_deletes_",
            "sharing::the_answer_to_a_key_is_replayed",
            "statements::internal_tables",
            "stats::counts::a_project_takes_its_counts_along",
            "uploads::quotas::bodies_that_never_end",
            "visitors::passkeys::an_account_is_somebody_else",
            "visits::a_stop_writes_down",
        ],
    ),
    (
        "they make a backup, restore one, or check the files: a node refuses these commands",
        &[
            "backups::",
            "domains::operators::a_restored_domain",
            "hosting::namespaces::a_deleted_namespace",
            "hosting::the_status_counts_against_the_caps",
            "members::backups::",
            "members::workspaces::ends::",
            "operators::checks::",
            "restores::later_migrations_are_applied_again",
            "restores::what_the_platform_derives",
            "secrecy::",
            "sharing::the_publisher_of_a_disabled_share",
            "sites::encodings::",
            "sites::ends::",
            "sites::immutable::drafts_are_compared",
            "sites::immutable::nothing_is_left",
            "sites::kept::",
            "sites::model::",
            "sites::quotas::",
            "sites::shares::",
            "sites::skew::a_rollback_brings_back",
            "sites::skew::files_that_are_deleted_by_name",
            "sites::takedown::what_is_blocked",
            "stores::",
            "uploads::arrivals::the_same_key",
            "uploads::ends::a_row_that_comes_back",
            "uploads::ends::the_history_brings",
            "uploads::model::",
            "uploads::quotas::the_last_megabyte",
            "visitors::backups::",
            "visitors::github::operators_list_and_forget",
        ],
    ),
    (
        "they install guests into the folder of a machine: that of a node follows the rows of control",
        &[
            "guests::",
            "guests_stored::",
            "hostile_guests::",
            "lanes::",
            "served_guides::a_page_is_made_once_for_each_guest",
            "sites::refused_rules::a_renderer_that_judges_no_rules",
        ],
    ),
    (
        "they count connections, bodies and pages in memory, which have the bounds of a node, not of the installation",
        &[
            "live::hostile::a_slow_reader_costs",
            "limits::connections::",
            "limits::sizes::bodies_that_arrive_slowly",
            "rooms::close::a_slow_reader",
            "serving::a_page_as_heavy_as_is_allowed",
            "serving::compressed_sources_that_readers_hold",
            "serving::large_pages_that_readers_hold",
            "sites::preview_origins::a_preview_is_read_once",
            "sites::skew::manifests_in_memory",
        ],
    ),
    (
        "content without a row goes after an hour on one machine, and after a day where nodes share it",
        &[
            "expiry::content_",
            "sites::blobs::",
            "sites::shared_files::a_file_is_shared",
            "sites::takedown::blocked_files_are_taken",
            "uploads::arrivals::what_the_statement_refuses",
            "uploads::ends::a_file_ends_with_its_row",
        ],
    ),
    (
        "the numbers of a machine have none of a cluster among them",
        &["serving::operation::operators_numbers"],
    ),
    (
        "what a node has counted comes to the others within a minute, and a log is in the memory of the node that answered",
        &[
            "mcp::answer_sizes::what_owners_see",
            "openapi_recorded::examples_are",
            "stats::counts::counts_survive_a_restart",
            "stats::counts::mixed_requests",
            "stats::places::counts_go_on",
            "stats::places::what_is_asked_at_a_domain",
        ],
    ),
    (
        "the node that a client has asked sends `100 Continue` before another one can refuse the request",
        &["payments::hostile::what_has_no_signature"],
    ),
    (
        "a call of a page that is not there is answered, and counted, by the node that was asked",
        &["bounds::calls_queries_and_schemas_draw"],
    ),
    (
        "a stream or a socket through another node is cut where that one cuts it: the reader goes on by `Last-Event-ID` or a new socket",
        &[
            "live::stream::a_stream_ends_with_its_backend",
            "rooms::hostile::noise_ends",
            "stats::follow::a_stream_ends",
        ],
    ),
];

/// Whether the server of the test that runs in this thread is one machine, whatever the environment asks for.
pub(crate) fn is_required(settings: &Settings) -> bool {
    let test = thread::current();
    let test = test.name().unwrap_or_default();
    let mut named = ONE_MACHINE.iter().flat_map(|(_, tests)| *tests);
    !can_be_a_node(settings) || named.any(|name| test.starts_with(name))
}

/// Whether a node may have these settings: it refuses a store of content of its own, certificates by ACME, and stand-ins for development.
fn can_be_a_node(settings: &Settings) -> bool {
    let asks_for_certificates = settings.is_https() && settings.tls_cert.is_none();
    settings.content_url.is_none()
        && settings.acme.is_none()
        && !asks_for_certificates
        && !settings.dev
}
