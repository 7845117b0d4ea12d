"""The debugger in line mode: reads one command per line and prints its result."""

from __future__ import annotations

import shlex
import signal
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

from ...debugger.debugger import Debugger, Stop
from ...debugger.forks import parse_action
from ...debugger.moves import Move, Result
from ...protocol.errors import FakeKafkaError, UsageError, did_you_mean
from ...tracing.events import jsonable
from ...tracing.text import format_event

_CHANGES_SHOWN = 12


_AS_IN_GDB = {
    "b": "break", "p": "print", "bt": "why", "rs": "back", "rn": "previous", "rc": "reverse",
    "i": "info", "r": "continue", "run": "continue",
}  # fmt: skip
"""Abbreviations of gdb that would otherwise be ambiguous or unknown."""


class _Interrupted(FakeKafkaError):
    """Ctrl-C stopped a move before its end."""


@contextmanager
def _ctrl_c_noted() -> Iterator[Callable[[], bool]]:
    """Turn Ctrl-C into a flag, which the caller checks between two slices of a run: it must not
    interrupt a slice. In threads other than the main one Ctrl-C is not handled here."""
    noted: list[int] = []
    try:
        before = signal.signal(signal.SIGINT, lambda number, frame: noted.append(number))
    except ValueError:
        yield lambda: False
        return
    try:
        yield lambda: bool(noted)
    finally:
        signal.signal(signal.SIGINT, before)


class _Command(NamedTuple):
    does: Callable[[str], None]
    usage: str
    about: str


class LineMode:
    """Reads commands and writes lines. A command may be abbreviated to any prefix of its name; an
    ambiguous prefix means the same as in gdb."""

    def __init__(self, debugger: Debugger, write: Callable[[str], object] = print) -> None:
        self.debugger = debugger
        self.is_over: bool = False
        self._write = write
        self._commands = {
            "step": _Command(self._step, "step [N]", "go on by N events (1)"),
            "back": _Command(self._back, "back [N]", "go back by N events (1); in short rs"),
            "next": _Command(self._next, "next [ACTOR]", "the next event of this or an actor"),
            "previous": _Command(self._previous, "previous [ACTOR]", "the one before; in short rn"),
            "continue": _Command(
                self._continue, "continue [WHERE]", "set a breakpoint if one is given, go on to one"
            ),
            "reverse": _Command(
                self._reverse, "reverse [WHERE]", "the same, but go back; in short rc"
            ),
            "goto": _Command(self._goto, "goto #N|TIME", "go to an event, or a time such as 9.5s"),
            "break": _Command(
                self._break, "break [WHERE]", "set a breakpoint, or list them; in short b"
            ),
            "delete": _Command(self._delete, "delete N", "remove a breakpoint"),
            "state": _Command(self._state, "state [ACTOR|PATH]", "what is known here"),
            "print": _Command(
                self._print, "print [PATH]", "the event with its payload and changes, or state"
            ),
            "why": _Command(self._why, "why", "what led to this event"),
            "actors": _Command(self._actors, "actors", "all that act"),
            "info": _Command(self._info, "info [b|WHAT]", "break or state, as gdb lists them"),
            "do": _Command(
                self._do, "do ACTION NAME=VALUE ...", "inject a fault here, as do kill broker=1"
            ),
            "save": _Command(self._save, "save FILE", "write the scenario of this run"),
            "help": _Command(self._help, "help", "this list"),
            "quit": _Command(self._quit, "quit", "leave"),
        }

    def read(self, lines: Iterable[str], *, is_prompting: bool = False) -> None:
        """Execute every line until ``quit`` or the end of the input."""
        self._show()
        prompt = "(fakekafka) "
        if is_prompting:
            self._write("help lists the commands")
            print(prompt, end="", flush=True)
        for line in lines:
            self.obey(line)
            if self.is_over:
                return
            if is_prompting:
                print(prompt, end="", flush=True)

    def obey(self, line: str) -> None:
        """Execute a line; an error is printed and changes nothing."""
        word, _, rest = line.strip().partition(" ")
        if not word or word.startswith("#"):
            return
        try:
            self._command(word).does(rest.strip())
        except _Interrupted:
            self._write("stopped: Ctrl-C")
            self._show()
        except FakeKafkaError as error:
            self._write(f"error: {error}")

    def _command(self, word: str) -> _Command:
        if word in self._commands:
            return self._commands[word]
        if word in _AS_IN_GDB:
            return self._commands[_AS_IN_GDB[word]]
        found = [name for name in self._commands if name.startswith(word)]
        if found:  # the first in the table wins: s is step, c is continue, d is delete
            return self._commands[found[0]]
        hint = did_you_mean(word, self._commands) or "; help lists what there is"
        raise UsageError(f"there is no command {word!r}{hint}")

    # -- moving --------------------------------------------------------------------------------

    def _continue_move(self, move: Move[Result]) -> Result:
        """Carry out a move to its end, or until Ctrl-C stops it."""
        with _ctrl_c_noted() as is_interrupted:
            while True:
                try:
                    next(move)
                except StopIteration as end:
                    result: Result = end.value
                    return result
                if is_interrupted():
                    move.close()
                    raise _Interrupted

    def _show(self) -> None:
        event = self.debugger.event
        self._write(format_event(event))
        for path, old, new in event.delta[:_CHANGES_SHOWN]:
            self._write(f"    {path}: {jsonable(old)} -> {jsonable(new)}")
        if len(event.delta) > _CHANGES_SHOWN:
            self._write(
                f"    and {len(event.delta) - _CHANGES_SHOWN} changes more; print shows all"
            )

    def _step(self, rest: str) -> None:
        if not self.debugger.step(_count(rest)):
            self._write("the run has ended")
        self._show()

    def _back(self, rest: str) -> None:
        if not self.debugger.back(_count(rest)):
            self._write("this is the first event")
        self._show()

    def _next(self, rest: str) -> None:
        if not self._continue_move(self.debugger.move_to_next_on(rest or None)):
            self._write(f"there is no later event of {rest or self.debugger.event.actor}")
            return
        self._show()

    def _previous(self, rest: str) -> None:
        if not self._continue_move(self.debugger.move_to_previous_on(rest or None)):
            self._write(f"there is no earlier event of {rest or self.debugger.event.actor}")
            return
        self._show()

    def _continue(self, rest: str) -> None:
        if rest:
            self.debugger.break_on(rest)
        self._stopped(self._continue_move(self.debugger.run_in_slices()))

    def _reverse(self, rest: str) -> None:
        if rest:
            self.debugger.break_on(rest)
        self._stopped(self._continue_move(self.debugger.run_back_in_slices()))

    def _stopped(self, stop: Stop) -> None:
        self._write(f"stopped: {stop.reason}")
        self._show()

    def _goto(self, rest: str) -> None:
        self._continue_move(self.debugger.move_to(rest))
        self._show()

    # -- breakpoints ---------------------------------------------------------------------------

    def _break(self, rest: str) -> None:
        if rest:
            self.debugger.break_on(rest)
        if not self.debugger.breakpoints:
            self._write("there are no breakpoints")
        for number, point in enumerate(self.debugger.breakpoints, 1):
            self._write(f"{number:3d}  {point.text}  ({point.hits} hits)")

    def _delete(self, rest: str) -> None:
        points = self.debugger.breakpoints
        if not rest.isdigit() or not 0 < int(rest) <= len(points):
            raise UsageError("write the number of a breakpoint; break lists them")
        del points[int(rest) - 1]

    # -- inspecting ----------------------------------------------------------------------------

    def _state(self, rest: str) -> None:
        actor = rest if rest in self.debugger.actors else None
        pattern = None if actor or not rest else rest
        state = self.debugger.state(actor, pattern)
        for path, value in state.items():
            mark = "*" if path in state.changed else " "
            self._write(f"{mark} {path} = {jsonable(value)}")
        if not state:
            self._write(f"nothing is known of {rest or 'any state'} here")

    def _info(self, rest: str) -> None:
        if rest and "breakpoints".startswith(rest):
            self._break("")
        else:
            self._state(rest)

    def _print(self, rest: str) -> None:
        if rest:
            self._state(rest)
            return
        self._write(format_event(self.debugger.event, 2))

    def _why(self, rest: str) -> None:
        for number, event in enumerate(self.debugger.why()):
            self._write(("because " if number else "") + format_event(event))

    def _actors(self, rest: str) -> None:
        self._write(", ".join(self.debugger.actors))

    # -- interfering ---------------------------------------------------------------------------

    def _do(self, rest: str) -> None:
        action, arguments = parse_action(rest)
        self._continue_move(self.debugger.inject_in_slices(action, **arguments))
        self._write(f"from here on this is another run: {self.debugger.forks[-1]}")

    def _save(self, rest: str) -> None:
        if not rest:
            raise UsageError("write a file, as in save fork.toml")
        self.debugger.save(rest)
        self._write(f"written; again: fakekafka run {shlex.quote(rest)}")

    def _help(self, rest: str) -> None:
        for command in self._commands.values():
            self._write(f"  {command.usage:<26} {command.about}")

    def _quit(self, rest: str) -> None:
        self.is_over = True


def _count(text: str) -> int:
    if text and (not text.isdigit() or int(text) < 1):
        raise UsageError(f"{text!r} is no number of events")
    return int(text or 1)
