//! From a scenario's connection to the two ends of its workload.

use crate::scenario::Connection;
use crate::workload::{Application, Draws};

impl Connection {
    /// The end that sends the workload's data, or the other one. Both draw the same from the run's
    /// `seed`.
    pub fn application(&self, sends: bool, seed: u64) -> Application {
        self.workload.application(sends, &Draws { seed, connection: &self.name })
    }
}
