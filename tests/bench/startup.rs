//! Starting: cold, with guests that must be compiled, and warm; and the memory of an idle server.

use std::time::Duration;

use anyhow::ensure;

use super::report::{Goals, median, millis, print_line, print_title};
use super::server::{Bench, Running};

const WARM: usize = 10;
const COLD: usize = 5;
/// Idle time before the memory of a server is read.
const REST: Duration = Duration::from_secs(2);

/// Milliseconds from the start of the process.
#[derive(Debug, Default)]
struct Starts {
    ready: Vec<f64>,
    page: Vec<f64>,
    guests: Vec<f64>,
}

impl Starts {
    fn add(&mut self, svc: &Running) -> anyhow::Result<()> {
        self.ready.push(millis(svc.ready_after));
        let answer = svc.client()?.get("/hello", "br")?;
        ensure!(answer.status == 200, "not served: {answer:?}");
        self.page.push(millis(svc.began.elapsed()));
        self.guests.push(millis(svc.await_guests()?));
        Ok(())
    }

    fn row(&self, name: &str) -> String {
        format!(
            "{name:10} {:>14.1} {:>14.1} {:>14.1}",
            median(&self.ready),
            median(&self.page),
            median(&self.guests)
        )
    }
}

/// Measures starts and an idle server's memory.
pub(crate) fn measure(bench: &Bench, goals: &mut Goals) -> anyhow::Result<()> {
    print_title(&format!(
        "Starting, medians of {WARM} warm and {COLD} cold starts, ms from the start of the process"
    ))?;
    print_line(&format!(
        "{:10} {:>14} {:>14} {:>14}",
        "", "ready line", "first page", "publishing"
    ))?;
    let svc = bench.start_svc("starts")?;
    svc.await_guests()?;
    let share = serde_json::json!({ "name": "hello", "type": "markdown", "content": "# Hello" });
    let published = svc.client()?.post("/api/v1/deploy", &share)?;
    ensure!(published.status == 201, "not published: {published:?}");
    drop(svc);

    let mut cold = Starts::default();
    for number in 0..COLD {
        cold.add(&bench.start_svc_with_cache("starts", &format!("cold-{number}"))?)?;
    }
    print_line(&cold.row("cold"))?;
    let mut warm = Starts::default();
    for _ in 0..WARM {
        warm.add(&bench.start_svc("starts")?)?;
    }
    print_line(&format!("{}\n", warm.row("warm")))?;
    goals.at_most(
        "warm start, ms to the ready line",
        median(&warm.ready),
        150.0,
    );
    goals.at_most(
        "warm start, ms to the first page",
        median(&warm.page),
        150.0,
    );

    for (start, cache) in [("warm", "cache"), ("cold", "cold-idle")] {
        let svc = bench.start_svc_with_cache("starts", cache)?;
        svc.await_guests()?;
        std::thread::sleep(REST);
        let (now, most) = svc.memory()?;
        print_line(&format!(
            "Idle after a {start} start: {now:.1} MB resident, {most:.1} MB at the most."
        ))?;
        goals.at_most(&format!("idle after a {start} start, MB"), now, 60.0);
    }
    Ok(())
}
