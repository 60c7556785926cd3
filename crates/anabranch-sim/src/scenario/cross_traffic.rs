//! UDP traffic that shares a path with the connections and takes no part in them.

use anabranch_net::units::{Octets, Rate};
use anabranch_wire::{Duration, IPV4_HEADER_OCTETS, IPV6_HEADER_OCTETS, UDP_HEADER_OCTETS};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::checks::require_name;
use super::distribution::DistributionValue;
use super::error::{Problem, unknown_name};
use super::names::{Direction, Family};
use super::written::Written;
use super::{CrossTraffic, Path, Periods};

/// UDP traffic that shares a path with the connections and takes no part in them.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename = "CrossTraffic")]
pub(super) struct CrossTrafficTable {
    /// Name of the source, by default `cross-traffic-1`, `cross-traffic-2` and so on; no two are
    /// the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    name: Option<String>,
    /// Name of the path that the packets take, with the paths that it goes via.
    path: String,
    /// `download` is from server to client.
    #[serde(default)]
    direction: Direction,
    /// Rate while on, counted in IP packets.
    rate: Written<Rate>,
    /// Size of each IP packet, its 28 octets of headers included; by default the path's MTU.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Written<Octets>")]
    packet_size: Option<Written<Octets>>,
    /// Length of each on period; with `off`. By default the source is always on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "DistributionValue<Written<Duration>>")]
    on: Option<DistributionValue<Written<Duration>>>,
    /// Length of each off period; with `on`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "DistributionValue<Written<Duration>>")]
    off: Option<DistributionValue<Written<Duration>>>,
}

/// Octets of the headers of IP and UDP.
fn headers(family: Family) -> u64 {
    let ip = match family {
        Family::Ipv4 => IPV4_HEADER_OCTETS,
        Family::Ipv6 => IPV6_HEADER_OCTETS,
    };
    (ip + UDP_HEADER_OCTETS) as u64
}

impl CrossTrafficTable {
    /// The source number `index` that the table at `key` describes.
    pub(super) fn resolve(
        self,
        key: &str,
        index: usize,
        paths: &[Path],
    ) -> Result<CrossTraffic, Problem> {
        let name = self.name.unwrap_or_else(|| format!("cross-traffic-{}", index + 1));
        require_name(&format!("{key}.name"), &name)?;
        let path = paths.iter().position(|path| path.name == self.path).ok_or_else(|| {
            let valid: Vec<_> = paths.iter().map(|path| path.name.as_str()).collect();
            Problem::new(format!("{key}.path"), unknown_name("path", &self.path, &valid))
        })?;
        let mtu = paths[path].mtu;
        let packet_size = match self.packet_size {
            Some(size) => packet_size(key, size.0, &paths[path])?,
            None => mtu,
        };
        Ok(CrossTraffic {
            name,
            path,
            direction: self.direction,
            rate: self.rate.0,
            packet_size,
            periods: periods(key, self.on, self.off)?,
        })
    }

    /// The table that describes `traffic`, with every default spelled out.
    pub(super) fn new(traffic: &CrossTraffic, paths: &[Path]) -> Self {
        CrossTrafficTable {
            name: Some(traffic.name.clone()),
            path: paths[traffic.path].name.clone(),
            direction: traffic.direction,
            rate: Written(traffic.rate),
            packet_size: Some(Written(Octets::new(traffic.packet_size.into()))),
            on: traffic.periods.map(|periods| periods.on.into()),
            off: traffic.periods.map(|periods| periods.off.into()),
        }
    }
}

fn packet_size(key: &str, size: Octets, path: &Path) -> Result<u16, Problem> {
    let (octets, headers, mtu) = (size.as_u64(), headers(path.family), path.mtu);
    if !(headers..=u64::from(mtu)).contains(&octets) {
        let problem = format!(
            "\"{octets}B\": a packet has {headers}B of headers and at most the path's MTU, {mtu}B"
        );
        return Err(Problem::new(format!("{key}.packet_size"), problem));
    }
    Ok(octets as u16)
}

fn periods(
    key: &str,
    on: Option<DistributionValue<Written<Duration>>>,
    off: Option<DistributionValue<Written<Duration>>>,
) -> Result<Option<Periods>, Problem> {
    let alone = |missing: &str, given: &str| {
        let problem = format!("missing; {given} periods need {missing} periods between them");
        Err(Problem::new(format!("{key}.{missing}"), problem))
    };
    match (on, off) {
        (None, None) => Ok(None),
        (Some(_), None) => alone("off", "on"),
        (None, Some(_)) => alone("on", "off"),
        (Some(on), Some(off)) => Ok(Some(Periods {
            on: on.resolve(&format!("{key}.on"), false)?,
            off: off.resolve(&format!("{key}.off"), false)?,
        })),
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::read;
    use super::super::{Distribution, Factor, Scenario};
    use super::*;

    /// A scenario with this source.
    fn text(source: &str) -> String {
        format!(
            "name = \"a\"\nduration = \"1s\"\n\
             [[path]]\nname = \"p\"\nrate = \"8Mbit/s\"\ndelay = \"1ms\"\nlimit = \"infinite\"\n\
             mtu = \"1400B\"\n[[connection]]\nworkload = {{ kind = \"bulk\" }}\n\
             [[cross_traffic]]\n{source}\n"
        )
    }

    fn error(source: &str) -> String {
        let error = Scenario::from_toml(&text(source), "a.toml").unwrap_err().to_string();
        assert_eq!(error.lines().count(), 1);
        error.strip_prefix("a.toml: cross_traffic").expect(&error).to_owned()
    }

    #[test]
    fn a_source_is_always_on_with_full_packets_unless_it_says_otherwise() {
        let expected = CrossTraffic {
            name: "cross-traffic-1".to_owned(),
            path: 0,
            direction: Direction::Download,
            rate: Rate::from_bits_per_second(500_000),
            packet_size: 1_400,
            periods: None,
        };
        let scenario = read(&text("path = \"p\"\nrate = \"500kbit/s\""));
        assert_eq!(scenario.cross_traffic, vec![expected.clone()]);
        assert_eq!(read(&scenario.to_toml()), scenario);
        let scenario = read(&text(
            "name = \"others\"\npath = \"p\"\ndirection = \"upload\"\nrate = \"500kbit/s\"\n\
             packet_size = \"1kB\"\non = { kind = \"pareto\", mean = \"500ms\", shape = 1.5 }\n\
             off = { kind = \"exponential\", mean = \"1s\" }",
        ));
        let on = Distribution::Pareto {
            mean: Duration::from_millis(500),
            shape: Factor::from_thousandths(1_500),
        };
        let off = Distribution::Exponential { mean: Duration::from_secs(1) };
        let expected = CrossTraffic {
            name: "others".to_owned(),
            direction: Direction::Upload,
            packet_size: 1_000,
            periods: Some(Periods { on, off }),
            ..expected
        };
        assert_eq!(scenario.cross_traffic, [expected]);
        assert_eq!(read(&scenario.to_toml()), scenario);
    }

    #[test]
    fn a_source_that_makes_no_sense() {
        let with = |key: &str| error(&format!("path = \"p\"\nrate = \"1Mbit/s\"\n{key}"));
        assert_eq!(
            error("path = \"q\"\nrate = \"1Mbit/s\""),
            "[0].path: unknown path \"q\"; did you mean \"p\"? (valid: p)"
        );
        assert_eq!(error("path = \"p\""), "[0].rate: missing; this key is required");
        for size in ["27B", "1401B"] {
            assert_eq!(
                with(&format!("packet_size = {size:?}")),
                format!(
                    "[0].packet_size: {size:?}: a packet has 28B of headers and at most the path's MTU, 1400B"
                )
            );
        }
        assert_eq!(
            with("on = \"1s\""),
            "[0].off: missing; on periods need off periods between them"
        );
        assert_eq!(with("on = \"1s\"\noff = \"0s\""), "[0].off: \"0s\": must be more than zero");
        assert_eq!(
            with("direction = \"forward\""),
            "[0].direction: unknown direction \"forward\" (valid: download, upload)"
        );
        assert_eq!(
            with("[[cross_traffic]]\nname = \"cross-traffic-1\"\npath = \"p\"\nrate = \"1Mbit/s\""),
            "[1].name: \"cross-traffic-1\" is already the name of cross_traffic[0]; choose another"
        );
    }
}
