//! Middleboxes of a path: a table with a kind, and the keys of that kind.

use core::marker::PhantomData;
use std::borrow::Cow;

use anabranch_net::middlebox::{
    BareSegmentsConfig, BlackholedSyns, CoalesceConfig, Directions, MiddleboxConfig, NatConfig,
    OptionCopies, OptionName, PayloadChange, ProactiveAckConfig, RewritePayloadConfig,
    SegmentClass, ShrinkWindowConfig, SplitSegmentsConfig, StripOptionsConfig, Towards,
};
use anabranch_net::units::{Octets, Probability, format_duration};
use anabranch_wire::Duration;
use anabranch_wire::mptcp::Subtype;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{Error, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::Middlebox;
use super::checks::{require_octets, require_some};
use super::error::{Problem, unknown_name};
use super::names::{AppliesTo, MiddleboxKind};
use super::written::Written;

/// A box on a path, at the end of its link that is nearer to the server. The boxes of a path stand
/// in the order of the list, the first next to the link; what goes via the path passes them too.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename = "Middlebox")]
pub(super) struct MiddleboxTable {
    /// What the box does.
    kind: MiddleboxKind,
    /// From when on the box is there; by default from the start.
    #[serde(default)]
    from: Written<Duration>,
    /// Until when the box is there; by default to the end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Written<Duration>")]
    until: Option<Written<Duration>>,
    /// `strip_options` only: what is removed, by default `["mptcp"]`; `unknown` is everything but
    /// maximum segment size, window scale, SACK and timestamps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Vec<Named<OptionName>>")]
    options: Option<Vec<Named<OptionName>>>,
    /// `strip_options` only: from which segments, by default all. `ack` are all without payload
    /// that are none of the others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Vec<Named<SegmentClass>>")]
    segments: Option<Vec<Named<SegmentClass>>>,
    /// `strip_options` only: the first packets of each flow, both directions counted, are left
    /// alone; by default none are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "u32")]
    after_packets: Option<u32>,
    /// `strip_options`, `rewrite_payload`, `shrink_window` and `bare_segments` only: which direction is
    /// changed; by default both.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "AppliesTo")]
    applies_to: Option<AppliesTo>,
    /// `nat` only: a mapping that was not used for longer is dropped, and the flow gets another
    /// port; by default 7440s.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Written<Duration>")]
    idle_timeout: Option<Written<Duration>>,
    /// `nat` only: when all mappings are dropped; by default never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Written<Duration>")]
    rebind_at: Option<Written<Duration>>,
    /// `split_segments` and `coalesce` only: most payload of a segment that leaves; by default
    /// 536B and 2920B.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Written<Octets>")]
    size: Option<Written<Octets>>,
    /// `split_segments` only: which pieces carry the options of the whole; by default `all`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Named<OptionCopies>")]
    options_on: Option<Named<OptionCopies>>,
    /// `coalesce` only: how long a segment waits for the next; by default 1ms.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Written<Duration>")]
    delay: Option<Written<Duration>>,
    /// `rewrite_payload` only: what happens, once in each flow and direction.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Named<PayloadChange>")]
    change: Option<Named<PayloadChange>>,
    /// `rewrite_payload` only: to how many octets, from 1 to 1000; by default 4.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "u32")]
    octets: Option<u32>,
    /// `rewrite_payload` only: after how much of the flow; by default 0B.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Written<Octets>")]
    at: Option<Written<Octets>>,
    /// `proactive_ack` only: how much of a flow may be between the box and its receiver; by
    /// default 64KiB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Written<Octets>")]
    window: Option<Written<Octets>>,
    /// `blackhole_options` only: which SYNs disappear; by default `mptcp`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Named<BlackholedSyns>")]
    syns: Option<Named<BlackholedSyns>>,
    /// `shrink_window` only: mean time for which a host's window is left alone; by default 500ms.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Written<Duration>")]
    every: Option<Written<Duration>>,
    /// `shrink_window` only: mean time for which it is small; by default 200ms.
    #[serde(default, rename = "for", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Written<Duration>")]
    lasts: Option<Written<Duration>>,
    /// `shrink_window` only: most octets that the host offers meanwhile; by default 0B.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Written<Octets>")]
    to: Option<Written<Octets>>,
    /// `shrink_window` only: does the host refuse data beyond what it offers meanwhile? By default it
    /// takes what comes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "bool")]
    refuse: Option<bool>,
    /// `bare_segments` only: probability that a segment gets a bare companion; by default 10%.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Written<Probability>")]
    probability: Option<Written<Probability>>,
}

/// Most boxes on a path: each that translates addresses has one of its own.
const MAX_MIDDLEBOXES: usize = 8;
/// Most octets that are rewritten at a time.
const MAX_REWRITTEN: u32 = 1_000;
const DEFAULT_REWRITTEN: u32 = 4;

/// The boxes that the tables at `key` describe.
pub(super) fn resolve(key: &str, tables: Vec<MiddleboxTable>) -> Result<Vec<Middlebox>, Problem> {
    if tables.len() > MAX_MIDDLEBOXES {
        let problem = format!("{}: a path has at most {MAX_MIDDLEBOXES}", tables.len());
        return Err(Problem::new(key, problem));
    }
    let tables = tables.into_iter().enumerate();
    tables.map(|(n, table)| table.resolve(&format!("{key}[{n}]"))).collect()
}

impl MiddleboxTable {
    fn resolve(self, key: &str) -> Result<Middlebox, Problem> {
        self.refuse_foreign_keys(key)?;
        let (from, until) = (self.from.0, self.until.map(|until| until.0));
        if let Some(until) = until.filter(|until| *until <= from) {
            let (until, from) = (format_duration(until), format_duration(from));
            let problem = format!("{until:?}: must be later than from, {from:?}");
            return Err(Problem::new(format!("{key}.until"), problem));
        }
        Ok(Middlebox { config: self.config(key)?, from, until })
    }

    fn config(self, key: &str) -> Result<MiddleboxConfig, Problem> {
        Ok(match self.kind {
            MiddleboxKind::StripOptions => MiddleboxConfig::StripOptions(self.strip_options(key)?),
            MiddleboxKind::Nat => {
                let default = NatConfig::default();
                MiddleboxConfig::Nat(NatConfig {
                    idle_timeout: self.idle_timeout.map_or(default.idle_timeout, |time| time.0),
                    rebind_at: self.rebind_at.map(|time| time.0),
                })
            }
            MiddleboxKind::RewriteIsn => MiddleboxConfig::RewriteIsn,
            MiddleboxKind::SplitSegments => {
                let default = SplitSegmentsConfig::default();
                MiddleboxConfig::SplitSegments(SplitSegmentsConfig {
                    size: self.size(key, default.size)?,
                    copies: self.options_on.map_or(default.copies, |copies| copies.0),
                })
            }
            MiddleboxKind::Coalesce => {
                let default = CoalesceConfig::default();
                MiddleboxConfig::Coalesce(CoalesceConfig {
                    size: self.size(key, default.size)?,
                    delay: self.delay.map_or(default.delay, |delay| delay.0),
                })
            }
            MiddleboxKind::RewritePayload => {
                MiddleboxConfig::RewritePayload(self.rewrite_payload(key)?)
            }
            MiddleboxKind::ProactiveAck => {
                let default = Octets::new(ProactiveAckConfig::default().window);
                let window = self.window.map_or(default, |window| window.0);
                require_octets(&format!("{key}.window"), window)?;
                MiddleboxConfig::ProactiveAck(ProactiveAckConfig { window: window.as_u64() })
            }
            MiddleboxKind::Normalise => MiddleboxConfig::Normalise,
            MiddleboxKind::HoleRefusal => MiddleboxConfig::HoleRefusal,
            MiddleboxKind::BlackholeOptions => {
                MiddleboxConfig::BlackholeOptions(self.syns.map_or_else(Default::default, |s| s.0))
            }
            MiddleboxKind::ShrinkWindow => MiddleboxConfig::ShrinkWindow(self.shrink_window(key)?),
            MiddleboxKind::BareSegments => {
                let default = BareSegmentsConfig::default();
                MiddleboxConfig::BareSegments(BareSegmentsConfig {
                    probability: self.probability.map_or(default.probability, |chance| chance.0),
                    directions: directions(self.applies_to.unwrap_or_default()),
                })
            }
        })
    }

    fn strip_options(self, key: &str) -> Result<StripOptionsConfig, Problem> {
        let default = StripOptionsConfig::default();
        Ok(StripOptionsConfig {
            options: values(&format!("{key}.options"), self.options, default.options)?,
            segments: values(&format!("{key}.segments"), self.segments, default.segments)?,
            after_packets: self.after_packets.unwrap_or(default.after_packets),
            directions: directions(self.applies_to.unwrap_or_default()),
        })
    }

    fn rewrite_payload(self, key: &str) -> Result<RewritePayloadConfig, Problem> {
        let change = self.change.ok_or_else(|| {
            let problem = "missing; write replace, insert or remove";
            Problem::new(format!("{key}.change"), problem)
        })?;
        let octets = self.octets.unwrap_or(DEFAULT_REWRITTEN);
        if !(1..=MAX_REWRITTEN).contains(&octets) {
            let problem = format!("{octets}: must be between 1 and {MAX_REWRITTEN}");
            return Err(Problem::new(format!("{key}.octets"), problem));
        }
        Ok(RewritePayloadConfig {
            change: change.0,
            octets,
            at: self.at.map_or(0, |at| at.0.as_u64()),
            directions: directions(self.applies_to.unwrap_or_default()),
        })
    }

    fn shrink_window(self, key: &str) -> Result<ShrinkWindowConfig, Problem> {
        let default = ShrinkWindowConfig::default();
        let every = self.every.map_or(default.every, |time| time.0);
        let lasts = self.lasts.map_or(default.lasts, |time| time.0);
        require_some(&format!("{key}.every"), every)?;
        require_some(&format!("{key}.for"), lasts)?;
        Ok(ShrinkWindowConfig {
            every,
            lasts,
            to: self.to.map_or(default.to, |to| to.0.as_u64()),
            refuse: self.refuse.unwrap_or(default.refuse),
            directions: directions(self.applies_to.unwrap_or_default()),
        })
    }

    /// Payload of a segment.
    fn size(&self, key: &str, default: u32) -> Result<u32, Problem> {
        let Some(Written(size)) = self.size else { return Ok(default) };
        require_octets(&format!("{key}.size"), size)?;
        u16::try_from(size.as_u64()).map(u32::from).map_err(|_| {
            let problem = format!("\"{size}\": a segment has at most {}B", u16::MAX);
            Problem::new(format!("{key}.size"), problem)
        })
    }

    /// Keys of other kinds.
    fn refuse_foreign_keys(&self, key: &str) -> Result<(), Problem> {
        use MiddleboxKind::{
            BareSegments, BlackholeOptions, Coalesce, Nat, ProactiveAck, RewritePayload,
            ShrinkWindow, SplitSegments, StripOptions,
        };
        let owners: [(&str, bool, &[MiddleboxKind]); 19] = [
            ("options", self.options.is_some(), &[StripOptions]),
            ("segments", self.segments.is_some(), &[StripOptions]),
            ("after_packets", self.after_packets.is_some(), &[StripOptions]),
            (
                "applies_to",
                self.applies_to.is_some(),
                &[StripOptions, RewritePayload, ShrinkWindow, BareSegments],
            ),
            ("idle_timeout", self.idle_timeout.is_some(), &[Nat]),
            ("rebind_at", self.rebind_at.is_some(), &[Nat]),
            ("size", self.size.is_some(), &[SplitSegments, Coalesce]),
            ("options_on", self.options_on.is_some(), &[SplitSegments]),
            ("delay", self.delay.is_some(), &[Coalesce]),
            ("change", self.change.is_some(), &[RewritePayload]),
            ("octets", self.octets.is_some(), &[RewritePayload]),
            ("at", self.at.is_some(), &[RewritePayload]),
            ("window", self.window.is_some(), &[ProactiveAck]),
            ("syns", self.syns.is_some(), &[BlackholeOptions]),
            ("every", self.every.is_some(), &[ShrinkWindow]),
            ("for", self.lasts.is_some(), &[ShrinkWindow]),
            ("to", self.to.is_some(), &[ShrinkWindow]),
            ("refuse", self.refuse.is_some(), &[ShrinkWindow]),
            ("probability", self.probability.is_some(), &[BareSegments]),
        ];
        let foreign = owners.iter().find(|(_, given, of)| *given && !of.contains(&self.kind));
        let Some((name, _, of)) = foreign else { return Ok(()) };
        let kinds: Vec<_> = of.iter().map(|kind| format!("kind = {:?}", kind.name())).collect();
        let problem = format!("belongs to {}; leave it out", kinds.join(" and "));
        Err(Problem::new(format!("{key}.{name}"), problem))
    }

    /// The table that describes a box, with every default spelled out.
    pub(super) fn new(middlebox: &Middlebox) -> Self {
        let mut table = MiddleboxTable {
            from: Written(middlebox.from),
            until: middlebox.until.map(Written),
            ..MiddleboxTable::default()
        };
        table.kind = match &middlebox.config {
            MiddleboxConfig::StripOptions(strip) => {
                table.options = Some(strip.options.iter().copied().map(Named).collect());
                table.segments = Some(strip.segments.iter().copied().map(Named).collect());
                table.after_packets = Some(strip.after_packets);
                table.applies_to = Some(applies_to(strip.directions));
                MiddleboxKind::StripOptions
            }
            MiddleboxConfig::Nat(nat) => {
                table.idle_timeout = Some(Written(nat.idle_timeout));
                table.rebind_at = nat.rebind_at.map(Written);
                MiddleboxKind::Nat
            }
            MiddleboxConfig::RewriteIsn => MiddleboxKind::RewriteIsn,
            MiddleboxConfig::SplitSegments(split) => {
                table.size = Some(Written(Octets::new(split.size.into())));
                table.options_on = Some(Named(split.copies));
                MiddleboxKind::SplitSegments
            }
            MiddleboxConfig::Coalesce(coalesce) => {
                table.size = Some(Written(Octets::new(coalesce.size.into())));
                table.delay = Some(Written(coalesce.delay));
                MiddleboxKind::Coalesce
            }
            MiddleboxConfig::RewritePayload(rewrite) => {
                table.change = Some(Named(rewrite.change));
                table.octets = Some(rewrite.octets);
                table.at = Some(Written(Octets::new(rewrite.at)));
                table.applies_to = Some(applies_to(rewrite.directions));
                MiddleboxKind::RewritePayload
            }
            MiddleboxConfig::ProactiveAck(proxy) => {
                table.window = Some(Written(Octets::new(proxy.window)));
                MiddleboxKind::ProactiveAck
            }
            MiddleboxConfig::Normalise => MiddleboxKind::Normalise,
            MiddleboxConfig::HoleRefusal => MiddleboxKind::HoleRefusal,
            MiddleboxConfig::BlackholeOptions(syns) => {
                table.syns = Some(Named(*syns));
                MiddleboxKind::BlackholeOptions
            }
            MiddleboxConfig::ShrinkWindow(shrink) => {
                table.every = Some(Written(shrink.every));
                table.lasts = Some(Written(shrink.lasts));
                table.to = Some(Written(Octets::new(shrink.to)));
                table.refuse = Some(shrink.refuse);
                table.applies_to = Some(applies_to(shrink.directions));
                MiddleboxKind::ShrinkWindow
            }
            MiddleboxConfig::BareSegments(bare) => {
                table.probability = Some(Written(bare.probability));
                table.applies_to = Some(applies_to(bare.directions));
                MiddleboxKind::BareSegments
            }
        };
        table
    }
}

/// The values of a list that has one at least.
fn values<T>(key: &str, list: Option<Vec<Named<T>>>, default: Vec<T>) -> Result<Vec<T>, Problem> {
    match list {
        None => Ok(default),
        Some(list) if list.is_empty() => {
            Err(Problem::new(key, "[]: write at least one, or leave it out"))
        }
        Some(list) => Ok(list.into_iter().map(|named| named.0).collect()),
    }
}

fn directions(applies_to: AppliesTo) -> Directions {
    match applies_to {
        AppliesTo::Forward => Directions::Only(Towards::Client),
        AppliesTo::Reverse => Directions::Only(Towards::Server),
        AppliesTo::Both => Directions::Both,
    }
}

fn applies_to(directions: Directions) -> AppliesTo {
    match directions {
        Directions::Only(Towards::Client) => AppliesTo::Forward,
        Directions::Only(Towards::Server) => AppliesTo::Reverse,
        Directions::Both => AppliesTo::Both,
    }
}

/// A value of the emulated network that a file holds by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Named<T>(T);

/// What the values are called.
trait Names: Copy + PartialEq + 'static {
    /// Name in the JSON Schema.
    const SCHEMA: &'static str;
    /// What they are names of.
    const NOUN: &'static str;
    const ALL: &'static [(&'static str, Self)];
}

impl Names for OptionName {
    const SCHEMA: &'static str = "TcpOption";
    const NOUN: &'static str = "option";
    const ALL: &'static [(&'static str, Self)] = &[
        ("mptcp", OptionName::Mptcp),
        ("unknown", OptionName::Unknown),
        ("mp_capable", OptionName::Subtype(Subtype::Capable)),
        ("mp_join", OptionName::Subtype(Subtype::Join)),
        ("dss", OptionName::Subtype(Subtype::Dss)),
        ("add_addr", OptionName::Subtype(Subtype::AddAddr)),
        ("remove_addr", OptionName::Subtype(Subtype::RemoveAddr)),
        ("mp_prio", OptionName::Subtype(Subtype::Prio)),
        ("mp_fail", OptionName::Subtype(Subtype::Fail)),
        ("mp_fastclose", OptionName::Subtype(Subtype::Fastclose)),
        ("mp_tcprst", OptionName::Subtype(Subtype::Tcprst)),
    ];
}

impl Names for SegmentClass {
    const SCHEMA: &'static str = "SegmentClass";
    const NOUN: &'static str = "class of segments";
    const ALL: &'static [(&'static str, Self)] = &[
        ("syn", SegmentClass::Syn),
        ("syn_ack", SegmentClass::SynAck),
        ("third_ack", SegmentClass::ThirdAck),
        ("data", SegmentClass::Data),
        ("ack", SegmentClass::Ack),
    ];
}

impl Names for OptionCopies {
    const SCHEMA: &'static str = "OptionCopies";
    const NOUN: &'static str = "choice of pieces";
    const ALL: &'static [(&'static str, Self)] =
        &[("all", OptionCopies::All), ("first", OptionCopies::First)];
}

impl Names for PayloadChange {
    const SCHEMA: &'static str = "PayloadChange";
    const NOUN: &'static str = "change";
    const ALL: &'static [(&'static str, Self)] = &[
        ("replace", PayloadChange::Replace),
        ("insert", PayloadChange::Insert),
        ("remove", PayloadChange::Remove),
    ];
}

impl Names for BlackholedSyns {
    const SCHEMA: &'static str = "BlackholedSyns";
    const NOUN: &'static str = "choice of SYNs";
    const ALL: &'static [(&'static str, Self)] = &[
        ("mptcp", BlackholedSyns::Mptcp),
        ("mp_join", BlackholedSyns::MpJoin),
        ("all", BlackholedSyns::All),
    ];
}

impl<T: Names> Serialize for Named<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let found = T::ALL.iter().find(|(_, value)| *value == self.0);
        serializer.serialize_str(found.expect("every value has a name").0)
    }
}

impl<'de, T: Names> Deserialize<'de> for Named<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(NameVisitor(PhantomData))
    }
}

struct NameVisitor<T>(PhantomData<T>);

impl<T: Names> Visitor<'_> for NameVisitor<T> {
    type Value = Named<T>;

    fn expecting(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "a name such as {:?}", T::ALL[0].0)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Named<T>, E> {
        let found = T::ALL.iter().find(|(name, _)| *name == text);
        found.map(|(_, value)| Named(*value)).ok_or_else(|| {
            let valid: Vec<_> = T::ALL.iter().map(|(name, _)| *name).collect();
            E::custom(unknown_name(T::NOUN, text, &valid))
        })
    }
}

impl<T: Names> JsonSchema for Named<T> {
    fn schema_name() -> Cow<'static, str> {
        T::SCHEMA.into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let names: Vec<_> = T::ALL.iter().map(|(name, _)| *name).collect();
        json_schema!({ "type": "string", "enum": names })
    }
}

#[cfg(test)]
mod tests {
    use super::super::Scenario;
    use super::super::tests::read;
    use super::*;

    /// A scenario with these boxes.
    fn text(boxes: &str) -> String {
        format!(
            "name = \"a\"\nduration = \"1s\"\n\
             [[path]]\nname = \"p\"\nrate = \"8Mbit/s\"\ndelay = \"1ms\"\nlimit = \"infinite\"\n\
             [[path.middlebox]]\n{boxes}\n\
             [[connection]]\nworkload = {{ kind = \"bulk\" }}\n"
        )
    }

    fn boxes(boxes: &str) -> Vec<Middlebox> {
        let scenario = read(&text(boxes));
        assert_eq!(read(&scenario.to_toml()), scenario);
        scenario.paths[0].middleboxes.clone()
    }

    fn error(boxes: &str) -> String {
        let error = Scenario::from_toml(&text(boxes), "a.toml").unwrap_err().to_string();
        assert_eq!(error.lines().count(), 1);
        error.strip_prefix("a.toml: path[0].middlebox").expect(&error).to_owned()
    }

    #[test]
    fn every_kind_has_the_defaults_of_the_network() {
        let kinds = [
            ("strip_options", MiddleboxConfig::StripOptions(StripOptionsConfig::default())),
            ("nat", MiddleboxConfig::Nat(NatConfig::default())),
            ("rewrite_isn", MiddleboxConfig::RewriteIsn),
            ("split_segments", MiddleboxConfig::SplitSegments(SplitSegmentsConfig::default())),
            ("coalesce", MiddleboxConfig::Coalesce(CoalesceConfig::default())),
            ("proactive_ack", MiddleboxConfig::ProactiveAck(ProactiveAckConfig::default())),
            ("normalise", MiddleboxConfig::Normalise),
            ("hole_refusal", MiddleboxConfig::HoleRefusal),
            ("blackhole_options", MiddleboxConfig::BlackholeOptions(BlackholedSyns::Mptcp)),
            ("shrink_window", MiddleboxConfig::ShrinkWindow(ShrinkWindowConfig::default())),
            ("bare_segments", MiddleboxConfig::BareSegments(BareSegmentsConfig::default())),
        ];
        for (kind, config) in kinds {
            let expected = Middlebox { config, from: Duration::ZERO, until: None };
            assert_eq!(boxes(&format!("kind = {kind:?}")), [expected]);
        }
        let rewrite = RewritePayloadConfig {
            change: PayloadChange::Insert,
            octets: 4,
            at: 0,
            directions: Directions::Both,
        };
        let config = MiddleboxConfig::RewritePayload(rewrite);
        let found = boxes("kind = \"rewrite_payload\"\nchange = \"insert\"");
        assert_eq!(found, [Middlebox { config, from: Duration::ZERO, until: None }]);
    }

    #[test]
    fn all_keys_are_read_and_boxes_keep_their_order() {
        let found = boxes(
            "kind = \"strip_options\"\noptions = [\"mp_join\", \"dss\"]\nsegments = [\"data\"]\n\
             after_packets = 20\napplies_to = \"reverse\"\nfrom = \"1s\"\nuntil = \"2s\"\n\
             [[path.middlebox]]\nkind = \"nat\"\nidle_timeout = \"30s\"\nrebind_at = \"5s\"\n\
             [[path.middlebox]]\nkind = \"rewrite_payload\"\nchange = \"remove\"\noctets = 7\n\
             at = \"20kB\"\napplies_to = \"forward\"\n\
             [[path.middlebox]]\nkind = \"split_segments\"\nsize = \"100B\"\noptions_on = \"first\"\n\
             [[path.middlebox]]\nkind = \"coalesce\"\nsize = \"60kB\"\ndelay = \"3ms\"\n\
             [[path.middlebox]]\nkind = \"proactive_ack\"\nwindow = \"10kB\"\n\
             [[path.middlebox]]\nkind = \"blackhole_options\"\nsyns = \"mp_join\"\n\
             [[path.middlebox]]\nkind = \"bare_segments\"\nprobability = \"2%\"\n\
             applies_to = \"forward\"",
        );
        let (from, until) = (Duration::from_secs(1), Some(Duration::from_secs(2)));
        assert_eq!((found[0].from, found[0].until), (from, until));
        let [join, dss] = [Subtype::Join, Subtype::Dss].map(OptionName::Subtype);
        let expected = [
            MiddleboxConfig::StripOptions(StripOptionsConfig {
                options: vec![join, dss],
                segments: vec![SegmentClass::Data],
                after_packets: 20,
                directions: Directions::Only(Towards::Server),
            }),
            MiddleboxConfig::Nat(NatConfig {
                idle_timeout: Duration::from_secs(30),
                rebind_at: Some(Duration::from_secs(5)),
            }),
            MiddleboxConfig::RewritePayload(RewritePayloadConfig {
                change: PayloadChange::Remove,
                octets: 7,
                at: 20_000,
                directions: Directions::Only(Towards::Client),
            }),
            MiddleboxConfig::SplitSegments(SplitSegmentsConfig {
                size: 100,
                copies: OptionCopies::First,
            }),
            MiddleboxConfig::Coalesce(CoalesceConfig {
                size: 60_000,
                delay: Duration::from_millis(3),
            }),
            MiddleboxConfig::ProactiveAck(ProactiveAckConfig { window: 10_000 }),
            MiddleboxConfig::BlackholeOptions(BlackholedSyns::MpJoin),
            MiddleboxConfig::BareSegments(BareSegmentsConfig {
                probability: "2%".parse().unwrap(),
                directions: Directions::Only(Towards::Client),
            }),
        ];
        let configs: Vec<_> = found.into_iter().map(|found| found.config).collect();
        assert_eq!(configs, expected);
    }

    #[test]
    fn all_keys_of_shrunk_windows_are_read() {
        let found = boxes(
            "kind = \"shrink_window\"\nevery = \"2s\"\nfor = \"1s\"\nto = \"3kB\"\n\
             refuse = true\napplies_to = \"reverse\"",
        );
        let config = MiddleboxConfig::ShrinkWindow(ShrinkWindowConfig {
            every: Duration::from_secs(2),
            lasts: Duration::from_secs(1),
            to: 3_000,
            refuse: true,
            directions: Directions::Only(Towards::Server),
        });
        assert_eq!(found, [Middlebox { config, from: Duration::ZERO, until: None }]);
    }

    #[test]
    fn boxes_that_make_no_sense() {
        assert_eq!(
            error("kind = \"strip_option\""),
            "[0].kind: unknown kind \"strip_option\"; did you mean \"strip_options\"? (valid: \
             strip_options, nat, rewrite_isn, split_segments, coalesce, rewrite_payload, \
             proactive_ack, normalise, hole_refusal, blackhole_options, shrink_window, \
             bare_segments)"
        );
        assert_eq!(
            error("kind = \"strip_options\"\noptions = [\"dss\", \"mp_jion\"]"),
            "[0].options[1]: unknown option \"mp_jion\"; did you mean \"mp_join\"? (valid: mptcp, \
             unknown, mp_capable, mp_join, dss, add_addr, remove_addr, mp_prio, mp_fail, \
             mp_fastclose, mp_tcprst)"
        );
        assert_eq!(
            error("kind = \"strip_options\"\nsegments = []"),
            "[0].segments: []: write at least one, or leave it out"
        );
        assert_eq!(
            error("kind = \"rewrite_payload\""),
            "[0].change: missing; write replace, insert or remove"
        );
        assert_eq!(
            error("kind = \"rewrite_payload\"\nchange = \"insert\"\noctets = 1001"),
            "[0].octets: 1001: must be between 1 and 1000"
        );
        assert_eq!(
            error("kind = \"nat\"\nsize = \"1kB\""),
            "[0].size: belongs to kind = \"split_segments\" and kind = \"coalesce\"; leave it out"
        );
        assert_eq!(
            error("kind = \"coalesce\"\nsize = \"66kB\""),
            "[0].size: \"66kB\": a segment has at most 65535B"
        );
        assert_eq!(
            error("kind = \"proactive_ack\"\nwindow = \"0B\""),
            "[0].window: \"0B\": must be at least one octet"
        );
        assert_eq!(
            error("kind = \"shrink_window\"\nfor = \"0s\""),
            "[0].for: \"0s\": must be longer than zero"
        );
        assert_eq!(
            error("kind = \"nat\"\nfrom = \"2s\"\nuntil = \"2s\""),
            "[0].until: \"2s\": must be later than from, \"2s\""
        );
        assert_eq!(
            error("kind = \"nat\"\nidle = \"2s\""),
            "[0].idle: unknown key; did you mean \"idle_timeout\"?"
        );
        assert_eq!(error("from = \"2s\""), "[0].kind: missing; this key is required");
        let nine = ["kind = \"nat\""; 9].join("\n[[path.middlebox]]\n");
        assert_eq!(error(&nine), ": 9: a path has at most 8");
    }
}
