//! Bulk: as much as the socket accepts, for ever or up to a size.

use anabranch_wire::{Instant, Piece};

use super::{LONGEST_WRITE, Sender, Socket};

/// Writes until `size` octets are written, then closes.
#[derive(Clone, Debug)]
pub struct Bulk {
    size: u64,
    written: u64,
    finished: bool,
}

impl Bulk {
    /// `size` octets; `None` for no end.
    pub fn new(size: Option<u64>) -> Self {
        Bulk { size: size.unwrap_or(u64::MAX), written: 0, finished: false }
    }
}

impl Sender for Bulk {
    fn on_writable(&mut self, _now: Instant, socket: &mut dyn Socket) {
        loop {
            let len = (self.size - self.written).min(LONGEST_WRITE);
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

    fn poll_timeout(&self) -> Option<Instant> {
        None
    }

    fn blocks_accepted(&self) -> &[Instant] {
        &[]
    }
}
