//! The two ends of a workload.

use anabranch_net::rng::stream_seed;

use super::distribution::{Amount, Distribution, Sampler};
use super::{Sender, Sizes};

/// One end of a connection: its sender, and the blocks that it receives.
#[derive(Default)]
pub(crate) struct Application {
    /// The sending half, if this end sends.
    pub(crate) sender: Option<Box<dyn Sender>>,
    /// Sizes of the blocks that arrive at this end, if their delays are measured.
    pub(crate) received_blocks: Option<Sizes>,
}

impl Application {
    /// The end that sends blocks of these `sizes`, or the end that receives them.
    pub(super) fn one_way(
        sends: bool,
        sender: impl Sender + 'static,
        sizes: Option<Sizes>,
    ) -> Self {
        if sends {
            Application { sender: Some(Box::new(sender)), received_blocks: None }
        } else {
            Application { sender: None, received_blocks: sizes }
        }
    }
}

/// The random streams of a connection. They are the same at both ends.
pub(crate) struct Draws<'a> {
    /// Seed of the run.
    pub(crate) seed: u64,
    /// Name of the connection.
    pub(crate) connection: &'a str,
}

impl Draws<'_> {
    /// The random stream of a quantity of the workload.
    pub(super) fn of<T: Amount>(&self, quantity: &str, distribution: Distribution<T>) -> Sampler {
        let component = format!("workload/{}/{quantity}", self.connection);
        Sampler::new(distribution, stream_seed(self.seed, &component))
    }
}
