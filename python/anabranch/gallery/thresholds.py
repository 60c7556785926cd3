"""The registry of thresholds: every bound that a claim of the gallery is judged by.

A bound stands here with the day on which it was stated and with its reason, apart from the code
that measures. A bound is stated before the runs that it judges. If it changes afterwards, its
reason says what it was before and why it changed.

Two rules give bounds their width where a source states a number but no tolerance; both are ours:

* *effect ± half*: a source states an effect `e`, such as "12 % more". The bound is 0.5 e to 1.5 e.
* *factor of two*: a source states counts. The bound for their ratio is half to twice the ratio.

`beside` gives the source's own number, in the unit of the quantity. Reports show it beside ours.
"""

from __future__ import annotations

from anabranch.results.bounds import Bound, above, at_least, at_most, below, within

_20, _21, _24, _25 = "2026-11-20", "2026-11-21", "2026-11-24", "2026-11-25"

_ONE = "RFC 6356 goal 1 and NSDI'12 promise no less than TCP over the best path"
_STRICTER = f"{_ONE}; until 2026-11-24"
_ABOUT = "ours: 'about as fast'"
_SHAPE = "ours: NSDI'12 shows the shape only"
_CHANGE = "ours: any effect counts"
_SUM = "90 % of the sum of rates"
_STATED = "effect ± half"

BOUNDS: dict[str, Bound] = {
    # nsdi12-fig7
    "E1.1-3g-slower": at_least(3.0, _20, "ours: the ratio of rates is 4"),
    "E1.2-m12-like-wifi mean": at_most(1.05, _20, _ABOUT),
    "E1.2-m12-like-wifi p95": at_most(1.2, _20, _ABOUT),
    "E1.3-m12-beats-regular": at_least(1.5, _20, "ours: read off CS244'14's plot, with room"),
    "E1.3-m12-beats-regular IQR": above(1.0, _20, _CHANGE),
    "E1.4-littles-law": at_most(15, _20, "ours: blocks of 8 KiB in 200 KiB", "%"),
    "E1.5-both-paths-used": above(1, _20, "ours: guards against using WiFi only", "%"),
    "E1.6-control": above(1.0, _20, _CHANGE),
    "E1.7-regular-slower-than-wifi": above(1.0, _24, _CHANGE),
    "E1.8-window-full": above(10, _24, "ours: 'frequently'", "%"),
    "E1.8-window-full less": below(1.0, _24, _CHANGE),
    # cs244-bandwidth-ratio
    "E1s.1-like-wifi": at_most(1.15, _20, _ABOUT),
    "E1s.2-regular-slower": above(1.0, _20, _CHANGE),
    "E1s.3-heavier-tail": above(
        0.0, _24, "ours: any rise of the tail itself; until 2026-11-24 its ratio to WiFi's tail"
    ),
    "E1s.4-peaks-similar": at_most(25, _24, "ours: as for E1j.2", "%"),
    "E1s.5-less-effective": below(1.0, _24, _CHANGE),
    # cs244-jitter
    "E1j.1-regular-moves": at_least(
        1.4, _20, "ours: from 345 to 620 ms in CS244'14's plots; of the mode until 2026-11-24"
    ),
    "E1j.2-m12-stays": below(25, _20, "ours; of the mode until 2026-11-24", "%"),
    # nsdi12-fig4
    "E2.a-single-path WiFi": at_least(7.4, _20, "ours: 8 Mbit/s less headers and losses", "Mbit/s"),
    "E2.a-single-path 3G": at_least(1.8, _20, "ours: 2 Mbit/s less headers and losses", "Mbit/s"),
    "E2.b-regular-dips": below(0.9, _20, "ours: a dip that nobody takes for noise"),
    "E2.c-m12-never-worse": at_least(1.0, _24, f"{_STRICTER} 0.95, and 0.90 below 100 kB"),
    "E2.d-both-links-full": within(
        8.1,
        9.9,
        _24,
        "9 Mbit/s in CS244'12's reproduction, ± 10 %; until 2026-11-24 at least 9.0",
        "Mbit/s",
    ).beside(9),
    "E2.e-fewer-duplicates": above(0.0, _20, _CHANGE, "Mbit/s"),
    "E2.f-monotonic": at_least(0.95, _20, "ours: noise of seeds"),
    "E2.g-aggregates": at_least(0.9, _24, "ours: 'aggregates'"),
    "E2.h-m1-not-enough": below(1.0, _24, _CHANGE),
    # nsdi12-scenarios
    "E3.weak-3g-harms": below(0.9, _21, _SHAPE),
    "E3.weak-3g-cured": at_least(1.0, _24, f"{_STRICTER} 0.90"),
    "E3.unequal": at_least(1.0, _24, f"{_STRICTER} 0.95"),
    "E3.symmetric": at_most(5, _21, _SHAPE, "%"),
    "E3.memory buffers": at_most(0.5, _21, _SHAPE),
    "E3.memory goodput": at_least(0.95, _21, _SHAPE),
    "E3.receive-queue": at_most(1, _21, _SHAPE, "%"),
    "E3.short-flows-gain": above(1, _21, _CHANGE),
    "E3.short-flows-control": at_most(1.02, _21, _SHAPE),
    # conext13-design
    "E4.1-low-bdp benefit": at_least(0.85, _21, "ours: 'nearly all'"),
    "E4.1-low-bdp harm": at_most(10, _21, "ours: 'nearly all'", "%"),
    "E4.2-fix-helps": above(
        0.0, _21, f"{_CHANGE}; until 2026-11-25 all parts of the forms at once"
    ),
    "E4.3-remedies-help": at_least(0.0, _21, _CHANGE),
    "E4.4-rarely-bad": at_least(98, _21, "ours", "%"),
    "E4.5-design-fills": at_least(2.0, _21, "ours"),
    "E4.6-kernel-form": within(-0.05, 0.05, _25, "ours: as exact as 200 settings allow"),
    # csws14-schedulers-bulk, csws14-schedulers-applimited
    "E5.1a-low-bdp": at_least(0.9, _21, "ours: 'nearly all'"),
    "E5.1b-rr-like-low-rtt": at_most(0.05, _21, "ours: 'hardly differ'"),
    "E5.1c-low-rtt-beats-rr": above(0.0, _24, _CHANGE),
    "E5.2-remedies-high-bdp": above(0.0, _21, _CHANGE),
    "E5.3a-rr-tail": within(
        20, 60, _24, f"CSWS'14: 40 % of the settings; {_STATED}; until 2026-11-24 at least 25", "%"
    ).beside(40),
    "E5.3b-low-rtt-near-lowest doubled": at_most(15, _21, "ours", "%"),
    "E5.3b-low-rtt-near-lowest median": within(
        10,
        100,
        _24,
        "CSWS'14: 70 % of the settings are in this range, so the median is; until 2026-11-24 "
        "without a lower end",
        "%",
    ),
    "E5.4-remedies-alike": at_most(10, _21, "ours: 'similar'", "%"),
    "E5.5-rr-jitter": at_least(3, _21, "ours: 10 times the variance is 3 times the deviation"),
    # ferlin14-bufferbloat
    "E6.a-rtt-capped 1.5": at_most(0.5, _21, "ours"),
    "E6.a-rtt-capped 3": at_most(0.75, _21, "ours"),
    "E6.a-rtt-capped order": below(1.0, _21, _CHANGE),
    "E6.a2-rtt-near-lambda": within(
        0.95, 1.15, _24, "ours: what λ promises, with the room of one smoothing period"
    ),
    "E6.b-goodput-kept": within(
        1.08, 1.15, _24, "slides: 8 to 15 % more; until 2026-11-24 at least 1.00"
    ).beside(1.08, 1.15),
    "E6.c-steadier": within(
        0.55, 0.85, _24, "slides: 15 to 45 % less; until 2026-11-24 at most 0.85"
    ).beside(0.55, 0.85),
    "E6.d-less-waiting": at_most(0.7, _21, "ours: the slides give no number"),
    # csws14-nornet
    "E6.e-unbounded-alike": at_most(10, _24, "ours: 'similar'", "%"),
    "E6.f-bounded-best": above(1.0, _24, _CHANGE),
    "E6.g-least-buffering": below(1.0, _24, _CHANGE),
    # ferlin14-drepas
    "E7.a-2g-harms": at_most(0.95, _21, "ours: a loss beyond noise"),
    "E7.b-drepas-avoids-it": at_least(0.95, _21, "ours: probing may cost 5 %"),
    "E7.c-less-delay": at_most(0.8, _21, "ours: the slides give no number"),
    "E7.d-3g-unchanged": at_most(5, _21, "ours: 'similar'", "%"),
    "E7.g-better-than-current": above(1.0, _24, _CHANGE),
    "E7.e-standby-takes-over": at_most(1.8, _21, "ours", "s", "3 retransmission timeouts of 2G"),
    "E7.f-probes-are-cheap": at_most(2, _21, "ours", "%"),
    # grinnemo15-cloud-latency
    "E8.a-netflix": at_most(0.8, _21, "ours: 'significant'; of medians until 2026-11-24"),
    "E8.b-maps": at_most(0.9, _21, "ours; of medians until 2026-11-24"),
    "E8.c-docs": within(0.9, 1.1, _21, "ours; of medians until 2026-11-24"),
    "E8.d-loss": at_most(0.9, _21, "ours; of medians until 2026-11-24"),
    "E8.e-docs-loss": at_most(1.1, _21, "ours; of medians until 2026-11-24"),
    "E8.f-little-difference": at_most(1.0, _21, "ours; of medians until 2026-11-24"),
    "E8.g-grows-with-ratio": at_least(1.0, _21, "ours: every step counts"),
    "E8.h-large-difference": at_least(1.0, _21, _CHANGE),
    "E8.i-aware-scheduler": at_most(1.05, _21, "ours"),
    "E8b.a-bursts-grow": at_least(1.0, _21, "ours: every step counts"),
    "E8b.b-bursts-ecf": at_most(1.05, _21, "ours"),
    # veerman12-lan
    "E9.lan-throughput": at_least(180, _21, "ours", "Mbit/s", _SUM),
    "E9.lan-needs-buffer": at_most(140, _21, "ours", "Mbit/s", "70 % of the sum of rates"),
    "E9.lan-robustness DOWN": at_most(2, _21, "ours", "s"),
    "E9.lan-robustness UP": at_most(5, _21, "ours", "s"),
    "E9.lan-stuck-subflow": at_most(110, _21, "ours", "Mbit/s", "110 % of one link"),
    "E9.lan-nothing-lost": at_least(100, _21, "no byte may be lost", "%"),
    "E9.lan-balancing": at_least(70, _21, "ours: the rates give 83 %", "%"),
    "E9.lan-two-graphs": at_least(10, _24, "ours: a difference that is visible in a graph", "%"),
    "E9.lan-two-ten sum": at_least(1800, _21, "ours", "Mbit/s", _SUM),
    "E9.lan-two-ten share": within(0.4, 0.6, _21, "ours"),
    # veerman12-wan
    "E9.wan-monotone": at_least(0.98, _21, "ours: noise of seeds"),
    "E9.wan-sum": at_least(117, _21, "ours", "Mbit/s", _SUM),
    "E9.wan-advanced": at_least(1, _21, "slides: 'more optimal'"),
    "E9.lan-wan": below(1, _21, "slides: 10 MB beside a minimum of 17.5 MB"),
    # veerman12-fairness
    "E9.fairness-lia": within(0.4, 0.6, _21, "ours"),
    "E9.fairness-uncoupled": below(0.4, _21, "ours"),
    "E9.fairness-control": within(0.45, 0.55, _21, "ours"),
    "E9.fairness-below-theory": at_most(0.9, _21, "ours: 'far below'"),
    "E9.fairness-a-bit-unfair": below(1.0, _24, _CHANGE),
    "E9.fairness-coupling-helps": at_least(1.1, _21, "ours"),
    # veerman12-unscaled
    "E9.unscaled-rule sum": at_least(10170, _21, "ours", "Mbit/s", _SUM),
    "E9.unscaled-rule share": at_least(70, _21, "ours: the rates give 88 %", "%"),
    "E9.unscaled-advanced": at_least(1, _21, "slides: 'more optimal'"),
    "E9.unscaled-balancing": at_least(70, _21, "ours: the rates give 83 %", "%"),
    # nsdi11-lia
    "E10.lia-random-loss": within(0.42, 0.58, _21, "ours: one half ± 0.08"),
    "E10.lia-uncoupled-takes-more": at_least(0.6, _21, "ours: theory gives 0.67"),
    "E10.lia-drop-tail share": at_most(0.62, _21, "ours: subflows do not lose packets together"),
    "E10.lia-drop-tail gap": at_least(0.05, _21, "ours"),
    "E10.lia-sum": within(
        0.94, 1.15, _24, "NSDI'11: 17.3 for 14.4 + 2.1, ± 10 %; until 2026-11-24 at least 0.90"
    ).beside(17.3 / (14.4 + 2.1)),
    "E10.lia-best-path": at_least(1.0, _24, f"{_STRICTER} 0.95"),
    "E10.lia-torus": at_least(0.95, _21, "ours"),
    # conext12-olia, balia
    "E10.olia-p1": below(1.931, _21, _CHANGE, "Mbit/s", "the goodput of 2 Mbit/s"),
    "E10.olia-leaves-more": at_least(1.03, _21, "ours"),
    "E10.olia-loses-nothing": at_least(
        1.873, _21, "ours", "Mbit/s", "0.97 of the goodput of 2 Mbit/s"
    ),
    "E10.balia-between": at_least(1.2, _21, "ours"),
    "E10.balia-fair": within(0.4, 0.6, _21, "ours"),
    "E10.balia-control": above(0.6, _21, "ours: theory gives 0.67"),
    "E10.balia-responsive": at_least(0, _21, _CHANGE, "s"),
    "E10.balia-scenario-c": at_least(1.0, _21, _CHANGE),
    # networking16-blest
    "E11.blest-reinjections": within(
        0.096,
        0.382,
        _24,
        "Networking'16: 70 for 366; factor of two; until 2026-11-24 at most 0.5",
    ).beside(70.3 / 366.37),
    "E11.blest-goodput": within(
        1.06, 1.18, _24, f"Networking'16: 12 % more; {_STATED}; until 2026-11-24 at least 1.03"
    ).beside(1.12),
    "E11.blest-out-of-order": within(
        0.715,
        0.905,
        _24,
        f"Networking'16: 19 % less; {_STATED}; until 2026-11-24 at most 0.95",
    ).beside(0.81),
    "E11.blest-homogeneous": at_most(3, _21, "ours", "%"),
    "E11.blest-cbr": within(
        0.885,
        0.962,
        _24,
        f"Networking'16: 62.8 for 68 ms; {_STATED}; until 2026-11-24 at most 1.0",
    ).beside(62.8 / 68),
    "E11.otias-cbr": within(0.673, 0.891, _25, _STATED).beside(53.2 / 68),
    "E11.daps-cbr": within(6.7, 18.1, _25, f"Networking'16: 843.7 for 68 ms; {_STATED}").beside(
        843.7 / 68
    ),
    "E11.daps-homogeneous": within(
        1.018, 1.053, _25, f"Networking'16: 54.02 for 52.18 ms; {_STATED}"
    ).beside(54.02 / 52.18),
    # conext17-ecf
    "E11.ecf-restarts": within(
        0.016, 0.066, _24, "CoNEXT'17: 16 for 486; factor of two; until 2026-11-24 at most 0.25"
    ).beside(16 / 486),
    "E11.daps-restarts": within(0.095, 0.379, _25, "CoNEXT'17: 92 for 486; factor of two").beside(
        92 / 486
    ),
    "E11.ecf-throughput": at_least(1.3, _21, "ours"),
    "E11.ecf-out-of-order": below(1.0, _21, _CHANGE),
    "E11.ecf-symmetric": at_most(3, _21, "ours", "%"),
    "E11.ecf-download": within(
        0.8,
        0.935,
        _24,
        "CoNEXT'17: 13 % less, up to 20 %; from half of the former; until 2026-11-24 at most 0.95",
    ).beside(0.87),
    "E11.ecf-small-download": at_most(5, _21, "ours", "%"),
    # rfc8382-sbd
    "E12.a-shared": at_least(90, _21, "ours", "%"),
    "E12.b-disjoint": at_least(95, _21, "ours", "%"),
    "E12.e-balanced-accuracy": at_least(90, _24, "ours: as for E12.a", "%"),
    "E12.c-uncoupled-gains": at_least(1.0, _21, _CHANGE),
    "E12.d-fair": within(0.4, 0.6, _21, "ours"),
    # ipv4-ipv6
    "IP.a-sum of both": at_least(0.9, _21, "ours"),
    "IP.a-sum better": at_least(1.2, _21, "ours"),
    "IP.b-control": within(0.95, 1.05, _21, "ours"),
    "IP.c-reliability MPTCP": at_most(1.0, _21, "ours", "s"),
    "IP.c-reliability TCP": at_least(15, _21, "ours", "s", "the outage"),
    "IP.d-returns": at_least(20, _21, "ours", "%"),
    # cellnet12-handover
    "HO.a-continues MPTCP": at_most(3.0, _25, "ours: a user would wait so long", "s"),
    "HO.a-continues TCP": at_least(15, _25, "ours", "s", "the outage"),
    "HO.b-single-path-dips": above(1.0, _25, _CHANGE),
    "HO.c-full-adds-up": above(1.0, _25, _CHANGE),
    "HO.c-full-adds-up share": at_most(15, _25, "ours: 15 s of 60 at a quarter of the rate", "%"),
    "HO.e-cured": above(1.0, _25, f"{_CHANGE}; added after HO.c-full-adds-up was violated"),
    # icc16-redundant
    "RD.a-shorter-tail": below(1.0, _25, _CHANGE),
    "RD.b-halved": within(0.25, 0.75, _25, _STATED).beside(0.5),
    "RD.c-control": within(0.9, 1.1, _25, _ABOUT),
    "RD.d-price TCP": at_most(1.1, _25, _ABOUT),
    "RD.d-price MPTCP": at_most(0.75, _25, "ours: half of the sum of the rates, with room"),
    # imc13-wireless
    "IM.a-close-to-best": at_most(1.1, _25, "ours: 'at least close to'"),
    "IM.b-large-faster": below(1.0, _25, _CHANGE),
    "IM.c-poor-cellular": at_least(1.0, _25, "ours: 'better … except in cases with poor cellular'"),
    "IM.d-small-flows share": at_most(5, _25, "ours: 8 KiB fit into the first window", "%"),
    "IM.d-small-flows time": within(0.95, 1.05, _25, _ABOUT),
    "IM.e-share-grows": above(0.0, _25, _CHANGE, "percentage points"),
    "IM.f-uncoupled": below(1.0, _25, _CHANGE),
    "IM.g-olia": within(0.9, 1.1, _25, _ABOUT),
    "IM.h-slow-path-waits": above(1.0, _25, _CHANGE),
    "IM.i-traces-wait": above(1.0, _25, _CHANGE),
    # icnp12-wvegas
    "WV.a-ten-queued": within(
        8, 14, _25, "ours: a total of 10, as in the engine's test of one subflow", "packets"
    ),
    "WV.b-short-queues": at_most(0.25, _25, "ours: 'low buffer consumption'"),
    "WV.b-short-queues losses": at_most(0.1, _25, "ours: 'frequent losses'"),
    "WV.c-fills": at_least(0.95, _25, _ABOUT),
    "WV.d-timely": above(0.0, _25, _CHANGE, "percentage points"),
    "WV.e-converges": below(0.0, _25, _CHANGE, "percentage points"),
    "WV.f-equal-rates": within(
        0.3, 0.367, _25, "ICNP'12, slides: 5 of 15 Mbit/s each; ± 10 % is ours"
    ).beside(5 / 15),
    "WV.f-equal-rates split": within(
        0.1, 0.3, _25, f"ICNP'12, slides: 1 of 5 Mbit/s; {_STATED}"
    ).beside(1 / 5),
    "WV.g-fairer-than-lia": below(1.0, _25, _CHANGE),
    "WV.h-one-bottleneck": within(0.4, 0.6, _25, "ours"),
    # linux-today, nsdi12-fig7-live
    "L1-linux-is-harmed": below(1.0, _21, _CHANGE),
    "L2-half-is-lost": within(3.4, 4.6, _21, "ours: 3.97 in single runs, ± 15 %", "Mbit/s"),
    "L3-cured": at_least(0.95, _21, "ours: noise of real time"),
    "L3-cured beside MPTCP": above(1.0, _21, _CHANGE),
    "K1-virtual-is-real goodput": at_most(5, _21, "ours", "%"),
    "K1-virtual-is-real delay": at_most(10, _21, "ours", "%"),
    "K2-linux-is-harmed": below(1.0, _21, _CHANGE),
    "K3-cured": at_least(0.95, _21, "ours: noise of real time"),
    "K3-cured goodput": above(1.0, _21, _CHANGE),
    "K3-cured delay": below(1.0, _21, _CHANGE),
    # linux-small-path
    "S1-linux-is-harmed": below(1.0, _25, _CHANGE),
    "S2-harm-vanishes": at_least(0.95, _25, "ours: the report has 0.991; noise of real time"),
    "S3-cured": at_least(0.95, _25, "ours: noise of real time"),
    # veerman12-parallel
    "VP.a-right-split": at_least(0.9, _25, "ours: 'about as fast'"),
    "VP.b-even-split": above(1.0, _25, _CHANGE),
    "VP.c-fair": at_least(0.4, _25, "ours: half, with room for small differences of round trips"),
    "VP.c-fair parallel": at_most(0.3, _25, "ours: one flow of five, with room"),
    # sigcomm11-fattree
    "FT.a-tcp-collides": within(
        24.5, 73.5, _25, f"NSDI'11: 51 of 100 Mbit/s, so 49 % are lost; {_STATED}", "%"
    ).beside(49),
    "FT.b-mptcp-fills": within(0.9, 1.0, _25, "NSDI'11: 95 of 100 Mbit/s, ± 5").beside(0.95),
    "FT.c-more-subflows": above(1.0, _25, _CHANGE),
    "FT.d-fairer slowest": above(1.0, _25, _CHANGE),
    "FT.d-fairer index": above(1.0, _25, _CHANGE),
    "FT.e-coupling-is-free": within(0.95, 1.05, _25, _ABOUT),
    "FT.f-acknowledgements": at_least(0.95, _25, "ours; added after FT.b-mptcp-fills was open"),
    # field-reports
    "FR.harmed": below(1.0, _25, "ours: any harm counts"),
    "FR.cured": at_least(0.95, _25, _ABOUT),
    "FR.as-reported": within(0.8, 1.25, _25, "ours; stated after a table of shorter runs"),
    # calibration
    "C output median": at_most(3, _24, "ours", "%"),
    "C output p90": at_most(8, _24, "ours", "%"),
    "C delay median": at_most(5, _24, "ours", "%"),
    "C delay p90": at_most(12, _24, "ours", "%"),
}
