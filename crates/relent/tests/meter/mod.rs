//! OpenTelemetry's own SDK behind an observer, and what it exports, as lines to compare.

use std::{collections::BTreeSet, fmt::Display, sync::Arc};

use opentelemetry::KeyValue;
use opentelemetry_sdk::metrics::{
    InMemoryMetricExporter, PeriodicReader, SdkMeterProvider,
    data::{AggregatedMetrics, Histogram, HistogramDataPoint, Metric, MetricData, ResourceMetrics},
};
use relent::OpenTelemetry;

/// An observer, and what reaches the exporter behind it.
pub(crate) struct Meter {
    provider: SdkMeterProvider,
    exporter: InMemoryMetricExporter,
    pub(crate) observer: Arc<OpenTelemetry>,
}

impl Meter {
    pub(crate) fn new() -> Self {
        let exporter = InMemoryMetricExporter::default();
        let reader = PeriodicReader::builder(exporter.clone()).build();
        let provider = SdkMeterProvider::builder().with_reader(reader).build();
        let observer = Arc::new(OpenTelemetry::new(&provider));
        Self { provider, exporter, observer }
    }

    /// All that there is now. `None`: there is nothing.
    pub(crate) fn exported(&self) -> Option<ResourceMetrics> {
        self.exporter.reset();
        self.provider.force_flush().unwrap();
        self.exporter.get_finished_metrics().unwrap().pop()
    }

    /// A line for each data point, in the order of the names and attributes.
    pub(crate) fn lines(&self) -> Vec<String> {
        let exported = self.exported();
        let scopes = exported.iter().flat_map(|exported| exported.scope_metrics());
        let metrics = scopes.flat_map(|scope| scope.metrics());
        metrics.flat_map(points).collect::<BTreeSet<_>>().into_iter().collect()
    }

    /// The lines of one instrument, without its name.
    pub(crate) fn of(&self, name: &str) -> Vec<String> {
        let lines = self.lines();
        lines.iter().filter_map(|line| line.strip_prefix(&format!("{name} "))).map(str::to_owned).collect()
    }
}

/// A data point a line: the instrument, its attributes, and what was measured.
pub(crate) fn points(metric: &Metric) -> Vec<String> {
    let line = |attributes: String, value: String| format!("{} {attributes} {value}", metric.name());
    match metric.data() {
        AggregatedMetrics::F64(MetricData::Histogram(histogram)) => spread(histogram, line),
        AggregatedMetrics::U64(MetricData::Histogram(histogram)) => spread(histogram, line),
        AggregatedMetrics::U64(MetricData::Sum(sum)) => {
            assert!(sum.is_monotonic(), "{}", metric.name());
            sum.data_points().map(|point| line(text(point.attributes()), point.value().to_string())).collect()
        }
        AggregatedMetrics::I64(MetricData::Sum(sum)) => {
            assert!(!sum.is_monotonic(), "{}", metric.name());
            sum.data_points().map(|point| line(text(point.attributes()), point.value().to_string())).collect()
        }
        AggregatedMetrics::F64(MetricData::Gauge(gauge)) => gauge
            .data_points()
            .map(|point| line(text(point.attributes()), point.value().to_string()))
            .collect(),
        other => panic!("{}: {other:?}", metric.name()),
    }
}

fn spread<T>(histogram: &Histogram<T>, line: impl Fn(String, String) -> String) -> Vec<String>
where
    T: Copy + Display,
{
    let point = |point: &HistogramDataPoint<T>| {
        line(text(point.attributes()), format!("{}: {}", point.count(), point.sum()))
    };
    histogram.data_points().map(point).collect()
}

/// The values without the common beginning of their names; all are for `users`.
fn text<'a>(attributes: impl Iterator<Item = &'a KeyValue>) -> String {
    let mut words: Vec<String> = attributes
        .map(|pair| format!("{}={}", pair.key.as_str().trim_start_matches("relent."), pair.value))
        .collect();
    words.sort();
    let ours = words.iter().position(|word| word == "dependency=users").expect("it has a name");
    words.remove(ours);
    format!("[{}]", words.join(" "))
}
