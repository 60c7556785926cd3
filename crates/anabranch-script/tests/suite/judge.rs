//! Tests of the comparison: every deviation must fail.

use anabranch_script::{EngineStack, Script, play};

/// A handshake, and data in both directions.
const RIGHT: &str = "\
+0    socket(..., SOCK_STREAM, IPPROTO_MPTCP) = 3
+0...0.1 connect(3, ..., ...) = 0
+0    >  S   0:0(0)         <mss 1460, sackOK, TS val 100 ecr 0, nop, wscale *, mpcapable v1 flags[flag_h] nokey>
+0.1  <  S.  0:0(0) ack 1 win 65535 <mss 1460, sackOK, nop, wscale 7, mpcapable v1 flags[flag_h] key[skey=5]>
+0    >  .   1:1(0) ack 1   <mpcapable v1 flags[flag_h] key[ckey, skey]>
+0    assert connection == mptcp
+0.1  write(3, ..., 100) = 100
+0    >  P.  1:101(100) ack 1 <mpcapable v1 flags[flag_h] key[ckey, skey] mpcdatalen 100 nocs>
+0.1  <  .   1:1(0) ack 101 win 512 <dss dack8=101>
+0    write(3, ..., 50) = 50
+0    >  P.  101:151(50) ack 1 win 65535 <dss dack4=1 dsn4=101 ssn=101 dll=50 nocs>
+0.1  <  P.  1:11(10) ack 151 win 512 <dss dack8=151 dsn8=1 ssn=1 dll=10 nocs>
+0    >  .   151:151(0) ack 11 <dss dack8=11>
+0    read(3, ..., 100) = 10
";

fn report(text: &str) -> Option<String> {
    let script = Script::parse(text, "x.pkt").expect("a script");
    let played = play(&script, &mut EngineStack::new(&script.settings));
    played.failure.map(|failure| failure.to_string())
}

#[test]
fn a_correct_script_passes() {
    assert_eq!(report(RIGHT), None);
    for fact in ["cwnd == 10", "cwnd <= 10", "cwnd >= 10", "subflows >= 1"] {
        assert_eq!(report(&RIGHT.replace("connection == mptcp", fact)), None, "{fact}");
    }
}

#[test]
fn an_optional_segment_may_be_missing_and_is_accepted_once() {
    let before = "+0    read(3, ..., 100) = 10\n";
    let expected = "+0    >  .   151:151(0) ack 11 <dss dack8=11>\n";
    let permitted = expected.replace(">  .", ">? .");
    // The permitted segment replaces the line that expects it, stands next to that line, or is
    // never sent.
    assert_eq!(report(&RIGHT.replace(expected, &permitted)), None);
    assert_eq!(report(&RIGHT.replace(expected, &(permitted.clone() + expected))), None);
    let other = permitted.replace("ack 11", "ack 12");
    assert_eq!(report(&RIGHT.replace(before, &(other.clone() + before))), None);
    let failure = report(&RIGHT.replace(expected, &other)).expect("another segment came");
    assert!(failure.contains("a segment that no line expects"), "{failure}");
}

#[test]
fn every_wrong_word_fails_and_is_reported() {
    let cases = [
        (">  S   0:0(0) ", ">  SE  0:0(0) ", "flags: expected SE, got S"),
        ("<mss 1460, sackOK, TS", "<mss 1400, sackOK, TS", "mss: expected 1400, got 1460"),
        ("sackOK, TS val 100 ecr 0", "TS val 100 ecr 0", "unexpected options: sackOK"),
        ("wscale *", "wscale 14", "wscale: expected 14"),
        (
            "v1 flags[flag_h] nokey",
            "v1 flags[flag_a|flag_h] nokey",
            "MP_CAPABLE: expected flags[flag_a|flag_h]",
        ),
        (">  .   1:1(0) ack 1 ", ">  .   2:2(0) ack 1 ", "sequence number: expected 2, got 1"),
        (">  .   1:1(0) ack 1 ", ">  .   1:1(0) ack 9 ", "acknowledgement: expected 9, got 1"),
        ("key[ckey, skey]>\n+0    assert", "key[ckey, ckey=9]>\n+0    assert", "key: expected 9"),
        ("assert connection == mptcp", "assert connection == tcp", "the assertion does not hold"),
        ("assert connection == mptcp", "assert cwnd <= 9", "the assertion does not hold"),
        ("assert connection == mptcp", "assert cwnd >= 11", "the assertion does not hold"),
        ("write(3, ..., 100) = 100", "write(3, ..., 100) = 99", "the call returned something else"),
        ("mpcdatalen 100", "mpcdatalen 101", "mpcdatalen: expected 101, got 100"),
        ("101:151(50)", "101:150(49)", "length: expected 49, got 50"),
        ("win 65535 <dss", "win 65534 <dss", "window: expected 65534, got 65535"),
        ("dsn4=101", "dsn8=101", "bytes of dsn: expected 8, got 4"),
        ("dsn4=101", "dsn4=102", "dsn: expected 102, got 101"),
        ("ssn=101", "ssn=1", "ssn: expected 1, got 101"),
        ("dll=50 nocs", "dll=50 cksum", "checksum: expected one, got none"),
        ("dll=50 nocs", "dll=50 nocs fin", "DATA_FIN: expected set, got clear"),
        ("dack4=1 dsn4", "dsn4", "unexpected DATA_ACK"),
        ("<dss dack8=11>", "<dss dack8=12>", "dack: expected 12, got 11"),
        ("<dss dack8=11>", "<nop>", "unexpected options: dss"),
        ("<dss dack8=11>", "<dss dack8=11, mp_prio backup=1>", "missing option: mp_prio"),
        ("+0    >  .   151", "+0.05 >  .   151", "time: expected 0.450000, got 0.400000"),
        ("+0    >  .   151", "+0 > host1-peer0 . 151", "the stack sent a segment on another path"),
        ("read(3, ..., 100) = 10", "read(3, ..., 100) = -1 EAGAIN", "= 10"),
        ("+0    >  .   151:151(0) ack 11 <dss dack8=11>\n", "", "a segment that no line expects"),
        ("= 10\n", "= 10\n+1    >  .   151:151(0) ack 11\n", "the stack did not send this segment"),
    ];
    for (right, wrong, expected) in cases {
        let text = RIGHT.replacen(right, wrong, 1);
        assert_ne!(text, RIGHT, "{right:?} does not occur");
        let report = report(&text).unwrap_or_else(|| panic!("{wrong:?} passes"));
        assert!(report.contains(expected), "{wrong:?} gives\n{report}\nexpected {expected}");
    }
}

#[test]
fn a_call_that_blocks_longer_than_stated_fails() {
    let text = RIGHT.replacen("+0...0.1 connect", "+0...0.05 connect", 1);
    assert!(report(&text).expect("it fails").contains("the call still blocks"));
    let text = RIGHT.replacen("+0...0.1 connect", "+0...0.15 connect", 1);
    assert!(report(&text).expect("it fails").contains("the call returned too early"));
}

#[test]
fn a_report_fits_into_a_terminal() {
    let text = RIGHT.replacen("dsn4=101", "dsn4=102", 1);
    let report = report(&text).expect("it fails");
    assert!(report.lines().all(|line| line.chars().count() <= 80), "{report}");
    assert!(
        report.starts_with("x.pkt:11: the stack sent another segment\n  expected  +0"),
        "{report}"
    );
}

#[test]
fn a_value_that_no_segment_has_carried_is_an_error_in_the_script() {
    let report = report("+0 < . 1:1(0) ack 1 win 5 <dss dack8=1>\n").expect("it fails");
    assert!(report.contains("dack needs the host's key, which it has not sent"), "{report}");
}
