//! Every script of `conformance/` against the engine.

use std::fs;
use std::path::{Path, PathBuf};

use anabranch_script::{EngineStack, Script, play};

/// Scripts that the engine fails at present, each with the reason. A script that passes must go from
/// the list.
const KNOWN_FAILURES: &[(&str, &str)] = &[
    (
        "join/wrong_hmac.pkt",
        "MP_TCPRST has reason 3 (administratively prohibited), not 1 (MPTCP-specific error)",
    ),
    (
        "tcp/fin_to_listening_port.pkt",
        "a FIN without ACK, and a segment without flags, get a RST from a listening port",
    ),
    (
        "tcp/simultaneous_open.pkt",
        "the SYN/ACK of the peer is answered with another SYN/ACK, and the connection does not open",
    ),
    ("tcp/window_shrinks.pkt", "the right edge of the send window never moves left"),
];

/// Scripts that fail because the engine answers the third ACK of a handshake with an ACK although
/// only a join asks for one (RFC 8684 §3.2); with that mended they pass.
const FOURTH_ACK: &[&str] = &[
    "closing/data_fin_by_peer.pkt",
    "closing/fastclose_by_peer.pkt",
    "closing/fastclose_on_abort.pkt",
    "dss/hole_across_subflows.pkt",
    "dss/mapping_before_data.pkt",
    "fallback/mp_fail_by_peer.pkt",
    "fallback/no_option_in_third_ack.pkt",
    "fallback/other_version.pkt",
    "fallback/wrong_checksum.pkt",
    "handshake/capable_passive.pkt",
    "handshake/capable_with_data.pkt",
    "handshake/checksums.pkt",
    "join/address_removed_by_peer.pkt",
    "join/backup_by_peer.pkt",
    "join/passive.pkt",
    "join/unknown_token.pkt",
    "tcp/blind_reset.pkt",
    "tcp/close_by_both.pkt",
    "tcp/close_by_host.pkt",
    "tcp/close_by_peer.pkt",
    "tcp/congestion_marks.pkt",
    "tcp/corrupt_segment.pkt",
    "tcp/fast_retransmit.pkt",
    "tcp/initial_window.pkt",
    "tcp/keep_alive.pkt",
    "tcp/over_ipv6.pkt",
    "tcp/passive_open.pkt",
    "tcp/receive_window.pkt",
    "tcp/reset_on_abort.pkt",
    "tcp/retransmission_timeout.pkt",
    "tcp/selective_acknowledgements.pkt",
    "tcp/sequence_wrap.pkt",
    "tcp/two_connections.pkt",
    "tcp/unknown_option.pkt",
    "tcp/user_timeout.pkt",
    "tcp/zero_window.pkt",
];

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

fn is_known(name: &str) -> bool {
    KNOWN_FAILURES.iter().any(|(file, _)| *file == name) || FOURTH_ACK.contains(&name)
}

#[test]
fn the_engine_does_what_the_scripts_ask_for() {
    let mut reports = String::new();
    for path in scripts() {
        let (script, name) = (parse(&path), name(&path));
        let played = play(&script, &mut EngineStack::new(&script.settings));
        match (played.failure, is_known(&name)) {
            (Some(failure), false) => reports += &format!("{failure}\n"),
            (None, true) => reports += &format!("{name} passes: take it from the known failures\n"),
            _ => {}
        }
    }
    assert!(reports.is_empty(), "\n{reports}");
}

#[test]
fn every_known_failure_is_a_script() {
    let names: Vec<_> = scripts().iter().map(|path| name(path)).collect();
    for file in KNOWN_FAILURES.iter().map(|(file, _)| file).chain(FOURTH_ACK) {
        assert!(names.iter().any(|name| name == file), "{file}: no such script");
    }
}

#[test]
fn every_script_says_what_it_shows_and_cites_a_clause() {
    for path in scripts() {
        let shows = parse(&path).shows;
        assert!(shows.contains("RFC "), "{}: the first comment cites no RFC", name(&path));
    }
}

#[test]
fn a_script_with_any_character_missing_is_refused_or_played() {
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
fn what_a_script_prints_is_a_script_that_passes() {
    // The log of a run has absolute times and nothing that depends on the run but timestamps.
    for name in ["join/passive.pkt", "tcp/passive_open.pkt", "handshake/checksums.pkt"] {
        let script = parse(&folder().join(name));
        let log = play(&script, &mut EngineStack::new(&script.settings)).log.join("\n");
        let header = if script.settings.checksum { "--checksum=true\n" } else { "" };
        let again = Script::parse(&format!("{header}{log}\n"), name).expect("the log is a script");
        let played = play(&again, &mut EngineStack::new(&again.settings));
        assert_eq!(played.failure.map(|failure| failure.to_string()), None, "{log}");
    }
}
