//! What a connection sends: a table with a kind, and the keys of that kind.

use core::num::NonZeroU64;

use anabranch_net::units::{Octets, Rate};
use anabranch_wire::Duration;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::checks::require_octets;
use super::distribution::DistributionValue;
use super::error::Problem;
use super::names::WorkloadKind;
use super::written::Written;
use super::{Distribution, Workload};
use crate::workload::MAX_RESPONSES;

/// What a connection sends.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename = "Workload")]
pub(super) struct WorkloadTable {
    /// Kind of workload.
    pub(super) kind: WorkloadKind,
    /// `bulk` only: how much is sent; by default without end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Written<Octets>")]
    pub(super) size: Option<Written<Octets>>,
    /// `cbr` only: the rate at which blocks are due.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Written<Rate>")]
    pub(super) rate: Option<Written<Rate>>,
    /// `blocks` and `cbr` only: size of a block, by default 8KiB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Written<Octets>")]
    pub(super) block_size: Option<Written<Octets>>,
    /// `on_off` only: size of each burst, which is written at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "DistributionValue<Written<Octets>>")]
    pub(super) burst_size: Option<DistributionValue<Written<Octets>>>,
    /// `on_off`: time from the start of each burst to the start of the next, which waits until the
    /// stack has accepted the one before. `request_response`: least time from the start of each
    /// round to the start of the next; by default none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "DistributionValue<Written<Duration>>")]
    pub(super) interval: Option<DistributionValue<Written<Duration>>>,
    /// `request_response` only: size of each request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "DistributionValue<Written<Octets>>")]
    pub(super) request_size: Option<DistributionValue<Written<Octets>>>,
    /// `request_response` only: how many responses each request brings, up to 1048576; by default
    /// 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "DistributionValue<NonZeroU64>")]
    pub(super) responses: Option<DistributionValue<NonZeroU64>>,
    /// `request_response` only: size of each response.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "DistributionValue<Written<Octets>>")]
    pub(super) response_size: Option<DistributionValue<Written<Octets>>>,
    /// `request_response` only: time from the last octet of the responses to the next request; by
    /// default none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "DistributionValue<Written<Duration>>")]
    pub(super) think_time: Option<DistributionValue<Written<Duration>>>,
    /// All but `bulk`: how many blocks, bursts or requests are sent; by default without end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "NonZeroU64")]
    pub(super) count: Option<NonZeroU64>,
}

impl WorkloadTable {
    fn new(kind: WorkloadKind) -> Self {
        WorkloadTable {
            kind,
            size: None,
            rate: None,
            block_size: None,
            burst_size: None,
            interval: None,
            request_size: None,
            responses: None,
            response_size: None,
            think_time: None,
            count: None,
        }
    }

    /// The workload that the table at `key` describes.
    pub(super) fn resolve(self, key: &str) -> Result<Workload, Problem> {
        self.refuse_foreign_keys(key)?;
        let count = self.count.map(NonZeroU64::get);
        match self.kind {
            WorkloadKind::Bulk => {
                let size = self.size.map(|size| size.0);
                size.map_or(Ok(()), |size| require_octets(&format!("{key}.size"), size))?;
                Ok(Workload::Bulk { size })
            }
            WorkloadKind::Blocks => {
                Ok(Workload::Blocks { block_size: self.block_size(key)?, count })
            }
            WorkloadKind::Cbr => {
                let rate = self.rate.ok_or_else(|| self.missing(key, "rate", "500kbit/s"))?.0;
                let block_size = self.block_size(key)?;
                require_block_rate(key, rate, block_size)?;
                Ok(Workload::Cbr { rate, block_size, count })
            }
            WorkloadKind::OnOff => {
                let size = self.burst_size.ok_or_else(|| self.missing(key, "burst_size", "1MB"))?;
                let interval = self.interval.ok_or_else(|| self.missing(key, "interval", "2s"))?;
                let burst_size = size.resolve(&format!("{key}.burst_size"), false)?;
                let interval = interval.resolve(&format!("{key}.interval"), true)?;
                Ok(Workload::OnOff { burst_size, interval, count })
            }
            WorkloadKind::RequestResponse => self.resolve_request_response(key),
        }
    }

    fn resolve_request_response(&self, key: &str) -> Result<Workload, Problem> {
        let missing = |name, example| self.missing(key, name, example);
        let request = self.request_size.ok_or_else(|| missing("request_size", "400B"))?;
        let response = self.response_size.ok_or_else(|| missing("response_size", "100kB"))?;
        let responses = match self.responses {
            Some(responses) => responses.resolve(&format!("{key}.responses"), false)?,
            None => Distribution::Constant(1),
        };
        let most = match responses {
            Distribution::Constant(most) | Distribution::Uniform { max: most, .. } => most,
            _ => 0,
        };
        if most > MAX_RESPONSES {
            let problem = format!("{most}: a request brings at most {MAX_RESPONSES} responses");
            return Err(Problem::new(format!("{key}.responses"), problem));
        }
        let time = |name, written: Option<DistributionValue<Written<Duration>>>| match written {
            Some(written) => written.resolve(&format!("{key}.{name}"), true),
            None => Ok(Distribution::Constant(Duration::ZERO)),
        };
        Ok(Workload::RequestResponse {
            request_size: request.resolve(&format!("{key}.request_size"), false)?,
            responses,
            response_size: response.resolve(&format!("{key}.response_size"), false)?,
            think_time: time("think_time", self.think_time)?,
            interval: time("interval", self.interval)?,
            count: self.count.map(NonZeroU64::get),
        })
    }

    fn block_size(&self, key: &str) -> Result<Octets, Problem> {
        let block_size = self.block_size.map_or(Octets::new(8 << 10), |size| size.0);
        require_octets(&format!("{key}.block_size"), block_size)?;
        Ok(block_size)
    }

    fn missing(&self, key: &str, name: &str, example: &str) -> Problem {
        let kind = self.kind.name();
        let article = |word: &str| if word.starts_with(['a', 'e', 'i', 'o']) { "an" } else { "a" };
        let (a, its) = (article(kind), article(name));
        let problem =
            format!("missing; {a} {kind} workload needs {its} {name} such as {example:?}");
        Problem::new(format!("{key}.{name}"), problem)
    }

    fn refuse_foreign_keys(&self, key: &str) -> Result<(), Problem> {
        use WorkloadKind::{Blocks, Bulk, Cbr, OnOff, RequestResponse};
        let given: [(&str, bool, &[WorkloadKind]); 10] = [
            ("size", self.size.is_some(), &[Bulk]),
            ("block_size", self.block_size.is_some(), &[Blocks, Cbr]),
            ("count", self.count.is_some(), &[Blocks, Cbr, OnOff, RequestResponse]),
            ("rate", self.rate.is_some(), &[Cbr]),
            ("burst_size", self.burst_size.is_some(), &[OnOff]),
            ("interval", self.interval.is_some(), &[OnOff, RequestResponse]),
            ("request_size", self.request_size.is_some(), &[RequestResponse]),
            ("responses", self.responses.is_some(), &[RequestResponse]),
            ("response_size", self.response_size.is_some(), &[RequestResponse]),
            ("think_time", self.think_time.is_some(), &[RequestResponse]),
        ];
        let foreign = given
            .into_iter()
            .find(|(_, is_given, owners)| *is_given && !owners.contains(&self.kind));
        let Some((name, _, owners)) = foreign else { return Ok(()) };
        let (kind, owner) = (self.kind.name(), owners[0].name());
        let article = if self.kind == OnOff { "an" } else { "a" };
        let problem = format!(
            "{article} {kind} workload has no {name}; leave it out or write kind = {owner:?}"
        );
        Err(Problem::new(format!("{key}.{name}"), problem))
    }
}

impl From<Workload> for WorkloadTable {
    /// With every default spelled out.
    fn from(workload: Workload) -> Self {
        let table = WorkloadTable::new;
        match workload {
            Workload::Bulk { size } => {
                WorkloadTable { size: size.map(Written), ..table(WorkloadKind::Bulk) }
            }
            Workload::Blocks { block_size, count } => WorkloadTable {
                block_size: Some(Written(block_size)),
                count: count.and_then(NonZeroU64::new),
                ..table(WorkloadKind::Blocks)
            },
            Workload::Cbr { rate, block_size, count } => WorkloadTable {
                rate: Some(Written(rate)),
                block_size: Some(Written(block_size)),
                count: count.and_then(NonZeroU64::new),
                ..table(WorkloadKind::Cbr)
            },
            Workload::OnOff { burst_size, interval, count } => WorkloadTable {
                burst_size: Some(burst_size.into()),
                interval: Some(interval.into()),
                count: count.and_then(NonZeroU64::new),
                ..table(WorkloadKind::OnOff)
            },
            Workload::RequestResponse {
                request_size,
                responses,
                response_size,
                think_time,
                interval,
                count,
            } => WorkloadTable {
                request_size: Some(request_size.into()),
                responses: Some(responses.into()),
                response_size: Some(response_size.into()),
                think_time: Some(think_time.into()),
                interval: Some(interval.into()),
                count: count.and_then(NonZeroU64::new),
                ..table(WorkloadKind::RequestResponse)
            },
        }
    }
}

/// Each block is an event: more of them would take for ever.
fn require_block_rate(key: &str, rate: Rate, block_size: Octets) -> Result<(), Problem> {
    if rate.as_bits_per_second() / 8 / block_size.as_u64() < MOST_BLOCKS_PER_SECOND {
        return Ok(());
    }
    let size = block_size.to_string();
    let problem = format!("{size:?}: at {rate} more than a million blocks a second; write more");
    Err(Problem::new(format!("{key}.block_size"), problem))
}

const MOST_BLOCKS_PER_SECOND: u64 = 1_000_000;

#[cfg(test)]
mod tests {
    use super::super::tests::read;
    use super::super::{Factor, Scenario};
    use super::*;

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
        let expected = Workload::OnOff {
            burst_size: Distribution::Constant(Octets::new(1_000_000)),
            interval: Distribution::Uniform {
                min: Duration::from_secs(2),
                max: Duration::from_secs(4),
            },
            count: Some(9),
        };
        assert_eq!(workload(written), expected);
    }

    #[test]
    fn tiles_of_a_map_at_random() {
        let written = "kind = \"request_response\"\nrequest_size = \"400B\"\n\
                       responses = { kind = \"uniform\", min = 8, max = 20 }\n\
                       response_size = { kind = \"lognormal\", median = \"16kB\", sigma = 0.23 }\n\
                       think_time = { kind = \"exponential\", mean = \"2s\" }";
        let expected = Workload::RequestResponse {
            request_size: Distribution::Constant(Octets::new(400)),
            responses: Distribution::Uniform { min: 8, max: 20 },
            response_size: Distribution::Lognormal {
                median: Octets::new(16_000),
                sigma: Factor::from_thousandths(230),
            },
            think_time: Distribution::Exponential { mean: Duration::from_secs(2) },
            interval: Distribution::Constant(Duration::ZERO),
            count: None,
        };
        assert_eq!(workload(written), expected);
        let short = "kind = \"request_response\"\nrequest_size = \"1B\"\nresponse_size = \"1kB\"";
        assert!(matches!(
            workload(short),
            Workload::RequestResponse {
                responses: Distribution::Constant(1),
                think_time: Distribution::Constant(Duration::ZERO),
                ..
            }
        ));
    }

    #[test]
    fn what_is_missing_or_belongs_to_another_workload() {
        assert_eq!(
            error("kind = \"on_off\"\nburst_size = \"1MB\""),
            r#"interval: missing; an on_off workload needs an interval such as "2s""#
        );
        assert_eq!(
            error("kind = \"request_response\"\nrequest_size = \"1B\""),
            r#"response_size: missing; a request_response workload needs a response_size such as "100kB""#
        );
        assert_eq!(
            error("kind = \"bulk\"\ninterval = \"2s\""),
            r#"interval: a bulk workload has no interval; leave it out or write kind = "on_off""#
        );
        assert_eq!(
            error("kind = \"on_off\"\nthink_time = \"2s\""),
            r#"think_time: an on_off workload has no think_time; leave it out or write kind = "request_response""#
        );
    }

    #[test]
    fn distributions_that_make_no_sense() {
        let burst = |size: &str| {
            error(&format!("kind = \"on_off\"\ninterval = \"2s\"\nburst_size = {size}"))
        };
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
        assert_eq!(
            responses("0"),
            "responses: found integer `0`, expected a whole number above zero"
        );
        assert_eq!(
            responses("1048577"),
            "responses: 1048577: a request brings at most 1048576 responses"
        );
    }
}
