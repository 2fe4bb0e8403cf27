//! Lines over time as SVG, drawn by hand: a report must be readable without a network and in ten years.

use std::fmt::Write as _;

use maud::{Markup, html};

/// What is drawn over the run's time.
pub(super) struct Chart<'a> {
    pub(super) title: &'a str,
    /// What the numbers are, for the axis.
    pub(super) unit: &'a str,
    pub(super) lines: Vec<Line<'a>>,
    /// Each line is drawn on top of the one before, and the space between is filled.
    pub(super) stacked: bool,
}

/// One line.
pub(super) struct Line<'a> {
    pub(super) name: &'a str,
    /// The class that gives it its colour.
    pub(super) class: &'a str,
    pub(super) values: Vec<f64>,
}

/// The time that all charts of a report share.
#[derive(Clone, Copy)]
pub(super) struct Axis {
    /// The length of the run, in seconds.
    pub(super) seconds: f64,
    /// From when to when something goes wrong.
    pub(super) trigger: Option<(f64, f64)>,
}

impl Chart<'_> {
    /// The chart with its heading and its legend.
    pub(super) fn render(&self, axis: Axis) -> Markup {
        let lines = self.heights();
        let highest = lines.iter().flatten().copied().fold(0.0, f64::max);
        let step = step(highest, 4.0);
        let top = ((highest / step).ceil() * step).max(step);
        let y = |value: f64| TOP + (HEIGHT - TOP - BOTTOM) * (1.0 - value / top);
        html! {
            figure {
                figcaption { b { (self.title) } " " span.unit { (self.unit) } (self.legend()) }
                svg viewBox=(format!("0 0 {WIDTH} {HEIGHT}")) role="img" aria-label=(self.title) {
                    (axis.band())
                    @for tick in ticks(step, top) {
                        line.grid x1=(number(LEFT)) x2=(number(WIDTH - RIGHT)) y1=(number(y(tick))) y2=(number(y(tick))) {}
                        text.tick x=(number(LEFT - 6.0)) y=(number(y(tick) + 4.0)) text-anchor="end" { (short(tick)) }
                    }
                    (axis.render())
                    @for (place, (line, values)) in self.lines.iter().zip(&lines).enumerate().rev() {
                        @if self.stacked {
                            path class=(format!("area {}", line.class))
                                d=(area(values, place.checked_sub(1).map(|below| &lines[below]), axis, y)) {}
                        } @else {
                            path class=(format!("line {}", line.class)) d=(curve(values, axis, y)) {}
                        }
                    }
                }
            }
        }
    }

    fn legend(&self) -> Markup {
        html! {
            span.legend {
                @for line in &self.lines {
                    span class=(format!("key {}", line.class)) {} (line.name)
                }
            }
        }
    }

    /// The values as they are drawn.
    fn heights(&self) -> Vec<Vec<f64>> {
        let mut lines: Vec<Vec<f64>> = Vec::new();
        for line in &self.lines {
            let below = lines.last().filter(|_| self.stacked);
            let raised = line.values.iter().enumerate();
            lines.push(raised.map(|(at, value)| value + below.map_or(0.0, |below| below[at])).collect());
        }
        lines
    }
}

impl Axis {
    fn x(self, seconds: f64) -> f64 {
        LEFT + (WIDTH - LEFT - RIGHT) * seconds / self.seconds
    }

    /// The stretch in which something goes wrong.
    fn band(self) -> Markup {
        html! {
            @if let Some((from, until)) = self.trigger {
                @let width = (self.x(until) - self.x(from)).max(1.5);
                rect.trigger x=(number(self.x(from))) y=(number(TOP)) width=(number(width))
                    height=(number(HEIGHT - TOP - BOTTOM)) {}
                text.trigger-name x=(number(self.x(from) + 4.0)) y=(number(TOP + 11.0)) { "trigger" }
            }
        }
    }

    fn render(self) -> Markup {
        let bottom = HEIGHT - BOTTOM;
        html! {
            line.axis x1=(number(LEFT)) x2=(number(WIDTH - RIGHT)) y1=(number(bottom)) y2=(number(bottom)) {}
            @for tick in ticks(step(self.seconds, 8.0), self.seconds) {
                text.tick x=(number(self.x(tick))) y=(number(HEIGHT - 5.0)) text-anchor="middle" {
                    (short(tick)) " s"
                }
            }
        }
    }
}

/// A line through the middles of the points.
fn curve(values: &[f64], axis: Axis, y: impl Fn(f64) -> f64) -> String {
    let mut path = String::new();
    for (at, value) in places(values, axis) {
        let command = if path.is_empty() { 'M' } else { 'L' };
        let _ = write!(path, "{command}{} {}", number(axis.x(at)), number(y(value)));
    }
    path
}

/// The space between a line and the one below it, or the axis.
fn area(values: &[f64], below: Option<&Vec<f64>>, axis: Axis, y: impl Fn(f64) -> f64) -> String {
    let mut path = curve(values, axis, &y);
    let floor = vec![0.0; values.len()];
    let back: Vec<(f64, f64)> = places(below.unwrap_or(&floor), axis).collect();
    for (at, value) in back.into_iter().rev() {
        let _ = write!(path, "L{} {}", number(axis.x(at)), number(y(value)));
    }
    path + "Z"
}

/// Each value with the middle of its stretch of time.
fn places(values: &[f64], axis: Axis) -> impl Iterator<Item = (f64, f64)> + '_ {
    #[expect(clippy::cast_precision_loss, reason = "a few thousand points")]
    let (count, of) = (values.len() as f64, |at: usize| at as f64);
    values.iter().enumerate().map(move |(at, value)| ((of(at) + 0.5) * axis.seconds / count, *value))
}

/// A step of 1, 2 or 5 times a power of ten that divides `whole` into about so many parts.
fn step(whole: f64, parts: f64) -> f64 {
    let mut power = 1.0;
    let wanted = whole / parts;
    while power * 10.0 <= wanted {
        power *= 10.0;
    }
    while power > wanted && power > 1e-6 {
        power /= 10.0;
    }
    [1.0, 2.0, 5.0, 10.0]
        .into_iter()
        .map(|factor| factor * power)
        .find(|step| *step >= wanted)
        .unwrap_or(1.0)
        .max(1e-6)
}

fn ticks(step: f64, top: f64) -> impl Iterator<Item = f64> {
    (0u8..=50).map(move |tick| f64::from(tick) * step).take_while(move |tick| *tick <= top * 1.0001)
}

/// A coordinate, to a tenth.
fn number(value: f64) -> String {
    format!("{value:.1}")
}

/// A number on an axis.
fn short(value: f64) -> String {
    match value {
        _ if value >= 1e6 => format!("{} M", trimmed(value / 1e6)),
        _ if value >= 1e4 => format!("{} k", trimmed(value / 1e3)),
        _ => trimmed(value),
    }
}

fn trimmed(value: f64) -> String {
    let text = format!("{value:.3}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

const WIDTH: f64 = 960.0;
const HEIGHT: f64 = 190.0;
const LEFT: f64 = 52.0;
const RIGHT: f64 = 14.0;
const TOP: f64 = 8.0;
const BOTTOM: f64 = 22.0;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_round_and_divide_into_about_as_many_parts_as_asked() {
        for (whole, parts, expected) in
            [(100.0, 4.0, 50.0), (370.0, 8.0, 50.0), (4000.0, 4.0, 1000.0), (0.3, 4.0, 0.1), (0.0, 4.0, 1e-6)]
        {
            assert!((step(whole, parts) - expected).abs() < 1e-9, "{whole}: {}", step(whole, parts));
        }
        assert_eq!(ticks(50.0, 100.0).count(), 3);
    }

    #[test]
    fn numbers_on_an_axis_are_short() {
        for (value, text) in
            [(0.0, "0"), (0.25, "0.25"), (1500.0, "1500"), (20_000.0, "20 k"), (2_500_000.0, "2.5 M")]
        {
            assert_eq!(short(value), text);
        }
    }

    #[test]
    fn stacked_lines_stand_on_one_another() {
        let line = |name, values: [f64; 2]| Line { name, class: "a", values: values.into() };
        let lines = vec![line("one", [1.0, 2.0]), line("two", [10.0, 20.0])];
        let chart = Chart { title: "t", unit: "u", lines, stacked: true };
        assert_eq!(chart.heights(), [[1.0, 2.0], [11.0, 22.0]]);
        let drawn = chart.render(Axis { seconds: 2.0, trigger: Some((0.5, 1.0)) }).into_string();
        assert_eq!(drawn.matches("<path").count(), 2);
        assert!(drawn.contains("class=\"trigger\"") && drawn.contains("trigger-name"), "{drawn}");
    }
}
