//! Cost of one call of a guest beside the same code run natively, and the part of it that makes an instance.

use std::hint::black_box;
use std::time::Instant;

use anyhow::{Context as _, ensure};
use svc_sandbox::{CallCost, ContentType, DirectGuestCaller, RenderSource, SqlPurpose};

use super::report::{Goals, print_line, print_title, quantile};
use super::server::Bench;
use super::source_generator::SourceGenerator;

const EMPTY_GATE: &str = include_str!("../guests/nothing/gate.wat");
/// Calls of each kind; a drawing takes a hundred times as long, and there are fewer.
const CALLS: usize = 1000;
const DRAWINGS: usize = 30;
const WARM_UP: usize = 30;
/// The source of a page, in bytes.
const BYTES: usize = 10 * 1024;
const PAGE_BYTES: u32 = 16 << 20;

/// 200 bytes.
const SHORT_STATEMENT: &str = "SELECT o.id, o.total, c.name AS customer, c.city FROM orders AS o JOIN customers AS c ON c.id = o.customer_id WHERE o.status = :status AND o.total > :least AND c.city <> '' ORDER BY o.id DESC LIMIT 20";

/// Case to call.
struct Case {
    name: &'static str,
    calls: usize,
    sandboxed: Box<dyn Fn() -> anyhow::Result<CallCost>>,
    /// Native form of the call; drawing has none, because it is compiled for the sandbox alone.
    native: Option<Box<dyn Fn() -> bool>>,
    /// Maximum time of the call, as a multiple of the native time.
    most: Option<f64>,
}

/// Microseconds of the calls of a case.
#[derive(Default)]
struct Figures {
    total: Vec<f64>,
    instantiation: Vec<f64>,
    native: Vec<f64>,
    fuel: u64,
    memory: usize,
}

/// Measures every kind of call.
pub(crate) fn measure(bench: &Bench, goals: &mut Goals) -> anyhow::Result<()> {
    print_title(&format!(
        "One call of a guest in a fresh instance, and the same code natively, in turns, {CALLS} times each ({DRAWINGS} drawings): µs"
    ))?;
    print_line(&format!(
        "{:20} {:>9} {:>9} {:>9} {:>9} {:>6} {:>9} {:>6} {:>8} {:>8}",
        "call", "p50", "p99", "native", "p99", "ratio", "instance", "share", "Mfuel", "KB"
    ))?;
    let cache = bench.directory("cache");
    let nothing = wat::parse_str(EMPTY_GATE)?;
    let nothing: &'static DirectGuestCaller = Box::leak(Box::new(DirectGuestCaller::new(
        cache.clone(),
        Some(&nothing),
    )?));
    let guests: &'static DirectGuestCaller =
        Box::leak(Box::new(DirectGuestCaller::new(cache, None)?));
    let empty = Case {
        name: "nothing",
        calls: CALLS,
        sandboxed: Box::new(|| nothing.check("", SqlPurpose::Migration)),
        native: None,
        most: None,
    };
    let mut cases = vec![empty];
    let long = long_statement();
    cases.push(gate_case(
        guests,
        "gate, 200 B",
        SHORT_STATEMENT.to_owned(),
        None,
    ));
    cases.push(gate_case(guests, "gate, 3 KB", long, Some(3.0)));
    let author = || SourceGenerator::new(7);
    let diagram = author().mermaid(BYTES);
    for (name, kind, text, most) in [
        ("html, 10 KB", ContentType::Html, author().html(BYTES), None),
        (
            "markdown, 10 KB",
            ContentType::Markdown,
            author().markdown(BYTES),
            Some(2.5),
        ),
        ("json, 10 KB", ContentType::Json, author().json(BYTES), None),
        ("csv, 10 KB", ContentType::Csv, author().csv(BYTES), None),
        (
            "mermaid page, 10 KB",
            ContentType::Mermaid,
            diagram.clone(),
            None,
        ),
    ] {
        cases.push(page_case(guests, name, kind, text, most));
    }
    cases.push(Case {
        name: "mermaid draw, 10 KB",
        calls: DRAWINGS,
        sandboxed: Box::new(move || guests.draw(&diagram)),
        native: None,
        most: None,
    });
    for case in &cases {
        let figures = run(case)?;
        figures.print(case)?;
        if let Some(most) = case.most {
            let ratio = quantile(&figures.total, 0.5) / quantile(&figures.native, 0.5);
            goals.at_most(&format!("{}: p50, of native's", case.name), ratio, most);
        }
        if case.most.is_some() || case.name == "nothing" {
            let made = quantile(&figures.instantiation, 0.5);
            goals.at_most(&format!("{}: instance, p50, µs", case.name), made, 20.0);
        }
    }
    Ok(())
}

/// A call of the gate.
fn gate_case(
    guests: &'static DirectGuestCaller,
    name: &'static str,
    sql: String,
    most: Option<f64>,
) -> Case {
    let same = sql.clone();
    Case {
        name,
        calls: CALLS,
        sandboxed: Box::new(move || guests.check(&sql, SqlPurpose::Query)),
        native: Some(Box::new(move || {
            let verdict =
                guest_gate::statement::check(&same, guest_gate::statement::SqlPurpose::Query);
            black_box(&verdict).is_ok()
        })),
        most,
    }
}

/// A call of the renderer.
fn page_case(
    guests: &'static DirectGuestCaller,
    name: &'static str,
    kind: ContentType,
    text: String,
    most: Option<f64>,
) -> Case {
    let source = RenderSource {
        content_type: kind,
        title: Some("A page".to_owned()),
        name: None,
        text: text.clone(),
        runtime: None,
        page_bytes: PAGE_BYTES as usize,
        foot: None,
        is_private: false,
    };
    let same = guest_render::Source {
        content_type: kind.as_str().to_owned(),
        title: Some("A page".to_owned()),
        name: None,
        text,
        runtime: None,
        page_bytes: PAGE_BYTES,
        foot: None,
        is_private: false,
    };
    Case {
        name,
        calls: CALLS,
        sandboxed: Box::new(move || guests.render(&source)),
        native: Some(Box::new(move || {
            let page = guest_render::render(&same);
            black_box(&page).is_ok()
        })),
        most,
    }
}

/// About 3 KB: a report of a dozen parts, as a generator of SQL writes one.
fn long_statement() -> String {
    let part = |n: usize| {
        format!(
            "SELECT '{n}' AS part, c.name, count(*) AS orders, coalesce(sum(o.total), 0) AS total, max(o.placed_at) AS latest FROM customers AS c LEFT JOIN orders AS o ON o.customer_id = c.id AND o.status = :status WHERE c.region = {n} AND (o.total BETWEEN {n} AND :most OR o.id IS NULL) GROUP BY c.id, c.name HAVING count(*) >= {n}"
        )
    };
    let parts: Vec<String> = (0..10).map(part).collect();
    parts.join(" UNION ALL ")
}

fn run(case: &Case) -> anyhow::Result<Figures> {
    let mut figures = Figures::default();
    let native = case.native.as_ref();
    for number in 0..WARM_UP + case.calls {
        let cost = (case.sandboxed)().context(case.name)?;
        ensure!(cost.answered, "{}: not answered", case.name);
        let began = Instant::now();
        let answered = native.is_none_or(|native| native());
        let took = began.elapsed();
        ensure!(answered, "{}: not answered natively", case.name);
        if number >= WARM_UP {
            figures.total.push(cost.total.as_secs_f64() * 1e6);
            figures
                .instantiation
                .push(cost.instantiation.as_secs_f64() * 1e6);
            if native.is_some() {
                figures.native.push(took.as_secs_f64() * 1e6);
            }
        }
        (figures.fuel, figures.memory) = (cost.fuel, cost.memory);
    }
    Ok(figures)
}

impl Figures {
    fn print(&self, case: &Case) -> anyhow::Result<()> {
        let p50 = quantile(&self.total, 0.5);
        let made = quantile(&self.instantiation, 0.5);
        let (native, ratio) = if self.native.is_empty() {
            (format!("{:>9} {:>9}", "", ""), format!("{:>6}", ""))
        } else {
            let middle = quantile(&self.native, 0.5);
            let slow = quantile(&self.native, 0.99);
            (
                format!("{middle:>9.1} {slow:>9.1}"),
                format!("{:>6.2}", p50 / middle),
            )
        };
        print_line(&format!(
            "{:20} {p50:>9.1} {:>9.1} {native} {ratio} {made:>9.1} {:>5.0}% {:>8.2} {:>8}",
            case.name,
            quantile(&self.total, 0.99),
            made / p50 * 100.0,
            self.fuel as f64 / 1e6,
            self.memory / 1024,
        ))
    }
}
