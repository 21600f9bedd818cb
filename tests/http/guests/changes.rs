//! Changes that do not come to pass, and guests in backups.

use super::*;

#[tokio::test]
async fn a_guest_that_cannot_be_loaded_leaves_the_old_one_in_its_place() {
    let (server, folder) = (start().await, TempDir::new().unwrap());
    let good = install(
        &server,
        &write_renderer(&folder, "good", RendererBehaviour::Good),
    )
    .await;
    let guests = server.data().join("guests/render");
    // The file is lost between the check and the load: the record names a missing file.
    let record = guests.join("installed.json");
    let text = std::fs::read_to_string(&record).unwrap();
    let mut changed: Value = serde_json::from_str(&text).unwrap();
    let mut lost = changed["serving"][0].clone();
    let other = renderer("other", RendererBehaviour::Good);
    lost["digest"] = json!(digest(&other));
    lost["file"] = json!("lost.wasm");
    changed["serving"].as_array_mut().unwrap().push(lost);
    changed["sequence"] = json!(2);
    let new = guests.join(".new");
    std::fs::write(&new, changed.to_string()).unwrap();
    std::fs::rename(&new, &record).unwrap();
    let noticed = async || {
        let render = status(&server).await["render"].clone();
        (!render["failures"].as_array()?.is_empty()).then_some(render)
    };
    let render = wait_until("the failure to be said", noticed).await;
    assert_eq!(render["serving"], good["digest"]);
    assert!(
        render["failures"][0].to_string().contains("lost.wasm"),
        "{render}"
    );
    assert_eq!(
        page_signature(page(&server, "# x").await.text()),
        Some("good")
    );

    // Installed once more, it is there, and is loaded at once although the record says nothing new.
    std::fs::write(guests.join("lost.wasm"), &other).unwrap();
    install(&server, &write(folder.path(), "other", &other)).await;
    assert_eq!(
        page_signature(page(&server, "# x").await.text()),
        Some("other")
    );
}

#[tokio::test]
async fn a_record_that_cannot_be_read_leaves_the_guest_in_its_place() {
    let (server, folder) = (start().await, TempDir::new().unwrap());
    let good = install(
        &server,
        &write_renderer(&folder, "good", RendererBehaviour::Good),
    )
    .await;
    let record = server.data().join("guests/render/installed.json");
    let whole = std::fs::read(&record).unwrap();
    let put = |text: &[u8]| {
        let new = record.with_file_name(".new");
        std::fs::write(&new, text).unwrap();
        std::fs::rename(&new, &record).unwrap();
    };
    put(b"{");
    let failing = async |is: bool| {
        let look = async || {
            // The server's own words, which are there whatever the record says.
            let said = svc::guests::status::read_status_file(server.data()).unwrap()?;
            (said.render.failures.is_empty() != is).then_some(())
        };
        wait_until("the server's words on its record", look).await;
    };
    failing(true).await;
    let render = status(&server).await["render"].clone();
    assert_eq!(render["serving"], good["digest"], "{render}");
    assert_eq!(render["failures"].as_array().unwrap().len(), 1, "{render}");
    assert_eq!(
        page_signature(page(&server, "# x").await.text()),
        Some("good")
    );
    put(&whole);
    failing(false).await;
    assert_eq!(status(&server).await["render"]["digest"], good["digest"]);
    put(b"{");
    let server = server.restart().await;
    assert_eq!(page_signature(page(&server, "# x").await.text()), None);
}

/// The server makes the change itself: it serves, is written down and is in the audit before the command has its answer.
#[tokio::test]
async fn a_change_is_in_effect_when_it_is_answered() {
    let (server, folder) = (start().await, TempDir::new().unwrap());
    let says = |digest: &Value| {
        let said = svc::guests::status::read_status_file(server.data())
            .unwrap()
            .unwrap();
        assert_eq!(json!(said.render.digest), *digest);
    };
    let mut changes = 0;
    for sign in ["one", "two"] {
        let installed = install(
            &server,
            &write_renderer(&folder, sign, RendererBehaviour::Good),
        )
        .await;
        says(&installed["digest"]);
        assert_eq!(
            page_signature(page(&server, "# x").await.text()),
            Some(sign)
        );
        changes += 1;
    }
    let back = guest(&server, &["rollback", "render"]).await.json();
    says(&back["digest"]);
    assert_eq!(
        page_signature(page(&server, "# x").await.text()),
        Some("one")
    );
    changes += 1;
    let audit = server.command(&svc(), &["audit", "--json"]).await;
    assert_eq!(
        audit.stdout.matches("guest.switch").count(),
        changes,
        "{audit:?}"
    );
}

/// A component is stored by its command and chosen by the server: another operator's change in between removes nothing.
#[tokio::test]
async fn operators_who_install_at_once_all_install() {
    let (server, folder) = (start().await, TempDir::new().unwrap());
    let files = ["one", "two", "three", "four"]
        .map(|sign| write_renderer(&folder, sign, RendererBehaviour::Good));
    let installs = files.iter().map(|file| {
        let arguments = ["install", "--no-replay", file.to_str().unwrap()];
        let server = &server;
        async move { guest(server, &arguments).await }
    });
    for output in futures_util::future::join_all(installs).await {
        let answer: Value = serde_json::from_str(&output.stdout).unwrap();
        // Another change may have come right after it, which it then says.
        let told = answer["failures"].to_string();
        let done = answer["effect"] == "switched" || told.contains("changed again");
        assert!(done, "{answer}");
    }
    let render = status(&server).await["render"].clone();
    assert_eq!(render["history"].as_array().unwrap().len(), files.len());
    let kept = std::fs::read_dir(server.data().join("guests/render")).unwrap();
    let is_component = |name: &str| name.ends_with(".wasm");
    let kept =
        kept.filter(|entry| is_component(entry.as_ref().unwrap().file_name().to_str().unwrap()));
    assert_eq!(kept.count(), files.len());
}

#[tokio::test]
async fn a_rollback_from_a_guest_that_does_not_serve_changes_nothing() {
    let (server, folder) = (start().await, TempDir::new().unwrap());
    let one = install(
        &server,
        &write_renderer(&folder, "one", RendererBehaviour::Good),
    )
    .await;
    let two = install(
        &server,
        &write_renderer(&folder, "two", RendererBehaviour::Good),
    )
    .await;
    let [one, two] = [&one, &two].map(|guest| guest["digest"].as_str().unwrap());
    let from = async |digest: &str| guest(&server, &["rollback", "render", "--from", digest]).await;
    let late = from(one).await;
    assert!(!late.success);
    let late: Value = serde_json::from_str(&late.stdout).unwrap();
    assert_eq!(
        (&late["effect"], &late["digest"]),
        (&json!("refused"), &json!(two))
    );
    assert_eq!(from(two).await.json()["effect"], "switched");
    // Repeating the command does not go back one more.
    assert!(!from(two).await.success);
    assert_eq!(status(&server).await["render"]["digest"], one);
    assert!(from("two").await.stderr.contains("64 hexadecimal digits"));
}

#[tokio::test]
async fn a_change_that_the_server_says_nothing_of_is_pending() {
    let folder = TempDir::new().unwrap();
    let data = folder.path().join("data");
    let made = svc().run(&data, &["namespace", "create", "acme"]).await;
    assert!(made.success, "{made:?}");
    // A server, as far as others see, that never looks at its guests.
    let silent = ServerPresenceLock::announce(&data).unwrap();
    let file = write_renderer(&folder, "new", RendererBehaviour::Good);
    let install = [
        "guest",
        "install",
        "--no-replay",
        file.to_str().unwrap(),
        "--json",
    ];
    let pending = svc().run(&data, &install).await;
    assert_eq!(pending.code, Some(2), "{pending:?}");
    let answer: Value = serde_json::from_str(&pending.stdout).unwrap();
    assert_eq!(
        (&answer["effect"], &answer["failures"]),
        (&json!("pending"), &json!([]))
    );
    drop(silent);
    // It was chosen all the same.
    let again = svc().run(&data, &install).await.json();
    assert_eq!(again["effect"], "next_start");
    assert_eq!(again["digest"], answer["digest"]);
}

#[tokio::test]
async fn guests_that_are_elsewhere_are_not_in_a_backup_without_a_word() {
    let (elsewhere, folder) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let guests = elsewhere.path().to_path_buf();
    let builder = TestServer::builder().system_clock();
    let server = builder.settings(|s| s.guests = Some(guests)).start().await;
    let said = async || svc::guests::status::read_status_file(server.data()).unwrap();
    wait_until("the server's words on its guests", said).await;
    let backup = folder.path().join("backup");
    let make = ["backup", backup.to_str().unwrap(), "--json"];
    let made = server.command(&svc(), &make).await.json();
    let notes = made["notes"].to_string();
    let named = notes.contains(elsewhere.path().to_str().unwrap());
    assert!(named && notes.contains("copy it, too"), "{notes}");
}

#[tokio::test]
async fn installed_guests_are_part_of_a_backup() {
    let (server, folder) = (start().await, TempDir::new().unwrap());
    install(
        &server,
        &write_renderer(&folder, "one", RendererBehaviour::Good),
    )
    .await;
    install(
        &server,
        &write_renderer(&folder, "two", RendererBehaviour::Good),
    )
    .await;
    let backup = folder.path().join("backup");
    let make = ["backup", backup.to_str().unwrap(), "--json"];
    let made = server.command(&svc(), &make).await.json();
    assert_eq!(made["complete"], true);
    guest(&server, &["rollback", "render"]).await.json();
    let restore = ["restore", backup.to_str().unwrap(), "--json"];
    let server = server
        .restart_after_change(async |data| {
            svc().run(data, &restore).await.json();
        })
        .await;
    assert_eq!(
        page_signature(page(&server, "# x").await.text()),
        Some("two")
    );
    let back = guest(&server, &["rollback", "render"]).await.json();
    assert_eq!(back["effect"], "switched");
    assert_eq!(
        page_signature(page(&server, "# x").await.text()),
        Some("one")
    );
}

#[tokio::test]
async fn what_no_guest_handles_brings_none_down() {
    let server = start().await;
    let folder = TempDir::new().unwrap();
    install(
        &server,
        &write_renderer(&folder, "first", RendererBehaviour::Bad),
    )
    .await;
    let installed = install(
        &server,
        &write_renderer(&folder, "second", RendererBehaviour::Bad),
    )
    .await;
    for _ in 0..5 {
        let body = json!({ "type": "markdown", "content": "trap me" });
        let failed = server.json("/api/v1/deploy", &body).answer().await;
        failed.problem(500, "internal");
    }
    // A type that no guest knows is not the server's failure: its author hears which it is, and what to do.
    let body = json!({ "type": "markdown", "content": "deny me" });
    let unknown = server.json("/api/v1/deploy", &body).answer().await;
    let unknown = unknown.problem(400, "render_failed");
    let detail = unknown["detail"].as_str().unwrap();
    assert!(detail.contains("type `markdown`"), "{detail}");
    assert_eq!(
        page_signature(page(&server, "# x").await.text()),
        Some("second")
    );
    let status = status(&server).await;
    assert_eq!(status["render"]["digest"], installed["digest"]);
    assert_eq!(status["render"]["history"].as_array().unwrap().len(), 2);
}
