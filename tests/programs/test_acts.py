"""Acts of programs, each with the place in the code that caused it."""

from __future__ import annotations

import asyncio
import sys
from typing import Any

from fakekafka.programs.acts import Act, Acts
from fakekafka.tests.support.programs import World


def acts_of(main: Any, *others: Any) -> list[Act]:
    acts = Acts()
    world = World(acts=acts)
    for number, other in enumerate(others):
        world.start(other, name=f"other-{number}")
    world.run(main)
    world.end()
    return [act for act in acts.all if act.program == "worker-1"]


def line_of(function: Any, behind: int) -> str:
    code = function.__code__
    return f"{__file__}:{code.co_firstlineno + behind} in {code.co_name}"


async def wait_twice() -> None:
    await asyncio.sleep(0.5)
    await asyncio.wait_for(asyncio.sleep(0.25), 10)


def test_an_act_has_its_time_and_the_line_of_the_program() -> None:
    """The line is in the program's own code, not in asyncio's."""
    told = [(act.time_us, act.what, act.place) for act in acts_of(wait_twice)]
    assert told[0] == (0, "waits until 0.500000 s", line_of(wait_twice, 1))
    assert (500_001, "waits until 10.500001 s", line_of(wait_twice, 2)) in told
    assert {time_us for time_us, _, _ in told} == {0, 500_001}


async def echo() -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(await reader.read(100))

    await asyncio.start_server(answer, port=7)
    await asyncio.sleep(100)


async def talk() -> None:
    reader, writer = await asyncio.open_connection("other-0", 7)
    writer.write(b"hello")
    await reader.read(100)
    writer.close()


def test_bytes_sent_over_a_connection_are_an_act() -> None:
    """The act says how many bytes are sent, and a checksum identifies them."""
    connects, sends, closes = acts_of(talk, echo)
    assert (connects.what, connects.place) == ("connects to other-0:7", line_of(talk, 1))
    assert (sends.what, sends.place) == ("sends 5 bytes to other-0:7", line_of(talk, 2))
    assert (closes.what, closes.place) == ("closes a connection", line_of(talk, 4))
    assert sends.is_same_as(sends._replace(place="elsewhere"))
    assert not sends.is_same_as(sends._replace(checksum=0))


async def queue_of_library() -> None:
    """Run code that lies where libraries are installed."""
    source = "import asyncio\nasync def library():\n    await asyncio.sleep(1)\n"
    names: dict[str, Any] = {}
    exec(compile(source, f"{sys.prefix}/lib/site-packages/library.py", "exec"), names)
    task = asyncio.create_task(names["library"](), name="of the library")
    await task


def test_an_act_of_a_library_is_reported_with_the_waiting_lines_of_the_program() -> None:
    """An act of a library is reported with the line at which each task of the program waits."""
    (waits,) = acts_of(queue_of_library)
    library = f"{sys.prefix}/lib/site-packages/library.py:3 in library"
    assert waits.place == (
        f"{library}, while there are the tasks main at {line_of(queue_of_library, 6)}, "
        f"of the library at {library}"
    )


def test_coroutines_start_in_the_order_in_which_they_are_passed() -> None:
    """``asyncio.as_completed`` keeps coroutines in a set, whose order depends on addresses."""
    begun: list[int] = []

    async def begin(number: int) -> int:
        begun.append(number)
        return number

    async def main() -> None:
        ballast = [begin(number) for number in range(1, 100, 2)]
        given = [begin(number) for number in range(0, 100, 2)]
        for one in ballast:
            one.close()
        for future in asyncio.as_completed(
            [*given, *(begin(number) for number in range(100, 130))]
        ):
            await future

    world = World()
    world.run(main)
    world.end()
    assert begun == [*range(0, 100, 2), *range(100, 130)]
    assert "set" not in vars(asyncio.tasks)
