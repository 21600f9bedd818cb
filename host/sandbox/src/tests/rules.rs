//! Rules of sites, judged by the renderer that is built in.

use super::*;

fn files(redirects: &str, headers: &str) -> RuleFiles {
    RuleFiles {
        redirects: Some(redirects.to_owned().into()),
        headers: Some(headers.to_owned().into()),
        within_site: false,
    }
}

#[tokio::test]
async fn rules_come_back_as_the_host_applies_them() {
    let sandbox = sandbox();
    let judged = files(
        "/a/:b/* https://example.com/:splat?b=:b#c 301",
        "/*\n X-A: b\n",
    );
    let rules = sandbox.judge_rules(judged).await.unwrap();
    let text = |text: &str| text.to_owned();
    assert_eq!(
        rules,
        SiteRules {
            redirects: vec![RedirectRule {
                pattern: vec![
                    PatternPart::Text(text("a/")),
                    PatternPart::Placeholder,
                    PatternPart::Text(text("/")),
                    PatternPart::Rest,
                ],
                target: RedirectTarget {
                    origin: Some(text("https://example.com")),
                    path: vec![TargetPart::Capture(1)],
                    query: Some(vec![TargetPart::Text(text("b=")), TargetPart::Capture(0)]),
                    fragment: Some(text("c")),
                },
                status: 301,
            }],
            headers: vec![HeaderRule {
                pattern: vec![PatternPart::Rest],
                headers: vec![(text("x-a"), text("b"))],
            }],
        }
    );
    let refused = sandbox.judge_rules(files("/a /b", "/*\n\n X-A")).await;
    let Err(RulesFailure::Refused(fault)) = refused else {
        panic!("{refused:?}")
    };
    assert_eq!((fault.file, fault.line), (RuleFile::Headers, 3));
    let none = sandbox.judge_rules(RuleFiles::default()).await.unwrap();
    assert!(none.is_empty());
}

#[tokio::test]
async fn the_largest_files_are_far_within_the_budget() {
    let sandbox = sandbox();
    let lines = "/:a/:b/:c/* /:c/:b/:a/:splat?:a=:splat\n".repeat(1_000);
    let headers = format!("/*\n{}", " X-A: b\n".repeat(100)).repeat(70);
    let rules = sandbox.judge_rules(files(&lines, &headers)).await.unwrap();
    assert_eq!((rules.redirects.len(), rules.headers.len()), (1_000, 70));
    let total = sandbox.total(World::Render);
    assert!(
        total.fuel < GuestLimits::DEFAULT.render.fuel / 20,
        "{total:?}"
    );
    let long = "#".repeat(MAX_RULE_FILE_BYTES + 1);
    let refused = sandbox.judge_rules(files(&long, "")).await;
    let Err(RulesFailure::Refused(fault)) = refused else {
        panic!("{refused:?}")
    };
    assert_eq!((fault.file, fault.line), (RuleFile::Redirects, 1));
}
