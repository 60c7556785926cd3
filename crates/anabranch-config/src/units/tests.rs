//! Reading and writing configuration strings, and every error.

use core::fmt::{Debug, Display};
use core::str::FromStr;

use anabranch_wire::Duration;
use proptest::prelude::*;

use super::*;

fn reads<T: FromStr<Err = UnitError> + Debug + PartialEq>(text: &str, value: T) {
    assert_eq!(text.parse(), Ok(value), "{text}");
}

fn written<T: Display>(value: T, text: &str) {
    assert_eq!(value.to_string(), text);
}

fn refused<T: FromStr<Err = UnitError> + Debug>(text: &str, message: &str) {
    assert_eq!(text.parse::<T>().unwrap_err().to_string(), message);
}

fn bits(bits: u64) -> Rate {
    Rate::from_bits_per_second(bits)
}

#[test]
fn rates_read_and_write_exactly() {
    for (text, value) in [
        ("8Mbit/s", 8_000_000),
        ("100kbit/s", 100_000),
        ("1Gbit/s", 1_000_000_000),
        ("12.5Mbit/s", 12_500_000),
        ("1.234567Mbit/s", 1_234_567),
        ("999bit/s", 999),
        ("1000Tbit/s", 1_000_000_000_000_000),
    ] {
        reads(text, bits(value));
        written(bits(value), text);
    }
    // 0.1 has no exact binary representation.
    reads("0.1Mbit/s", bits(100_000));
    reads(" 8 Mbit/s ", bits(8_000_000));
    reads("8.000Mbit/s", bits(8_000_000));
}

#[test]
fn rate_errors_state_the_expected_form() {
    refused::<Rate>("8", r#""8" has no unit; write a rate such as "8Mbit/s""#);
    refused::<Rate>("8.5", r#""8.5" has no unit; write a rate such as "8Mbit/s""#);
    refused::<Rate>("", r#""": not a rate; write a rate such as "8Mbit/s""#);
    refused::<Rate>("fast", r#""fast": not a rate; write a rate such as "8Mbit/s""#);
    refused::<Rate>(".5Mbit/s", r#"".5Mbit/s": not a rate; write a rate such as "8Mbit/s""#);
    refused::<Rate>("-8Mbit/s", r#""-8Mbit/s": a rate cannot be negative"#);
    refused::<Rate>("0Mbit/s", r#""0Mbit/s": a rate must be more than zero"#);
    refused::<Rate>("8mbit/s", r#""8mbit/s": unknown unit "mbit/s"; did you mean "Mbit/s"?"#);
    refused::<Rate>(
        "8Mbit",
        r#""8Mbit": unknown unit "Mbit"; a rate ends in bit/s, kbit/s, Mbit/s, Gbit/s or Tbit/s"#,
    );
    refused::<Rate>("0.5bit/s", r#""0.5bit/s": a rate is a whole number of bits per second"#);
    refused::<Rate>("1001Tbit/s", r#""1001Tbit/s": a rate is at most 1000Tbit/s"#);
    let digits = "9".repeat(50) + "bit/s";
    refused::<Rate>(&digits, &format!("{digits:?}: a rate is at most 1000Tbit/s"));
    let digits = format!("0.{}1Mbit/s", "0".repeat(50));
    refused::<Rate>(&digits, &format!("{digits:?}: a rate is a whole number of bits per second"));
}

#[test]
fn rates_in_bps_are_errors_because_tc_reads_bytes() {
    for (text, unit, meant) in [
        ("8mbps", "mbps", "8Mbit/s"),
        ("8Mbps", "Mbps", "8Mbit/s"),
        ("0.5 gbps", "gbps", "0.5Gbit/s"),
        ("100kbps", "kbps", "100kbit/s"),
        ("9bps", "bps", "9bit/s"),
        ("1tbps", "tbps", "1Tbit/s"),
    ] {
        let message = format!(
            "{text:?}: tc reads {unit:?} as bytes per second; write {meant:?} for bits per second"
        );
        refused::<Rate>(text, &message);
    }
}

#[test]
fn sizes_read_and_write_exactly() {
    for (text, bytes) in [
        ("0B", 0),
        ("1500B", 1_500),
        ("200kB", 200_000),
        ("200KiB", 204_800),
        ("1MB", 1_000_000),
        ("16MiB", 16_777_216),
        ("512kB", 512_000),
        ("64KiB", 65_536),
        ("3GiB", 3 << 30),
        ("2GB", 2_000_000_000),
    ] {
        reads(text, ByteCount::new(bytes));
        written(ByteCount::new(bytes), text);
    }
    reads("1.5kB", ByteCount::new(1_500));
    reads("0.5KiB", ByteCount::new(512));
}

#[test]
fn size_errors_state_the_expected_form() {
    refused::<ByteCount>("1500", r#""1500" has no unit; write a size such as "200kB""#);
    refused::<ByteCount>("-1B", r#""-1B": a size cannot be negative"#);
    refused::<ByteCount>("1kb", r#""1kb": unknown unit "kb"; did you mean "kB"?"#);
    refused::<ByteCount>(
        "1Mbit",
        r#""1Mbit": unknown unit "Mbit"; a size ends in B, kB, KiB, MB, MiB, GB or GiB"#,
    );
    refused::<ByteCount>("1.5B", r#""1.5B": a size is a whole number of bytes"#);
    refused::<ByteCount>("0.1KiB", r#""0.1KiB": a size is a whole number of bytes"#);
    refused::<ByteCount>("9999999GB", r#""9999999GB": a size is at most 1000000GB"#);
}

#[test]
fn durations_read_and_write_exactly() {
    for (text, nanos) in [
        ("0s", 0),
        ("20ms", 20_000_000),
        ("1.5s", 1_500_000_000),
        ("200us", 200_000),
        ("100ns", 100),
        ("1.5us", 1_500),
        ("100s", 100_000_000_000),
    ] {
        assert_eq!(parse_duration(text), Ok(Duration::from_nanos(nanos)));
        assert_eq!(format_duration(Duration::from_nanos(nanos)), text);
    }
    assert_eq!(parse_duration("0ms"), Ok(Duration::ZERO));
    assert_eq!(parse_duration("0.0000001s"), Ok(Duration::from_nanos(100)));
}

#[test]
fn duration_errors_state_the_expected_form() {
    let refused = |text, message| {
        assert_eq!(parse_duration(text).unwrap_err().to_string(), message);
    };
    refused("20", r#""20" has no unit; write a duration such as "20ms""#);
    refused("soon", r#""soon": not a duration; write a duration such as "20ms""#);
    refused("-20ms", r#""-20ms": a duration cannot be negative"#);
    refused("20msec", r#""20msec": unknown unit "msec"; a duration ends in ns, us, ms or s"#);
    refused("20MS", r#""20MS": unknown unit "MS"; did you mean "ms"?"#);
    refused("0.1ns", r#""0.1ns": a duration is a whole number of nanoseconds"#);
    refused("1000000001s", r#""1000000001s": a duration is at most 1000000000s"#);
}

#[test]
fn probabilities_read_and_write_exactly() {
    for (text, parts) in
        [("0%", 0), ("1%", 10_000_000), ("0.5%", 5_000_000), ("100%", 1_000_000_000)]
    {
        reads(text, Probability::from_parts_per_billion(parts));
        written(Probability::from_parts_per_billion(parts), text);
    }
    assert_eq!("1%".parse::<Probability>().unwrap().as_f64(), 0.01);
}

#[test]
fn probability_errors_state_the_expected_form() {
    refused::<Probability>("0.01", r#""0.01" has no unit; write a probability such as "1%""#);
    refused::<Probability>("-1%", r#""-1%": a probability cannot be negative"#);
    refused::<Probability>("101%", r#""101%": a probability is at most 100%"#);
    refused::<Probability>("1pct", r#""1pct": unknown unit "pct"; a probability ends in %"#);
    refused::<Probability>(
        "0.00000001%",
        r#""0.00000001%": a probability is a whole number of parts per billion (0.0000001%)"#,
    );
}

#[test]
fn queue_limits_read_and_write_exactly() {
    for (text, limit) in [
        ("54packets", QueueLimit::Packets(54)),
        ("100kB", QueueLimit::Bytes(ByteCount::new(100_000))),
        ("80ms", QueueLimit::Time(Duration::from_millis(80))),
        ("infinite", QueueLimit::Infinite),
    ] {
        reads(text, limit);
        written(limit, text);
    }
}

#[test]
fn queue_limit_errors_state_the_expected_form() {
    let example = r#"write a queue limit such as "54packets", "100kB", "80ms" or "infinite""#;
    refused::<QueueLimit>("54", &format!(r#""54" has no unit; {example}"#));
    refused::<QueueLimit>("inf", &format!(r#""inf": not a queue limit; {example}"#));
    for zero in ["0packets", "0kB", "0ms"] {
        let message = format!("{zero:?}: a queue needs room for at least one packet");
        refused::<QueueLimit>(zero, &message);
    }
    refused::<QueueLimit>("-5packets", r#""-5packets": a queue limit cannot be negative"#);
    refused::<QueueLimit>(
        "1.5packets",
        r#""1.5packets": a queue limit is a whole number of packets"#,
    );
    refused::<QueueLimit>(
        "2000000000packets",
        r#""2000000000packets": a queue limit is at most 1000000000packets"#,
    );
    refused::<QueueLimit>(
        "9Packets",
        r#""9Packets": unknown unit "Packets"; did you mean "packets"?"#,
    );
    refused::<QueueLimit>(
        "9pkts",
        "\"9pkts\": unknown unit \"pkts\"; a queue limit ends in packets, B, kB, KiB, MB, MiB, \
         GB, GiB, ns, us, ms or s, or is \"infinite\"",
    );
}

#[test]
fn a_queue_limit_has_three_equivalents() {
    let rate = bits(8_000_000);
    let equivalents = |text: &str| {
        text.parse::<QueueLimit>().unwrap().equivalents(rate).map(|limit| limit.to_string())
    };
    // 80 ms at 1 byte per µs are 80 000 bytes: 53⅓ packets of 1500 bytes.
    assert_eq!(equivalents("80ms").unwrap(), "54 packets, 80000 bytes, 80ms");
    assert_eq!(equivalents("54packets").unwrap(), "54 packets, 81000 bytes, 81ms");
    assert_eq!(equivalents("100kB").unwrap(), "67 packets, 100000 bytes, 100ms");
    // 1 ms corresponds to 1000 bytes, which is rounded up to one full-size packet.
    assert_eq!(equivalents("1ms").unwrap(), "1 packets, 1500 bytes, 1.5ms");
    assert_eq!(equivalents("infinite"), None);
}

proptest! {
    #[test]
    fn what_is_written_reads_back(value in 1..=Rate::MAX.as_bits_per_second(), parts in 0..=1_000_000_000u32) {
        reads(&bits(value).to_string(), bits(value));
        reads(&ByteCount::new(value).to_string(), ByteCount::new(value));
        let duration = Duration::from_nanos(value);
        prop_assert_eq!(parse_duration(&format_duration(duration)), Ok(duration));
        let probability = Probability::from_parts_per_billion(parts);
        reads(&probability.to_string(), probability);
        for limit in [
            QueueLimit::Packets(u64::from(parts).max(1)),
            QueueLimit::Bytes(ByteCount::new(value)),
            QueueLimit::Time(duration),
        ] {
            reads(&limit.to_string(), limit);
        }
    }

    #[test]
    fn no_text_makes_a_parser_panic(text in "[-+ ]?[0-9]{0,45}[.]?[0-9]{0,45} ?[a-zA-Z/%é]{0,7}") {
        let errors = [
            text.parse::<Rate>().err(),
            text.parse::<ByteCount>().err(),
            text.parse::<Probability>().err(),
            text.parse::<QueueLimit>().err(),
            parse_duration(&text).err(),
        ];
        // The five formats have no unit in common, so at least three of the five fail, with one
        // line each.
        prop_assert!(errors.iter().flatten().count() >= 3);
        prop_assert!(errors.iter().flatten().all(|error| error.to_string().lines().count() == 1));
    }
}
