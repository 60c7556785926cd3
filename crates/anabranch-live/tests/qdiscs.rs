//! Links with shapers compared with this kernel's own qdiscs: the same packets must leave at the same
//! times. A host that lacks a qdisc, or the permission to create network namespaces, skips the
//! comparison and reports the reason.

#[cfg(target_os = "linux")]
fn main() {
    use std::process::exit;

    let arguments: Vec<String> = std::env::args().collect();
    if !anabranch_live::is_inside() {
        match anabranch_live::enter(&arguments) {
            Ok(status) => exit(status.code().unwrap_or(1)),
            Err(error) => return println!("qdiscs skipped: no network namespaces: {error}"),
        }
    }
    let failed = linux::cases().iter().filter(|case| !case.holds()).count();
    exit(i32::from(failed > 0));
}

#[cfg(target_os = "linux")]
mod linux {
    use anabranch_live::qdisc::{Passage, measure};
    use anabranch_net::shaper::{MininetConfig, NetemConfig, ShaperConfig, TbfConfig};
    use anabranch_net::units::{ByteCount, Rate};
    use anabranch_net::{Link, LinkConfig, Node};
    use anabranch_wire::{Datagram, Duration, Instant, Packet, Piece, SocketAddress};

    /// A qdisc and the link that models it, both at 2 Mbit/s.
    pub(super) struct Case {
        name: &'static str,
        commands: Vec<&'static str>,
        shaper: ShaperConfig,
        delay: Duration,
        limit: &'static str,
    }

    /// A full packet takes 6 ms, so a wrong byte per packet would soon show.
    const RATE: &str = "2Mbit/s";
    /// Longest acceptable difference. A wake-up of the kernel can be late, so the best of several
    /// measurements counts.
    const TOLERANCE: Duration = Duration::from_micros(400);
    const ATTEMPTS: usize = 6;

    pub(super) fn cases() -> Vec<Case> {
        let ms = Duration::from_millis;
        vec![
            Case {
                name: "tbf",
                commands: vec!["qdisc add dev near root tbf rate 2mbit burst 5000 limit 12000"],
                shaper: TbfConfig { burst: ByteCount::new(5_000) }.into(),
                delay: Duration::ZERO,
                limit: "12kB",
            },
            Case {
                name: "htb, as in Mininet, without delay",
                commands: vec![
                    "qdisc add dev near root handle 5:0 htb default 1",
                    "class add dev near parent 5:0 classid 5:1 htb rate 2mbit burst 15k",
                    "qdisc add dev near parent 5:1 handle 10: pfifo limit 9",
                ],
                shaper: MininetConfig {}.into(),
                delay: Duration::ZERO,
                limit: "9packets",
            },
            Case {
                name: "htb with netem, as in Mininet",
                commands: vec![
                    "qdisc add dev near root handle 5:0 htb default 1",
                    "class add dev near parent 5:0 classid 5:1 htb rate 2mbit burst 15k",
                    "qdisc add dev near parent 5:1 handle 10: netem delay 10ms limit 12",
                ],
                shaper: MininetConfig {}.into(),
                delay: ms(10),
                limit: "12packets",
            },
            Case {
                name: "netem",
                commands: vec!["qdisc add dev near root netem delay 10ms rate 2mbit limit 9"],
                shaper: NetemConfig {}.into(),
                delay: ms(10),
                limit: "9packets",
            },
        ]
    }

    /// A burst that overflows the queue, a pause in which the bucket fills, and packets of several
    /// sizes at less than the rate.
    fn packets() -> Vec<(Duration, u32)> {
        let burst = (0..20).map(|_| (Duration::ZERO, 1_500));
        let after =
            |number: u64| (Duration::from_millis(200 + 4 * number), 100 + 140 * number as u32);
        burst.chain((0..10).map(after)).collect()
    }

    impl Case {
        /// Measure, compare, and print the outcome.
        pub(super) fn holds(&self) -> bool {
            let mut least = None;
            for _ in 0..ATTEMPTS {
                let passages = match measure(&self.commands, &packets()) {
                    Ok(passages) => passages,
                    Err(error) => {
                        println!("{} ... skipped: {error}", self.name);
                        return true;
                    }
                };
                let difference = difference(&passages, &self.departures(&passages));
                least = least.into_iter().chain(difference).min();
                if least.is_some_and(|least| least <= TOLERANCE) {
                    break;
                }
            }
            let holds = least.is_some_and(|least| least <= TOLERANCE);
            let differ = least.map_or("other packets are dropped".to_owned(), |least| {
                format!("departures differ by at most {least:?}")
            });
            println!("{} ... {}: {differ}", self.name, if holds { "ok" } else { "FAILED" });
            holds
        }

        /// When the packets leave the link; `None` if it drops them.
        fn departures(&self, passages: &[Passage]) -> Vec<Option<Instant>> {
            let rate: Rate = RATE.parse().expect("a rate");
            let limit = self.limit.parse().expect("a limit");
            let config = LinkConfig::new(rate, self.delay, limit);
            let mut link = Link::new(LinkConfig { shaper: self.shaper, ..config }, 1);
            let mut left = vec![None; passages.len()];
            for (number, passage) in passages.iter().enumerate() {
                collect(&mut link, passage.entered, &mut left);
                link.handle_packet(passage.entered, packet(number as u16, passage.bytes));
            }
            collect(&mut link, Instant::FAR_FUTURE, &mut left);
            left
        }
    }

    /// The largest difference of two departures of a packet; `None` if different packets are dropped.
    fn difference(measured: &[Passage], expected: &[Option<Instant>]) -> Option<Duration> {
        let pairs = measured.iter().zip(expected).map(|(measured, expected)| {
            match (measured.left, *expected) {
                (Some(a), Some(b)) => Some(a.saturating_since(b).max(b.saturating_since(a))),
                (None, None) => Some(Duration::ZERO),
                _ => None,
            }
        });
        pairs.collect::<Option<Vec<_>>>()?.into_iter().max()
    }

    /// A packet that carries its number as its port.
    fn packet(number: u16, bytes: u32) -> Packet {
        let address = |port| SocketAddress::new([10, 0, 0, 1].into(), port);
        let payload = Piece::pattern(0, bytes - 28).into();
        Datagram { source: address(number), destination: address(0), payload, ecn: 0 }.into()
    }

    /// Write down the packets that leave by `now`.
    fn collect(link: &mut Link, now: Instant, left: &mut [Option<Instant>]) {
        while let Some(at) = link.poll_timeout().filter(|at| *at <= now) {
            link.handle_timeout(at);
            while let Some(packet) = link.poll_transmit(at) {
                let Packet::Udp(datagram) = packet else { continue };
                left[usize::from(datagram.source.port)] = Some(at);
            }
        }
    }
}

#[cfg(not(target_os = "linux"))]
fn main() {
    println!("qdiscs skipped: it needs Linux");
}
