import itertools
from collections.abc import Sequence
from typing import Any

import pytest

import anabranch
from anabranch import _core
from anabranch.advice import subject
from anabranch.explanations.explanation import Explanation
from anabranch.gallery.shared.fat_tree import FatTree, FatTreeFlow, most, one_way, permutation
from anabranch.runs.run import run_scenario
from anabranch.scenarios import loading
from anabranch.scenarios.routes import Crossing, route

TREE = FatTree(ports=4, rate="100Mbit/s", delay="20us", limit="100packets")


def path(name: str, mbps: int, *via: str) -> anabranch.NetworkPath:
    return anabranch.NetworkPath(
        name=name, rate=f"{mbps}Mbit/s", delay="5ms", limit="100ms", via=via or None,
        reverse=anabranch.Reverse(rate=f"{10 * mbps}Mbit/s"),
    )  # fmt: skip


def normalised(paths: Sequence[anabranch.NetworkPath], used: Sequence[str]) -> _core.Scenario:
    connection = anabranch.Connection(name="main", paths=tuple(used), workload=anabranch.Bulk())
    scenario = anabranch.Scenario(
        name="routes", duration="5s", paths=tuple(paths), connections=(connection,)
    )
    return loading.of(scenario)


def by_name(scenario: _core.Scenario) -> dict[str, dict[str, Any]]:
    return {each["name"]: each for each in scenario.settings["path"]}


def test_a_route_follows_the_routes_of_its_paths_in_either_direction() -> None:
    made = normalised(
        [path("a", 8), path("-b", 8, "a"), path("c", 8), path("d", 8, "--b", "-c")], ["d"]
    )
    crossed = route("d", by_name(made))
    assert crossed == [
        Crossing("d"),
        Crossing("a", True),
        Crossing("-b", True),
        Crossing("c", True),
    ]
    assert route("-b", by_name(made)) == [Crossing("-b"), Crossing("a")]


def test_capacity_is_that_of_the_links_that_all_paths_cross() -> None:
    # Both paths cross one cable against its direction, so that data to the client takes its reverse
    # link of 4 Mbit/s.
    cables = [path("one", 8), path("two", 8), anabranch.NetworkPath(
        name="down", rate="100Mbit/s", delay="5ms", limit="100ms",
        reverse=anabranch.Reverse(rate="4Mbit/s"),
    )]  # fmt: skip
    ends = [path("a", 50, "one", "-down"), path("b", 50, "two", "-down")]
    made = normalised([*cables, *ends], ["a", "b"])
    found = Explanation(run_scenario(made, 1, ledger=True), 0)
    assert list(found.paths.values()) == ["down"]
    assert found.capacity_mbps == pytest.approx(4.0)
    # Over different cables, the slower link of each route counts.
    made = normalised([*cables, path("a", 50, "one"), path("b", 50, "two")], ["a", "b"])
    found = Explanation(run_scenario(made, 1, ledger=True), 0)
    assert list(found.paths.values()) == ["one", "two"]


def test_the_rule_of_buffers_counts_the_whole_route() -> None:
    # To the client, the cable against its direction has 80 Mbit/s, and the path itself 50 Mbit/s.
    # Three links of 5 ms make a round trip of 30 ms: 2 · 8 Mbit/s · 30 ms = 60,000 bytes.
    made = normalised([path("one", 8), path("two", 8), path("a", 50, "one", "-two")], ["a"])
    settings = made.settings
    assert subject.rule_bytes(settings, settings["connection"][0]) == 60_000


def test_a_fat_tree_has_as_many_routes_as_its_size_allows() -> None:
    cables = {each.name for each in TREE.cables()}
    assert len(cables) == 48
    assert TREE.hosts == 16
    # Hosts 0 and 1 are at one switch, 0 to 3 in one pod.
    counts = {host: len(TREE.routes(0, host)) for host in (1, 2, 3, 4, 15)}
    assert counts == {1: 1, 2: 2, 3: 2, 4: 4, 15: 4}
    for ends in itertools.permutations(range(16), 2):
        routes = TREE.routes(*ends)
        assert len(set(routes)) == len(routes)
        for each in routes:
            climbing = [cable for cable in each if not cable.startswith("-")]
            descending = [cable.removeprefix("-") for cable in each if cable.startswith("-")]
            assert {*climbing, *descending} <= cables
            # A route climbs as far as it descends, and stays connected at every switch.
            assert len(climbing) == len(descending)
            if len(climbing) > 1:
                assert climbing[-1].split("-")[1] == descending[0].split("-")[1]


def test_a_permutation_gives_each_host_one_flow_to_send_and_one_to_receive() -> None:
    flows = permutation(TREE, 4, seed=7)
    assert [flow.source for flow in flows] == list(range(16))
    assert sorted(flow.destination for flow in flows) == list(range(16))
    assert all(flow.source != flow.destination for flow in flows)
    fewer = permutation(TREE, 2, seed=7)
    assert [flow.routes[:2] for flow in flows] == [flow.routes for flow in fewer]
    assert permutation(TREE, 2, seed=8) != fewer


def test_flows_of_one_half_meet_no_acknowledgements() -> None:
    flows = one_way(TREE, 4, seed=3)
    assert [flow.source for flow in flows] == list(range(8))
    assert sorted(flow.destination for flow in flows) == list(range(8, 16))
    data = {link for flow in flows for each in flow.routes for link in each}
    back = {f"-{link}" if not link.startswith("-") else link.removeprefix("-") for link in data}
    assert not data & back


def test_one_route_for_each_flow_allows_half_of_a_fat_tree_of_128_hosts() -> None:
    # NSDI 2011 has 51 of 100 Mbit/s for TCP.
    tree = FatTree(ports=8, rate="100Mbit/s", delay="20us", limit="100packets")
    shares = [most(permutation(tree, 1, seed)) for seed in range(1, 11)]
    assert sum(shares) / len(shares) == pytest.approx(0.52, abs=0.01)


def test_the_best_split_fills_every_cable_that_bounds_it() -> None:
    # Two flows of one switch climb the same cable: half of the rate each, or 1 and 0. A second
    # subflow of one flow over the other cable frees the first one.
    climb = TREE.routes(0, 4)[0], TREE.routes(1, 8)[0]
    one, two = (FatTreeFlow(n, 4, 0, [route]) for n, route in enumerate(climb))
    assert most([one, two]) == pytest.approx(0.5)
    more = FatTreeFlow(1, 8, 0, [climb[1], TREE.routes(1, 8)[2]])
    assert most([one, more]) == pytest.approx(1.0)
