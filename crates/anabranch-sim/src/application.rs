//! From a scenario's workload to the two ends of it.

use anabranch_net::rng::stream_seed;

use crate::scenario::{Connection, Workload};
use crate::workload::{
    Amount, Blocks, Bulk, Cbr, Distribution, Exchange, OnOff, Requester, Responder, Sampler,
    Sender, Sizes,
};

/// What one end of a connection sends, and the blocks that it receives.
#[derive(Default)]
pub(crate) struct Application {
    /// What writes, if this end does.
    pub(crate) sender: Option<Box<dyn Sender>>,
    /// Sizes of the blocks that arrive here, if their delays are measured.
    pub(crate) received_blocks: Option<Sizes>,
}

impl Application {
    /// The end of `connection` that sends the workload's data, or the other one. Both draw the
    /// same from the run's `seed`.
    pub(crate) fn new(connection: &Connection, sends: bool, seed: u64) -> Self {
        let draws = Draws { seed, connection: &connection.name };
        match connection.workload {
            Workload::Bulk { size } => {
                one_way(sends, Bulk::new(size.map(|size| size.as_u64())), None)
            }
            Workload::Blocks { block_size, count } => {
                let size = block_size.as_u64();
                one_way(sends, Blocks::new(size, count), Some(Sizes::Fixed(size)))
            }
            Workload::Cbr { rate, block_size, count } => {
                let size = block_size.as_u64();
                one_way(sends, Cbr::new(rate, size, count), Some(Sizes::Fixed(size)))
            }
            Workload::OnOff { burst_size, interval, count } => {
                let sizes = Sizes::Drawn(draws.of("burst_size", burst_size));
                let intervals = draws.of("interval", interval);
                one_way(sends, OnOff::new(sizes, intervals, count), Some(sizes))
            }
            Workload::RequestResponse {
                request_size,
                responses,
                response_size,
                think_time,
                interval,
                count,
            } => {
                let count_of = draws.of("responses", responses);
                let size = draws.of("response_size", response_size);
                let exchange = Exchange {
                    requests: Sizes::Drawn(draws.of("request_size", request_size)),
                    responses: Sizes::Responses { count: count_of, size },
                };
                if sends {
                    let sender = Some(Box::new(Responder::new(exchange)) as Box<dyn Sender>);
                    return Application { sender, received_blocks: None };
                }
                let think_times = draws.of("think_time", think_time);
                let intervals = draws.of("interval", interval);
                let requester = Requester::new(exchange, think_times, intervals, count);
                Application {
                    sender: Some(Box::new(requester)),
                    received_blocks: Some(exchange.responses),
                }
            }
        }
    }
}

/// The end that sends, or the end that receives.
fn one_way(sends: bool, sender: impl Sender + 'static, sizes: Option<Sizes>) -> Application {
    if sends {
        Application { sender: Some(Box::new(sender)), received_blocks: None }
    } else {
        Application { sender: None, received_blocks: sizes }
    }
}

/// A connection's streams of draws.
struct Draws<'a> {
    seed: u64,
    connection: &'a str,
}

impl Draws<'_> {
    fn of<T: Amount>(&self, quantity: &str, distribution: Distribution<T>) -> Sampler {
        let component = format!("workload/{}/{quantity}", self.connection);
        Sampler::new(distribution, stream_seed(self.seed, &component))
    }
}
