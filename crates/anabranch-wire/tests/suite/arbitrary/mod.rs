//! Strategies for segments that can be emitted, with arbitrary contents.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use anabranch_wire::mptcp::{
    AddAddr, CapableFlags, CapableKeys, Control, Dss, Mapping, MpCapable, MpFail, MpFastclose,
    MpJoin, MpPrio, MpTcprst, RemoveAddr, ResetReason, WideOrNarrow,
};
use anabranch_wire::{
    DataSeq, FastOpenCookie, Flags, MAX_OPTION_BYTES, Payload, Piece, SackBlock, SackBlocks,
    Segment, SeqNumber, SocketAddress, TcpHeader, TcpOptions, Timestamps,
};
use proptest::collection::vec;
use proptest::option::{of, weighted};
use proptest::prelude::*;

/// Any segment over IPv4 or IPv6 whose options fit.
pub(crate) fn segment() -> impl Strategy<Value = Segment> {
    let other = (0..4u8, any::<bool>());
    (endpoints(), header(), options(), payload(), other).prop_map(
        |((source, destination), header, options, payload, (ecn, checksum_ok))| Segment {
            source,
            destination,
            header,
            options,
            payload,
            ecn,
            checksum_ok,
        },
    )
}

/// Any options that take at most 40 bytes.
pub(crate) fn options() -> impl Strategy<Value = TcpOptions> {
    let tcp = (
        weighted(0.2, any::<u16>()),
        weighted(0.2, any::<u8>()),
        any::<bool>(),
        weighted(0.6, (any::<u32>(), any::<u32>())),
        prop_oneof![2 => Just(Vec::new()), 1 => vec((any::<u32>(), any::<u32>()), 1..=4)],
    );
    let mptcp = (
        weighted(0.5, dss()),
        weighted(0.5, control()),
        weighted(0.2, unknown()),
        weighted(0.2, fast_open()),
    );
    (tcp, mptcp, 0..8usize, any::<bool>()).prop_map(|(tcp, mptcp, victim, word_aligned)| {
        let (dss, control, unknown, fast_open) = mptcp;
        let (mss, window_scale, sack_permitted, timestamps, blocks) = tcp;
        let mut sack = SackBlocks::default();
        for (start, end) in blocks {
            sack.push(SackBlock { start: SeqNumber(start), end: SeqNumber(end) });
        }
        let options = TcpOptions {
            mss,
            window_scale,
            sack_permitted,
            timestamps: timestamps.map(|(value, echo)| Timestamps { value, echo }),
            sack,
            dss,
            control: control.filter(|control| *control != Control::default()).map(Box::new),
            fast_open: fast_open.map(Box::new),
            unknown: unknown.map(Into::into),
            word_aligned,
        };
        let options = cut_to_fit(options, victim);
        let packed = TcpOptions { word_aligned: false, ..options.clone() };
        // A header does not show an alignment that adds nothing.
        if packed.bytes_len() == options.bytes_len() { packed } else { options }
    })
}

/// Drop options one by one, starting with a random one, until the remaining options fit.
fn cut_to_fit(mut options: TcpOptions, victim: usize) -> TcpOptions {
    let cuts: [fn(&mut TcpOptions); 8] = [
        |options| options.sack = SackBlocks::default(),
        |options| options.control = None,
        |options| options.fast_open = None,
        |options| options.unknown = None,
        |options| options.dss = None,
        |options| options.timestamps = None,
        |options| options.mss = None,
        |options| options.window_scale = None,
    ];
    for cut in cuts.iter().cycle().skip(victim).take(cuts.len()) {
        if options.bytes_len() > MAX_OPTION_BYTES {
            cut(&mut options);
        }
    }
    options
}

fn fast_open() -> impl Strategy<Value = FastOpenCookie> {
    let lengths = prop_oneof![Just(0), Just(4), Just(6), Just(8), Just(16)];
    lengths
        .prop_flat_map(|len| vec(any::<u8>(), len))
        .prop_map(|bytes| FastOpenCookie::new(&bytes).expect("a right length"))
}

fn endpoints() -> impl Strategy<Value = (SocketAddress, SocketAddress)> {
    let v4 = || any::<[u8; 4]>().prop_map(|bytes| IpAddr::from(Ipv4Addr::from(bytes)));
    let v6 = || any::<[u8; 16]>().prop_map(|bytes| IpAddr::from(Ipv6Addr::from(bytes)));
    let addresses = prop_oneof![(v4(), v4()), (v6(), v6())];
    (addresses, any::<u16>(), any::<u16>()).prop_map(|((source, destination), from, to)| {
        (SocketAddress::new(source, from), SocketAddress::new(destination, to))
    })
}

fn header() -> impl Strategy<Value = TcpHeader> {
    let numbers = (any::<u32>(), any::<u32>());
    (numbers, any::<u8>(), any::<u16>(), any::<u16>()).prop_map(
        |((seq, ack), flags, window, urgent)| TcpHeader {
            seq: SeqNumber(seq),
            ack: SeqNumber(ack),
            flags: Flags(flags),
            window,
            urgent,
        },
    )
}

fn payload() -> impl Strategy<Value = Payload> {
    let piece = || {
        prop_oneof![
            Just(Piece::EMPTY),
            (any::<u32>(), 0..1500u32).prop_map(|(at, len)| Piece::pattern(u64::from(at), len)),
            vec(any::<u8>(), 0..200).prop_map(|bytes| Piece::Shared(bytes.into())),
        ]
    };
    (piece(), piece()).prop_map(|(first, second)| Payload::new(first, second))
}

fn number() -> impl Strategy<Value = WideOrNarrow> {
    prop_oneof![
        any::<u64>().prop_map(|number| WideOrNarrow::Wide(DataSeq(number))),
        any::<u32>().prop_map(WideOrNarrow::Narrow),
    ]
}

fn dss() -> impl Strategy<Value = Dss> {
    let mapping = (number(), any::<u32>(), any::<u16>(), of(any::<u16>())).prop_map(
        |(data_seq, subflow_seq, len, checksum)| Mapping {
            data_seq,
            subflow_seq: SeqNumber(subflow_seq),
            len,
            checksum,
        },
    );
    (of(number()), of(mapping), any::<bool>()).prop_map(|(data_ack, mapping, data_fin)| Dss {
        data_ack,
        mapping,
        data_fin,
    })
}

fn control() -> impl Strategy<Value = Control> {
    let rarely = 0.2;
    let handshake = (weighted(rarely, capable()), weighted(rarely, join()));
    let address = (weighted(rarely, add_addr()), weighted(rarely, remove_addr()));
    let signals = (
        weighted(rarely, any::<bool>().prop_map(|backup| MpPrio { backup })),
        weighted(rarely, any::<u64>().prop_map(|n| MpFail { data_seq: DataSeq(n) })),
        weighted(rarely, any::<u64>().prop_map(|receiver_key| MpFastclose { receiver_key })),
        weighted(rarely, reset()),
    );
    (handshake, address, signals).prop_map(
        |((capable, join), (add_addr, remove_addr), (prio, fail, fastclose, reset))| Control {
            capable,
            join,
            add_addr,
            remove_addr,
            prio,
            fail,
            fastclose,
            reset,
        },
    )
}

fn capable() -> impl Strategy<Value = MpCapable> {
    let with_data = (any::<u64>(), any::<u64>(), any::<u16>(), of(any::<u16>()));
    let keys = prop_oneof![
        Just(CapableKeys::None),
        any::<u64>().prop_map(CapableKeys::Sender),
        (any::<u64>(), any::<u64>())
            .prop_map(|(sender, receiver)| CapableKeys::Both { sender, receiver }),
        with_data.prop_map(|(sender, receiver, data_len, checksum)| {
            CapableKeys::WithData { sender, receiver, data_len, checksum }
        }),
    ];
    (0..16u8, any::<u8>(), keys).prop_map(|(version, flags, keys)| {
        let flags = CapableFlags {
            checksum_required: flags & 0x80 != 0,
            extensibility: flags & 0x40 != 0,
            deny_join_to_source: flags & 0x20 != 0,
            unassigned: flags & 0x1e,
            hmac_sha256: flags & 0x01 != 0,
        };
        MpCapable { version, flags, keys }
    })
}

fn join() -> impl Strategy<Value = MpJoin> {
    let syn = (any::<bool>(), any::<u8>(), any::<u32>(), any::<u32>());
    let syn_ack = (any::<bool>(), any::<u8>(), any::<u64>(), any::<u32>());
    prop_oneof![
        syn.prop_map(|(backup, address_id, token, nonce)| MpJoin::Syn {
            backup,
            address_id,
            token,
            nonce
        }),
        syn_ack.prop_map(|(backup, address_id, truncated_hmac, nonce)| MpJoin::SynAck {
            backup,
            address_id,
            truncated_hmac,
            nonce
        }),
        any::<[u8; 20]>().prop_map(|hmac| MpJoin::Ack { hmac }),
    ]
}

fn add_addr() -> impl Strategy<Value = AddAddr> {
    let address = prop_oneof![
        any::<[u8; 4]>().prop_map(IpAddr::from),
        any::<[u8; 16]>().prop_map(IpAddr::from),
    ];
    (any::<u8>(), address, of(any::<u16>()), of(any::<u64>())).prop_map(
        |(address_id, address, port, truncated_hmac)| AddAddr {
            address_id,
            address,
            port,
            truncated_hmac,
        },
    )
}

fn remove_addr() -> impl Strategy<Value = RemoveAddr> {
    vec(any::<u8>(), 1..=37).prop_map(|ids| RemoveAddr::new(&ids).expect("1 to 37 identifiers"))
}

fn reset() -> impl Strategy<Value = MpTcprst> {
    (0..8u8, any::<bool>(), any::<u8>()).prop_map(|(uvw, transient, reason)| MpTcprst {
        unassigned: uvw << 1,
        transient,
        reason: ResetReason(reason),
    })
}

/// One to three options that no field of [`TcpOptions`] can hold.
fn unknown() -> impl Strategy<Value = Vec<u8>> {
    let unknown_kind = (prop_oneof![Just(19u8), Just(69), Just(253), Just(254)], 0..8usize)
        .prop_map(|(kind, data)| [vec![kind, 2 + data as u8], vec![0x5a; data]].concat());
    let unknown_subtype = (9..16u8, 0..8usize).prop_map(|(subtype, data)| {
        [vec![30, 3 + data as u8, subtype << 4], vec![1; data]].concat()
    });
    let wrong_length = prop_oneof![Just(vec![2, 2]), Just(vec![8, 3, 1]), Just(vec![30, 2])];
    vec(prop_oneof![unknown_kind, unknown_subtype, wrong_length], 1..=3)
        .prop_map(|options| options.concat())
}
