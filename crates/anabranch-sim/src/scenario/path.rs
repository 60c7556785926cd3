//! A path: its links in both directions, its middleboxes, and its changes over time.

use std::path::Path as FilePath;

use anabranch_config::Selection;
use anabranch_config::written::{Problem, WithUnit, is_yes, name, yes};
use anabranch_net::queue::Invalid;
use anabranch_net::shaper::Request;
use anabranch_net::units::{ByteCount, Probability, QueueLimit, Rate};
use anabranch_net::{
    Capacity, GilbertElliottConfig, JitterModel, LinkChange, LinkConfig, ScheduledChange,
    ShaperConfig, StateChange,
};
use anabranch_wire::{Duration, Instant};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::loss_trace::LossTrace;
use super::middlebox::{Middlebox, boxes};
use super::names::{AppliesTo, Family, JitterOrder, LinkState};
use super::queue::Queue;
use super::routing::Routing;
use super::trace::{self, TraceSource};
use super::via::{Earlier, Via};

/// A path between client and server. Its own keys describe the forward direction, from server to
/// client. The table `reverse` describes the direction from client to server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Path {
    /// Name of the path; must be unique.
    #[serde(deserialize_with = "name")]
    pub name: String,
    /// Rate of the link. A path needs either `rate` or `trace`.
    #[serde(default, with = "WithUnit::<Option<Rate>>", skip_serializing_if = "Option::is_none")]
    pub rate: Option<Rate>,
    /// Packet-delivery trace of the link, instead of `rate`: the name of a file in Mahimahi's
    /// format, relative to the scenario's folder, or the trace itself. Each opportunity delivers
    /// 1504 bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "TraceSource")]
    pub trace: Option<TraceSource>,
    /// One-way propagation delay.
    #[serde(with = "WithUnit::<Duration>")]
    pub delay: Duration,
    /// Capacity of the link's queue, excluding the packet in transmission. A limit given as a time
    /// is converted at the link's rate, or at the mean rate of its trace. With `shaper = "mininet"` or
    /// `"netem"`, the limit must be in packets, and counts all packets inside the link.
    #[serde(with = "WithUnit::<QueueLimit>")]
    pub limit: QueueLimit,
    /// Jitter of the forward direction: each packet's delay varies uniformly by ± this time.
    #[serde(default, with = "WithUnit::<Duration>")]
    pub jitter: Duration,
    /// Whether jitter can reorder packets; applies to both directions. With `shaper = "mininet"`, it
    /// always can.
    #[serde(default)]
    pub jitter_model: JitterOrder,
    /// Probability that the forward direction loses a packet.
    #[serde(default, with = "WithUnit::<Probability>")]
    pub loss: Probability,
    /// Largest size of an IP packet, from 576B to 65535B: the MTU of the hosts' interfaces on this path,
    /// and of its links. Packets of paths that lead via this one are dropped if they are larger.
    #[serde(default = "default_mtu", with = "Mtu")]
    pub mtu: u16,
    /// Whether the path answers larger TCP segments of other paths with ICMP (RFC 1191, RFC 8201).
    /// Without answers it is a black hole.
    #[serde(default = "yes", skip_serializing_if = "is_yes")]
    pub icmp: bool,
    /// Address family of both hosts on this path. A connection opens over its first path. If other
    /// paths have the other family, the server announces its address of that family, and the client
    /// joins that address.
    #[serde(default)]
    pub family: Family,
    /// Burst losses of the forward direction, in addition to `loss`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "BurstLoss")]
    pub burst_loss: Option<BurstLoss>,
    /// Losses of the forward direction at given places, in addition to `loss` and `burst_loss`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "LossTrace")]
    pub loss_trace: Option<LossTrace>,
    /// Queue discipline of both directions, which can drop or mark packets before the queue is full.
    #[serde(default)]
    pub queue: Queue,
    /// Emulation tool that both directions of the path behave like. All except `"plain"` need a rate,
    /// and have their own queue.
    #[serde(default, skip_serializing_if = "is_plain")]
    pub shaper: ShaperConfig,
    /// Earlier paths that this path's packets also cross, between its own link and the server: the
    /// name of one path, such as a shared bottleneck, or a list of names, in order towards the
    /// server. The routes of these paths are followed. Packets cross a path with a minus before its
    /// name (`"-core"`) in the opposite direction.
    #[serde(default, skip_serializing_if = "Via::is_empty")]
    pub via: Via,
    /// Routing, where the server has several addresses, or a host has no source routing.
    #[serde(default, skip_serializing_if = "Routing::is_default")]
    pub routing: Routing,
    /// The reverse direction, from client to server.
    #[serde(default)]
    pub reverse: Reverse,
    /// Middleboxes between the link and the server; the first is next to the link.
    #[serde(
        default,
        rename = "middlebox",
        deserialize_with = "boxes",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub middleboxes: Vec<Middlebox>,
    /// Changes during the run.
    #[serde(default, rename = "change")]
    pub changes: Vec<Change>,
}

/// Burst losses by a channel with a good and a bad state (Gilbert-Elliott; netem's `gemodel`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BurstLoss {
    /// Probability per packet of a transition from the good to the bad state.
    #[serde(with = "WithUnit::<Probability>")]
    pub to_bad: Probability,
    /// Probability per packet of a transition from the bad to the good state.
    #[serde(with = "WithUnit::<Probability>")]
    pub to_good: Probability,
    /// Probability of losing a packet in the bad state.
    #[serde(default = "certain", with = "WithUnit::<Probability>")]
    pub loss_in_bad: Probability,
    /// Probability of losing a packet in the good state.
    #[serde(default, with = "WithUnit::<Probability>")]
    pub loss_in_good: Probability,
}

/// The reverse direction of a path, from client to server.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Reverse {
    /// Rate of the link (default: the forward rate or trace).
    #[serde(default, with = "WithUnit::<Option<Rate>>", skip_serializing_if = "Option::is_none")]
    pub rate: Option<Rate>,
    /// Packet-delivery trace of the link, instead of `rate`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "TraceSource")]
    pub trace: Option<TraceSource>,
    /// One-way propagation delay (default: the forward delay).
    #[serde(
        default,
        with = "WithUnit::<Option<Duration>>",
        skip_serializing_if = "Option::is_none"
    )]
    pub delay: Option<Duration>,
    /// Capacity of the link's queue (default: the forward limit).
    #[serde(
        default,
        with = "WithUnit::<Option<QueueLimit>>",
        skip_serializing_if = "Option::is_none"
    )]
    pub limit: Option<QueueLimit>,
    /// Jitter: each packet's delay varies uniformly by ± this time (default: none; with `shaper =
    /// "mininet"` the forward jitter).
    #[serde(
        default,
        with = "WithUnit::<Option<Duration>>",
        skip_serializing_if = "Option::is_none"
    )]
    pub jitter: Option<Duration>,
    /// Probability of losing a packet (default: none; with `shaper = "mininet"` the forward loss).
    #[serde(
        default,
        with = "WithUnit::<Option<Probability>>",
        skip_serializing_if = "Option::is_none"
    )]
    pub loss: Option<Probability>,
    /// Losses at given places, in addition to `loss`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "LossTrace")]
    pub loss_trace: Option<LossTrace>,
}

/// A change of a path at a given time. It needs at least one of `rate`, `delay`, `jitter`, `loss`
/// and `state`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Change {
    /// Time of the change, counted from the start of the run.
    #[serde(with = "WithUnit::<Duration>")]
    pub at: Duration,
    /// New rate. The packet in transmission finishes at this rate.
    #[serde(default, with = "WithUnit::<Option<Rate>>", skip_serializing_if = "Option::is_none")]
    pub rate: Option<Rate>,
    /// New delay.
    #[serde(
        default,
        with = "WithUnit::<Option<Duration>>",
        skip_serializing_if = "Option::is_none"
    )]
    pub delay: Option<Duration>,
    /// New jitter.
    #[serde(
        default,
        with = "WithUnit::<Option<Duration>>",
        skip_serializing_if = "Option::is_none"
    )]
    pub jitter: Option<Duration>,
    /// New loss probability.
    #[serde(
        default,
        with = "WithUnit::<Option<Probability>>",
        skip_serializing_if = "Option::is_none"
    )]
    pub loss: Option<Probability>,
    /// New state of the link.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "LinkState")]
    pub state: Option<LinkState>,
    /// Direction that changes.
    #[serde(default)]
    pub applies_to: AppliesTo,
    /// Whether the client notices that the path goes `down` or comes `up`, as when its own interface
    /// goes down or comes up. The client then informs its path managers. Only with `state`; off by
    /// default.
    #[serde(default)]
    pub noticed: bool,
}

impl Path {
    /// Capacity of the link from server to client.
    ///
    /// # Panics
    /// If there is neither a rate nor a trace. A parsed path has one of them.
    pub fn capacity(&self) -> Capacity {
        let capacity = trace::capacity(self.rate, self.trace.as_ref());
        capacity.expect("a rate or a trace")
    }

    /// Capacity of the link from client to server.
    ///
    /// # Panics
    /// Like [`capacity`](Path::capacity).
    pub fn reverse_capacity(&self) -> Capacity {
        let reverse = &self.reverse;
        trace::capacity(reverse.rate, reverse.trace.as_ref()).unwrap_or_else(|| self.capacity())
    }

    /// The link from server to client. Times of changes count from the start of the run.
    ///
    /// # Panics
    /// Like [`capacity`](Path::capacity).
    pub fn forward_link(&self) -> LinkConfig {
        LinkConfig {
            jitter: self.jitter,
            loss: self.loss,
            burst_loss: self.burst_loss.map(Into::into),
            loss_trace: self.loss_trace.clone().map(Into::into),
            ..self.link(AppliesTo::Forward, self.capacity(), self.delay, self.limit)
        }
    }

    /// The link from client to server. Times of changes count from the start of the run.
    ///
    /// # Panics
    /// Like [`capacity`](Path::capacity).
    pub fn reverse_link(&self) -> LinkConfig {
        let Reverse { delay, limit, jitter, loss, .. } = self.reverse;
        let loss_trace = self.reverse.loss_trace.clone().map(Into::into);
        let (delay, limit) = (delay.unwrap_or(self.delay), limit.unwrap_or(self.limit));
        let (jitter, loss) = (jitter.unwrap_or_default(), loss.unwrap_or_default());
        let link = self.link(AppliesTo::Reverse, self.reverse_capacity(), delay, limit);
        LinkConfig { jitter, loss, loss_trace, ..link }
    }

    /// A link with the settings that both directions share, and the changes of one direction.
    fn link(
        &self,
        this: AppliesTo,
        capacity: Capacity,
        delay: Duration,
        limit: QueueLimit,
    ) -> LinkConfig {
        let changes = self.changes.iter();
        let changes = changes
            .filter(|change| change.applies_to == AppliesTo::Both || change.applies_to == this);
        let changes = changes.map(|change| ScheduledChange {
            at: Instant::ZERO + change.at,
            change: change.of_link(),
        });
        LinkConfig {
            jitter_model: self.jitter_model.into(),
            discipline: self.queue.0,
            shaper: self.shaper,
            mtu: Some(anabranch_net::Mtu { bytes: self.mtu, answers: self.icmp }),
            changes: changes.collect(),
            ..LinkConfig::new(capacity, delay, limit)
        }
    }

    /// Fill in defaults that depend on other keys, and check constraints between keys. `before` are
    /// the paths listed before this path.
    pub(super) fn complete(&mut self, before: &[Path], folder: &FilePath) -> Result<(), Problem> {
        trace::complete(self.rate, &mut self.trace, folder)?;
        if self.rate.is_none() && self.trace.is_none() {
            let problem = "missing; write a rate such as \"8Mbit/s\", or a trace";
            return Err(Problem::new("rate", problem));
        }
        let reverse = &mut self.reverse;
        let completed = trace::complete(reverse.rate, &mut reverse.trace, folder);
        completed.map_err(|problem| problem.below("reverse"))?;
        if reverse.rate.is_none() && reverse.trace.is_none() {
            (reverse.rate, reverse.trace) = (self.rate, self.trace.clone());
        }
        reverse.delay.get_or_insert(self.delay);
        reverse.limit.get_or_insert(self.limit);
        self.complete_shaper()?;
        self.loss_trace.as_ref().map_or(Ok(()), LossTrace::check)?;
        let checked = self.reverse.loss_trace.as_ref().map_or(Ok(()), LossTrace::check);
        checked.map_err(|problem| problem.below("reverse"))?;
        for (n, change) in self.changes.iter().enumerate() {
            let checked = change.check().and_then(|()| self.require_rate(change));
            checked.map_err(|problem| problem.below(&format!("change[{n}]")))?;
        }
        let before: Vec<_> = before.iter().map(Path::as_earlier).collect();
        self.via.find(&before).map_err(|problem| problem.below("via"))
    }

    /// Fill in the values that the shaper determines, and check that its tool can make both links.
    fn complete_shaper(&mut self) -> Result<(), Problem> {
        let part = self.shaper.part();
        if let Some(order) = part.jitter_model().map(JitterOrder::from) {
            if ![JitterOrder::default(), order].contains(&self.jitter_model) {
                let shaper = self.shaper.name();
                let problem = format!(
                    "\"reordering\": shaper = {shaper:?} keeps packets in order; remove this key"
                );
                return Err(Problem::new("jitter_model", problem));
            }
            self.jitter_model = order;
        }
        let both = part.is_symmetric();
        let (jitter, loss) = if both { (self.jitter, self.loss) } else { Default::default() };
        self.reverse.jitter.get_or_insert(jitter);
        self.reverse.loss.get_or_insert(loss);
        let problem = |Invalid { parameter, problem }| Problem::new(parameter, problem);
        let request = |LinkConfig { capacity, limit, discipline, .. }| Request {
            follows_trace: matches!(capacity, Capacity::Trace(_)),
            limit,
            discipline,
            mtu: self.mtu,
        };
        part.check(request(self.forward_link())).map_err(problem)?;
        let checked = part.check(request(self.reverse_link()));
        checked.map_err(|invalid| problem(invalid).below("reverse"))
    }

    /// The path as later paths see it.
    pub(super) fn as_earlier(&self) -> Earlier<'_> {
        Earlier { name: &self.name, has_middleboxes: !self.middleboxes.is_empty(), via: &self.via }
    }

    /// Reject a change of the rate in a direction that follows a trace.
    fn require_rate(&self, change: &Change) -> Result<(), Problem> {
        let follows_trace = |capacity: Capacity, other| {
            change.rate.is_some()
                && change.applies_to != other
                && matches!(capacity, Capacity::Trace(_))
        };
        let (name, other) = if follows_trace(self.capacity(), AppliesTo::Reverse) {
            ("forward", "reverse")
        } else if follows_trace(self.reverse_capacity(), AppliesTo::Forward) {
            ("reverse", "forward")
        } else {
            return Ok(());
        };
        let problem = format!(
            "the {name} direction follows a trace; remove the rate, or write applies_to = {other:?}"
        );
        Err(Problem::new("rate", problem))
    }
}

impl Change {
    /// The change as a link sees it.
    pub fn of_link(&self) -> LinkChange {
        let Change { rate, delay, jitter, loss, .. } = *self;
        LinkChange { rate, delay, jitter, loss, state: self.state.map(Into::into) }
    }

    fn check(&self) -> Result<(), Problem> {
        let goes_or_comes = matches!(self.state, Some(LinkState::Down | LinkState::Up));
        if self.noticed && !goes_or_comes {
            let problem = "true: needs state = \"down\" or state = \"up\"; remove this key";
            return Err(Problem::new("noticed", problem));
        }
        if self.of_link() == LinkChange::default() {
            let problem =
                "changes nothing; write at least one of rate, delay, jitter, loss and state";
            return Err(Problem::new("", problem));
        }
        Ok(())
    }
}

/// Serialisation of an MTU for `#[serde(with = "Mtu")]`, with a check of its range.
struct Mtu;

/// Smallest MTU: every IPv4 host must accept packets of this size. RFC 791 §3.1.
const MIN_MTU: u16 = 576;

impl Mtu {
    fn serialize<S: Serializer>(mtu: &u16, serializer: S) -> Result<S::Ok, S::Error> {
        WithUnit::<ByteCount>::serialize(&ByteCount::new((*mtu).into()), serializer)
    }

    fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u16, D::Error> {
        let bytes = WithUnit::<ByteCount>::deserialize(deserializer)?.as_u64();
        // Largest MTU: the limit of the total length field of IPv4. RFC 791 §3.1.
        let mtu = u16::try_from(bytes).ok().filter(|mtu| *mtu >= MIN_MTU);
        mtu.ok_or_else(|| {
            let most = u16::MAX;
            let problem = format!("\"{bytes}B\": must be between {MIN_MTU}B and {most}B");
            Problem::new("", problem).raise()
        })
    }
}

impl JsonSchema for Mtu {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        WithUnit::<ByteCount>::schema_name()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        WithUnit::<ByteCount>::json_schema(generator)
    }
}

fn is_plain(shaper: &ShaperConfig) -> bool {
    *shaper == ShaperConfig::default()
}

fn default_mtu() -> u16 {
    1_500
}

fn certain() -> Probability {
    Probability::ONE
}

impl From<BurstLoss> for GilbertElliottConfig {
    fn from(loss: BurstLoss) -> Self {
        let BurstLoss { to_bad, to_good, loss_in_bad, loss_in_good } = loss;
        GilbertElliottConfig { to_bad, to_good, loss_in_bad, loss_in_good }
    }
}

impl From<JitterOrder> for JitterModel {
    fn from(name: JitterOrder) -> Self {
        match name {
            JitterOrder::Fifo => JitterModel::Fifo,
            JitterOrder::Reordering => JitterModel::Reordering,
        }
    }
}

impl From<JitterModel> for JitterOrder {
    fn from(model: JitterModel) -> Self {
        match model {
            JitterModel::Fifo => JitterOrder::Fifo,
            JitterModel::Reordering => JitterOrder::Reordering,
        }
    }
}

impl From<LinkState> for StateChange {
    fn from(name: LinkState) -> Self {
        match name {
            LinkState::Up => StateChange::Up,
            LinkState::Down => StateChange::Down,
            LinkState::Suspend => StateChange::Suspend,
            LinkState::Resume => StateChange::Resume,
        }
    }
}
