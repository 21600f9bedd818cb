//! Page views: requests a second, latency and processor time, beside the minimal server's.

use anyhow::ensure;

use super::Run;
use super::report::{Goals, print_line, print_title};
use super::rounds::{Contender, ROUND, ROUNDS, compare, print_head, print_ratio};
use super::server::{Bench, Running, cpu_of};
use super::source_generator::SourceGenerator;
use super::{client, nginx};

const SIZES: [(&str, usize); 3] = [("1 KB", 1024), ("10 KB", 10 * 1024), ("100 KB", 100 * 1024)];
const ENCODINGS: [&str; 2] = ["identity", "br"];
const CONNECTIONS: usize = 64;

/// Measures all encodings of all sizes, or of the one that is named.
pub(crate) fn measure(run: &Run, goals: &mut Goals) -> anyhow::Result<()> {
    let (bench, before) = (&run.bench, run.before.as_ref());
    let page = run.arguments.page.as_deref();
    print_title(&format!(
        "Page views, {CONNECTIONS} keep-alive connections, {ROUNDS} alternating rounds of {} ms",
        ROUND.as_millis()
    ))?;
    print_head("page")?;
    let svc = bench.start_svc("views")?;
    svc.await_guests()?;
    let pages = bench.directory("pages");
    std::fs::create_dir(&pages)?;
    for (at, (_, bytes)) in SIZES.iter().enumerate() {
        publish_and_save(&svc, &pages, at, *bytes)?;
    }
    let earlier = before
        .map(|before| start_earlier_build(before, &pages))
        .transpose()?;
    let minimal = bench.start_minimal(&pages)?;
    let load = cpu_of("self")?;
    let mut answers = 0;
    let wanted = |size: &str| page.is_none_or(|page| size.trim_end_matches(" KB") == page);
    for (at, (size, _)) in SIZES.iter().enumerate() {
        for encoding in ENCODINGS.iter().filter(|_| wanted(size)) {
            let name = format!("page-{at}");
            let ours = [client::get(svc.address, &format!("/{name}"), encoding)];
            let path = format!("/{name}.{encoding}");
            let theirs = [client::get(minimal.address, &path, encoding)];
            let case = format!("{size} {encoding}");
            let contenders = [
                Contender::new(&svc, &ours),
                Contender::new(&minimal, &theirs),
            ];
            let [ours, theirs] = compare(&contenders, CONNECTIONS)?;
            ours.print(&case, "svc")?;
            theirs.print("", "minimal")?;
            print_ratio(&ours, &theirs, "ratio")?;
            answers += ours.answers + theirs.answers;
            if let Some(earlier) = &earlier {
                answers += compare_with_earlier(&svc, earlier, &case, (&name, encoding), goals)?;
            }
            if *size == "10 KB" {
                let ratio = ours.ratio(&theirs);
                goals.at_least(&format!("{case}: throughput, of minimal's"), ratio, 0.9);
                let cost = ours.cost() / theirs.cost();
                goals.at_most(&format!("{case}: CPU, of minimal's"), cost, 1.25);
            }
        }
    }
    if wanted("10 KB") {
        match nginx::start(bench, run.arguments.nginx.clone(), &pages)? {
            Some(nginx) => answers += compare_with_nginx(&svc, &nginx, goals)?,
            None => print_line("nginx is not installed, or name it with --nginx.")?,
        }
    }
    let own = (cpu_of("self")? - load).as_secs_f64() * 1e6 / answers as f64;
    print_line(&format!(
        "\nThe load itself costs {own:.1} µs an answer, on the same cores."
    ))?;
    let (now, most) = svc.memory()?;
    print_line(&format!(
        "svc after it: {now:.1} MB resident, {most:.1} MB at the most."
    ))
}

/// An earlier build with the same pages.
fn start_earlier_build(before: &Bench, pages: &std::path::Path) -> anyhow::Result<Running> {
    let svc = before.start_svc("views")?;
    svc.await_guests()?;
    for (at, (_, bytes)) in SIZES.iter().enumerate() {
        publish_and_save(&svc, pages, at, *bytes)?;
    }
    Ok(svc)
}

/// Measures the same page beside an earlier build; returns how many requests there were.
fn compare_with_earlier(
    svc: &Running,
    before: &Running,
    case: &str,
    (name, encoding): (&str, &str),
    goals: &mut Goals,
) -> anyhow::Result<usize> {
    let view = |server: &Running| [client::get(server.address, &format!("/{name}"), encoding)];
    let (ours, theirs) = (view(svc), view(before));
    let contenders = [Contender::new(svc, &ours), Contender::new(before, &theirs)];
    let [ours, theirs] = compare(&contenders, CONNECTIONS)?;
    ours.print(case, "svc")?;
    theirs.print("", "before")?;
    print_ratio(&ours, &theirs, "ratio")?;
    let what = format!("{case}: throughput, of the build before");
    goals.at_least(&what, ours.ratio(&theirs), 0.97);
    Ok(ours.answers + theirs.answers)
}

/// Measures the same 10 KB beside nginx, which reads a file that the kernel has in memory; returns how many requests
/// there were.
fn compare_with_nginx(svc: &Running, nginx: &Running, goals: &mut Goals) -> anyhow::Result<usize> {
    let ours = [client::get(svc.address, "/page-1", "identity")];
    let theirs = [client::get(nginx.address, "/page-1.identity", "identity")];
    let contenders = [Contender::new(svc, &ours), Contender::new(nginx, &theirs)];
    let [ours, theirs] = compare(&contenders, CONNECTIONS)?;
    ours.print("10 KB identity", "svc")?;
    theirs.print("", "nginx")?;
    print_ratio(&ours, &theirs, "ratio")?;
    let cost = ours.cost() / theirs.cost();
    goals.at_most("10 KB identity: CPU, of nginx's", cost, 1.0);
    Ok(ours.answers + theirs.answers)
}

/// Publishes a page of `bytes`, and keeps what is answered for the minimal server.
fn publish_and_save(
    svc: &Running,
    pages: &std::path::Path,
    at: usize,
    bytes: usize,
) -> anyhow::Result<()> {
    let name = format!("page-{at}");
    let page = SourceGenerator::new(at as u64 + 1).html(bytes);
    let share = serde_json::json!({ "name": name, "content": page });
    let mut client = svc.client()?;
    let published = client.post("/api/v1/deploy", &share)?;
    ensure!(published.status == 201, "not published: {published:?}");
    for encoding in ENCODINGS {
        let answer = client.get(&format!("/{name}"), encoding)?;
        let encoded = answer.head.contains("content-encoding: br");
        ensure!(answer.status == 200, "not served: {answer:?}");
        ensure!(
            encoded == (encoding == "br"),
            "not {encoding}: {}",
            answer.head
        );
        std::fs::write(pages.join(format!("{name}.{encoding}")), answer.body)?;
    }
    Ok(())
}
