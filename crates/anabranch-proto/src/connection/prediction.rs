//! Header prediction: usual segments skip most steps. Linux: `tcp_rcv_established`.
//!
//! In a bulk transfer, nearly every segment brings data or an acknowledgement and no rare option, on a
//! subflow in its usual state. Most steps of [`Connection::handle_segment`] find nothing to do for it.
//! Header prediction leaves out these steps and no others, so the result is the same. The soak compares
//! runs with and without it.

use anabranch_wire::{Instant, Segment};

use super::Connection;
use crate::platform::DataAckRule;
use crate::subflow::RxContext;
use crate::view::Slot;

impl Connection {
    /// Take the segment if it is a usual one. Otherwise returns `false`, and nothing has changed.
    #[inline]
    pub(super) fn handle_predicted(
        &mut self,
        now: Instant,
        slot: Slot,
        segment: &mut Segment,
    ) -> bool {
        let dss = segment.options.dss;
        if !self.is_usual()
            || dss.is_some() != self.session.is_mptcp()
            || segment.options.control.is_some()
        {
            return false;
        }
        let (window, shared_window) = self.accepted_window();
        let (ctx, views) = self.subflows.with_views(slot);
        let optionless = dss.is_none() && !segment.payload.is_empty();
        let optionless_end = optionless.then(|| ctx.subflow.end_of(segment));
        let arrived = RxContext { window, shared_window, views };
        if !ctx.subflow.handle_predicted(now, segment, &arrived) {
            return false;
        }
        self.data_rto.on_segment();
        self.data_fin.on_segment();
        match dss {
            Some(dss) => {
                ctx.signs.on_dss(now);
                self.handle_data_ack(now, slot, &dss, segment);
                self.handle_mapping(slot, &dss);
            }
            None => {
                optionless_end.into_iter().for_each(|end| ctx.signs.on_optionless_payload(end));
                self.handle_plain(now, slot, segment);
            }
        }
        self.take_payload(now, slot);
        self.end_segment(now, slot);
        true
    }

    /// No handshake is under way, and Multipath TCP has its path manager and the peer's window.
    #[inline]
    fn is_usual(&self) -> bool {
        let ready = || {
            self.paths.is_started()
                && !self.send.has_no_window()
                && self.config.platform.data_ack != DataAckRule::BeforeAck
        };
        self.config.header_prediction
            && self.session.is_open()
            && (!self.session.is_mptcp() || ready())
    }
}
