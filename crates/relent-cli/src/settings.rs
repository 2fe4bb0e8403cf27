//! The settings in force: flag over environment over file over default, each checked with its key's name.

mod size;
mod text;

use std::{
    collections::BTreeMap,
    fs,
    net::{IpAddr, SocketAddr},
    path::PathBuf,
    time::Duration,
};

use ipnet::IpNet;
use relent_core::{OnExhausted, Policy, PolicyText, Preset, format_duration, parse_duration};

use self::{
    size::SizeText,
    text::{DeliveryText, SettingsText, StoreText},
};
use crate::{
    args::{DEFAULT_DATA, LogFormat, ServeArgs, Synchronous},
    exit::Misuse,
};

/// What a server runs by.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Settings {
    /// Where the API listens.
    pub(crate) listen: SocketAddr,
    /// The data folder.
    pub(crate) data: PathBuf,
    /// What may be delivered to although it is not public.
    pub(crate) allow_target: Vec<IpNet>,
    /// The form of the logs.
    pub(crate) log: LogFormat,
    /// What is logged: a level, or a filter as `tracing-subscriber` reads it.
    pub(crate) log_level: String,
    /// The most bytes of a message's body.
    pub(crate) body_limit: usize,
    /// How long attempts in flight may take to finish at the end.
    pub(crate) drain: Duration,
    /// Whether `/metrics` needs no token.
    pub(crate) metrics_public: bool,
    /// How messages are delivered.
    pub(crate) delivery: DeliverySettings,
    /// Whether a commit waits for the disk.
    pub(crate) synchronous: Synchronous,
    /// Policies by name, beside the presets.
    pub(crate) policies: BTreeMap<String, Policy>,
    /// What the policies set and delivery does not heed yet: `policies.NAME.SECTION`.
    pub(crate) unheeded: Vec<String>,
}

/// How messages are delivered.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct DeliverySettings {
    /// The most attempts in flight.
    pub(crate) in_flight: usize,
    /// The most of them to one destination.
    pub(crate) per_destination: usize,
    /// How long a connection may take to be made.
    pub(crate) connect_timeout: Duration,
    /// The most bytes of a response that are kept.
    pub(crate) max_response: usize,
    /// Certificate authorities to trust as well.
    pub(crate) ca_file: Option<PathBuf>,
}

impl Settings {
    /// The settings that these flags, and the file that they name, make.
    ///
    /// # Errors
    ///
    /// [`Misuse`] names the key, what is wrong with it, and the way out.
    pub(crate) fn new(flags: ServeArgs) -> anyhow::Result<Self> {
        let Some(path) = flags.config.clone() else { return Self::of(SettingsText::default().under(flags)) };
        let file = path.display();
        let text = fs::read_to_string(&path)
            .map_err(|error| Misuse::new(format!("the settings file {file} cannot be read: {error}")))?;
        let text = SettingsText::parse(&text).map_err(|why| Misuse::new(format!("{file}: {why}")))?;
        Self::of(text.under(flags))
    }

    /// The settings as TOML that reads back to the same.
    pub(crate) fn to_toml(&self) -> Result<String, toml::ser::Error> {
        toml::to_string(&self.to_text())
    }

    /// The same as one line of JSON.
    pub(crate) fn to_json(&self) -> anyhow::Result<String> {
        // By way of TOML, which has no null for what is left out.
        let table = toml::Table::try_from(self.to_text())?;
        Ok(serde_json::to_string(&table)? + "\n")
    }

    fn of(text: SettingsText) -> anyhow::Result<Self> {
        Self::checked(text).map_err(|Wrong { key, reason }| Misuse::new(format!("{key}: {reason}")))
    }

    fn checked(text: SettingsText) -> Result<Self, Wrong> {
        let listen = text.listen.unwrap_or_else(|| DEFAULT_LISTEN.to_owned());
        let log_level = text.log_level.unwrap_or_else(|| "info".to_owned());
        let (policies, unheeded) = policies(text.policies)?;
        crate::server::logs::filter(&log_level).map_err(|reason| Wrong::new("log_level", reason))?;
        Ok(Self {
            listen: listen.parse().map_err(|_| {
                let way_out = format!("write an IP address and a port, for example \"{DEFAULT_LISTEN}\"");
                Wrong::new("listen", format!("\"{listen}\" is not an address to listen on; {way_out}"))
            })?,
            data: data(text.data)?,
            allow_target: text
                .allow_target
                .unwrap_or_default()
                .iter()
                .map(|one| range(one))
                .collect::<Result<_, _>>()?,
            log: text.log.unwrap_or_default(),
            log_level,
            body_limit: size("body_limit", text.body_limit, 1024 * 1024)?,
            drain: length("drain", text.drain, Duration::from_secs(10))?,
            metrics_public: text.metrics_public.unwrap_or(false),
            delivery: DeliverySettings::checked(text.delivery)?,
            synchronous: text.store.synchronous.unwrap_or_default(),
            policies,
            unheeded,
        })
    }

    fn to_text(&self) -> SettingsText {
        SettingsText {
            listen: Some(self.listen.to_string()),
            data: Some(self.data.clone()),
            allow_target: Some(self.allow_target.iter().map(ToString::to_string).collect()),
            log: Some(self.log),
            log_level: Some(self.log_level.clone()),
            body_limit: Some(SizeText::of(self.body_limit)),
            drain: Some(format_duration(self.drain)),
            metrics_public: Some(self.metrics_public),
            delivery: self.delivery.to_text(),
            store: StoreText { synchronous: Some(self.synchronous) },
            policies: self
                .policies
                .iter()
                .map(|(name, policy)| (name.clone(), PolicyText::from(policy)))
                .collect(),
        }
    }
}

impl DeliverySettings {
    fn checked(text: DeliveryText) -> Result<Self, Wrong> {
        let connect_timeout =
            length("delivery.connect_timeout", text.connect_timeout, Duration::from_secs(5))?;
        if connect_timeout.is_zero() {
            return Err(Wrong::new(
                "delivery.connect_timeout",
                "no connection is made in no time; write for example \"5s\"",
            ));
        }
        Ok(Self {
            in_flight: count("delivery.in_flight", text.in_flight, 256)?,
            per_destination: count("delivery.per_destination", text.per_destination, 32)?,
            connect_timeout,
            max_response: size("delivery.max_response", text.max_response, 16 * 1024)?,
            ca_file: text.ca_file,
        })
    }

    fn to_text(&self) -> DeliveryText {
        DeliveryText {
            in_flight: Some(self.in_flight),
            per_destination: Some(self.per_destination),
            connect_timeout: Some(format_duration(self.connect_timeout)),
            max_response: Some(SizeText::of(self.max_response)),
            ca_file: self.ca_file.clone(),
        }
    }
}

/// A key whose value cannot be.
struct Wrong {
    key: String,
    reason: String,
}

impl Wrong {
    fn new(key: impl Into<String>, reason: impl Into<String>) -> Self {
        Self { key: key.into(), reason: reason.into() }
    }
}

fn data(text: Option<PathBuf>) -> Result<PathBuf, Wrong> {
    let data = text.unwrap_or_else(|| DEFAULT_DATA.into());
    if data.as_os_str().is_empty() {
        return Err(Wrong::new(
            "data",
            "the path is empty; name a folder, or leave it out for ./relent-data",
        ));
    }
    Ok(data)
}

/// A range of addresses; one address alone is a range of one.
fn range(text: &str) -> Result<IpNet, Wrong> {
    text.parse().or_else(|_| text.parse::<IpAddr>().map(IpNet::from)).map_err(|_| {
        let way_out = "write for example \"127.0.0.0/8\" or \"10.1.2.3\"";
        Wrong::new("allow_target", format!("\"{text}\" is not a range of addresses; {way_out}"))
    })
}

fn size(key: &str, text: Option<SizeText>, default: usize) -> Result<usize, Wrong> {
    let bytes = text.map_or(Ok(default), |text| text.bytes()).map_err(|reason| Wrong::new(key, reason))?;
    if bytes > LARGEST_SIZE {
        let limit = SizeText::of(LARGEST_SIZE);
        return Err(Wrong::new(
            key,
            format!("{bytes} bytes are more than {limit}, which one message may have at most"),
        ));
    }
    Ok(bytes)
}

fn length(key: &str, text: Option<String>, default: Duration) -> Result<Duration, Wrong> {
    text.map_or(Ok(default), |text| parse_duration(&text)).map_err(|reason| Wrong::new(key, reason))
}

fn count(key: &str, number: Option<usize>, default: usize) -> Result<usize, Wrong> {
    match number.unwrap_or(default) {
        0 => Err(Wrong::new(
            key,
            format!("0 would deliver nothing; write 1 or more (the default is {default})"),
        )),
        number => Ok(number),
    }
}

/// The policies, and what they set that delivery does not heed yet.
fn policies(texts: BTreeMap<String, PolicyText>) -> Result<(BTreeMap<String, Policy>, Vec<String>), Wrong> {
    let (mut policies, mut unheeded) = (BTreeMap::new(), Vec::new());
    for (name, text) in texts {
        let sections = set_and_unheeded(&text)
            .map_err(|error| Wrong::new(format!("policies.{name}"), error.to_string()))?;
        unheeded.extend(sections.map(|section| format!("policies.{name}.{section}")));
        let policy = text
            .over(Policy::durable())
            .map_err(|invalid| Wrong::new(format!("policies.{name}.{}", invalid.field), invalid.reason))?;
        policies.insert(name, policy);
    }
    Ok((policies, unheeded))
}

/// The sections for live calls that a policy sets, which no delivery heeds until it has gates. A section that says
/// word for word what the preset says is left out: so it stands in settings as they are printed.
fn set_and_unheeded(
    text: &PolicyText,
) -> Result<impl Iterator<Item = &'static str> + use<>, toml::ser::Error> {
    let written = toml::Table::try_from(text)?;
    let preset = written.get("preset").and_then(toml::Value::as_str).and_then(Preset::from_name);
    let preset = preset.unwrap_or(Preset::Durable).policy();
    let preset = toml::Table::try_from(PolicyText::from(&preset))?;
    // The server keeps what it gives up, whatever a policy says of it.
    let kept = |said: &toml::Value| said.as_str() == Some(OnExhausted::DeadLetter.name());
    let elsewhere = written.get("on_exhausted").is_some_and(|said| !kept(said)).then_some("on_exhausted");
    let is_set = move |section: &&str| match (*section, written.get(*section)) {
        (_, None) => false,
        // Tables that are always there, and empty where nothing was said.
        ("admission" | "attempt", Some(toml::Value::Table(table))) if table.is_empty() => false,
        (section, said) => said != preset.get(section),
    };
    Ok(["admission", "budget", "attempt", "breaker"].into_iter().filter(is_set).chain(elsewhere))
}

const DEFAULT_LISTEN: &str = "127.0.0.1:8484";

/// The store keeps a message in one row and every copy of it stands in memory: 64 MiB is where that ends well.
const LARGEST_SIZE: usize = 64 << 20;

#[cfg(test)]
mod tests {
    use clap::{CommandFactory as _, Parser as _};

    use super::*;
    use crate::args::{Cli, Command};

    fn parse(text: &str) -> Result<Settings, String> {
        let text = SettingsText::parse(text)?;
        Settings::of(text).map_err(|error| error.to_string())
    }

    #[test]
    fn the_defaults_are_those_of_the_documentation() {
        let settings = parse("").unwrap();
        assert_eq!(settings.listen.to_string(), "127.0.0.1:8484");
        assert_eq!(settings.data, PathBuf::from("./relent-data"));
        assert_eq!(settings.body_limit, 1_048_576);
        assert_eq!(settings.drain, Duration::from_secs(10));
        assert_eq!((settings.delivery.in_flight, settings.delivery.per_destination), (256, 32));
        assert_eq!(settings.delivery.connect_timeout, Duration::from_secs(5));
        assert_eq!(settings.delivery.max_response, 16_384);
        assert_eq!(settings.synchronous, Synchronous::Full);
        assert!(settings.allow_target.is_empty() && settings.policies.is_empty() && !settings.metrics_public);
    }

    #[test]
    fn what_is_printed_reads_back_to_the_same() {
        let settings = parse(EVERY_KEY).unwrap();
        let printed = settings.to_toml().unwrap();
        // What is printed says everything, so that only what is said of it may differ.
        let read = Settings { unheeded: settings.unheeded.clone(), ..parse(&printed).unwrap() };
        assert_eq!(read, settings, "{printed}");
        assert_eq!(parse(&parse("").unwrap().to_toml().unwrap()).unwrap(), parse("").unwrap());
    }

    #[test]
    fn every_flag_changes_what_is_printed() {
        let command = Cli::command();
        let serve = command.find_subcommand("serve").unwrap();
        let print = |flags: &[&str]| {
            let cli = Cli::try_parse_from(["relent", "serve"].iter().chain(flags)).unwrap();
            let Command::Serve(args) = cli.command else { panic!("{cli:?}") };
            Settings::new(*args).unwrap().to_toml().unwrap()
        };
        let (default, mut seen) = (print(&[]), 0);
        for flag in serve.get_arguments().filter(|arg| !WITHOUT_A_KEY.contains(&arg.get_id().as_str())) {
            let long = format!("--{}", flag.get_long().unwrap());
            let example = || match flag.get_value_names().unwrap()[0].as_str() {
                "DIR" | "FILE" => "elsewhere",
                "ADDR" => "127.0.0.1:1",
                "CIDR" => "10.0.0.0/8",
                "FORM" => "json",
                "LEVEL" => "debug",
                "SIZE" => "3KiB",
                "DURATION" => "3s",
                "N" => "3",
                "MODE" => "off",
                unknown => panic!("{long} takes {unknown}: give this test an example"),
            };
            let value = flag.get_action().takes_values().then(example);
            let flags: Vec<&str> = std::iter::once(&*long).chain(value).collect();
            let printed = print(&flags);
            assert_ne!(printed, default, "{flags:?} has no key");
            assert_eq!(parse(&printed).unwrap().to_toml().unwrap(), printed, "{flags:?}");
            seen += 1;
        }
        assert!(seen >= 14, "only {seen} flags were found");
    }

    /// The file itself, what is printed in place of serving, whose child the process is, and `--json`, which is `--log
    /// json`.
    const WITHOUT_A_KEY: [&str; 5] = ["config", "print_config", "until_stdin_closes", "json", "help"];

    #[test]
    fn a_flag_wins_over_the_file() {
        let flags = ServeArgs {
            listen: Some("127.0.0.1:1".to_owned()),
            allow_target: vec!["::1".to_owned()],
            in_flight: Some(1),
            body_limit: Some("2KiB".to_owned()),
            ..ServeArgs::default()
        };
        let settings = Settings::of(SettingsText::parse(EVERY_KEY).unwrap().under(flags)).unwrap();
        assert_eq!(settings.listen.port(), 1);
        assert_eq!(settings.allow_target, ["::1/128".parse::<IpNet>().unwrap()]);
        assert_eq!((settings.delivery.in_flight, settings.delivery.per_destination), (1, 4));
        assert_eq!(settings.body_limit, 2048);
        assert_eq!(settings.drain, Duration::from_millis(1500), "what no flag says is the file's");
    }

    #[test]
    fn what_a_policy_sets_and_no_delivery_heeds_is_known_unless_its_preset_says_it() {
        let unheeded = |text: &str| parse(text).unwrap().unheeded;
        for (set, section) in [
            ("budget = { kind = \"loan\" }", "policies.a.budget"),
            ("breaker = {}", "policies.a.breaker"),
            ("breaker = { window = \"9s\" }", "policies.a.breaker"),
            ("admission = { rate = { permits = 7, per = \"1s\" } }", "policies.a.admission"),
            ("attempt = { concurrency = { limit = 7 } }", "policies.a.attempt"),
            ("on_exhausted = \"discard\"", "policies.a.on_exhausted"),
            ("on_exhausted = \"dead_letter\"\nalert = \"orders on call\"", ""),
            ("attempt_timeout = \"7s\"", ""),
            ("preset = \"microsoft-standard\"", ""),
        ] {
            let found = unheeded(&format!("[policies.a]\n{set}"));
            assert_eq!(found.join(" "), section, "{set}");
        }
        let printed = parse("[policies.a]\nattempt_timeout = \"7s\"").unwrap().to_toml().unwrap();
        assert!(unheeded(&printed).is_empty(), "{printed}");
    }

    #[test]
    fn an_error_names_the_key_and_the_way_out() {
        for (text, key, way_out) in [
            ("lisen = \"127.0.0.1:1\"", "lisen", "did you mean `listen`?"),
            ("[delivery]\nin_fligth = 3", "delivery.in_fligth", "did you mean `in_flight`?"),
            ("[delivery]\nin_flight = 0", "delivery.in_flight", "1 or more"),
            ("\ndrain = 5", "drain", "(line 2)"),
            ("drain = \"5\"", "drain", "unit"),
            ("listen = \"localhost\"", "listen", "127.0.0.1:8484"),
            ("body_limit = \"1MB\"", "body_limit", "1MiB"),
            ("body_limit = \"1GiB\"", "body_limit", "64MiB"),
            ("log = \"xml\"", "log", "json"),
            ("log_level = \"relent=loud\"", "log_level", "debug"),
            ("data = \"\"", "data", "name a folder"),
            ("allow_target = [\"10.0.0.0/99\"]", "allow_target", "127.0.0.0/8"),
            ("[store]\nsynchronous = \"on\"", "store.synchronous", "`full`"),
            ("[delivery]\nconnect_timeout = \"0s\"", "delivery.connect_timeout", "5s"),
            ("[policies.a.retry]\nmax_attempt = 1", "policies.a", "did you mean `max_attempts`?"),
            ("[policies.a]\nattempt_timeout = \"0s\"", "policies.a.attempt_timeout", ""),
            ("listen = ", "TOML", "(line 1)"),
        ] {
            let error = parse(text).unwrap_err();
            assert!(error.contains(key) && error.contains(way_out), "{text:?}: {error}");
        }
    }

    const EVERY_KEY: &str = r#"
        listen = "127.0.0.1:0"
        data = "/var/lib/relent"
        allow_target = ["127.0.0.0/8", "10.1.2.3", "fd00::/8"]
        log = "json"
        log_level = "debug"
        body_limit = 300000
        drain = "1.5s"
        metrics_public = true
        [delivery]
        in_flight = 8
        per_destination = 4
        connect_timeout = "250ms"
        max_response = "1KiB"
        ca_file = "ca.pem"
        [store]
        synchronous = "off"
        [policies.orders]
        business_deadline = "1h"
        [policies.orders.retry]
        max_attempts = 7
        backoff = { kind = "exponential", base = "1s", factor = 2, max = "1m" }
        [policies.quick]
        preset = "default"
        [policies.quick.classify]
        status = { 404 = "not_now" }
    "#;
}
