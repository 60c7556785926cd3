//! Bytes from the figures and rules of RFC 8803, and properties.

use std::net::SocketAddr;

use proptest::prelude::*;

use super::*;

fn remote(text: &str) -> SocketAddr {
    text.parse().expect("an address")
}

fn connect(text: &str, options: Option<Vec<TcpOption>>) -> Tlv {
    Tlv::Connect(Connect { remote: remote(text), options })
}

/// Header of a message with this number of words. RFC 8803 §6.1, figure 10.
fn header(words: u8) -> [u8; 4] {
    [1, words, 0x22, 0x63]
}

/// `::ffff:192.0.2.1`. RFC 4291 §2.5.5.2.
const MAPPED: [u8; 16] = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 192, 0, 2, 1];

fn both_ways(message: &Message, bytes: &[u8]) {
    assert_eq!(message.to_bytes(), bytes);
    assert_eq!(Message::parse(bytes).as_ref(), Ok(message));
}

#[test]
fn an_info_tlv_is_one_word() {
    // RFC 8803 §6.2.3
    both_ways(&Message::new([Tlv::Info]), &[header(2), [1, 1, 0, 0]].concat());
}

#[test]
fn a_base_connect_tlv_is_five_words() {
    // RFC 8803 §6.2.5; port 443 = 0x01bb.
    let bytes = [&header(6)[..], &[10, 5, 0x01, 0xbb], &MAPPED].concat();
    both_ways(&Message::new([connect("192.0.2.1:443", None)]), &bytes);
    let ipv6 = [0x20, 0x01, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 7];
    let bytes = [&header(6)[..], &[10, 5, 0, 80], &ipv6].concat();
    both_ways(&Message::new([connect("[2001:db8::7]:80", None)]), &bytes);
}

#[test]
fn options_of_an_extended_connect_tlv_end_on_a_word() {
    // RFC 8803 §6.2.5; 2 bytes of MPTCP, 3 of another option, 3 of padding.
    let options = vec![
        TcpOption { kind: TcpOption::MPTCP, value: vec![] },
        TcpOption { kind: 34, value: vec![9] },
    ];
    let tail = [30, 2, 34, 3, 9, 0, 0, 0];
    let bytes = [&header(8)[..], &[10, 7, 0x01, 0xbb], &MAPPED, &tail].concat();
    both_ways(&Message::new([connect("192.0.2.1:443", Some(options))]), &bytes);
}

#[test]
fn damaged_options_are_refused() {
    // RFC 8803 §6.2.5: at least two bytes, no option without length, padding to a word only.
    for tail in [
        [30, 1, 0, 0],
        [30, 5, 0, 0],
        [1, 2, 0, 0],
        [30, 2, 30, 3],
        [34, 3, 9, 34],
        [0, 0, 0, 0],
        [30, 2, 0, 1],
    ] {
        let bytes = [&header(7)[..], &[10, 6, 0, 80], &MAPPED, &tail].concat();
        assert_eq!(Message::parse(&bytes), Err(ParseError::Options), "{tail:?}");
    }
}

#[test]
fn an_extended_tcp_header_is_padded() {
    // RFC 8803 §6.2.6
    let bytes = [header(3), [20, 2, 0, 0], [4, 2, 1, 1]].concat();
    both_ways(&Message::new([Tlv::ExtendedTcpHeader(vec![4, 2, 1, 1])]), &bytes);
    let short = Message::new([Tlv::ExtendedTcpHeader(vec![4, 2])]).to_bytes();
    assert_eq!(short, [header(3), [20, 2, 0, 0], [4, 2, 0, 0]].concat());
}

#[test]
fn supported_extensions_lack_basic_kinds() {
    // RFC 8803 §6.2.4: kinds 0, 1 and 2 are no part of the list, which is padded with zeros.
    let bytes = [header(4), [21, 3, 0, 0], [4, 8, 30, 34], [5, 0, 0, 0]].concat();
    both_ways(&Message::new([Tlv::SupportedTcpExtensions(vec![4, 8, 30, 34, 5])]), &bytes);
    let odd = [header(3), [21, 2, 7, 7], [2, 30, 1, 0]].concat();
    let parsed = Message::parse(&odd).expect("receivers ignore them");
    assert_eq!(parsed.tlvs, [Tlv::SupportedTcpExtensions(vec![30])]);
}

#[test]
fn a_cookie_is_opaque() {
    // RFC 8803 §6.2.7
    let bytes = [header(3), [22, 2, 0, 0], [1, 2, 3, 4]].concat();
    both_ways(&Message::new([Tlv::Cookie(vec![1, 2, 3, 4])]), &bytes);
}

#[test]
fn an_error_has_its_value_after_its_code() {
    // RFC 8803 §6.2.8
    let one = Message::new([Tlv::Error(ErrorTlv::new(ErrorCode::UnsupportedVersion, &[1]))]);
    both_ways(&one, &[header(2), [30, 1, 0, 1]].concat());
    let more = Message::new([Tlv::Error(ErrorTlv::new(ErrorCode::UnsupportedTcpOption, &[4, 8]))]);
    both_ways(&more, &[header(3), [30, 2, 33, 4], [8, 0, 0, 0]].concat());
}

#[test]
fn another_implementation_writes_the_same_bytes() {
    // Written by `convert_write` of libconvert 948053c (Tessares).
    let mapped = "010622630a0501bb00000000000000000000ffffc6336407";
    both_ways(&Message::new([connect("198.51.100.7:443", None)]), &hex(mapped));
    let with_cookie = "010922630a05005020010db8000000000000000000000005160300006162636465666768";
    let cookie = Tlv::Cookie(b"abcdefgh".to_vec());
    both_ways(&Message::new([connect("[2001:db8::5]:80", None), cookie]), &hex(with_cookie));
    let error = ErrorTlv::new(ErrorCode::DestinationUnreachable, &[]);
    both_ways(&Message::new([Tlv::Error(error)]), &hex("010222631e016100"));
    let options = Tlv::ExtendedTcpHeader(vec![2, 4, 5, 180, 1, 0, 0, 0]);
    both_ways(&Message::new([options]), &hex("0104226314030000020405b401000000"));
}

fn hex(digits: &str) -> Vec<u8> {
    let byte = |at| u8::from_str_radix(&digits[at..at + 2], 16).expect("hexadecimal digits");
    (0..digits.len()).step_by(2).map(byte).collect()
}

#[test]
fn error_codes_are_those_of_the_registry() {
    // RFC 8803 §10.2.3
    let numbers: Vec<u8> = ErrorCode::ALL.iter().map(|code| *code as u8).collect();
    assert_eq!(numbers, [0, 1, 2, 3, 32, 33, 64, 65, 96, 97]);
    for number in 0..=u8::MAX {
        let known = ErrorCode::from_number(number).map(|code| code as u8);
        assert_eq!(known, numbers.contains(&number).then_some(number));
    }
}

#[test]
fn headers_of_other_protocols_and_versions_are_told_apart() {
    // RFC 8803 §6.1
    assert_eq!(message_bytes(header(255)), Ok(MOST_BYTES));
    assert_eq!(message_bytes(header(0)), Err(ParseError::ZeroLength));
    assert_eq!(message_bytes([2, 1, 0x22, 0x63]), Err(ParseError::Version(2)));
    assert_eq!(message_bytes(*b"GET "), Err(ParseError::NotConvert(0x5420)));
}

#[test]
fn a_tlv_that_occurs_twice_is_malformed() {
    // RFC 8803 §6.2.1
    let bytes = [header(3), [1, 1, 0, 0], [1, 1, 0, 0]].concat();
    assert_eq!(Message::parse(&bytes), Err(ParseError::Duplicate(1)));
}

#[test]
fn a_tlv_ends_inside_the_message() {
    let bytes = [header(2), [22, 2, 0, 0]].concat();
    assert_eq!(Message::parse(&bytes), Err(ParseError::TlvLength { kind: 22, words: 2 }));
    let empty = [header(2), [22, 0, 0, 0]].concat();
    assert_eq!(Message::parse(&empty), Err(ParseError::TlvLength { kind: 22, words: 0 }));
    let long_info = [header(3), [1, 2, 0, 0], [0; 4]].concat();
    assert_eq!(Message::parse(&long_info), Err(ParseError::TlvLength { kind: 1, words: 2 }));
}

// ---- the relay

fn step(bytes: &[u8]) -> RelayStep {
    Relay::default().handle_data(bytes)
}

fn refused(bytes: &[u8]) -> (ErrorCode, ErrorTlv) {
    let RelayStep::Refuse(code, answer) = step(bytes) else { panic!("{:?}", step(bytes)) };
    match Message::parse(&answer).expect("a message").tlvs.as_slice() {
        [Tlv::Error(error)] => (code, error.clone()),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_request_may_come_byte_by_byte_and_with_data() {
    let message = Message::new([Tlv::Info, connect("192.0.2.1:443", None)]);
    let bytes = message.to_bytes();
    let mut relay = Relay::default();
    for byte in &bytes[..bytes.len() - 1] {
        assert_eq!(relay.handle_data(&[*byte]), RelayStep::Wait);
    }
    let last = [bytes[bytes.len() - 1], b'h', b'i'];
    let RelayStep::Decide(request) = relay.handle_data(&last) else { panic!("it is complete") };
    assert!(request.info && request.data == b"hi" && request.cookie.is_none());
    // RFC 8803 §6.2.4: the relay answers Info with the extensions; a Base Connect TLV needs no
    // further TLV.
    let answer = Message::parse(&request.accept(&[])).expect("a message");
    assert_eq!(answer.tlvs, [Tlv::SupportedTcpExtensions(vec![TcpOption::MPTCP])]);
}

#[test]
fn the_answer_to_a_base_connect_is_a_header() {
    let RelayStep::Decide(request) = step(&Message::new([connect("192.0.2.1:1", None)]).to_bytes())
    else {
        panic!("it is complete")
    };
    assert_eq!(request.accept(&[4, 2]), header(1));
}

#[test]
fn the_answer_to_an_extended_connect_has_the_tcp_header() {
    // RFC 8803 §6.2.6
    let options = Some(vec![TcpOption { kind: TcpOption::MPTCP, value: vec![] }]);
    let RelayStep::Decide(request) =
        step(&Message::new([connect("192.0.2.1:1", options)]).to_bytes())
    else {
        panic!("it is complete")
    };
    let expected = [header(3), [20, 2, 0, 0], [4, 2, 0, 0]].concat();
    assert_eq!(request.accept(&[4, 2]), expected);
}

#[test]
fn invalid_destinations_are_malformed() {
    // RFC 8803 §6.2.5: no multicast, broadcast or loopback address.
    for destination in [
        "127.0.0.1:80",
        "[::1]:80",
        "224.0.0.1:80",
        "[ff02::1]:80",
        "255.255.255.255:80",
        "0.0.0.0:80",
        "192.0.2.1:0",
    ] {
        let bytes = Message::new([connect(destination, None)]).to_bytes();
        let (code, error) = refused(&bytes);
        assert_eq!(code, ErrorCode::MalformedMessage, "{destination}");
        // RFC 8803 §6.2.8: the value echoes the message after a byte.
        assert_eq!(error.value()[0], 0);
        assert_eq!(error.value()[1..][..bytes.len()], bytes);
    }
}

#[test]
fn unsupported_options_are_listed() {
    // RFC 8803 §6.2.8; those that §7 lets relays ignore are not.
    let option = |kind, value: &[u8]| TcpOption { kind, value: value.to_vec() };
    let options = vec![option(2, &[5, 0xb4]), option(29, &[]), option(3, &[7]), option(30, &[1])];
    let bytes = Message::new([connect("192.0.2.1:1", Some(options))]).to_bytes();
    let (code, error) = refused(&bytes);
    assert_eq!((code, error.value()), (ErrorCode::UnsupportedTcpOption, &[29, 30, 0, 0, 0][..]));
}

#[test]
fn other_versions_are_told_the_right_one() {
    // RFC 8803 §6.2.8
    let (code, error) = refused(&[9, 200, 0x22, 0x63]);
    assert_eq!((code, error.value()), (ErrorCode::UnsupportedVersion, &[1][..]));
}

#[test]
fn other_protocols_are_reset() {
    assert_eq!(step(b"GET / HTTP/1.1"), RelayStep::Reset(ParseError::NotConvert(0x5420)));
    assert_eq!(step(&header(0)), RelayStep::Reset(ParseError::ZeroLength));
}

#[test]
fn unknown_and_answering_tlvs_are_unsupported() {
    // RFC 8803 §6.2.2: also type 0.
    for kind in [0, 2, 20, 21, 30, 255] {
        let bytes = [header(2), [kind, 1, 0, 0]].concat();
        assert_eq!(refused(&bytes).0, ErrorCode::UnsupportedMessage, "{kind}");
    }
    assert_eq!(refused(&header(1)).0, ErrorCode::MalformedMessage, "a request for nothing");
}

#[test]
fn a_long_message_is_echoed_as_far_as_it_fits() {
    let bytes = [&header(255)[..], &[22, 254, 0, 0], &[7; MOST_BYTES - 8]].concat();
    let (code, error) = refused(&bytes);
    assert_eq!(code, ErrorCode::MalformedMessage);
    assert_eq!(error.value()[1..5], bytes[..4]);
}

// ---- the client

#[test]
fn a_client_finds_the_first_data_after_the_answer() {
    let mut client = Client::default();
    assert_eq!(client.handle_data(&[1, 1]), Ok(None));
    let answer = client.handle_data(&[0x22, 0x63, 7, 8]).expect("valid").expect("complete");
    assert_eq!(answer, Answer { data: vec![7, 8], ..Answer::default() });
}

#[test]
fn a_client_learns_the_error() {
    let bytes = Request::refuse(ErrorCode::ConnectionReset, &[0]);
    let failure = Client::default().handle_data(&bytes).expect_err("an error");
    assert_eq!(failure.to_string(), "the relay reports: connection reset");
    assert_eq!(failure, ConvertFailure::Relay(ErrorTlv::new(ErrorCode::ConnectionReset, &[])));
}

#[test]
fn a_client_refuses_requests_and_duplicates() {
    let request = Message::new([connect("192.0.2.1:443", None)]).to_bytes();
    assert_eq!(Client::default().handle_data(&request), Err(ConvertFailure::Unexpected(10)));
    let twice = [header(3), [21, 1, 0, 0], [21, 1, 0, 0]].concat();
    assert_eq!(
        Client::default().handle_data(&twice),
        Err(ConvertFailure::Invalid(ParseError::Duplicate(21)))
    );
}

// ---- properties

fn words(most: usize) -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(any::<[u8; 4]>(), 0..most).prop_map(|words| words.concat())
}

fn option() -> impl Strategy<Value = TcpOption> {
    (2_u8.., prop::collection::vec(any::<u8>(), 0..20))
        .prop_map(|(kind, value)| TcpOption { kind, value })
}

fn tlvs() -> impl Strategy<Value = Vec<Tlv>> {
    let connect = (any::<SocketAddr>(), prop::option::of(prop::collection::vec(option(), 1..6)))
        .prop_map(|(remote, options)| {
            // The protocol has no flow labels and scopes.
            let remote = SocketAddr::new(remote.ip().to_canonical(), remote.port());
            Tlv::Connect(Connect { remote, options })
        });
    let error = (any::<u8>(), words(8))
        .prop_map(|(code, value)| Tlv::Error(ErrorTlv::of_number(code, &value)));
    (
        prop::option::of(Just(Tlv::Info)),
        prop::option::of(connect),
        prop::option::of(words(20).prop_map(Tlv::ExtendedTcpHeader)),
        prop::option::of(
            prop::collection::vec(3_u8.., 0..20).prop_map(Tlv::SupportedTcpExtensions),
        ),
        prop::option::of(words(20).prop_map(Tlv::Cookie)),
        prop::option::of(error),
    )
        .prop_map(|(a, b, c, d, e, f)| [a, b, c, d, e, f].into_iter().flatten().collect())
}

proptest! {
    #[test]
    fn messages_survive_their_bytes(tlvs in tlvs()) {
        let message = Message { tlvs };
        let bytes = message.to_bytes();
        prop_assert_eq!(bytes.len() % 4, 0);
        prop_assert_eq!(message_bytes(*bytes.first_chunk().expect("a header")), Ok(bytes.len()));
        prop_assert_eq!(Message::parse(&bytes), Ok(message));
    }

    #[test]
    fn hostile_bytes_do_no_harm(mut bytes in prop::collection::vec(any::<u8>(), 0..1100), words: u8) {
        if let Some(start) = bytes.first_chunk_mut() {
            *start = header(words);
        }
        if let RelayStep::Refuse(_, answer) = step(&bytes) {
            prop_assert!(answer.len() <= MOST_BYTES && Message::parse(&answer).is_ok());
        }
        let _ = Client::default().handle_data(&bytes);
    }

    #[test]
    fn pieces_of_a_request_do_not_matter(tlvs in tlvs(), cut: prop::sample::Index) {
        let bytes = Message { tlvs }.to_bytes();
        let cut = cut.index(bytes.len());
        let mut relay = Relay::default();
        prop_assert_eq!(relay.handle_data(&bytes[..cut]), RelayStep::Wait);
        prop_assert_eq!(relay.handle_data(&bytes[cut..]), step(&bytes));
    }
}
