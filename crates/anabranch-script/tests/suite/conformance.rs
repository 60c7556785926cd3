//! Plays every script of `conformance/` against the engine.

use std::fs;
use std::path::{Path, PathBuf};

use anabranch_script::{EngineStack, Script, play};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../conformance")
}

fn scripts() -> Vec<PathBuf> {
    let mut all = Vec::new();
    for group in fs::read_dir(folder()).expect("the folder is there") {
        let group = group.expect("it can be read").path();
        let files = fs::read_dir(group).expect("it is a folder");
        all.extend(files.map(|file| file.expect("it can be read").path()));
    }
    all.sort();
    all
}

fn name(path: &Path) -> String {
    let parts: Vec<_> = path.iter().rev().take(2).map(|part| part.to_string_lossy()).collect();
    format!("{}/{}", parts[1], parts[0])
}

fn parse(path: &Path) -> Script {
    let text = fs::read_to_string(path).expect("a script is text");
    Script::parse(&text, &format!("conformance/{}", name(path))).expect("a script")
}

#[test]
fn the_engine_passes_all_scripts() {
    let mut reports = String::new();
    for path in scripts() {
        let script = parse(&path);
        let played = play(&script, &mut EngineStack::new(&script.settings));
        reports.extend(played.failure.map(|failure| format!("{failure}\n")));
    }
    assert!(reports.is_empty(), "\n{reports}");
}

#[test]
fn every_script_states_its_purpose_and_cites_a_clause() {
    for path in scripts() {
        let shows = parse(&path).shows;
        assert!(shows.contains("RFC "), "{}: the first comment cites no RFC", name(&path));
    }
}

#[test]
fn a_script_without_any_one_character_is_refused_or_played() {
    for path in scripts() {
        let text = fs::read_to_string(&path).expect("a script is text");
        for (at, missing) in text.char_indices().filter(|(at, _)| at % 5 == 0) {
            let text = text[..at].to_owned() + &text[at + missing.len_utf8()..];
            if let Ok(script) = Script::parse(&text, "x.pkt") {
                play(&script, &mut EngineStack::new(&script.settings));
            }
        }
    }
}

#[test]
fn the_log_of_a_script_is_a_script_that_passes() {
    // The log of a run has absolute times. Only its timestamps depend on the run.
    for name in ["join/passive.pkt", "tcp/passive_open.pkt", "handshake/checksums.pkt"] {
        let script = parse(&folder().join(name));
        let log = play(&script, &mut EngineStack::new(&script.settings)).log.join("\n");
        let header = if script.settings.checksum { "--checksum=true\n" } else { "" };
        let again = Script::parse(&format!("{header}{log}\n"), name).expect("the log is a script");
        let played = play(&again, &mut EngineStack::new(&again.settings));
        assert_eq!(played.failure.map(|failure| failure.to_string()), None, "{log}");
    }
}
