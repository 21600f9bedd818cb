//! Files of visitors against a model, for a few hundred steps; `tests/slow/uploads.rs` takes ten thousand.

use svc_tests::run_upload_model;

#[tokio::test]
async fn no_file_is_lost_and_none_is_left_over() {
    run_upload_model(1, 300).await;
}
