//! Content in a bucket, at a store of other machines: what is promised of a directory, and what is done while it is away.

mod faults;

use serde_json::{Value, json};
use svc::control::ControlChange;
use svc_tests::bucket::{Bucket, BucketFault};
use svc_tests::{Answer, Output, ReadAnswer, TestServer, run_command, wait_until};
use tempfile::TempDir;

use crate::svc;

const DEPLOY: &str = "/api/v1/deploy";

/// A server with content below a prefix of a bucket.
async fn start_on_bucket(bucket: &Bucket, prefix: &str) -> TestServer {
    let builder = TestServer::builder();
    let builder = builder.settings(|settings| bucket.settings(prefix, settings));
    builder.start().await
}

async fn publish(server: &TestServer, name: &str) -> Answer {
    let body = json!({ "type": "html", "content": format!("<p>of {name}"), "name": name });
    server.json(DEPLOY, &body).answer().await
}

async fn get_page(server: &TestServer, name: &str) -> Answer {
    server.get(&format!("/{name}")).answer().await
}

fn evict_from_cache(server: &TestServer, name: &str) {
    let changed = ControlChange::Slug(name.to_owned());
    server.server().app().control.deliver_changes(&[changed]);
}

#[tokio::test]
async fn content_in_a_bucket_outlives_restarts_and_is_checked_and_collected() {
    let bucket = Bucket::start().await;
    let server = start_on_bucket(&bucket, "of/mine").await;
    publish(&server, "one").await.expect(201);
    bucket.take_requests();
    for _ in 0..3 {
        let page = get_page(&server, "one").await.expect(200);
        assert!(page.text().contains("of one"));
    }
    let asked = bucket.take_requests();
    assert_eq!(asked.len(), 1, "a view is answered from memory: {asked:?}");
    let server = server.restart().await;
    assert!(
        get_page(&server, "one")
            .await
            .expect(200)
            .text()
            .contains("of one")
    );
    assert!(!server.data().join("content").exists());
    let check =
        async |server: &TestServer| server.command(&svc(), &["check", "--json"]).await.json();
    let found = check(&server).await;
    assert_eq!(
        (&found["errors"], &found["leftovers"]),
        (&json!([]), &json!([]))
    );
    let objects = bucket.objects(|objects| objects.len());
    assert_eq!(
        found["objects"].as_u64().unwrap() + 1,
        objects as u64,
        "and the claim"
    );
    // Objects without a row are deleted, but only below our prefix.
    let stray = format!("pages/of/mine/0f/{}", "a".repeat(62));
    bucket.objects(|objects| objects.insert(stray.clone(), "stray".into()));
    bucket.objects(|objects| objects.insert("pages/of/others".to_owned(), "theirs".into()));
    let server = server.restart().await;
    let collector = &server.server().app().collector;
    collector.mark_orphans().await.unwrap();
    server.advance(3600);
    collector.collect().await.unwrap();
    let kept = bucket.objects(|objects| objects.keys().cloned().collect::<Vec<_>>());
    assert!(!kept.contains(&stray) && kept.contains(&"pages/of/others".to_owned()));
    assert_eq!(kept.len(), objects + 1);
    get_page(&server, "one").await.expect(200);
    // A lost object is damage, and is reported.
    bucket.objects(|objects| objects.retain(|name, _| name.ends_with("installation")));
    let found = server.command(&svc(), &["check", "--json"]).await;
    assert!(
        !found.success && found.stdout.contains("is missing"),
        "{found:?}"
    );
}

/// Starts a server that is to refuse, with the environment of the bucket and changes of it.
async fn run_refused_start(
    bucket: &Bucket,
    data: &TempDir,
    url: &str,
    changed: &[(&str, &str)],
) -> Output {
    let mut command = svc().command();
    command
        .envs(bucket.environment())
        .envs(changed.iter().copied());
    command
        .env("SVC_DATA", data.path())
        .env("SVC_CONTENT_URL", url);
    command.args(["serve", "--listen", "127.0.0.1:0"]);
    run_command(command).await
}

fn borrow_values<'e>(environment: &'e [(&'static str, String)]) -> Vec<(&'e str, &'e str)> {
    let variables = environment.iter();
    variables.map(|(name, value)| (*name, &**value)).collect()
}

#[track_caller]
fn assert_start_refused(output: &Output, why: &str) {
    assert!(!output.success, "{output:?}");
    assert!(output.stderr.contains(why), "{output:?}");
    for secret in [Bucket::secret(), "hush"] {
        assert!(!output.stderr.contains(secret), "{output:?}");
    }
}

#[tokio::test]
async fn a_start_refuses_what_it_cannot_keep_content_in_and_says_what_to_do() {
    let bucket = Bucket::start().await;
    let url = "s3://pages/mine";
    let (server, other) = (
        start_on_bucket(&bucket, "mine").await,
        TempDir::new().unwrap(),
    );
    publish(&server, "one").await.expect(201);
    let data = server.stop().await;
    let on = async |data, url, changed: &[_]| run_refused_start(&bucket, data, url, changed).await;
    let belongs = "belongs to another installation";
    assert_start_refused(&on(&other, url, &[]).await, belongs);
    for (changed, why) in [
        (("AWS_ACCESS_KEY_ID", "hush"), "refuses these keys"),
        (("AWS_SECRET_ACCESS_KEY", ""), "two parts"),
        (
            ("AWS_ENDPOINT_URL", "http://127.0.0.1:1"),
            "AWS_ENDPOINT_URL",
        ),
        (
            ("AWS_ENDPOINT_URL", "http://hush.example.com"),
            "AWS_ALLOW_HTTP",
        ),
        (
            ("AWS_ENDPOINT_URL", "http://me:hush@127.0.0.1:1"),
            "without a user",
        ),
    ] {
        assert_start_refused(&on(&data, url, &[changed]).await, why);
    }
    for (url, why) in [
        ("s3://me:hush@pages/mine", "AWS_SECRET_ACCESS_KEY"),
        ("s3://pages/mine?key=hush", "AWS_SECRET_ACCESS_KEY"),
        ("s3://nowhere/mine", "no such bucket"),
        ("s3://pages/elsewhere", "objects that pages need"),
    ] {
        assert_start_refused(&on(&data, url, &[]).await, why);
    }
    bucket.set_fault(BucketFault::Unavailable);
    assert_start_refused(&on(&data, url, &[]).await, "does not answer as it should");
    bucket.set_fault(BucketFault::None);
    // An emptied bucket is not mistaken for a new one.
    let before = bucket.objects(std::mem::take);
    assert_start_refused(
        &on(&data, url, &[]).await,
        "are the bucket, the prefix and the endpoint",
    );
    bucket.objects(|objects| *objects = before);
    bucket.objects(|objects| objects.insert("pages/theirs/letters".to_owned(), "x".into()));
    assert_start_refused(
        &on(&other, "s3://pages/theirs", &[]).await,
        "such as letters",
    );
    // Without its server nothing reads it.
    for command in ["check", "backup"] {
        let to = other.path().join("backup");
        let arguments = [command, to.to_str().unwrap()];
        let arguments = &arguments[..if command == "backup" { 2 } else { 1 }];
        let ran = svc().run(data.path(), arguments).await;
        assert_start_refused(&ran, "work while that runs");
    }
}

#[tokio::test]
async fn a_cluster_refuses_a_bucket_that_keeps_what_is_deleted() {
    let bucket = Bucket::start().await;
    bucket.set_fault(BucketFault::KeepsVersions);
    let (data, folder) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let config = folder.path().join("svc.toml");
    let settings = "[cluster]\nname = 'n1'\nledger = 'postgresql://svc@127.0.0.1:1/svc'\n\
                    bucket = 's3://pages/mine'\npeer_listen = '127.0.0.1:0'\n";
    std::fs::write(&config, settings).unwrap();
    let mut command = svc().command();
    command.envs(bucket.environment());
    command
        .args(["cluster", "found", "--data"])
        .arg(data.path());
    command.arg("--config").arg(&config);
    assert_start_refused(&run_command(command).await, "keeps versions");
    bucket.objects(|objects| assert!(objects.is_empty(), "{objects:?}"));
}

/// Not every store knows how to write only what is not there.
#[tokio::test]
async fn a_store_without_conditions_is_claimed_all_the_same() {
    let bucket = Bucket::start().await;
    bucket.set_fault(BucketFault::NoConditionalWrites);
    let server = start_on_bucket(&bucket, "mine").await;
    publish(&server, "one").await.expect(201);
    let other = TempDir::new().unwrap();
    let output = run_refused_start(&bucket, &other, "s3://pages/mine", &[]).await;
    assert_start_refused(&output, "belongs to another installation");
    let server = server.restart().await;
    get_page(&server, "one").await.expect(200);
}

#[tokio::test]
async fn a_backup_has_what_is_in_a_bucket_and_restores_into_a_directory() {
    let bucket = Bucket::start().await;
    // The copy is served by a process, whose time is today's.
    let builder = TestServer::builder().system_clock();
    let builder = builder.settings(|settings| bucket.settings("mine", settings));
    let server = builder.start().await;
    publish(&server, "one").await.expect(201);
    let folder = TempDir::new().unwrap();
    let to = folder.path().join("backup");
    let arguments = ["backup", to.to_str().unwrap(), "--json"];
    let back_up = async |server: &TestServer| server.command(&svc(), &arguments).await;
    let made = back_up(&server).await.json();
    assert_eq!(
        (&made["complete"], &made["errors"]),
        (&json!(true), &json!([]))
    );
    publish(&server, "two").await.expect(201);
    bucket.take_requests();
    let again = back_up(&server).await.json();
    assert!(again["content"]["files"].as_u64() > made["content"]["files"].as_u64());
    let read = bucket.take_requests();
    let read = read
        .iter()
        .filter(|asked| asked.contains("pages/mine/"))
        .count();
    assert_eq!(
        json!(read),
        again["content"]["copied_files"],
        "and nothing that is there: {again}"
    );
    // A store that is away leaves the earlier backup as it is.
    bucket.set_fault(BucketFault::Unavailable);
    assert_start_refused(
        &back_up(&server).await,
        "the store of content is not reached",
    );
    bucket.set_fault(BucketFault::None);
    let data = TempDir::new().unwrap();
    let restored = svc()
        .run(data.path(), &["restore", to.to_str().unwrap(), "--json"])
        .await;
    assert_eq!(restored.json()["restored"], true);
    let found: Value = svc().run(data.path(), &["check", "--json"]).await.json();
    assert_eq!(found["errors"], json!([]));
    // It is another installation; as the message says, the claim of one that is no more is deleted.
    let start = async || run_refused_start(&bucket, &data, "s3://pages/mine", &[]).await;
    assert_start_refused(&start().await, "belongs to another installation");
    drop(server);
    bucket.objects(|objects| objects.remove("pages/mine/installation"));
    let environment = bucket.environment();
    let environment = borrow_values(&environment);
    let arguments = ["--content-url", "s3://pages/mine"];
    let process = svc()
        .serve_with_environment(&environment, &[], data.path(), &arguments)
        .await;
    for name in ["/one", "/two"] {
        process.get(name).await.expect(200);
    }
    process.kill().await;
}

/// Where no key is set, it is that of the machine's, the container's or the cluster's own role.
#[tokio::test]
async fn a_container_is_given_its_key() {
    let bucket = Bucket::start().await;
    let (data, other) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let environment = bucket.environment_of_container(&other.path().join("word"));
    let environment = borrow_values(&environment);
    let arguments = ["--content-url", "s3://pages/mine"];
    let process = svc()
        .serve_with_environment(&environment, &[], data.path(), &arguments)
        .await;
    bucket.objects(|objects| assert!(objects.contains_key("pages/mine/installation")));
    let asked = bucket.take_requests();
    let keys = asked.iter().filter(|asked| *asked == "GET keys").count();
    assert_eq!(keys, 1, "it is kept: {asked:?}");
    process.kill().await;
}

#[tokio::test]
async fn nothing_tells_the_secret_of_the_bucket() {
    let bucket = Bucket::start().await;
    let data = TempDir::new().unwrap();
    let environment = bucket.environment();
    let environment = borrow_values(&environment);
    let arguments = ["--content-url", "s3://pages/mine"];
    let mut with = environment.clone();
    with.push(("SVC_LOG", "trace"));
    let process = svc()
        .serve_with_environment(&with, &[], data.path(), &arguments)
        .await;
    let page = json!({ "type": "html", "content": "<p>x", "name": "one" });
    let ready = async || (process.json(DEPLOY, &page).await.status == 201).then_some(());
    wait_until("the first page", ready).await;
    bucket.set_fault(BucketFault::Unavailable);
    let page = json!({ "type": "html", "content": "<p>y", "name": "two" });
    process
        .json(DEPLOY, &page)
        .await
        .problem(503, "capacity_reached");
    let status = svc().run(data.path(), &["status", "--json"]).await;
    let mut config = svc().command();
    config
        .envs(environment)
        .args(["config", "--content-url", "s3://pages/mine"]);
    let config = run_command(config).await;
    assert!(
        config.stdout.contains("secret_access_key = \"********\""),
        "{config:?}"
    );
    assert_eq!(status.json()["content"], "in s3://pages/mine");
    let log = process.stderr();
    assert!(log.contains("the store of content is not reached"), "{log}");
    for text in [&log, &status.stdout, &status.stderr, &config.stdout] {
        assert!(!text.contains(Bucket::secret()), "{text}");
    }
    let held = svc_tests::disk::holding(data.path(), Bucket::secret());
    assert_eq!(held, [] as [&str; 0]);
}
