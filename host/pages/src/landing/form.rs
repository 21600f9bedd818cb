//! The landing page's form: content, preview and result. It works without scripts, too.

use maud::{Markup, html};

use super::page::snippet;
use crate::config::{Config, format_duration};
use crate::deployments::shares::requests::MAX_SHARE_FILES;
use svc_sandbox::ContentType;
use svc_sources::LANGUAGES;
use svc_sources::media::MEDIA_EXTENSIONS;

const SHARE: &str = include_str!("../../../assets/connect/share.sh");

/// Type that is selected at first.
const DEFAULT_TYPE: ContentType = ContentType::Markdown;

/// Lifetimes that the form offers beside the longest, in seconds.
const LIFETIMES: [u64; 3] = [24 * 3600, 3600, 600];

/// Makes the form; `api` is the API's base URL for its script, and `keeps` whether it may store anything in the browser.
pub(super) fn share_form(config: &Config, api: &str, keeps: bool) -> Markup {
    let languages: Vec<_> = LANGUAGES
        .iter()
        .map(|(extension, name)| format!("{extension}:{name}"))
        .collect();
    let languages = languages.join(" ");
    let media = MEDIA_EXTENSIONS.map(|(extension, _)| extension).join(" ");
    html! {
        section.share aria-labelledby="now" {
            h2 #now { "Share something now" }
            form #share method="post" action="/_svc/share" data-api=(api) data-keeps=[keeps.then_some("yes")]
                data-most=(config.limits.body_bytes) data-files=(MAX_SHARE_FILES) data-media=(media) data-languages=(languages)
                autocomplete="off" {
                div.write {
                    (content_section())
                    (options_section(config))
                }
                div.look.scripted role="group" aria-labelledby="looks" {
                    h3 #looks { "Preview" }
                    div.preview #preview role="status" { p { "What you type is shown here as it will look." } }
                }
                div.send {
                    button #send type="submit" { "Publish" }
                    p.wrong #wrong role="alert" {}
                }
            }
            (result_section())
        }
        section.mine aria-labelledby="mine" hidden {
            h2 #mine tabindex="-1" { "Your shares" }
            p.soft {
                @if keeps { "Kept in this browser alone, with the tokens that delete them." }
                @else { "Kept until you close or reload this page, with the tokens that delete them." }
            }
            ul #shares {}
        }
        noscript {
            section.prose {
                (snippet(&html! { h3 { "The same from a shell" } }, "Publish from a shell", SHARE, &config.base_url))
            }
        }
    }
}

/// Lists the types of content, the default first.
fn content_type_choices() -> impl Iterator<Item = ContentType> {
    let others = ContentType::ALL
        .into_iter()
        .filter(|one| *one != DEFAULT_TYPE);
    std::iter::once(DEFAULT_TYPE).chain(others)
}

fn content_section() -> Markup {
    html! {
        fieldset #kinds {
            legend { "What is it?" }
            div.types {
                @for one in content_type_choices() {
                    label {
                        input type="radio" name="type" value=(one) checked[one == DEFAULT_TYPE]
                            data-phrase=(one.phrase()) data-extensions=(one.extensions().join(" "));
                        span { (one.label()) }
                    }
                }
            }
        }
        div {
            div.above {
                label for="content" { "Content" }
                label.file.scripted { "Open a file" input #file type="file"; }
                label.file.scripted { "Open a folder" input #folder type="file" webkitdirectory; }
            }
            textarea.field #content name="content" required spellcheck="false" autocapitalize="none" {}
            div #held hidden {
                p #held-said role="status" {}
                button.plain #let-go type="button" { "Take it out" }
            }
            p.soft.scripted #guess role="status" { "Or drop a file or a folder here, or paste a file." }
        }
    }
}

fn options_section(config: &Config) -> Markup {
    let most = config.limits.quick_share_seconds;
    html! {
        details.options {
            summary { "Title, address, password, lifetime, one view" }
            div.pair {
                div {
                    label for="title" { "Title " span.soft { "optional" } }
                    input.field #title name="title" maxlength="200" autocomplete="off";
                }
                div {
                    label for="name" { "Address " span.soft { (config.sites_url) "/…" } }
                    input.field #name name="name" maxlength="63" pattern="[a-z0-9]([a-z0-9\\-]*[a-z0-9])?" placeholder="chosen for you"
                        title="a to z, 0 to 9 and -, beginning and ending with a letter or digit"
                        autocomplete="off" autocapitalize="none" spellcheck="false";
                }
                div {
                    label for="password" { "Password " span.soft { "optional" } }
                    input.field #password name="password" maxlength="1024" autocomplete="off" autocapitalize="none" spellcheck="false";
                }
                div {
                    label for="expires_in" { "Expires after" }
                    select.field #expires_in name="expires_in" {
                        option value="" { (format_duration(most)) }
                        @for seconds in LIFETIMES.into_iter().filter(|life| *life < most) {
                            option value=(seconds) { (format_duration(seconds)) }
                        }
                    }
                }
                label.check { input type="checkbox" name="one_time"; "Delete it once it has been opened" }
            }
        }
    }
}

fn result_section() -> Markup {
    html! {
        div.result #result hidden {
            h3 #published tabindex="-1" { "Published" }
            div.passing {
                div.links {
                    div.link {
                        input.field #link readonly aria-label="Link to the page";
                        button #copy type="button" { "Copy the link" }
                    }
                    div.link #secret hidden {
                        input.field #secret-text readonly aria-label="Password of the page";
                        button.plain #copy-secret type="button" { "Copy the password" }
                    }
                    p #once hidden {
                        "It burns at the first opening: do not open it yourself. Who opens the link first reads it, and nobody after."
                    }
                    p { "Expires " span #expires {} ". " span #renamed {} }
                    div.link {
                        a.button #open href="/" target="_blank" rel="noopener" { "Open the page" }
                        button.plain #pass type="button" hidden { "Pass it on" }
                        button.plain #delete type="button" { "Delete" }
                    }
                }
                div #qr {}
            }
        }
    }
}
