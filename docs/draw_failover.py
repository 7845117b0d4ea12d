"""Draws docs/img/failover.svg from a real run: a leader dies, another takes over.

python docs/draw_failover.py            write the picture
python docs/draw_failover.py --check    change nothing; exit 1 if the picture is stale

Everything in the picture is queried from a running ``Simulation``; nothing is drawn by hand.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from fakekafka import Simulation
from fakekafka.protocol.errors import ErrorCode
from fakekafka.protocol.values import TopicPartition

PICTURE = Path(__file__).resolve().parent / "img" / "failover.svg"
SEED = 7
SESSION_TIMEOUT_MS = 6000
BEFORE_MS, DOWN_MS, AFTER_MS = 2000, 9000, 2500
SAMPLE_MS, SEND_EVERY_MS = 10, 20
WHERE = TopicPartition("orders", 0)

WIDTH, LEFT, RIGHT = 860, 84, 850
LANE_TOP, LANE_HEIGHT, LANE_GAP = 78, 26, 12
CURVE_TOP, CURVE_BOTTOM = 204, 300
COLOURS = {"leader": "#1a7f37", "in sync": "#9fd8ae", "out of sync": "#d8dee4", "down": "#ffcecb"}


@dataclass
class Facts:
    """The observations, with times in virtual milliseconds since the picture's left edge."""

    roles: dict[int, list[tuple[float, str]]] = field(default_factory=dict)
    """(start, role) pairs in order, by broker."""
    high_watermark: list[tuple[float, int]] = field(default_factory=list)
    acknowledged: list[float] = field(default_factory=list)
    marks: list[tuple[float, str]] = field(default_factory=list)
    end_ms: float = 0


def _role(simulation: Simulation, broker_id: int) -> str:
    if not simulation.broker(broker_id).is_alive:
        return "down"
    view = simulation.partition(*WHERE)
    if view.replica(broker_id).role == "leader":
        return "leader"
    return "in sync" if broker_id in view.isr else "out of sync"


def observe() -> Facts:
    """Run the failover and observe it from outside every ``SAMPLE_MS``."""
    facts = Facts()
    config = {"zookeeper.session.timeout.ms": SESSION_TIMEOUT_MS}
    with Simulation(brokers=3, seed=SEED, topics={"orders": 1}, config=config) as simulation:
        producer = simulation.producer()
        start_ms = simulation.now_ms
        victim = simulation.partition(*WHERE).leader
        assert victim is not None

        def answered(error: ErrorCode, _offset: int) -> None:
            assert error == ErrorCode.NONE
            facts.acknowledged.append(simulation.now_ms - start_ms)

        def watch(duration_ms: float) -> None:
            until_ms = simulation.now_ms + duration_ms
            while simulation.now_ms < until_ms:
                if round(simulation.now_ms - start_ms) % SEND_EVERY_MS == 0:
                    producer.produce(WHERE, b"order", callback=answered)
                simulation.run_for(SAMPLE_MS)
                _sample(facts, simulation, simulation.now_ms - start_ms)

        watch(BEFORE_MS)
        facts.marks.append((simulation.now_ms - start_ms, f"broker {victim} is killed"))
        simulation.broker(victim).kill()
        watch(DOWN_MS)
        facts.marks.append((simulation.now_ms - start_ms, f"broker {victim} starts again"))
        simulation.broker(victim).start(wait=False)
        watch(AFTER_MS)
        facts.end_ms = simulation.now_ms - start_ms
    return facts


def _sample(facts: Facts, simulation: Simulation, now_ms: float) -> None:
    for broker_id in simulation.broker_ids:
        role = _role(simulation, broker_id)
        seen = facts.roles.setdefault(broker_id, [])
        if not seen or seen[-1][1] != role:
            seen.append((now_ms if seen else 0, role))
            if role == "leader" and len(seen) > 1:
                facts.marks.append((now_ms, f"broker {broker_id} is elected"))
    high_watermark = simulation.partition(*WHERE).high_watermark
    if high_watermark >= 0:
        facts.high_watermark.append((now_ms, high_watermark))


def gap(facts: Facts) -> tuple[float, float]:
    """Return the longest span without an acknowledgement."""
    pairs = zip(facts.acknowledged, facts.acknowledged[1:], strict=False)
    return max(pairs, key=lambda pair: pair[1] - pair[0])


def _text(x: float, y: float, text: str, more: str = "") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" {more}>{text}</text>'.replace(" >", ">")


def _box(x: float, y: float, width: float, height: float, fill: str) -> str:
    place = f'x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}"'
    return f'<rect {place} fill="{fill}"/>'


def draw(facts: Facts) -> str:
    """Return the picture as SVG text."""

    def at(time_ms: float) -> float:
        return LEFT + (RIGHT - LEFT) * time_ms / facts.end_ms

    begin, end = gap(facts)
    outage = f"no record acknowledged for {(end - begin) / 1000:.1f} s"
    label = f"A failover in virtual time: {outage}, then broker by broker in sync again"
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} 340" role="img" '
        f'aria-label="{label}" font-family="sans-serif" font-size="12" fill="#1f2328">',
        _box(0, 0, WIDTH, 340, "#ffffff"),
        _box(at(begin), LANE_TOP - 8, at(end) - at(begin), CURVE_BOTTOM - LANE_TOP + 8, "#fff4ce"),
        _text((at(begin) + at(end)) / 2, CURVE_TOP + 34, outage, 'text-anchor="middle"'),
    ]
    x = float(LEFT)
    shown = {role for seen in facts.roles.values() for _, role in seen}
    for name, colour in COLOURS.items():
        if name not in shown:
            continue
        parts += [_box(x, 12, 14, 14, colour), _text(x + 20, 23, name)]
        x += 44 + 7 * len(name)
    parts.append(_text(RIGHT, 23, "topic orders, partition 0", 'text-anchor="end"'))
    for index, (broker_id, seen) in enumerate(sorted(facts.roles.items())):
        y = LANE_TOP + index * (LANE_HEIGHT + LANE_GAP)
        parts.append(_text(12, y + 17, f"broker {broker_id}"))
        for (since, role), (until, _) in zip(seen, [*seen[1:], (facts.end_ms, "")], strict=True):
            parts.append(_box(at(since), y, at(until) - at(since), LANE_HEIGHT, COLOURS[role]))
    parts += _marks(facts, at)
    parts += _curve(facts, at)
    parts += _axis(facts, at)
    return "\n".join([*parts, "</svg>"]) + "\n"


def _marks(facts: Facts, at: Callable[[float], float]) -> list[str]:
    parts = []
    for index, (time_ms, text) in enumerate(sorted(facts.marks)):
        x, y = at(time_ms), 46 + 14 * (index % 2)
        parts.append(f'<path d="M{x:.1f} {y + 3} V{CURVE_BOTTOM}" stroke="#57606a"/>')
        parts.append(_text(x, y, text, 'text-anchor="middle"'))
    return parts


def _curve(facts: Facts, at: Callable[[float], float]) -> list[str]:
    highest = max(offset for _, offset in facts.high_watermark)
    scale = (CURVE_BOTTOM - CURVE_TOP) / highest
    path, last = "", -1
    for time_ms, offset in facts.high_watermark:
        if offset != last:
            y = CURVE_BOTTOM - offset * scale
            path += f"H{at(time_ms):.1f} V{y:.1f} " if path else f"M{at(time_ms):.1f} {y:.1f} "
            last = offset
    path += f"H{at(facts.end_ms):.1f}"
    return [
        f'<path d="{path}" fill="none" stroke="#0969da" stroke-width="2"/>',
        _text(12, CURVE_TOP + 40, "high"),
        _text(12, CURVE_TOP + 54, "watermark"),
        _text(RIGHT, CURVE_TOP - 6, str(highest), 'text-anchor="end" fill="#0969da"'),
    ]


def _axis(facts: Facts, at: Callable[[float], float]) -> list[str]:
    parts = [f'<path d="M{LEFT} {CURVE_BOTTOM} H{RIGHT}" stroke="#57606a"/>']
    for second in range(int(facts.end_ms / 1000) + 1):
        x = at(second * 1000)
        parts.append(f'<path d="M{x:.1f} {CURVE_BOTTOM} v5" stroke="#57606a"/>')
        parts.append(_text(x, CURVE_BOTTOM + 18, f"{second} s", 'text-anchor="middle"'))
    note = f"virtual time; zookeeper.session.timeout.ms={SESSION_TIMEOUT_MS}, seed {SEED}"
    parts.append(_text(LEFT, CURVE_BOTTOM + 34, note, 'fill="#57606a"'))
    return parts


def main() -> int:
    picture = draw(observe())
    if sys.argv[1:] == ["--check"]:
        if PICTURE.read_text(encoding="utf-8") != picture:
            print(f"{PICTURE.name} is stale: python docs/draw_failover.py", file=sys.stderr)
            return 1
        return 0
    if sys.argv[1:]:
        print(f"no option {sys.argv[1]}; there is --check", file=sys.stderr)
        return 2
    PICTURE.write_text(picture, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
