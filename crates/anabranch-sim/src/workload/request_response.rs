//! Requests and responses: a closed loop between two applications.
//!
//! Sizes and counts are draws by number. The responder therefore knows what to send from the number
//! of requests alone, and the requester knows when all responses have arrived.

use core::num::NonZeroU64;

use anabranch_config::Part;
use anabranch_config::written::Problem;
use anabranch_net::units::ByteCount;
use anabranch_wire::{Duration, Instant, Piece};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::drawn::OrZero;
use super::{
    Application, BuildWorkload, Distribution, Draws, MAX_RESPONSES, Sampler, Sender, Sizes, Socket,
    WRITE_SIZE,
};

/// Requests from the receiver of the data, and responses to them, a closed loop. The delay of a round
/// lasts from the first byte of the request to the last byte of the responses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RequestResponse {
    /// Least time from the start of each round to the start of the next. None by default.
    #[serde(default = "no_time", with = "OrZero::<Duration>")]
    pub interval: Distribution<Duration>,
    /// Size of each request.
    #[schemars(example = "400B")]
    pub request_size: Distribution<ByteCount>,
    /// Number of responses to each request, up to 1048576.
    #[serde(default = "one")]
    pub responses: Distribution<u64>,
    /// Size of each response.
    #[schemars(example = "100kB")]
    pub response_size: Distribution<ByteCount>,
    /// Time from the last byte of the responses to the next request. None by default.
    #[serde(default = "no_time", with = "OrZero::<Duration>")]
    pub think_time: Distribution<Duration>,
    /// Number of requests (default: unlimited).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "NonZeroU64")]
    pub count: Option<NonZeroU64>,
}

fn no_time() -> Distribution<Duration> {
    Distribution::Constant(Duration::ZERO)
}

fn one() -> Distribution<u64> {
    Distribution::Constant(1)
}

impl Part for RequestResponse {
    const NAME: &'static str = "request_response";
    const SUMMARY: &'static str = "Requests, and the responses that each brings.";
    const SOURCE: &'static str = "this project";
}

impl BuildWorkload for RequestResponse {
    fn check(&self) -> Result<(), Problem> {
        let most = match self.responses {
            Distribution::Constant(most) | Distribution::Uniform { max: most, .. } => most,
            _ => 0,
        };
        if most > MAX_RESPONSES {
            let problem = format!("{most}: a request brings at most {MAX_RESPONSES} responses");
            return Err(Problem::new("responses", problem));
        }
        Ok(())
    }

    fn answers(&self) -> bool {
        true
    }

    fn count(&self) -> Option<u64> {
        self.count.map(NonZeroU64::get)
    }

    fn application(&self, sends: bool, draws: &Draws<'_>) -> Application {
        let count = draws.of("responses", self.responses);
        let size = draws.of("response_size", self.response_size);
        let exchange = Exchange {
            requests: Sizes::Drawn(draws.of("request_size", self.request_size)),
            responses: Sizes::Responses { count, size },
        };
        if sends {
            let sender = Some(Box::new(Responder::new(exchange)) as Box<dyn Sender>);
            return Application { sender, received_blocks: None };
        }
        let think_times = draws.of("think_time", self.think_time);
        let intervals = draws.of("interval", self.interval);
        let count = self.count.map(NonZeroU64::get);
        let requester = Requester::new(exchange, think_times, intervals, count);
        Application { sender: Some(Box::new(requester)), received_blocks: Some(exchange.responses) }
    }
}

/// Parameters that both ends know.
#[derive(Clone, Copy, Debug)]
struct Exchange {
    /// Sizes of the requests.
    requests: Sizes,
    /// Total size of the responses to each request.
    responses: Sizes,
}

/// The end that sends requests. The first request is due when the connection opens. Each later
/// request is due one think time after the last byte of the previous responses, and at least one
/// interval after the previous request.
#[derive(Clone, Debug)]
struct Requester {
    exchange: Exchange,
    think_times: Sampler,
    intervals: Sampler,
    count: u64,
    phase: RequesterPhase,
    /// Total bytes of the responses to all requests so far.
    expected: u64,
    written: u64,
    /// When the first byte of each request was written.
    started: Vec<Instant>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RequesterPhase {
    /// Before the first request.
    Opening,
    /// Waiting until the next request.
    Thinking(Instant),
    /// Writing a request, with this many bytes left.
    Requesting(u64),
    Waiting,
    Finished,
}

impl Requester {
    /// `count` rounds, with `think_times` nanoseconds between them and at least `intervals`
    /// nanoseconds from start to start; unlimited if `None`.
    fn new(
        exchange: Exchange,
        think_times: Sampler,
        intervals: Sampler,
        count: Option<u64>,
    ) -> Self {
        Requester {
            exchange,
            think_times,
            intervals,
            count: count.unwrap_or(u64::MAX),
            phase: RequesterPhase::Opening,
            expected: 0,
            written: 0,
            started: Vec::new(),
        }
    }

    fn request(&mut self, now: Instant) {
        let round = self.started.len() as u64;
        self.phase = RequesterPhase::Requesting(self.exchange.requests.of(round));
        self.expected = self.expected.saturating_add(self.exchange.responses.of(round));
        self.started.push(now);
    }

    /// All responses of the current round have arrived.
    fn complete(&mut self, now: Instant, socket: &mut dyn Socket) {
        let rounds = self.started.len() as u64;
        if rounds == self.count {
            self.phase = RequesterPhase::Finished;
            return socket.finish();
        }
        let [thought, interval] = [self.think_times, self.intervals]
            .map(|times| Duration::from_nanos(times.of(rounds - 1)));
        let began = self.started.last().map_or(now, |began| *began + interval);
        self.phase = RequesterPhase::Thinking(began.max(now + thought));
        self.on_writable(now, socket);
    }
}

impl Sender for Requester {
    fn on_writable(&mut self, now: Instant, socket: &mut dyn Socket) {
        match self.phase {
            RequesterPhase::Opening => self.request(now),
            RequesterPhase::Thinking(until) if until <= now => self.request(now),
            _ => {}
        }
        if let RequesterPhase::Requesting(left) = self.phase {
            let accepted = write(socket, self.written, left);
            self.written += accepted;
            let left = left - accepted;
            self.phase =
                if left == 0 { RequesterPhase::Waiting } else { RequesterPhase::Requesting(left) };
        }
    }

    fn on_received(&mut self, now: Instant, received: u64, socket: &mut dyn Socket) {
        if self.phase == RequesterPhase::Waiting && received >= self.expected {
            self.complete(now, socket);
        }
    }

    fn written(&self) -> u64 {
        self.written
    }

    fn data_bytes(&self) -> Option<u64> {
        (self.phase == RequesterPhase::Finished).then_some(self.expected)
    }

    fn poll_timeout(&self) -> Option<Instant> {
        match self.phase {
            RequesterPhase::Thinking(until) => Some(until),
            _ => None,
        }
    }

    /// When each request started. The block of a round is delivered with its last response.
    fn delay_starts(&self) -> &[Instant] {
        &self.started
    }
}

/// The end that sends responses. It responds to each request as soon as the last byte has arrived.
#[derive(Clone, Debug)]
struct Responder {
    exchange: Exchange,
    rounds: u64,
    /// Offset at which the next request ends.
    request_end: u64,
    /// Total bytes of the responses that are due.
    due: u64,
    written: u64,
}

impl Responder {
    /// The opposite end of a [`Requester`] with the same `exchange`.
    fn new(exchange: Exchange) -> Self {
        let request_end = exchange.requests.of(0);
        Responder { exchange, rounds: 0, request_end, due: 0, written: 0 }
    }
}

impl Sender for Responder {
    fn on_writable(&mut self, _now: Instant, socket: &mut dyn Socket) {
        self.written += write(socket, self.written, self.due - self.written);
    }

    fn on_received(&mut self, now: Instant, received: u64, socket: &mut dyn Socket) {
        while received >= self.request_end {
            self.due = self.due.saturating_add(self.exchange.responses.of(self.rounds));
            self.rounds += 1;
            self.request_end += self.exchange.requests.of(self.rounds);
        }
        self.on_writable(now, socket);
    }

    fn written(&self) -> u64 {
        self.written
    }

    /// Only the requester knows whether another request follows.
    fn data_bytes(&self) -> Option<u64> {
        None
    }

    fn poll_timeout(&self) -> Option<Instant> {
        None
    }

    fn delay_starts(&self) -> &[Instant] {
        &[]
    }
}

/// Write up to `len` bytes of the pattern from `offset`. Returns how many the stack accepted.
fn write(socket: &mut dyn Socket, offset: u64, len: u64) -> u64 {
    let mut written = 0;
    while written < len {
        let offered = (len - written).min(WRITE_SIZE);
        let accepted = socket.write(Piece::pattern(offset + written, offered as u32)) as u64;
        written += accepted;
        if accepted < offered {
            break;
        }
    }
    written
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::Distribution;
    use crate::workload::testing::{Space, ms};

    fn fixed() -> Exchange {
        let three = Sampler::new(Distribution::Constant(3u64), 1);
        let size = Sampler::new(Distribution::Constant(500u64), 2);
        Exchange { requests: Sizes::Fixed(100), responses: Sizes::Responses { count: three, size } }
    }

    fn always(millis: u64) -> Sampler {
        Sampler::new(Distribution::Constant(Duration::from_millis(millis)), 3)
    }

    #[test]
    fn a_request_follows_the_last_response_and_a_think_time() {
        let mut requester = Requester::new(fixed(), always(50), always(0), Some(2));
        let mut socket = Space::new(1_000);
        requester.on_writable(ms(1), &mut socket);
        assert_eq!((socket.written, requester.poll_timeout()), (100, None));
        requester.on_received(ms(20), 1_499, &mut socket);
        assert_eq!(requester.poll_timeout(), None);
        requester.on_received(ms(21), 1_500, &mut socket);
        assert_eq!(requester.poll_timeout(), Some(ms(71)));
        requester.on_writable(ms(71), &mut socket);
        assert_eq!((socket.written, requester.delay_starts()), (200, &[ms(1), ms(71)][..]));
        assert!(!socket.finished);
        requester.on_received(ms(90), 3_000, &mut socket);
        assert_eq!((socket.finished, requester.poll_timeout()), (true, None));
    }

    #[test]
    fn without_a_think_time_the_next_request_is_sent_at_once() {
        let mut requester = Requester::new(fixed(), always(0), always(0), None);
        let mut socket = Space::new(150);
        requester.on_writable(ms(1), &mut socket);
        requester.on_received(ms(5), 1_500, &mut socket);
        // Half of the request fits. Its delay counts from its first byte.
        assert_eq!((socket.written, requester.poll_timeout()), (150, None));
        socket.space = 1_000;
        requester.on_writable(ms(6), &mut socket);
        assert_eq!((socket.written, requester.delay_starts()), (200, &[ms(1), ms(5)][..]));
    }

    #[test]
    fn a_request_waits_for_its_interval_unless_the_previous_round_took_longer() {
        let mut requester = Requester::new(fixed(), always(10), always(100), None);
        let mut socket = Space::new(1_000);
        requester.on_writable(ms(1), &mut socket);
        requester.on_received(ms(21), 1_500, &mut socket);
        assert_eq!(requester.poll_timeout(), Some(ms(101)));
        requester.on_writable(ms(101), &mut socket);
        requester.on_received(ms(195), 3_000, &mut socket);
        assert_eq!(requester.poll_timeout(), Some(ms(205)));
    }

    #[test]
    fn responses_are_sent_when_the_request_is_complete_and_there_is_room() {
        let mut responder = Responder::new(fixed());
        let mut socket = Space::new(2_000);
        responder.on_writable(ms(0), &mut socket);
        responder.on_received(ms(1), 99, &mut socket);
        assert_eq!(socket.written, 0);
        responder.on_received(ms(2), 100, &mut socket);
        assert_eq!(socket.written, 1_500);
        responder.on_received(ms(3), 200, &mut socket);
        assert_eq!(socket.written, 2_000);
        socket.space = 5_000;
        responder.on_writable(ms(4), &mut socket);
        assert_eq!(socket.written, 3_000);
        assert!(!socket.finished, "the requester closes the connection");
    }
}
