//! Which scenario, which policy: a name that is built in, or a file.

use std::{fs, path::Path};

use relent_core::{Policy, PolicyText};
use relent_sim::{
    Scenario, policies,
    scenario::{Standard, Unusable, standard},
};

use crate::{
    commands::explain::parse,
    exit::Misuse,
    nearest::{nearest, with_suggestion},
    output::plain,
};

/// A policy, and what it goes by.
pub(super) struct Chosen {
    pub(super) name: String,
    pub(super) policy: Policy,
}

impl Chosen {
    /// The policy of that name, or in that file; what a file leaves out is as in the default. Doubts about it are
    /// told on standard error.
    pub(super) fn policy(written: &str) -> anyhow::Result<Self> {
        if let Some(policy) = policies::named(written) {
            return Ok(Self { name: written.to_owned(), policy });
        }
        let text = read(written, "policy", policies::names())?;
        let wrong = |why: &dyn std::fmt::Display| Misuse::new(format!("{written}: {why}"));
        let policy = parse(&text, Policy::live()).map_err(|why| wrong(&why))?;
        for warning in policy.validate().map_err(|invalid| wrong(&invalid))? {
            let told = format!("relent: {}: {written}: {warning}", warning.severity().name());
            eprintln!("{}", plain(&told));
        }
        Ok(Self { name: written.to_owned(), policy })
    }

    /// The policy as it would be written down.
    pub(super) fn text(&self) -> anyhow::Result<String> {
        Ok(toml::to_string(&PolicyText::from(&self.policy))?)
    }
}

/// The standard scenario of that name, or the one in that file, with its settings.
pub(super) fn scenario(written: &str, settings: &[String]) -> anyhow::Result<Scenario> {
    let settings: Vec<(&str, &str)> = settings
        .iter()
        .map(|setting| {
            setting.split_once('=').ok_or_else(|| {
                Misuse::new(format!("--set {setting}: write KEY=VALUE, for example callers.rate=700"))
            })
        })
        .collect::<Result<_, _>>()?;
    let wrong = |why: Unusable| Misuse::new(format!("{written}: {}", with_suggestion(&why.to_string())));
    match standard(written) {
        Some(standard) => standard.scenario(&settings).map_err(wrong),
        None => {
            let text = read(written, "scenario", Standard::ALL.iter().map(|standard| standard.id))?;
            Scenario::parse(&text, &settings).map_err(wrong)
        }
    }
}

/// The scenarios of a list; all the standard ones where it is empty.
pub(super) fn scenarios(written: &[String]) -> anyhow::Result<Vec<Scenario>> {
    match written {
        [] => Standard::ALL.iter().map(|standard| scenario(standard.id, &[])).collect(),
        written => written.iter().map(|one| scenario(one.trim(), &[])).collect(),
    }
}

/// A file's text. What is neither a name nor a file is told as the one that it looks like.
fn read(written: &str, what: &str, known: impl Iterator<Item = &'static str>) -> anyhow::Result<String> {
    fs::read_to_string(written).map_err(|error| {
        let looks_like_a_file = Path::new(written).extension().is_some() || written.contains('/');
        if looks_like_a_file {
            return Misuse::new(format!("the {what} {written} cannot be read: {error}"));
        }
        let known: Vec<&str> = known.collect();
        let meant = nearest(written, known.iter().copied());
        let meant = meant.map_or(String::new(), |meant| format!("; did you mean \"{meant}\"?"));
        Misuse::new(format!(
            "there is no {what} \"{written}\": write a file, or one of {}{meant}",
            known.join(", ")
        ))
    })
}
