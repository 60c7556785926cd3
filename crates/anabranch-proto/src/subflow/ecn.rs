//! Explicit congestion notification: routers mark packets instead of dropping them, the receiver
//! echoes the marks, and the sender reduces its window once per window of data. RFC 3168 §6.1.

use anabranch_wire::{Flags, TcpHeader};

/// Number of SYNs that offer ECN (this project): some middleboxes drop SYNs because of it. RFC 3168
/// §6.1.1.1 allows one or more.
const OFFERING_SYNS: u32 = 2;

/// The answers to ECN in one host's SYNs and SYN/ACKs.
#[derive(Clone, Copy, Debug, Default)]
struct Said {
    yes: bool,
    no: bool,
}

impl Said {
    fn say(&mut self, yes: bool) {
        self.yes |= yes;
        self.no |= !yes;
    }
}

/// ECN on one subflow.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Ecn {
    local: Said,
    remote: Said,
    /// Data may be marked.
    agreed: bool,
    /// Acknowledgements carry ECE until CWR arrives.
    echoing: bool,
    /// The next new data carries CWR.
    reduced: bool,
    /// SND.NXT at the last reduction of the window, and at the last reduction because of marks.
    point: u64,
    marks_point: u64,
    /// The subflow sends nothing new until the retransmission timer expires.
    holding: bool,
}

impl Ecn {
    /// Flags of the `number`th SYN of a host; it offers ECN if `wanted`.
    pub(super) fn offer(&mut self, wanted: bool, number: u32) -> Flags {
        let yes = wanted && number <= OFFERING_SYNS;
        self.local.say(yes);
        self.settle();
        if yes { Flags::ECE | Flags::CWR } else { Flags::default() }
    }

    /// Flags of a SYN/ACK. RFC 3168 §6.1.1: ECN requires that every SYN has offered it.
    pub(super) fn answer(&mut self, wanted: bool) -> Flags {
        let yes = wanted && self.remote.yes && !self.remote.no;
        self.local.say(yes);
        self.settle();
        if yes { Flags::ECE } else { Flags::default() }
    }

    /// Process the peer's SYN or SYN/ACK. RFC 3168 §6.1.1: a SYN/ACK with both flags reflects those
    /// of the SYN, and is no answer.
    pub(super) fn on_syn(&mut self, flags: Flags) {
        let is_answer = flags.contains(Flags::ACK);
        self.remote.say(flags.contains(Flags::ECE) && flags.contains(Flags::CWR) != is_answer);
        self.settle();
    }

    /// RFC 3168 §6.1.1: ECN is agreed if both hosts have accepted it and neither has ever refused.
    fn settle(&mut self) {
        self.agreed = self.local.yes && !self.local.no && self.remote.yes && !self.remote.no;
    }

    /// Returns `true` if data may be marked.
    pub(super) fn is_agreed(&self) -> bool {
        self.agreed
    }

    /// Data arrived with these flags, and with a mark if `marked`. Returns true if the sender
    /// should learn of this at once. RFC 3168 §6.1.3.
    ///
    /// A host that has accepted ECN echoes marks. RFC 3168 §6.1.1 does not require this if the
    /// peer's answer was negative. But the answer may have lost its flag on the path, and the peer
    /// would send too fast.
    pub(super) fn on_mark(&mut self, flags: Flags, marked: bool) -> bool {
        if flags.contains(Flags::CWR) {
            self.echoing = false;
        }
        let news = marked && self.local.yes && !self.echoing;
        self.echoing |= news;
        news
    }

    /// Echo marks on a segment. RFC 3168 §6.1.3: on every acknowledgement until CWR arrives.
    pub(super) fn echo(&self, header: &mut TcpHeader) {
        if self.echoing && !header.flags.contains(Flags::RST) {
            header.flags |= Flags::ECE;
        }
    }

    /// Returns `true` if an echo with the acknowledgement of `una` is new. RFC 3168 §6.1.2: it is
    /// not if the acknowledged data was sent before the last reduction.
    pub(super) fn is_news(&self, una: u64) -> bool {
        una > self.point
    }

    /// Returns `true` if marks have reduced the window since the data at `una` was sent. RFC 3168
    /// §6.1.2: the marks and losses of one window reduce it once. (Several losses are handled by
    /// recovery, which may find that there were none.)
    pub(super) fn was_reduced_since(&self, una: u64) -> bool {
        una < self.marks_point
    }

    /// The window is reduced because of marks; SND.NXT is `nxt`.
    pub(super) fn on_marks(&mut self, nxt: u64) {
        self.on_reduction(nxt);
        self.marks_point = nxt;
    }

    /// The window is reduced for any reason; SND.NXT is `nxt`.
    pub(super) fn on_reduction(&mut self, nxt: u64) {
        if self.is_agreed() {
            self.reduced = true;
            self.point = nxt;
        }
    }

    /// Returns `true` if the next new data must announce that the window was reduced. RFC 3168
    /// §6.1.2: only the first new data does.
    pub(super) fn take_reduced(&mut self) -> bool {
        std::mem::take(&mut self.reduced)
    }

    /// RFC 3168 §6.1.2: a window of one segment cannot be halved, so the sender waits for the
    /// timer.
    pub(super) fn hold(&mut self) {
        self.holding = true;
    }

    pub(super) fn is_holding(&self) -> bool {
        self.holding
    }

    /// The retransmission timer expired.
    pub(super) fn release(&mut self) {
        self.holding = false;
    }
}
