//! Files of sites against a model, for a few hundred steps; `tests/slow/files.rs` takes ten thousand.

use svc_tests::run_file_model;

#[tokio::test]
async fn no_file_is_lost_and_none_is_left_over() {
    run_file_model(1, 400).await;
}
