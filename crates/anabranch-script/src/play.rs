//! Plays a script against a stack.

use std::collections::VecDeque;

use anabranch_wire::{Duration, Instant, Segment};

use crate::compare::compare;
use crate::compose::compose;
use crate::flows::Flows;
use crate::notation;
use crate::report::ScriptFailure;
use crate::script::{
    Action, Call, CallResult, Fact, FactValue, Moment, Relation, Script, ScriptEvent, SegmentSpec,
    Time,
};
use crate::sockets::{Returned, Sockets};
use crate::stack::{StackError, StackUnderTest};

/// The result of playing a script.
#[derive(Clone, Debug)]
pub struct Played {
    /// Reason for the failure; `None` if the stack did everything that the script expects.
    pub failure: Option<ScriptFailure>,
    /// Every segment and call with its time, in script notation.
    pub log: Vec<String>,
}

/// Tolerance for the times of a stack in virtual time.
const EXACT: Duration = Duration::from_millis(1);
/// Time after the last event in which the player watches for unexpected segments.
const AFTERMATH: Duration = Duration::from_secs(1);
/// Time that `*` waits, in virtual time and (`LIVE_TIMEOUT`) in real time.
const TIMEOUT: Duration = Duration::from_secs(3_600);
const LIVE_TIMEOUT: Duration = Duration::from_secs(10);
/// Number of log entries that a failure shows.
const SHOWN_BEFORE: usize = 6;

/// Play `script` against `stack`.
pub fn play(script: &Script, stack: &mut dyn StackUnderTest) -> Played {
    let mut player = Player::new(script, stack);
    let failure = player.run().err().map(|stop| player.failure(*stop));
    Played { failure, log: player.log.iter().map(|entry| player.text_of(entry)).collect() }
}

struct Player<'a> {
    script: &'a Script,
    stack: &'a mut dyn StackUnderTest,
    flows: Flows,
    sockets: Sockets,
    /// The time of the previous event.
    base: Instant,
    /// Segments that the stack has sent and that no event has matched yet.
    waiting: VecDeque<(Instant, Segment)>,
    /// Segments that the stack may send from now on, once each.
    permitted: Vec<&'a SegmentSpec>,
    pending: Option<Pending<'a>>,
    log: Vec<Entry>,
    tolerance: Duration,
}

/// A call that blocks.
struct Pending<'a> {
    event: &'a ScriptEvent,
    call: &'a Call,
    earliest: Instant,
    latest: Instant,
}

#[derive(Clone, Debug)]
struct Entry {
    at: Instant,
    what: Logged,
}

#[derive(Clone, Debug)]
enum Logged {
    Segment(Box<Segment>, bool),
    Text(String),
}

/// Reason why the script stops at an event.
struct Stop {
    line: u32,
    what: String,
    expected: Option<String>,
    actual: Option<String>,
    differences: Vec<String>,
}

impl Stop {
    fn new(event: &ScriptEvent, what: impl Into<String>) -> Box<Self> {
        let expected = Some(format!("{:<10} {}", event.time_text, event.text));
        let (line, what) = (event.line, what.into());
        Box::new(Stop { line, what, expected, actual: None, differences: Vec::new() })
    }
}

type PlayResult<T> = Result<T, Box<Stop>>;

impl<'a> Player<'a> {
    fn new(script: &'a Script, stack: &'a mut dyn StackUnderTest) -> Self {
        let flows = Flows::new(stack.layout(), script.settings.peer_isn);
        let tolerance = if stack.is_exact() { EXACT } else { script.settings.tolerance };
        Player {
            script,
            flows,
            sockets: Sockets::default(),
            base: stack.now(),
            waiting: VecDeque::new(),
            permitted: Vec::new(),
            pending: None,
            log: Vec::new(),
            tolerance,
            stack,
        }
    }

    fn run(&mut self) -> PlayResult<()> {
        let script = self.script;
        for event in &script.events {
            self.play(event)?;
        }
        let Some(last) = script.events.last() else { return Ok(()) };
        self.finish_call(last)?;
        let end = self.stack.now() + AFTERMATH;
        while self.stack.now() < end {
            self.wait(last, end)?;
        }
        while !self.waiting.is_empty() && self.is_permitted(0, None) {}
        self.expect_silence(last)
    }

    fn play(&mut self, event: &'a ScriptEvent) -> PlayResult<()> {
        match &event.action {
            Action::Outbound(spec) => return self.outbound(event, spec),
            Action::Permitted(spec) => {
                self.permitted.push(spec);
                return Ok(());
            }
            Action::Call(_) => self.finish_call(event)?,
            _ => {}
        }
        let start = self.start(event);
        self.advance(event, start)?;
        self.base = start;
        match &event.action {
            Action::Inbound(spec) => {
                let segment =
                    compose(spec, &mut self.flows).map_err(|why| Stop::new(event, why))?;
                self.note(Logged::Segment(Box::new(segment.clone()), false));
                self.stack.inject(segment).map_err(|error| stuck(event, error))?;
                self.collect();
                self.try_pending()
            }
            Action::Call(call) => self.call(event, call, start),
            Action::Assert { fact, relation, expected } => {
                self.assert(event, *fact, *relation, *expected)
            }
            Action::Address { host, up } => {
                self.note(Logged::Text(event.text.clone()));
                let done = self.stack.set_address(*host, *up);
                done.map_err(|error| stuck(event, error))?;
                self.collect();
                Ok(())
            }
            Action::Outbound(_) | Action::Permitted(_) => Ok(()),
        }
    }

    fn resolve(&self, moment: Moment) -> Instant {
        let from = if moment.relative { self.base } else { Instant::ZERO };
        from + moment.offset
    }

    /// The time of an event other than an outgoing segment.
    fn start(&self, event: &ScriptEvent) -> Instant {
        match event.time {
            Time::Any => self.base,
            Time::Exactly(at) | Time::Within(at, _) | Time::Blocking(at, _) => self.resolve(at),
        }
    }

    /// The earliest and the latest time at which an outgoing segment may leave.
    fn bounds(&self, time: Time) -> (Instant, Instant) {
        let slack = |end: Instant| {
            // Timers of Linux are late by up to an eighth of their time (kernel/time/timer.c).
            let wheel = end.saturating_since(self.base) / 8;
            if self.stack.is_exact() { self.tolerance } else { self.tolerance + wheel }
        };
        let (from, to) = match time {
            Time::Any => {
                let timeout = if self.stack.is_exact() { TIMEOUT } else { LIVE_TIMEOUT };
                return (Instant::ZERO, self.stack.now() + timeout);
            }
            Time::Exactly(at) => (self.resolve(at), self.resolve(at)),
            Time::Within(from, to) | Time::Blocking(from, to) => {
                (self.resolve(from), self.resolve(to))
            }
        };
        (from - self.tolerance, to + slack(to))
    }

    /// Let time pass until `until`.
    fn advance(&mut self, event: &ScriptEvent, until: Instant) -> PlayResult<()> {
        while self.stack.now() < until {
            self.wait(event, until)?;
        }
        self.collect();
        Ok(())
    }

    fn wait(&mut self, event: &ScriptEvent, until: Instant) -> PlayResult<()> {
        self.stack.wait(until).map_err(|error| stuck(event, error))?;
        self.collect();
        self.try_pending()
    }

    /// Take the segments that the stack has sent.
    fn collect(&mut self) {
        while let Some((at, segment)) = self.stack.next_segment() {
            self.flows.observe(&segment);
            self.log.push(Entry { at, what: Logged::Segment(Box::new(segment.clone()), true) });
            self.waiting.push_back((at, segment));
        }
    }

    fn outbound(&mut self, event: &'a ScriptEvent, spec: &SegmentSpec) -> PlayResult<()> {
        let (earliest, latest) = self.bounds(event.time);
        self.collect();
        let found = loop {
            if let Some(found) = self.first_on(spec) {
                if self.is_permitted(found.0, Some(spec)) {
                    continue;
                }
                break found;
            }
            if self.stack.now() >= latest {
                return Err(self.missing_segment(event));
            }
            self.wait(event, latest)?;
        };
        let (index, flow) = found;
        let (at, segment) = self.waiting.remove(index).expect("it was found there");
        let slack = 1 + (self.tolerance.as_millis() as u32);
        let mut differences = compare(spec, &segment, flow, &mut self.flows, slack);
        if at < earliest || at > latest {
            let due = self.words_for(event.time);
            differences.push(format!("time: expected {due}, got {:.6}", at.as_secs_f64()));
        }
        if differences.is_empty() {
            // A late stack does not shift later events, unless the script leaves the time open.
            self.base = match event.time {
                Time::Exactly(due) if self.stack.is_exact() => self.resolve(due),
                _ => at,
            };
            return Ok(());
        }
        let mut stop = Stop::new(event, "the stack sent another segment");
        stop.actual = Some(self.text_at(at, &notation::segment(&segment, true, &self.flows)));
        stop.differences = differences;
        Err(stop)
    }

    /// Returns `true` if the waiting segment at `index` is permitted, and not the expected one. If
    /// so, remove the segment and its permission.
    fn is_permitted(&mut self, index: usize, expected: Option<&SegmentSpec>) -> bool {
        if self.permitted.is_empty() {
            return false;
        }
        let slack = 1 + (self.tolerance.as_millis() as u32);
        let segment = self.waiting[index].1.clone();
        let fits = |spec: &SegmentSpec, flows: &Flows| {
            let mut flows = flows.clone();
            let flow = flows.named(spec.path)?;
            let here = (flows.all[flow].host, flows.all[flow].peer)
                == (segment.source, segment.destination);
            (here && compare(spec, &segment, flow, &mut flows, slack).is_empty()).then_some(flows)
        };
        if expected.is_some_and(|spec| fits(spec, &self.flows).is_some()) {
            return false;
        }
        let found = self
            .permitted
            .iter()
            .enumerate()
            .find_map(|(place, spec)| fits(spec, &self.flows).map(|flows| (place, flows)));
        let Some((place, flows)) = found else { return false };
        self.flows = flows;
        self.permitted.remove(place);
        self.waiting.remove(index);
        true
    }

    /// The first segment on an event's path, and its flow.
    fn first_on(&self, spec: &SegmentSpec) -> Option<(usize, usize)> {
        let flow = self.flows.named(spec.path)?;
        let Flows { all, .. } = &self.flows;
        let ends = (all[flow].host, all[flow].peer);
        let here =
            |(_, segment): &(Instant, Segment)| (segment.source, segment.destination) == ends;
        Some((self.waiting.iter().position(here)?, flow))
    }

    fn words_for(&self, time: Time) -> String {
        let seconds = |moment| self.resolve(moment).as_secs_f64();
        match time {
            Time::Any => "any".to_owned(),
            Time::Exactly(at) => format!("{:.6}", seconds(at)),
            Time::Within(from, to) | Time::Blocking(from, to) => {
                format!("{:.6} to {:.6}", seconds(from), seconds(to))
            }
        }
    }

    fn missing_segment(&self, event: &ScriptEvent) -> Box<Stop> {
        let due = self.words_for(event.time);
        let mut stop = Stop::new(event, format!("the stack did not send this segment by {due}"));
        if let Some((at, segment)) = self.waiting.front() {
            stop.what = "the stack sent a segment on another path instead".to_owned();
            stop.actual = Some(self.text_at(*at, &notation::segment(segment, true, &self.flows)));
        }
        stop
    }

    fn expect_silence(&self, last: &ScriptEvent) -> PlayResult<()> {
        let Some((at, segment)) = self.waiting.front() else { return Ok(()) };
        let mut stop = Stop::new(last, "the stack sent a segment that no line expects");
        stop.expected = None;
        stop.actual = Some(self.text_at(*at, &notation::segment(segment, true, &self.flows)));
        Err(stop)
    }

    fn call(&mut self, event: &'a ScriptEvent, call: &'a Call, start: Instant) -> PlayResult<()> {
        self.note(Logged::Text(event.text.clone()));
        let (earliest, latest) = match event.time {
            Time::Blocking(begin, end) => {
                // The end of the call is relative to the same time as its start.
                let end = if begin.relative {
                    start - begin.offset + end.offset
                } else {
                    self.resolve(end)
                };
                (end - self.tolerance, end + self.tolerance)
            }
            _ => (Instant::ZERO, self.stack.now() + self.tolerance),
        };
        self.pending = Some(Pending { event, call, earliest, latest });
        self.try_pending()?;
        if !matches!(event.time, Time::Blocking(..)) {
            self.finish_call(event)?;
        }
        self.collect();
        Ok(())
    }

    /// Check whether the blocked call can return.
    fn try_pending(&mut self) -> PlayResult<()> {
        let Some(Pending { event, call, earliest, latest }) = self.pending.take() else {
            return Ok(());
        };
        let now = self.stack.now();
        let returned = self.sockets.advance(self.stack, &call.what, &call.result);
        self.collect();
        let Some(returned) = returned else {
            if now > latest {
                return Err(Stop::new(event, "the call still blocks"));
            }
            self.pending = Some(Pending { event, call, earliest, latest });
            return Ok(());
        };
        let mut stop = Stop::new(event, "the call returned something else");
        stop.actual = Some(self.text_at(now, &words(&returned)));
        if now < earliest {
            stop.what = "the call returned too early".to_owned();
            return Err(stop);
        }
        if is_expected(&returned, &call.result) { Ok(()) } else { Err(stop) }
    }

    /// Wait for the previous call to return.
    fn finish_call(&mut self, event: &ScriptEvent) -> PlayResult<()> {
        while let Some(pending) = &self.pending {
            let until = pending.latest + Duration::from_nanos(1);
            self.wait(event, until)?;
        }
        Ok(())
    }

    fn assert(
        &mut self,
        event: &ScriptEvent,
        fact: Fact,
        relation: Relation,
        expected: FactValue,
    ) -> PlayResult<()> {
        let newest = self.sockets.newest();
        let info = newest.and_then(|socket| self.stack.info(socket));
        let Some(info) = info else {
            return Err(Stop::new(event, "there is no connection to check"));
        };
        let actual = match fact {
            Fact::Connection if info.is_mptcp => FactValue::Mptcp,
            Fact::Connection => FactValue::Tcp,
            Fact::Subflows => FactValue::Number(info.subflows),
            Fact::Cwnd => FactValue::Number(info.cwnd),
        };
        if relation.holds(actual, expected) {
            return Ok(());
        }
        let mut stop = Stop::new(event, "the assertion does not hold");
        let value = match actual {
            FactValue::Tcp => "tcp".to_owned(),
            FactValue::Mptcp => "mptcp".to_owned(),
            FactValue::Number(number) => number.to_string(),
        };
        stop.actual = Some(self.text_at(self.stack.now(), &value));
        Err(stop)
    }

    fn note(&mut self, what: Logged) {
        self.log.push(Entry { at: self.stack.now(), what });
    }

    fn text_of(&self, entry: &Entry) -> String {
        match &entry.what {
            Logged::Segment(segment, outgoing) => {
                self.text_at(entry.at, &notation::segment(segment, *outgoing, &self.flows))
            }
            Logged::Text(text) => self.text_at(entry.at, text),
        }
    }

    fn text_at(&self, at: Instant, text: &str) -> String {
        format!("{:<10.6} {text}", at.as_secs_f64())
    }

    fn failure(&self, stop: Stop) -> ScriptFailure {
        let Stop { line, what, expected, actual, differences } = stop;
        let mut before: Vec<_> = self.log.iter().map(|entry| self.text_of(entry)).collect();
        if let Some(actual) = &actual
            && before.last() == Some(actual)
        {
            before.pop();
        }
        let before = before.split_off(before.len().saturating_sub(SHOWN_BEFORE));
        let file = self.script.file.clone();
        ScriptFailure { file, line, what, expected, came: actual, differences, before }
    }
}

fn stuck(event: &ScriptEvent, StackError(why): StackError) -> Box<Stop> {
    Stop::new(event, format!("the script cannot continue: {why}"))
}

fn is_expected(returned: &Returned, expected: &CallResult) -> bool {
    match (returned, expected) {
        (Returned::Value(_) | Returned::Error(_), CallResult::Any) => true,
        (Returned::Value(actual), CallResult::Value(expected)) => actual == expected,
        (Returned::Error(actual), CallResult::Error(expected)) => actual == expected,
        _ => false,
    }
}

fn words(returned: &Returned) -> String {
    match returned {
        Returned::Value(value) => format!("= {value}"),
        Returned::Error(error) => format!("= -1 {error}"),
        Returned::Corrupt => "bytes that the peer did not send".to_owned(),
        Returned::Impossible(why) => why.clone(),
    }
}
