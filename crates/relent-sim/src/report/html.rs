//! A report as one page that needs nothing else: no network, no script.

use maud::{DOCTYPE, Markup, PreEscaped, html};
use relent_core::{Policy, Timestamp, format_duration};

use super::{
    Recovery, Report,
    chart::{Axis, Chart, Line},
    float,
};
use crate::{
    Point, Sums,
    gate::{Judgement, Trial, Verdict},
    scenario::Scenario,
};

/// What a page is about.
#[derive(Clone, Copy, Debug)]
pub struct Page<'a> {
    /// The scenario that was run.
    pub scenario: &'a Scenario,
    /// The policy's name.
    pub policy_name: &'a str,
    /// The policy.
    pub policy: &'a Policy,
    /// The policy as it is written, to be shown.
    pub policy_text: &'a str,
    /// The seed.
    pub seed: u64,
    /// What the run came to. Where a run without retries is there, its load is drawn too.
    pub trial: &'a Trial,
}

/// The page.
pub fn html(page: &Page<'_>) -> String {
    let Page { scenario, policy_name, seed, .. } = page;
    let title = format!("{} under {policy_name}", scenario.id);
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                title { (title) }
                style { (PreEscaped(STYLE)) }
            }
            body {
                header {
                    h1 { (scenario.id) ": " (scenario.title) }
                    p { "Policy " b { (policy_name) } ", seed " (seed) ", "
                        (format_duration(scenario.duration)) " of simulated time." }
                }
                (page.tiles())
                @for chart in page.charts() { (chart.render(page.axis())) }
                @if page.policy.breaker.is_none() {
                    p.note { "The policy has no breaker, so there is no breaker state to show." }
                }
                (page.gates())
                (page.windows())
                (page.ends())
                details { summary { "The policy" } pre { (page.policy_text) } }
                footer { "Simulated by relent. The figures compare policies under one model; they are no forecast of your seconds." }
            }
        }
    }
    .into_string()
}

impl<'a> Page<'a> {
    fn report(&self) -> &'a Report {
        &self.trial.report
    }

    fn axis(&self) -> Axis {
        let seconds = |at: Timestamp| float(at.as_nanos()) / 1e9;
        let whole = float(self.report().points.len() as u64) * self.interval();
        let trigger = self.report().trigger.map(|(from, until)| (seconds(from), seconds(until)));
        // One that lasts from the start to the end is no event in time.
        let trigger = trigger.filter(|(from, until)| *from > 0.0 || *until < whole);
        Axis { seconds: whole, trigger }
    }

    fn interval(&self) -> f64 {
        self.report().interval.as_secs_f64()
    }

    /// The figures that a reader looks for first.
    fn tiles(&self) -> Markup {
        let report = self.report();
        let sums = report.window("trigger").unwrap_or(report.all());
        let during = if report.window("trigger").is_some() { "while it goes wrong" } else { "in all" };
        let tile = |name: &str, value: String, note: &str| {
            html! { div.tile { div.name { (name) } div.value { (value) } div.note { (note) } } }
        };
        let recovery = report.recovery.map(|recovery| match recovery {
            Recovery::After(length) => format_duration(length),
            Recovery::Never => "never".into(),
        });
        let without = self.trial.without.as_ref().and_then(|without| without.recovery);
        let without = match without {
            Some(Recovery::After(length)) => format!("without retries {}", format_duration(length)),
            Some(Recovery::Never) => "without retries never".into(),
            None => "until all is as before".into(),
        };
        let after = report.window("after").and_then(Sums::arrivals_per_call);
        let after = after.map_or(String::new(), |after| format!(", {after:.2} after it"));
        html! {
            div.tiles {
                (tile("Amplification", figure(sums.arrivals_per_call(), 2), &format!("requests a call {during}{after}")))
                (tile("Goodput", figure(sums.success_percent(), 1) + " %", &format!("of the calls {during}")))
                (tile("Rescued", figure(sums.rescued_percent(), 1) + " %", "of the calls whose first attempt failed"))
                (tile("Wasted work", figure(report.all().wasted_percent(), 1) + " %", "of the workers' time, in all"))
                @if let Some(recovery) = recovery { (tile("Recovery", recovery, &without)) }
            }
        }
    }

    fn charts(&self) -> Vec<Chart<'a>> {
        let mut charts = vec![self.load(), self.successes(), self.waiting(), self.queue(), self.work()];
        if self.policy.breaker.is_some() {
            charts.push(self.breakers());
        }
        charts
    }

    fn load(&self) -> Chart<'a> {
        let mut lines = vec![
            Line { name: "calls", class: "calls", values: self.rate(|point| point.calls) },
            Line {
                name: "requests at the dependency",
                class: "bad",
                values: self.rate(|point| point.arrivals),
            },
            Line { name: "rejected", class: "third", values: self.rate(|point| point.rejected) },
        ];
        if let Some(without) = &self.trial.without {
            let values = without.points.iter().map(|point| float(point.arrivals) / self.interval()).collect();
            lines.push(Line { name: "requests without retries", class: "quiet", values });
        }
        Chart { title: "Load", unit: "a second", lines, stacked: false }
    }

    fn successes(&self) -> Chart<'a> {
        let lines = vec![
            Line { name: "calls", class: "calls", values: self.rate(|point| point.calls) },
            Line { name: "succeeded", class: "good", values: self.rate(|point| point.succeeded) },
        ];
        Chart { title: "Successes", unit: "a second, by when the call began", lines, stacked: false }
    }

    fn waiting(&self) -> Chart<'a> {
        let lines = vec![
            Line {
                name: "for their next attempt",
                class: "third",
                values: self.gauge(|point| point.waiting),
            },
            Line { name: "attempts under way", class: "calls", values: self.gauge(|point| point.in_flight) },
        ];
        Chart { title: "Waiting", unit: "calls", lines, stacked: false }
    }

    fn queue(&self) -> Chart<'a> {
        let values = self.gauge(|point| point.queued);
        let lines = vec![Line { name: "waiting for a worker", class: "bad", values }];
        Chart { title: "Queue", unit: "requests", lines, stacked: false }
    }

    fn work(&self) -> Chart<'a> {
        let seconds = |of: fn(&Point) -> u64| self.line(move |point| float(of(point)) / 1e9, self.interval());
        let lines = vec![
            Line { name: "somebody waits for it", class: "good", values: seconds(|point| point.useful) },
            Line { name: "nobody waits for it", class: "bad", values: seconds(|point| point.wasted) },
        ];
        Chart { title: "Workers", unit: "at work", lines, stacked: true }
    }

    fn breakers(&self) -> Chart<'a> {
        let lines = vec![
            Line { name: "open", class: "bad", values: self.gauge(|point| point.open) },
            Line { name: "half-open", class: "third", values: self.gauge(|point| point.half_open) },
        ];
        Chart { title: "Breakers", unit: "of the clients", lines, stacked: true }
    }

    fn rate(&self, of: fn(&Point) -> u64) -> Vec<f64> {
        self.line(move |point| float(of(point)), self.interval())
    }

    fn gauge(&self, of: fn(&Point) -> u32) -> Vec<f64> {
        self.line(move |point| f64::from(of(point)), 1.0)
    }

    fn line(&self, of: impl Fn(&Point) -> f64, over: f64) -> Vec<f64> {
        self.report().points.iter().map(|point| of(point) / over).collect()
    }

    fn gates(&self) -> Markup {
        let judgements = &self.trial.judgements;
        html! {
            @if !judgements.is_empty() {
                h2 { "What a good policy keeps" }
                table {
                    thead { tr { th { "" } th { "gate" } th.n { "found" } th.n { "bound" } } }
                    tbody { @for judgement in judgements { (row(judgement)) } }
                }
                @if let Some(why) = &self.scenario.control {
                    p.note { "A control: a failed gate does not count here, for " (why) "." }
                }
            }
        }
    }

    fn windows(&self) -> Markup {
        let columns: [Column; 8] = [
            ("calls", |sums| sums.calls.to_string()),
            ("succeeded %", |sums| figure(sums.success_percent(), 1)),
            ("rescued %", |sums| figure(sums.rescued_percent(), 1)),
            ("requests", |sums| sums.arrivals.to_string()),
            ("a call", |sums| figure(sums.arrivals_per_call(), 3)),
            ("rejected", |sums| sums.rejected.to_string()),
            ("most in 10 ms", |sums| sums.peak.to_string()),
            ("wasted %", |sums| figure(sums.wasted_percent(), 1)),
        ];
        html! {
            h2 { "In numbers" }
            table {
                thead { tr { th { "window" } @for (name, _) in columns { th.n { (name) } } } }
                tbody {
                    @for (window, sums) in &self.report().windows {
                        tr { td { (window.name) } @for (_, of) in columns { td.n { (of(sums)) } } }
                    }
                }
            }
        }
    }

    fn ends(&self) -> Markup {
        html! {
            h2 { "Why calls ended" }
            table {
                @for (reason, count) in &self.report().ends {
                    tr { td { (reason.name().replace('_', " ")) } td.n { (count) } }
                }
            }
        }
    }
}

/// A heading, and what stands under it.
type Column = (&'static str, fn(&Sums) -> String);

fn row(judgement: &Judgement) -> Markup {
    let class = match judgement.verdict {
        Verdict::Pass => "good",
        Verdict::Fail => "bad",
        Verdict::Skipped => "quiet",
    };
    html! {
        tr {
            td { b class=(class) { (judgement.verdict.name()) } }
            td { (judgement.gate.words()) }
            td.n { (judgement.value_text()) }
            td.n { (judgement.bound_text()) }
        }
    }
}

/// A figure, or a dash where there is none.
fn figure(value: Option<f64>, digits: usize) -> String {
    value.map_or("–".into(), |value| format!("{value:.digits$}"))
}

const STYLE: &str = include_str!("style.css");

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{policies::named, scenario::standard};

    fn page(id: &str, policy_name: &str, text: &str) -> String {
        let scenario = standard(id).expect("standard").scenario(&[("title", text)]).expect("possible");
        let policy = named(policy_name).expect("built in");
        let trial = Trial::run(&scenario, &policy, 1);
        let (scenario, policy, trial) = (&scenario, &policy, &trial);
        html(&Page { scenario, policy_name, policy, policy_text: text, seed: 1, trial })
    }

    #[test]
    fn a_page_needs_nothing_from_anywhere() {
        let page = page("S9b", "microsoft-standard", "a herd");
        for outside in ["http:", "https:", "<script", "url(", "@import", "src="] {
            assert!(!page.contains(outside), "{outside}");
        }
        assert_eq!(page.matches("<svg").count(), 6, "with breakers");
    }

    #[test]
    fn what_others_wrote_is_shown_and_not_obeyed() {
        let page = page("S9b", "default", "<b onclick=x>\"&");
        assert!(!page.contains("<b onclick") && page.contains("&lt;b onclick=x&gt;"));
        assert_eq!(page.matches("<svg").count(), 5, "without breakers");
    }
}
