//! Settings: where they come from, which there are, and mistakes in them.

use serde_json::json;
use tempfile::TempDir;

use crate::svc;

#[tokio::test]
async fn flags_beat_the_environment_beats_the_file_beats_defaults() {
    let directory = TempDir::new().unwrap();
    let file = directory.path().join("svc.toml");
    let text = "landing_host = 'file.example'\ndata = '/file'\nbase_url = 'https://file.example'\n\
                trusted_proxies = ['10.0.0.0/8']\n[limits]\ndeploy_burst = 7\n";
    std::fs::write(&file, text).unwrap();
    let mut command = svc().command();
    command
        .args([
            "config",
            "--json",
            "--landing-host",
            "flag.example",
            "--config",
        ])
        .arg(&file)
        .env("SVC_LANDING_HOST", "environment.example")
        .env("SVC_DATA", "/environment");
    let effective = svc_tests::run_command(command).await.json();
    for (key, value) in [
        ("landing_host", json!("flag.example")),
        ("data", json!("/environment")),
        ("guests", json!("/environment/guests")),
        ("base_url", json!("https://file.example")),
        ("sites_url", json!("https://file.example")),
        ("listen", json!("127.0.0.1:8080")),
        ("trusted_proxies", json!(["10.0.0.0/8"])),
    ] {
        assert_eq!(effective[key], value, "{key}");
    }
    assert_eq!(effective["limits"]["deploy_burst"], 7);
    assert_eq!(effective["limits"]["deploy_per_minute"], 30);
    let text = {
        let mut command = svc().command();
        command.arg("config");
        svc_tests::run_command(command).await.stdout
    };
    for line in [
        "base_url = \"http://localhost:8080\"",
        "sites_domain = \"localhost:8080\"",
        "console_url = \"http://console.localhost:8080\"",
        "[limits]",
    ] {
        assert!(text.contains(line), "{line}\n{text}");
    }
}

/// The table of the specification; the last six are measured.
const LIMITS: &str = "deploy_per_minute 30, deploy_burst 15, mcp_per_minute 30, mcp_burst 15, op_per_minute 120, \
    op_burst 30, op_deployment_per_minute 300, op_deployment_burst 60, auth_per_minute 10, auth_burst 10, \
    report_per_minute 10, report_burst 5, owner_per_minute 600, owner_burst 100, body_bytes 1048576, \
    op_body_bytes 65536, database_bytes 5242880, query_rows 500, result_bytes 4194304, statement_ms 2000, \
    quick_share_seconds 604800, active_deployments 5000, backends 250, free_disk_bytes 104857600, projects_free 1, \
    projects_pro 5, domains_free 1, domains_pro 10, sockets_per_backend 100, sockets_per_ip 20, sockets_total 25000, rooms_per_backend 100, \
    frame_bytes 16384, messages_per_second 10, outbound_queue 32, ping_seconds 25, pong_seconds 60, page_bytes 16777216";

#[tokio::test]
async fn every_number_of_the_service_is_a_setting() {
    let mut command = svc().command();
    command.args(["config", "--json"]);
    let effective = svc_tests::run_command(command).await.json();
    for entry in LIMITS.split(',') {
        let (name, value) = entry.trim().split_once(' ').unwrap();
        let value: u64 = value.parse().unwrap();
        assert_eq!(effective["limits"][name], value, "{name}");
    }
    for name in [
        "render_fuel",
        "render_memory_bytes",
        "render_ms",
        "page_fuel",
        "page_processor_ms",
        "page_ms",
        "gate_fuel",
        "gate_memory_bytes",
        "gate_ms",
    ] {
        assert!(effective["limits"][name].as_u64().unwrap() > 0, "{name}");
    }
}

#[tokio::test]
async fn mistakes_in_settings_are_named() {
    let directory = TempDir::new().unwrap();
    let file = directory.path().join("svc.toml");
    for (text, says) in [
        ("lissen = '127.0.0.1:1'", "lissen"),
        ("[limits]\ndeploy_brust = 1", "deploy_brust"),
        ("[limits]\ndeploy_burst = 0", "deploy_burst"),
        ("[limits]\ndeploy_burst = 'many'", "deploy_burst"),
        // Less than what the guests begin with: nothing would ever be rendered, or judged.
        (
            "[limits]\nrender_memory_bytes = 1048576",
            "limits.render_memory_bytes must be at least 8388608: it is 1048576",
        ),
        (
            "[limits]\ngate_memory_bytes = 1048576",
            "limits.gate_memory_bytes must be at least 2097152: it is 1048576",
        ),
        ("[unknown]\na = 1", "unknown"),
        ("base_url = 'https://example.com/path'", "base_url"),
        ("sites_domain = 'http://example.com'", "sites_domain"),
        ("sites_domain = 'example.com/'", "sites_domain"),
        ("sites_domain = ''", "sites_domain"),
        ("landing_host = 'me@example.com'", "landing_host"),
        ("landing_host = 'example.com:x'", "landing_host"),
        ("console_url = 'console.example.com'", "console_url"),
        ("console_url = 'http://localhost:1'", "base_url"),
        ("[console]\nclient_id = 'a'", "[oauth]"),
        ("listen = 'nowhere'", "listen"),
        ("trusted_proxies = ['10.0.0.0/99']", "trusted_proxies"),
        ("this is no toml", "svc.toml"),
    ] {
        std::fs::write(&file, text).unwrap();
        for command in ["serve", "config"] {
            let mut start = svc().command();
            start
                .args([command, "--config"])
                .arg(&file)
                .env("SVC_DATA", directory.path().join("data"));
            if command == "serve" && !text.starts_with("listen") {
                start.args(["--listen", "127.0.0.1:0"]);
            }
            let output = svc_tests::run_command(start).await;
            assert!(!output.success, "{command}: {text}");
            assert!(output.stderr.contains(says), "{command}: {}", output.stderr);
            assert_eq!(output.stdout, "");
        }
    }
    for (arguments, says) in [
        (&["serve", "--lissen", "x"][..], "--lissen"),
        (&["serve", "--listen", "x"], "--listen"),
        (&["config", "--base-url", "ftp://x"], "base_url"),
        (
            &["serve", "--config", "/nowhere/svc.toml"],
            "/nowhere/svc.toml",
        ),
        (&["check"], "data"),
    ] {
        let output = svc().run(&directory.path().join("none"), arguments).await;
        assert!(!output.success, "{arguments:?}");
        assert!(
            output.stderr.contains(says),
            "{arguments:?}: {}",
            output.stderr
        );
    }
}

#[tokio::test]
async fn the_url_of_a_ledger_is_never_shown() {
    let directory = TempDir::new().unwrap();
    let file = directory.path().join("svc.toml");
    let text = "[cluster]\nname = 'n1'\nledger = 'postgresql://svc:hush@pg1/svc'\n\
                bucket = 'file:///srv/shared'\npeer_listen = '127.0.0.1:0'\n";
    std::fs::write(&file, text).unwrap();
    let another = "postgresql://svc:quiet@pg2/svc?password=silent";
    let wrong = "mysql://svc:quiet@pg2/svc?password=silent";
    for (form, environment, says) in [
        (None, None, "ledger = \"********\""),
        (Some("--json"), Some(another), "\"ledger\":\"********\""),
        (None, Some(wrong), "cluster.ledger must begin with"),
    ] {
        let mut command = svc().command();
        command.args(["config", "--config"]).arg(&file).args(form);
        command.envs(environment.map(|url| ("SVC_CLUSTER_LEDGER", url)));
        let output = svc_tests::run_command(command).await;
        let shown = format!("{}{}", output.stdout, output.stderr);
        assert!(shown.contains(says), "{shown}");
        for secret in ["hush", "quiet", "silent"] {
            assert!(!shown.contains(secret), "{shown}");
        }
    }
}

#[tokio::test]
async fn a_cache_that_others_can_write_is_refused() {
    let directory = TempDir::new().unwrap();
    let cache = directory.path().join("cache");
    std::fs::create_dir(&cache).unwrap();
    let open = std::os::unix::fs::PermissionsExt::from_mode(0o777);
    std::fs::set_permissions(&cache, open).unwrap();
    let mut command = svc().command();
    command
        .args(["serve", "--listen", "127.0.0.1:0"])
        .env("SVC_DATA", directory.path().join("data"))
        .env("SVC_CACHE", &cache);
    let output = svc_tests::run_command(command).await;
    assert!(!output.success);
    assert!(output.stderr.contains("cache"), "{}", output.stderr);
}
