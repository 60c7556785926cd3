//! UDP traffic that competes with the connections on a path.

use anabranch_config::PathRef;
use anabranch_config::written::{Problem, WithUnit, name};
use anabranch_net::units::{ByteCount, Rate};
use anabranch_wire::{Duration, IPV4_HEADER_BYTES, IPV6_HEADER_BYTES, UDP_HEADER_BYTES};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Path;
use super::names::{Direction, Family};
use super::paths::position;
use crate::workload::Distribution;

/// UDP traffic that competes with the connections on a path. For TCP cross-traffic, use a connection
/// with `protocol = "tcp"`, for example with an `on_off` workload.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CrossTraffic {
    /// Name of the source; must be unique (default: `cross-traffic-1`, `cross-traffic-2` and so on).
    #[serde(default, deserialize_with = "name", skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// Name of the path that the packets take. They also cross the paths that it goes via.
    pub path: PathRef,
    /// Direction of the packets; `download` is from server to client.
    #[serde(default)]
    pub direction: Direction,
    /// Rate of IP packets during on periods.
    #[serde(with = "WithUnit::<Rate>")]
    pub rate: Rate,
    /// Size of each IP packet, including its headers of IP and UDP (default: the path's MTU).
    #[serde(
        default,
        with = "WithUnit::<Option<ByteCount>>",
        skip_serializing_if = "Option::is_none"
    )]
    pub packet_size: Option<ByteCount>,
    /// Length of each on period; needs `off`. By default the source is always on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Distribution<Duration>")]
    pub on: Option<Distribution<Duration>>,
    /// Length of each off period; needs `on`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Distribution<Duration>")]
    pub off: Option<Distribution<Duration>>,
}

/// Largest number of packets per second: 120 Gbit/s of 1500 bytes. The simulator computes every packet,
/// so this bounds its work. Above 1 packet per ns, time would stand still. No source has this limit.
const MOST_PACKETS: u64 = 10_000_000;

/// Size of the IP and UDP headers in bytes.
fn headers(family: Family) -> u64 {
    let ip = match family {
        Family::Ipv4 => IPV4_HEADER_BYTES,
        Family::Ipv6 => IPV6_HEADER_BYTES,
    };
    (ip + UDP_HEADER_BYTES) as u64
}

impl CrossTraffic {
    /// Size in bytes of each IP packet on the source's `path`.
    pub fn packet_bytes(&self, path: &Path) -> u16 {
        let bytes = self.packet_size.and_then(|size| size.as_u64().try_into().ok());
        bytes.unwrap_or(path.mtu)
    }

    /// Fill in defaults that depend on other keys, and check constraints between keys. The source has
    /// this `index` in a scenario with these `paths`.
    pub(super) fn complete(&mut self, index: usize, paths: &[Path]) -> Result<(), Problem> {
        if self.name.is_empty() {
            self.name = format!("cross-traffic-{}", index + 1);
        }
        let found = position(paths, &self.path.name);
        self.path.index = found.map_err(|text| Problem::new("path", text))?;
        let path = &paths[self.path.index];
        let size = *self.packet_size.get_or_insert(ByteCount::new(path.mtu.into()));
        let (bytes, headers, mtu) = (size.as_u64(), headers(path.family), path.mtu);
        if !(headers..=u64::from(mtu)).contains(&bytes) {
            let problem = format!(
                "\"{bytes}B\": a packet has {headers}B of headers and at most the path's MTU, {mtu}B"
            );
            return Err(Problem::new("packet_size", problem));
        }
        let most = Rate::from_bits_per_second(bytes * 8 * MOST_PACKETS);
        if self.rate > most {
            let problem = format!(
                "\"{}\": packets of {bytes}B would be sent more often than every 100 ns; \
                 write at most \"{most}\"",
                self.rate
            );
            return Err(Problem::new("rate", problem));
        }
        let (missing, given) = match (self.on, self.off) {
            (Some(_), None) => ("off", "on"),
            (None, Some(_)) => ("on", "off"),
            _ => return Ok(()),
        };
        let problem = format!("missing; {given} periods need {missing} periods between them");
        Err(Problem::new(missing, problem))
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::read;
    use super::super::{Factor, Scenario};
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
            path: PathRef { name: "p".into(), index: 0 },
            direction: Direction::Download,
            rate: Rate::from_bits_per_second(500_000),
            packet_size: Some(ByteCount::new(1_400)),
            on: None,
            off: None,
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
            packet_size: Some(ByteCount::new(1_000)),
            on: Some(on),
            off: Some(off),
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
        assert_eq!(
            error("path = \"p\"\nrate = \"1000Tbit/s\""),
            "[0].rate: \"1000Tbit/s\": packets of 1400B would be sent more often than every 100 ns; \
             write at most \"112Gbit/s\""
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
