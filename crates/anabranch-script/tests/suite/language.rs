//! Errors in scripts are reported in one line, with the position and a valid form.

use anabranch_script::Script;

fn error(text: &str) -> String {
    let error = Script::parse(text, "x.pkt").expect_err("an invalid script").to_string();
    assert!(!error.contains('\n'), "{error:?}");
    error
}

#[test]
fn every_error_names_its_position_and_a_valid_form() {
    let cases = [
        (
            "--mtuu=1500\n+0 < S 0:0(0)",
            "x.pkt:1:1: unknown header option \"mtuu\"; did you mean \"mtu\"?",
        ),
        ("--mtu=10", "x.pkt:1:7: --mtu: found \"10\"; write a number from 576"),
        ("--checksum=yes\n", "found \"yes\"; write true or false"),
        ("--endpoint=host0,subflow\n", "host1,subflow, host1,backup or host1,signal"),
        ("", "x.pkt:1:1: the script has no events"),
        ("\n\nnow < S 0:0(0)", "x.pkt:3:1: found \"now\"; an event starts with a time"),
        ("+0 S 0:0(0)", "unknown call \"S\""),
        ("+0 < Q 0:0(0)", "x.pkt:1:6: found \"Q\"; flags are letters of SFRP.EWU"),
        ("+0 < . 0:0(0)", "the flag \".\" and \"ack N\" need each other"),
        ("+0 < P. 1:100(100) ack 1", "1:100(100) is inconsistent; did you mean 1:101(100)?"),
        ("+0 < S 0:0(0) <mss>", "mss is a number"),
        ("+0 < S 0:0(0) <mss 70000>", "mss 70000 is too large; at most 65535"),
        ("+0 < S 0:0(0) <msss 1460>", "unknown option \"msss\"; did you mean \"mss\"?"),
        ("+0 < S 0:0(0) <mss 1460 wscale 7>", "found \"wscale\"; an option ends with , or >"),
        ("+0 < S 0:0(0) <...>", "\"...\" is only for segments of the stack"),
        ("+0 > S 0:0(0) <..., mss 1460>", "\"...\" ends the list of options"),
        ("+0 > . 1:1(0) ack 1 <dss dack8=1 dsn8=1>", "a mapping needs dsn"),
        ("+0 > host9-peer0 S 0:0(0)", "a path has the form host0-peer1"),
        ("+0 socket(...) = 3", "socket has 3 arguments, not 1"),
        ("+0 socket(..., SOCK_STREAM, IPPROTO_UDP) = 3", "IPPROTO_TCP or IPPROTO_MPTCP"),
        ("+0 read(3, ..., 1) = -1 ECONREFUSED", "did you mean \"ECONNREFUSED\"?"),
        ("+0 setsockopt(3, SOL_TCP, TCP_NODELY, [1], 4) = 0", "did you mean \"TCP_NODELAY\"?"),
        ("+0 %{ print(1) }%", "Python and shell code are not supported"),
        ("+0 assert state == 1", "unknown fact \"state\""),
        ("+0 assert connection <= tcp", "found \"<\""),
        ("* < S 0:0(0)", "only outgoing segments and calls may have such a time"),
        ("+0 /* open", "unterminated comment"),
    ];
    for (text, expected) in cases {
        let error = error(text);
        assert!(error.contains(expected), "{text:?}\n  gives    {error}\n  expected {expected}");
    }
}

#[test]
fn comments_and_line_breaks_may_stand_between_any_words() {
    let text =
        "/* one */ # two\n// three\n+0 <\n  S /* four */ 0:0(0) // five\n  <mss 1460,\n   nop>\n";
    assert!(Script::parse(text, "x.pkt").is_ok());
}

#[test]
fn the_first_comment_states_the_purpose_of_a_script() {
    let script = Script::parse("// One\n// two. RFC 1.\n\n+0 < S 0:0(0)\n", "x.pkt");
    assert_eq!(script.expect("a script").shows, "One two. RFC 1.");
}
