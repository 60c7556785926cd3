//! Bulk data: as much as the socket accepts, without end or up to a size.

use anabranch_config::Part;
use anabranch_config::written::Positive;
use anabranch_net::units::ByteCount;
use anabranch_wire::{Instant, Piece};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Application, BuildWorkload, Draws, Sender, Socket, WRITE_SIZE};

/// Data as fast as the connection accepts it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Bulk {
    /// Amount of data (default: unlimited).
    #[serde(
        default,
        with = "Positive::<Option<ByteCount>>",
        skip_serializing_if = "Option::is_none"
    )]
    pub size: Option<ByteCount>,
}

impl Part for Bulk {
    const NAME: &'static str = "bulk";
    const SUMMARY: &'static str = "Data as fast as the connection accepts it.";
    const SOURCE: &'static str = "this project";
}

impl BuildWorkload for Bulk {
    fn application(&self, sends: bool, _draws: &Draws<'_>) -> Application {
        Application::one_way(sends, BulkSender::new(self.size.map(|size| size.as_u64())), None)
    }
}

/// Writes `size` bytes, then closes.
#[derive(Clone, Debug)]
struct BulkSender {
    size: u64,
    written: u64,
    finished: bool,
}

impl BulkSender {
    /// `size` bytes; unlimited if `None`.
    fn new(size: Option<u64>) -> Self {
        BulkSender { size: size.unwrap_or(u64::MAX), written: 0, finished: false }
    }
}

impl Sender for BulkSender {
    fn on_writable(&mut self, _now: Instant, socket: &mut dyn Socket) {
        loop {
            let len = (self.size - self.written).min(WRITE_SIZE);
            if len == 0 {
                break;
            }
            let accepted = socket.write(Piece::pattern(self.written, len as u32)) as u64;
            self.written += accepted;
            if accepted < len {
                return;
            }
        }
        if !self.finished {
            self.finished = true;
            socket.finish();
        }
    }

    fn written(&self) -> u64 {
        self.written
    }

    fn data_bytes(&self) -> Option<u64> {
        Some(self.size).filter(|size| *size < u64::MAX)
    }

    fn poll_timeout(&self) -> Option<Instant> {
        None
    }

    fn delay_starts(&self) -> &[Instant] {
        &[]
    }
}
