//! `domains` of a folder, and `svc domain`.

use serde_json::json;
use svc_tests::dns::DnsServer;

use super::ClientFixture;
use crate::owner::text;

const NAME: &str = "www.shop.com";

fn manifest(domains: &str) -> String {
    format!("project = \"Shop\"\ndomains = [{domains}]\n[pages]\nshop = \"shop.md\"\n")
}

#[tokio::test]
async fn a_domain_that_a_folder_names_is_added_and_never_removed() {
    let fixture = ClientFixture::new().await;
    fixture.write("shop.md", "# Shop\n");
    fixture.write("svc.toml", &manifest("\"WWW.Shop.com\""));
    let applied = fixture.run(&["apply", "--yes"]).await;
    assert!(applied.success, "{applied:?}");
    for said in [
        "+ domain    WWW.Shop.com",
        "www.shop.com is pending",
        "CNAME",
        "svc-domain=",
    ] {
        assert!(applied.stderr.contains(said), "{said}: {applied:?}");
    }
    // What proves it is shown until it is served, and there is nothing to do.
    let again = fixture.json(&["apply"]).await;
    assert_eq!(again["plan"], json!([]));
    let note = text(&again["notes"][0]);
    assert!(note.contains("svc-domain="), "{note}");
    fixture.write("svc.toml", &manifest(""));
    let pruned = fixture.json(&["apply", "--yes", "--prune"]).await;
    assert_eq!(pruned["plan"], json!([]));
    let listed = fixture.json(&["domain", "list"]).await;
    assert_eq!(listed["domains"][0]["name"], NAME);
}

#[tokio::test]
async fn a_domain_that_dns_does_not_prove_is_told_with_its_records() {
    let dns = DnsServer::start().await;
    let settings = tempfile::NamedTempFile::new().unwrap();
    let resolver = format!("[domains]\nresolver = \"{}\"\n", dns.address());
    std::fs::write(settings.path(), resolver).unwrap();
    let options = ["--config", settings.path().to_str().unwrap()];
    let fixture = ClientFixture::with_server_options(&options).await;
    fixture.run_for_stdout(&["project", "create", "Shop"]).await;
    let added = fixture.json(&["domain", "add", NAME]).await;
    dns.set_cname(NAME, "elsewhere.net");
    let told = fixture
        .run_for_failure(5, &["domain", "verify", NAME])
        .await;
    let target = text(&added["records"][0]["value"]);
    for said in [
        format!("wanted: CNAME {NAME} {target}"),
        format!("wanted: TXT _svc.{NAME} svc-domain="),
        format!("seen: CNAME {NAME} elsewhere.net"),
    ] {
        assert!(told.contains(&said), "{said}: {told}");
    }
    dns.set_record(&added["records"][0]);
    let proven = fixture.run_for_stdout(&["domain", "verify", NAME]).await;
    assert_eq!(proven.trim_end(), "www.shop.com is active");
    fixture.run_for_stdout(&["domain", "remove", NAME]).await;
    let listed = fixture.json(&["domain", "list"]).await;
    assert_eq!(listed, json!({ "domains": [] }));
}
