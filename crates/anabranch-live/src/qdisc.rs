//! Times at which this kernel's queueing disciplines send packets.
//!
//! Packets go from one end of a veth pair to the other, through qdiscs that `tc` attaches to the first
//! end. The kernel's timestamp of the arrival at the second end is the time of departure, because a
//! veth pair takes no time.

use std::io;
use std::thread;
use std::time::Duration as StdDuration;

use anabranch_wire::{Duration, Instant};

use crate::kernel_setup::wait_for;
use crate::namespace::{Namespace, ip, set_sysctl, shell};
use crate::sys::{self, ClockId, PacketSocket};

/// A packet that entered a qdisc. Times count from the first packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Passage {
    /// Length of the IP packet.
    pub bytes: u32,
    /// When it entered the qdisc.
    pub entered: Instant,
    /// When it left the qdisc; `None` if the qdisc dropped it.
    pub left: Option<Instant>,
}

/// Send packets through qdiscs, each at a time since the start, with its length in bytes. `commands`
/// are arguments of `tc` that attach the qdiscs to the interface `near`.
///
/// # Errors
/// If this process may not create network namespaces, or the kernel lacks a qdisc.
pub fn measure(commands: &[&str], packets: &[(Duration, u32)]) -> io::Result<Vec<Passage>> {
    Namespace::new()?.within(|| {
        ip(&["link add near type veth peer name far".to_owned()])?;
        for end in ["near", "far"] {
            // Nothing else sends packets.
            let _ = set_sysctl(&format!("ipv6/conf/{end}/disable_ipv6"), "1");
            ip(&[format!("link set {end} arp off up")])?;
            sys::disable_offloads(end)?;
        }
        commands.iter().try_for_each(|command| shell(&format!("tc {command}")))?;
        wait_for("near")?;
        wait_for("far")?;
        let [near, far] = ["near", "far"].map(|end| PacketSocket::open(end, STATION));
        let (near, far) = (near?, far?);
        // The kernel begins to take timestamps shortly after a socket asks for them.
        thread::sleep(SETTLING);
        send_all(&near, &far, packets)
    })
}

/// Any address; the far end accepts all packets.
const STATION: [u8; 6] = [2, 0, 0, 0, 0, 1];
/// Time after the last packet. A packet that has not left by then was dropped.
const LONGEST: u64 = 100_000_000;
const SETTLING: StdDuration = StdDuration::from_millis(50);
const PAUSE: StdDuration = StdDuration::from_micros(200);
/// First byte of an IPv4 packet without options. The number of the packet follows at byte 4.
const VERSION: u8 = 0x45;
const NUMBER: std::ops::Range<usize> = 4..8;

fn send_all(
    near: &PacketSocket,
    far: &PacketSocket,
    packets: &[(Duration, u32)],
) -> io::Result<Vec<Passage>> {
    let mut passages: Vec<Passage> = Vec::new();
    let start = sys::clock(ClockId::Realtime);
    let since = |stamp: u64| Instant::from_nanos(stamp.saturating_sub(start));
    for (number, &(at, bytes)) in packets.iter().enumerate() {
        let mut packet = vec![0; bytes as usize];
        packet[0] = VERSION;
        packet[NUMBER].copy_from_slice(&(number as u32).to_be_bytes());
        let due = start + at.as_nanos();
        if let Some(early) = due.checked_sub(sys::clock(ClockId::Realtime)) {
            thread::sleep(StdDuration::from_nanos(early).saturating_sub(PAUSE));
        }
        while sys::clock(ClockId::Realtime) < due {
            std::hint::spin_loop();
        }
        passages.push(Passage { bytes, entered: since(sys::clock(ClockId::Realtime)), left: None });
        match near.send(&packet) {
            // The qdisc dropped the packet.
            Err(error) if error.raw_os_error() == Some(libc::ENOBUFS) => {}
            sent => sent?,
        }
    }
    let mut buffer = vec![0; sys::LONGEST_FRAME];
    let last = sys::clock(ClockId::Realtime);
    while sys::clock(ClockId::Realtime) < last + LONGEST {
        let Some((length, stamp)) = far.receive(&mut buffer)? else {
            thread::sleep(PAUSE);
            continue;
        };
        if length < NUMBER.end || buffer[0] != VERSION {
            continue;
        }
        let number = buffer[NUMBER].try_into().map_or(0, u32::from_be_bytes);
        if let Some(passage) = passages.get_mut(number as usize) {
            passage.left = Some(since(stamp));
        }
    }
    Ok(passages)
}
