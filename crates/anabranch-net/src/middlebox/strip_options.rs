//! Removes TCP options. Honda et al., IMC 2011: middleboxes remove unknown options, from SYNs more
//! often than from data.

use anabranch_config::Part;
use anabranch_wire::mptcp::{Control, KIND, Subtype};
use anabranch_wire::{Flags, Instant, Packet, RawOptions, Segment, TcpOptions};

use super::flows::Flows;
use super::{BuildMiddlebox, Directions, Filter, Middlebox, Side, Site};

/// Parameters of the middlebox that removes options.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema),
    serde(default, deny_unknown_fields)
)]
pub struct StripOptionsConfig {
    /// Which options are removed. `unknown` means all except maximum segment size, window scale, SACK and
    /// timestamps.
    #[cfg_attr(feature = "serde", schemars(length(min = 1), extend("x-origin" = "this project")))]
    pub options: Vec<OptionName>,
    /// From which segments. `ack` means all without payload that are in no other class.
    #[cfg_attr(feature = "serde", schemars(length(min = 1), extend("x-origin" = "this project: all")))]
    pub segments: Vec<SegmentClass>,
    /// Number of packets at the start of each flow, in both directions together, that are not changed.
    #[cfg_attr(feature = "serde", schemars(extend("x-origin" = "this project")))]
    pub after_packets: u32,
    /// Which direction is affected.
    #[cfg_attr(feature = "serde", serde(rename = "applies_to"), schemars(extend("x-origin" = "this project")))]
    pub directions: Directions,
}

/// One option or a group of options.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema),
    serde(rename_all = "snake_case"),
    schemars(inline)
)]
pub enum OptionName {
    /// All Multipath TCP options.
    Mptcp,
    /// All options except maximum segment size, window scale, SACK and timestamps.
    Unknown,
    /// MP_CAPABLE.
    MpCapable,
    /// MP_JOIN.
    MpJoin,
    /// DSS.
    Dss,
    /// ADD_ADDR.
    AddAddr,
    /// REMOVE_ADDR.
    RemoveAddr,
    /// MP_PRIO.
    MpPrio,
    /// MP_FAIL.
    MpFail,
    /// MP_FASTCLOSE.
    MpFastclose,
    /// MP_TCPRST.
    MpTcprst,
}

impl OptionName {
    /// The Multipath TCP option of this name; `None` for a group.
    fn subtype(self) -> Option<Subtype> {
        Some(match self {
            OptionName::Mptcp | OptionName::Unknown => return None,
            OptionName::MpCapable => Subtype::Capable,
            OptionName::MpJoin => Subtype::Join,
            OptionName::Dss => Subtype::Dss,
            OptionName::AddAddr => Subtype::AddAddr,
            OptionName::RemoveAddr => Subtype::RemoveAddr,
            OptionName::MpPrio => Subtype::Prio,
            OptionName::MpFail => Subtype::Fail,
            OptionName::MpFastclose => Subtype::Fastclose,
            OptionName::MpTcprst => Subtype::Tcprst,
        })
    }
}

/// The class of a segment. The classes are disjoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema),
    serde(rename_all = "snake_case"),
    schemars(inline)
)]
pub enum SegmentClass {
    /// The SYN.
    Syn,
    /// The SYN/ACK.
    SynAck,
    /// The third ACK and its repetitions: acknowledgements by the initiator before any data.
    ThirdAck,
    /// Segments with payload.
    Data,
    /// Other segments without payload: acknowledgements, FINs and RSTs.
    Ack,
}

/// Removes options from segments.
#[derive(Debug)]
struct StripOptions {
    config: StripOptionsConfig,
    /// Packets of each flow so far, and whether there was data.
    flows: Flows<FlowCount>,
}

#[derive(Debug, Default)]
struct FlowCount {
    packets: u64,
    data: bool,
}

impl StripOptions {
    fn new(config: StripOptionsConfig) -> Self {
        StripOptions { config, flows: Flows::default() }
    }

    /// The class of a segment, and how many packets of its flow came before it. A segment of an
    /// unknown flow counts as late.
    fn classify(&mut self, towards: Side, segment: &Segment) -> (SegmentClass, u64) {
        let flow = self.flows.of(towards, segment);
        let flags = segment.header.flags;
        let class = if flags.contains(Flags::SYN) {
            if flags.contains(Flags::ACK) { SegmentClass::SynAck } else { SegmentClass::Syn }
        } else if segment.payload.is_empty() {
            SegmentClass::Ack
        } else {
            SegmentClass::Data
        };
        let Some(flow) = flow else { return (class, u64::MAX) };
        let before = flow.state.packets;
        flow.state.packets += 1;
        flow.state.data |= class == SegmentClass::Data;
        let third = class == SegmentClass::Ack
            && !flow.state.data
            && flow.opened == towards
            && !flags.intersects(Flags::FIN | Flags::RST);
        (if third { SegmentClass::ThirdAck } else { class }, before)
    }
}

impl Filter for StripOptions {
    fn pass(&mut self, _now: Instant, towards: Side, packet: &mut Packet) -> bool {
        let Packet::Tcp(segment) = packet else { return true };
        let (class, before) = self.classify(towards, segment);
        let concerned = before >= u64::from(self.config.after_packets)
            && self.config.segments.contains(&class)
            && self.config.directions.include(towards);
        if concerned {
            for name in &self.config.options {
                strip(&mut segment.options, *name);
            }
        }
        true
    }
}

fn strip(options: &mut TcpOptions, name: OptionName) {
    match name {
        OptionName::Mptcp | OptionName::Unknown => {
            (options.dss, options.control) = (None, None);
            options.unknown = match options.unknown.take() {
                Some(bytes) if name == OptionName::Mptcp => without_mptcp(&bytes),
                _ => None,
            };
            if name == OptionName::Unknown {
                options.fast_open = None;
            }
        }
        OptionName::Dss => options.dss = None,
        _ => {
            if let (Some(control), Some(subtype)) = (&mut options.control, name.subtype()) {
                strip_control(control, subtype);
            }
            options.control.take_if(|control| **control == Control::default());
        }
    }
}

fn strip_control(control: &mut Control, subtype: Subtype) {
    match subtype {
        Subtype::Capable => control.capable = None,
        Subtype::Join => control.join = None,
        Subtype::AddAddr => control.add_addr = None,
        Subtype::RemoveAddr => control.remove_addr = None,
        Subtype::Prio => control.prio = None,
        Subtype::Fail => control.fail = None,
        Subtype::Fastclose => control.fastclose = None,
        Subtype::Tcprst => control.reset = None,
        Subtype::Dss => {}
    }
}

/// Raw options without Multipath TCP options.
fn without_mptcp(bytes: &[u8]) -> Option<RawOptions> {
    let mut kept = Vec::new();
    let mut rest = bytes;
    while let [kind, len, ..] = *rest {
        let (option, after) = rest.split_at(usize::from(len).clamp(2, rest.len()));
        if kind != KIND {
            kept.extend_from_slice(option);
        }
        rest = after;
    }
    (!kept.is_empty()).then(|| kept.into())
}

impl Default for StripOptionsConfig {
    fn default() -> Self {
        use SegmentClass::{Ack, Data, Syn, SynAck, ThirdAck};
        StripOptionsConfig {
            options: vec![OptionName::Mptcp],
            segments: vec![Syn, SynAck, ThirdAck, Data, Ack],
            after_packets: 0,
            directions: Directions::Both,
        }
    }
}

impl Part for StripOptionsConfig {
    const NAME: &'static str = "strip_options";
    const SUMMARY: &'static str = "Removes TCP options.";
    const SOURCE: &'static str = "Honda et al., IMC 2011";
}

impl BuildMiddlebox for StripOptionsConfig {
    fn build(&self, _: Site) -> Box<dyn Middlebox> {
        super::filter(StripOptions::new(self.clone()))
    }
}

#[cfg(test)]
mod tests {
    use super::super::filter;
    use super::super::testing::{Bench, Talk};
    use super::*;
    use anabranch_wire::mptcp::{MpFastclose, MpPrio};
    use anabranch_wire::{FastOpenCookie, Timestamps};

    fn config(options: OptionName, segments: &[SegmentClass]) -> StripOptionsConfig {
        StripOptionsConfig {
            options: vec![options],
            segments: segments.to_vec(),
            ..StripOptionsConfig::default()
        }
    }

    /// For each segment of a short exchange, whether its DSS option arrives.
    fn arrives(config: StripOptionsConfig) -> Vec<bool> {
        use Side::{Client, Server};
        let talk = Talk::v4();
        let exchange = [
            (Server, talk.syn()),
            (Client, talk.syn_ack()),
            (Server, talk.ack(Server, 0)),
            (Server, talk.ack(Server, 0)),
            (Server, talk.data(Server, 0, 10)),
            (Client, talk.ack(Client, 10)),
            (Server, talk.ack(Server, 0)),
            (Client, talk.data(Client, 0, 10)),
        ];
        let mut bench = Bench::new(filter(StripOptions::new(config)));
        let dss = talk.data(Server, 0, 10).options.dss;
        exchange
            .into_iter()
            .map(|(towards, mut segment)| {
                segment.options.dss = dss;
                bench.cross(towards, segment).options.dss.is_some()
            })
            .collect()
    }

    #[test]
    fn segments_are_classified() {
        use SegmentClass::{Ack, Data, Syn, SynAck, ThirdAck};
        let kept = |class| {
            let kept = arrives(config(OptionName::Mptcp, &[class]));
            kept.into_iter().map(u8::from).collect::<Vec<_>>()
        };
        assert_eq!(kept(Syn), [0, 1, 1, 1, 1, 1, 1, 1]);
        assert_eq!(kept(SynAck), [1, 0, 1, 1, 1, 1, 1, 1]);
        assert_eq!(kept(ThirdAck), [1, 1, 0, 0, 1, 1, 1, 1]);
        assert_eq!(kept(Data), [1, 1, 1, 1, 0, 1, 1, 0]);
        assert_eq!(kept(Ack), [1, 1, 1, 1, 1, 0, 0, 1]);
        assert_eq!(arrives(StripOptionsConfig::default()), [false; 8]);
    }

    #[test]
    fn the_first_packets_and_the_other_direction_can_be_exempt() {
        let later = StripOptionsConfig { after_packets: 5, ..StripOptionsConfig::default() };
        let expected = [true, true, true, true, true, false, false, false];
        assert_eq!(arrives(later), expected);
        let directions = Directions::Forward;
        let one_way = StripOptionsConfig { directions, ..StripOptionsConfig::default() };
        assert_eq!(arrives(one_way), [true, false, true, true, true, false, true, false]);
    }

    #[test]
    fn only_the_named_options_are_removed() {
        let talk = Talk::v6();
        let mut segment = talk.data(Side::Server, 0, 10);
        segment.options.timestamps = Some(Timestamps { value: 1, echo: 2 });
        segment.options.control_mut().prio = Some(MpPrio { backup: true });
        segment.options.control_mut().fastclose = Some(MpFastclose { receiver_key: 5 });
        // Kind 253 (experiments, RFC 4727) and an undefined Multipath TCP subtype.
        segment.options.unknown = Some(vec![253, 4, 1, 2, KIND, 3, 0xb0].into());
        segment.options.fast_open = Some(Box::new(FastOpenCookie::REQUEST));
        let fast_open = segment.options.fast_open.clone();
        let after = |name| {
            let config = config(name, &[SegmentClass::Data]);
            let mut bench = Bench::new(filter(StripOptions::new(config)));
            bench.cross(Side::Server, segment.clone()).options
        };
        let mut expected = segment.options.clone();
        expected.control_mut().prio = None;
        assert_eq!(after(OptionName::MpPrio), expected);
        let bare = TcpOptions { timestamps: segment.options.timestamps, ..TcpOptions::default() };
        assert_eq!(after(OptionName::Unknown), bare);
        let unknown = Some(vec![253, 4, 1, 2].into());
        assert_eq!(after(OptionName::Mptcp), TcpOptions { unknown, fast_open, ..bare });
    }

    #[test]
    fn malformed_raw_options_end_the_search() {
        assert_eq!(without_mptcp(&[7, 0, 9, 200, 1]), Some(vec![7, 0, 9, 200, 1].into()));
        assert_eq!(without_mptcp(&[KIND, 255]), None);
        assert_eq!(without_mptcp(&[]), None);
    }
}
