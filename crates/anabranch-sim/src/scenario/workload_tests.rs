//! Workloads in scenarios: parsing, writing, and errors.

use core::num::NonZeroU64;

use anabranch_net::units::ByteCount;
use anabranch_wire::Duration;

use super::tests::read;
use super::{Distribution, Factor, Scenario, Workload};
use crate::workload::{OnOff, RequestResponse};

/// A scenario with this workload.
fn text(workload: &str) -> String {
    format!(
        "name = \"a\"\nduration = \"1s\"\n\
         [[path]]\nname = \"p\"\nrate = \"8Mbit/s\"\ndelay = \"1ms\"\nlimit = \"infinite\"\n\
         [[connection]]\n[connection.workload]\n{workload}\n"
    )
}

fn workload(written: &str) -> Workload {
    let scenario = read(&text(written));
    assert_eq!(read(&scenario.to_toml()), scenario, "{}", scenario.to_toml());
    scenario.connections[0].workload
}

/// The error without the file and the key of the table.
fn error(workload: &str) -> String {
    let error = Scenario::from_toml(&text(workload), "a.toml").unwrap_err().to_string();
    assert_eq!(error.lines().count(), 1);
    error.strip_prefix("a.toml: connection[0].workload.").expect(&error).to_owned()
}

#[test]
fn bursts_of_one_megabyte_every_two_to_four_seconds() {
    let written = "kind = \"on_off\"\nburst_size = \"1MB\"\n\
                   interval = { kind = \"uniform\", min = \"2s\", max = \"4s\" }\ncount = 9";
    let expected = Workload::OnOff(OnOff {
        burst_size: Distribution::Constant(ByteCount::new(1_000_000)),
        interval: Distribution::Uniform {
            min: Duration::from_secs(2),
            max: Duration::from_secs(4),
        },
        count: NonZeroU64::new(9),
    });
    assert_eq!(workload(written), expected);
}

#[test]
fn tiles_of_a_map_at_random() {
    let written = "kind = \"request_response\"\nrequest_size = \"400B\"\n\
                   responses = { kind = \"uniform\", min = 8, max = 20 }\n\
                   response_size = { kind = \"lognormal\", median = \"16kB\", sigma = 0.23 }\n\
                   think_time = { kind = \"exponential\", mean = \"2s\" }";
    let expected = Workload::RequestResponse(RequestResponse {
        request_size: Distribution::Constant(ByteCount::new(400)),
        responses: Distribution::Uniform { min: 8, max: 20 },
        response_size: Distribution::Lognormal {
            median: ByteCount::new(16_000),
            sigma: Factor::from_thousandths(230),
        },
        think_time: Distribution::Exponential { mean: Duration::from_secs(2) },
        interval: Distribution::Constant(Duration::ZERO),
        count: None,
    });
    assert_eq!(workload(written), expected);
    let short = "kind = \"request_response\"\nrequest_size = \"1B\"\nresponse_size = \"1kB\"";
    assert!(matches!(
        workload(short),
        Workload::RequestResponse(RequestResponse {
            responses: Distribution::Constant(1),
            think_time: Distribution::Constant(Duration::ZERO),
            ..
        })
    ));
}

#[test]
fn what_is_missing_or_belongs_to_another_workload() {
    assert_eq!(
        error("kind = \"on_off\"\nburst_size = \"1MB\""),
        r#"interval: missing; kind = "on_off" needs it, such as interval = "2s""#
    );
    assert_eq!(
        error("kind = \"request_response\"\nrequest_size = \"1B\""),
        r#"response_size: missing; kind = "request_response" needs it, such as response_size = "100kB""#
    );
    assert_eq!(
        error("kind = \"bulk\"\ninterval = \"2s\""),
        r#"interval: belongs to kind = "on_off" or "request_response"; remove it, or write one of these kinds"#
    );
    assert_eq!(
        error("kind = \"on_off\"\nthink_time = \"2s\""),
        r#"think_time: belongs to kind = "request_response"; remove it, or write that kind"#
    );
}

#[test]
fn distributions_that_make_no_sense() {
    let burst =
        |size: &str| error(&format!("kind = \"on_off\"\ninterval = \"2s\"\nburst_size = {size}"));
    assert_eq!(burst("\"0B\""), r#"burst_size: "0B": must be more than zero"#);
    assert_eq!(burst("5"), r#"burst_size: "5" has no unit; write a size such as "200kB""#);
    assert_eq!(
        burst("true"),
        r#"burst_size: found boolean `true`, expected a size such as "200kB" or "200KiB", or a table with a kind of distribution"#
    );
    assert_eq!(
        burst("{ kind = \"uniform\", min = \"2kB\", max = \"1kB\" }"),
        r#"burst_size.max: "1kB": must not be less than min, "2kB""#
    );
    assert_eq!(
        burst("{ kind = \"uniform\", min = \"2kB\" }"),
        "burst_size.max: missing; this key is required"
    );
    assert_eq!(
        burst("{ kind = \"uniform\", mean = \"2kB\" }"),
        r#"burst_size.mean: belongs to kind = "exponential" or "pareto"; leave it out"#
    );
    assert_eq!(
        burst("{ kind = \"pareto\", mean = \"2kB\", shape = 1 }"),
        "burst_size.shape: 1.0: must be more than 1, or there is no mean"
    );
    assert_eq!(
        burst("{ kind = \"normal\", mean = \"2kB\" }"),
        r#"burst_size.kind: unknown kind "normal"; did you mean "lognormal"? (valid: uniform, exponential, pareto, lognormal)"#
    );
    assert_eq!(
        burst("{ kind = \"exponential\", mean = \"0B\" }"),
        r#"burst_size.mean: "0B": must be more than zero"#
    );
    let responses = |count: &str| {
        let sizes = "request_size = \"1B\"\nresponse_size = \"1B\"";
        error(&format!("kind = \"request_response\"\n{sizes}\nresponses = {count}"))
    };
    assert_eq!(responses("0"), "responses: found integer `0`, expected a whole number above zero");
    assert_eq!(
        responses("1048577"),
        "responses: 1048577: a request brings at most 1048576 responses"
    );
}

#[test]
fn requests_and_responses_go_one_way() {
    let written = "kind = \"request_response\"\nrequest_size = \"1B\"\nresponse_size = \"1kB\"";
    let text = text(written).replace("[[connection]]", "[[connection]]\ndirection = \"both\"");
    assert_eq!(
        Scenario::from_toml(&text, "a.toml").unwrap_err().to_string(),
        "a.toml: connection[0].direction: both: the requests already go the other way; write \
         \"download\" or \"upload\""
    );
}
