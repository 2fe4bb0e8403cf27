//! Faults that were planted, one in each file of `planted/`, and files of `sound/` in which there is none. A file is
//! named for its fault; a comment in it may say what is known of the world around it.

use std::{fs, path::PathBuf};

use relent_check::{Document, Finding, Mend, World, check};
use relent_core::{Policy, parse_duration};

struct Planted {
    name: String,
    document: Document,
    world: World,
}

fn files(folder: &str) -> Vec<Planted> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests").join(folder);
    let mut paths: Vec<PathBuf> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths.iter().map(read).collect()
}

fn read(path: &PathBuf) -> Planted {
    let name = path.file_name().unwrap().to_str().unwrap().to_owned();
    let text = fs::read_to_string(path).unwrap();
    let document =
        Document::parse(&text, None, &Policy::live()).unwrap_or_else(|why| panic!("{name}: {why}"));
    Planted { name, document, world: world(&text) }
}

/// `# with: layers=3 deadline=2s`
fn world(text: &str) -> World {
    let mut world = World::default();
    let said = text.lines().find_map(|line| line.split_once("with: ")).map_or("", |(_, said)| said);
    for (what, value) in said.split_whitespace().map(|pair| pair.split_once('=').unwrap()) {
        match what {
            "layers" => world.layers = Some(value.parse().unwrap()),
            "load" => world.load = Some(value.parse().unwrap()),
            "capacity" => world.capacity = Some(value.parse().unwrap()),
            "callers" => world.callers = Some(value.parse().unwrap()),
            "hosts" => world.hosts = Some(value.parse().unwrap()),
            "deadline" => world.deadline = Some(parse_duration(value).unwrap()),
            _ => panic!("{what}"),
        }
    }
    world
}

fn findings(document: &Document, world: &World) -> Vec<Finding> {
    document.subjects.iter().flat_map(|subject| check(subject, world).findings).collect()
}

#[test]
fn each_planted_fault_is_found_and_nothing_else() {
    let planted = files("planted");
    assert!(planted.len() >= 20, "{} faults are planted", planted.len());
    let mut wrong = Vec::new();
    for Planted { name, document, world } in &planted {
        let found: Vec<&str> = findings(document, world).iter().map(|finding| finding.name).collect();
        if found != [name.split('.').next().unwrap()] {
            wrong.push(format!("{name}: {found:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn nothing_is_found_in_what_is_sound() {
    let sound = files("sound");
    assert!(sound.len() >= 10, "{} files are sound", sound.len());
    for Planted { name, document, world } in &sound {
        let found = findings(document, world);
        assert!(found.is_empty(), "{name}: {found:#?}");
    }
}

/// The change is made in the file itself, which is then read anew.
#[test]
fn the_change_that_is_proposed_mends_the_file() {
    for Planted { name, document, world } in &files("planted") {
        let found = findings(document, world);
        let [finding] = found.as_slice() else { panic!("{name}: {found:#?}") };
        let Mend::Set(edit) = &finding.mend else {
            assert!(WITHOUT_A_SETTING.contains(&finding.name), "{name} has no change: {finding:#?}");
            continue;
        };
        let mended = document.with(edit).unwrap_or_else(|why| panic!("{name}: {}: {why}", edit.line));
        let left: Vec<&str> = findings(&mended, world).iter().map(|finding| finding.name).collect();
        let next = NEXT.iter().find(|(first, _)| *first == finding.name).map_or(&[][..], |(_, next)| *next);
        assert_eq!(left, next, "{name}: after {}", edit.line);
    }
}

/// No setting is a cure.
const WITHOUT_A_SETTING: [&str; 1] = ["load_above_capacity"];
/// What is not handed back to a caller who is not there is kept, and then somebody must be told.
const NEXT: [(&str, &[&str]); 0] = [];
