"""Brokers in the air as real processes on real hosts: a line in which only neighbors hear each other, and bridges."""

from __future__ import annotations

import time
from pathlib import Path
from random import Random

import pytest
from tests.net.hosts import GROUP, PORT, Hosts, hosts, until

pytestmark = [pytest.mark.feature("manet-cbr F4"), pytest.mark.xdist_group("hosts")]

ADHOC = ("--fabric", "adhoc")
RECORDED = 20
"""Frames that a thief keeps; two nodes say about four a second."""
QUIET_S = 1.0
"""Two beacons: what would come a second time has come."""


def line_of_four(made: Hosts) -> None:
    for segment in ("ab", "bc", "cd"):
        made.segment(segment, *segment)
    for name, air in {"a": "ab", "b": "ab bc", "c": "bc cd", "d": "cd"}.items():
        made[name].serve(*ADHOC, air=air)
    for name in "abcd":
        made[name].ready()


def test_a_line_of_four_hosts_delivers_end_to_end_while_links_are_cut_and_joined(tmp_path: Path) -> None:
    with hosts(tmp_path) as made:
        line_of_four(made)
        hearer, speaker = made["d"].client("hearer", "news/#"), made["a"].client("speaker")
        until(lambda: made["a"].knows("d"))
        said = [speaker.publish("news/x", b"whole %d" % number) for number in range(20)]
        until(lambda: len(hearer.got) >= len(said))
        assert hearer.got == said

        dice = Random(4)
        for number in range(40):
            segment, name = dice.choice([("ab", "a"), ("bc", "b"), ("cd", "d")])
            (made.cut if number % 2 == 0 else made.join)(segment, name)
            if number % 2:
                for one in made.ports:
                    made.join(*one)
            said.append(speaker.publish("news/x", b"torn %d" % number, qos=number % 2))
            time.sleep(0.1)
        until(lambda: len(hearer.got) >= len(said))
        time.sleep(QUIET_S)
        assert sorted(hearer.got) == sorted(said)
        assert made["b"].status()["counts"]["air_events"]["given"] == 0


def test_forged_malformed_and_repeated_frames_are_dropped_and_counted(tmp_path: Path) -> None:
    with hosts(tmp_path) as made:
        made.segment("air", "a", "b", "thief")
        made["a"].serve(*ADHOC, air="air")
        made["b"].serve(*ADHOC, air="air")
        ear = made["thief"].antenna("air")
        ear.settimeout(0.5)
        made["a"].ready(), made["b"].ready()
        hearer, speaker = made["b"].client("hearer", "#"), made["a"].client("speaker")
        until(lambda: made["a"].knows("b"))
        said = [speaker.publish("x", b"%d" % number) for number in range(5)]
        until(lambda: len(hearer.got) >= 5)
        recorded: list[bytes] = []
        try:
            while len(recorded) < RECORDED:
                recorded.append(ear.recv(65_536))
        except TimeoutError:
            pass
        assert recorded
        dice = Random(1)
        before = {reason: made["b"].dropped(reason) for reason in ("forged", "malformed", "replayed")}
        for frame in recorded:
            at = dice.randrange(3, len(frame))
            ear.sendto(frame, (GROUP, PORT))
            ear.sendto(frame[:at] + bytes([frame[at] ^ 1]) + frame[at + 1 :], (GROUP, PORT))
            ear.sendto(dice.randbytes(dice.randrange(200)), (GROUP, PORT))
            time.sleep(0.001)
        until(lambda: all(made["b"].dropped(reason) > count for reason, count in before.items()))
        said.append(speaker.publish("x", b"still here"))
        until(lambda: len(hearer.got) >= 6)
        assert hearer.got == said

        made["b"].stop()
        hearer.close()
        made["b"].serve(*ADHOC, air="air")
        made["b"].ready()
        made["a"].stop()
        fresh = made["b"].client("fresh", "#")
        for frame in recorded:
            ear.sendto(frame, (GROUP, PORT))
        time.sleep(QUIET_S)
        assert fresh.got == []


def test_large_events_cross_in_parts_that_fit_and_larger_ones_are_refused(tmp_path: Path) -> None:
    with hosts(tmp_path) as made:
        made.segment("ab", "a", "b")
        made.segment("bc", "b", "c")
        for name, air in {"a": "ab", "b": "ab bc", "c": "bc"}.items():
            made[name].serve(*ADHOC, air=air, bytes_per_s=2e6)
        hearer, speaker = made["c"].ready().client("hearer", "#"), made["a"].ready().client("speaker")
        until(lambda: made["a"].knows("c"))
        large = Random(2).randbytes(60_000)
        speaker.publish("large", large)
        until(lambda: hearer.got)
        assert hearer.got == [large]
        fragments = made["a"].inside(lambda: Path("/proc/thread-self/net/snmp").read_text())
        names, figures = (line.split() for line in fragments.splitlines() if line.startswith("Ip:"))
        assert dict(zip(names, figures, strict=True))["FragCreates"] == "0"

        speaker.paho.publish("larger", bytes(70_000), 1)
        until(lambda: speaker.ended)
        assert "too large" in str(speaker.ended[0]).lower()


def test_an_interface_may_vanish_and_come_back(tmp_path: Path) -> None:
    with hosts(tmp_path) as made:
        made.segment("air", "a", "b")
        made["a"].serve(*ADHOC, air="air")
        made["b"].serve(*ADHOC, air="air")
        hearer, speaker = made["b"].ready().client("hearer", "#"), made["a"].ready().client("speaker")
        until(lambda: made["a"].knows("b"))
        made.unplug("air", "a")
        speaker.publish("x", b"unplugged")
        until(lambda: "No such device" in str(made["a"].status()["troubles"]))
        made.plug("air", "a")
        until(lambda: hearer.got == [b"unplugged"])
        assert made["a"].status()["troubles"] == []


def test_two_bridges_join_tree_and_air_without_loops_or_duplicates(tmp_path: Path) -> None:
    with hosts(tmp_path) as made:
        made.segment("air", "x", "b1", "b2")
        made.segment("wire", "b1", "b2", "t")
        secret = tmp_path / "secret"
        secret.write_text("of the whole cluster")
        peers = ("--peers-listen", "0.0.0.0:7883", "--secret-file", str(secret))
        dial = ("--peer", "10.77.2.1:7883")
        made["x"].serve(*ADHOC, air="air")
        made["b1"].serve(*ADHOC, "--fabric", "tree", *peers, air="air")
        made["b2"].serve(*ADHOC, "--fabric", "tree", *peers, *dial, air="air")
        made["t"].serve(*peers, *dial)
        for name in ("x", "b1", "b2", "t"):
            made[name].ready()
        in_tree, in_air = made["t"].client("in-tree", "up/#"), made["x"].client("in-air", "down/#")
        at_bridge = made["b1"].client("at-bridge", "#")
        until(lambda: made["x"].knows("b1", "b2"))
        until(lambda: sum(peer["filters"] > 0 for peer in made["t"].status()["peers"]) == 2)
        up = [in_air.publish("up/x", b"up %d" % number) for number in range(30)]
        down = [in_tree.publish("down/x", b"down %d" % number) for number in range(30)]
        until(lambda: len(in_tree.got) >= 30 and len(in_air.got) >= 30 and len(at_bridge.got) >= 60)
        time.sleep(QUIET_S)
        # Some come by one bridge and some by the other, and nobody holds back those of the faster one (docs/adhoc.md).
        assert sorted(in_tree.got) == sorted(up)
        assert sorted(in_air.got) == sorted(down)
        assert sorted(at_bridge.got) == sorted(up + down)
        frames = sum(made["b1"].status()["counts"]["air_frames_sent"].values())
        time.sleep(QUIET_S)
        assert sum(made["b1"].status()["counts"]["air_frames_sent"].values()) - frames < 30
