//! One end of a link: a TUN interface, and a socket to the other end. Packets from the interface pass
//! through a link of the emulator.

use std::future::poll_fn;
use std::path::Path;

use anabranch_host::Device;
use anabranch_live::TunDevice;
use anabranch_net::units::{QueueLimit, Rate};
use anabranch_net::{Link, LinkConfig, Node};
use anabranch_wire::{Duration, Flags, Instant, Packet, PooledSegment, Segment};
use tokio::net::UnixDatagram;
use tokio::time;

/// Run with the arguments INTERFACE, OWN SOCKET, PEER'S SOCKET, RATE, DELAY, LIMIT. While a file with
/// the name of the own socket and `.cut` exists, the link swallows all packets. If a file with the name of
/// the own socket and `.replay` appears, the link sends the last SYN with data once more, with the
/// source port that the file contains.
pub(crate) fn main(arguments: &[String]) {
    let [interface, own, peer, rate, delay, limit] = arguments else { panic!("six arguments") };
    let rate: Rate = rate.parse().expect("a rate");
    let delay: Duration = anabranch_net::units::parse_duration(delay).expect("a delay");
    let limit: QueueLimit = limit.parse().expect("a limit");
    let link = Link::new(LinkConfig::new(rate, delay, limit), 1);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime").block_on(run(interface, own, peer, link));
}

async fn run(interface: &str, own: &str, peer: &str, mut link: Link) {
    let mut device = TunDevice::open(interface).expect("a device");
    let socket = UnixDatagram::bind(own).expect("a socket");
    let start = time::Instant::now();
    let cut = format!("{own}.cut");
    let mut buffer = vec![0; 1 << 16];
    let (replay, mut recorded) = (format!("{own}.replay"), None);
    let mut ticks = time::interval(std::time::Duration::from_millis(50));
    loop {
        let due = link.poll_timeout();
        let due = due.map(|at| start + std::time::Duration::from_nanos(at.as_nanos()));
        let timeout = async {
            match due {
                Some(due) => time::sleep_until(due).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            packet = poll_fn(|context| device.poll_receive(context)) => {
                let packet = packet.expect("a packet");
                if let Packet::Tcp(segment) = &packet
                    && segment.header.flags.contains(Flags::SYN)
                    && !segment.payload.is_empty()
                {
                    recorded = Some(Segment::clone(segment));
                }
                if !Path::new(&cut).exists() {
                    link.handle_packet(now(start), packet);
                }
            }
            received = socket.recv(&mut buffer) => {
                let count = received.expect("a packet");
                if let Ok(packet) = Packet::parse(&buffer[..count]) {
                    // The interface may be down.
                    let _ = device.send(packet);
                }
            }
            () = timeout => {}
            _ = ticks.tick() => {
                if let (Ok(port), Some(recorded)) = (std::fs::read_to_string(&replay), &recorded) {
                    std::fs::remove_file(&replay).expect("it was read");
                    let mut copy = recorded.clone();
                    copy.source.port = port.trim().parse().unwrap_or(copy.source.port);
                    link.handle_packet(now(start), PooledSegment::new(copy).into());
                }
            }
        }
        let mut bytes = Vec::new();
        let until = now(start);
        while let Some(at) = link.poll_timeout().filter(|at| *at <= until) {
            link.handle_timeout(at);
            while let Some(packet) = link.poll_transmit(at) {
                bytes.clear();
                packet.emit(&mut bytes).expect("a packet");
                // The other end may not be there yet.
                let _ = socket.try_send_to(&bytes, peer);
            }
        }
    }
}

fn now(start: time::Instant) -> Instant {
    Instant::from_nanos(start.elapsed().as_nanos() as u64)
}
