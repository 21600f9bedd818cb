//! Environments of a manifest.

use super::*;

const MANIFEST: &str = r#"
project = "Shop"
home = "shop"
server = "http://localhost:8080"
domains = ["www.shop.example"]
[pages]
shop = "shop.md"
closed = "closed.md"
[[prices]]
key = "pro"
product = "Club"
label = "Monthly"
amount = 100
currency = "eur"
recurring = true
[[prices]]
key = "one"
product = "Club"
label = "Once"
amount = 200
currency = "eur"
[env.prod]
server = "https://svc.example"
project = "Web shop"
home = "closed"
[[env.prod.prices]]
key = "pro"
product = "Club"
label = "Monthly"
amount = 900
currency = "eur"
recurring = "month"
[env.test]
server = "test.example"
profile = "test"
domains = []
"#;

fn manifest() -> Manifest {
    Manifest::parse(MANIFEST, Path::new("svc.toml")).unwrap()
}

#[test]
fn what_an_environment_leaves_out_is_as_at_the_top() {
    for (name, project, home, server, profile, amounts) in [
        (
            None,
            "Shop",
            "shop",
            "http://localhost:8080/",
            None,
            [100, 200],
        ),
        (
            Some("prod"),
            "Web shop",
            "closed",
            "https://svc.example/",
            None,
            [200, 900],
        ),
        (
            Some("test"),
            "Shop",
            "shop",
            "https://test.example/",
            Some("test"),
            [100, 200],
        ),
    ] {
        let chosen = manifest().in_environment(name).unwrap();
        let target = chosen.target().unwrap();
        assert_eq!(chosen.project, project);
        assert_eq!(chosen.home.as_deref(), Some(home));
        assert_eq!(target.server.unwrap().as_str(), server);
        assert_eq!(target.profile.as_deref(), profile);
        assert_eq!(target.environment.as_deref(), name);
        let found: Vec<_> = chosen.prices.iter().map(|price| price.amount).collect();
        assert_eq!(found, amounts, "{name:?}");
        let domains = usize::from(name != Some("test"));
        assert_eq!(chosen.domains.len(), domains, "{name:?}");
    }
}

#[test]
fn an_unknown_environment_is_told_with_those_that_there_are() {
    let refused = manifest().in_environment(Some("stage")).unwrap_err();
    let refused = refused.to_text();
    for said in ["`stage`", "`prod`", "`test`"] {
        assert!(refused.contains(said), "{said}: {refused}");
    }
    let without = Manifest::parse("project = \"a\"", Path::new("svc.toml")).unwrap();
    let refused = without.in_environment(Some("prod")).unwrap_err().to_text();
    assert!(refused.contains("svc.toml has none"), "{refused}");
}
