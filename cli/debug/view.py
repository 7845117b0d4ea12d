"""The debugger as an application that fills the terminal."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any, ClassVar

from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Container, Horizontal, Vertical, VerticalScroll
from textual.markup import escape
from textual.screen import ModalScreen
from textual.widgets import Footer, Input, Label, OptionList, Static

from ...debugger.debugger import Debugger, Stop
from ...debugger.forks import parse_action
from ...debugger.moves import Move, Progress, Result
from ...protocol.errors import FakeKafkaError
from ...tracing.debugger.breakpoints import Breakpoint
from ...tracing.reading.queries import compile_filter
from ...tracing.reading.state_history import last_change
from .event_lines import EventLines
from .panes import (
    cause_of,
    chain_text,
    first_effect,
    lanes,
    payload_text,
    progress_text,
    state_text,
    title_text,
)

_PLAY_S = 0.1
_AT_ONCE_S = 0.05
"""Duration of a move in seconds up to which the screen is drawn only at its end."""
_SLICES_S = 0.02
"""Duration of a slice of a longer move in seconds, after which keys and the screen have a turn."""
_PAUSE_S = 0.005
_TITLE_EVERY_S = 0.1
"""Seconds between two progress lines, each of which costs as much as a slice to draw."""
_DRAWN_EVERY_S = 0.5
"""Seconds between two full redraws."""
_ALLOWED_WHILE_MOVING = frozenset(
    {"stop", "quit", "help", "filter", "unchanged", "lanes", "mark", "copy"}
)
"""The actions allowed during a move, none of which moves the debugger."""


class Ask(ModalScreen[str | None]):
    """A question with a one-line answer; Escape closes it without an answer."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "dismiss(None)", "never mind")]
    DEFAULT_CSS: ClassVar[str] = """
    Ask { align: center middle; }
    Ask > Vertical { width: 80%; height: auto; border: round $accent; background: $surface; }
    """

    def __init__(self, question: str, hint: str, value: str = "") -> None:
        super().__init__()
        self._question = question
        self._hint = hint
        self._value = value

    def compose(self) -> ComposeResult:
        with Vertical():
            yield Label(self._question, markup=False)
            yield Input(self._value, placeholder=self._hint)

    def on_input_submitted(self, submitted: Input.Submitted) -> None:
        self.dismiss(submitted.value.strip())


class Help(ModalScreen[None]):
    """The list of all keys; Escape, q, ? or Enter closes it."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,question_mark,q,enter", "dismiss", "close")
    ]
    DEFAULT_CSS: ClassVar[str] = """
    Help { align: center middle; }
    Help > VerticalScroll { width: 74; height: 80%; border: round $accent; background: $surface; }
    """

    def __init__(self, text: str) -> None:
        super().__init__()
        self._text = text

    def compose(self) -> ComposeResult:
        with VerticalScroll():
            yield Static(self._text, markup=False)


class Breakpoints(ModalScreen[None]):
    """The list of all breakpoints; Delete or d removes the highlighted one."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q", "dismiss", "close"),
        Binding("delete,d,backspace", "delete", "delete"),
    ]
    DEFAULT_CSS: ClassVar[str] = """
    Breakpoints { align: center middle; }
    Breakpoints > Vertical { width: 80%; height: auto; border: round $accent; }
    Breakpoints OptionList { height: auto; max-height: 12; }
    """

    def __init__(self, points: list[Breakpoint]) -> None:
        super().__init__()
        self._points = points

    def compose(self) -> ComposeResult:
        with Vertical():
            yield Label("breakpoints: d deletes, Escape closes", markup=False)
            yield OptionList(*map(self._line, self._points), markup=False)

    @staticmethod
    def _line(point: Breakpoint) -> str:
        return f"{point.text}  ({point.hits} hits)"

    def action_delete(self) -> None:
        shown = self.query_one(OptionList)
        number = shown.highlighted
        if number is None:
            return
        del self._points[number]
        shown.remove_option_at_index(number)
        if not self._points:
            self.dismiss()


class DebuggerApp(App[None]):
    """The application: lanes and events on the left; state, payload and causes on the right."""

    TITLE: str | None = "fakekafka"
    CSS: ClassVar[str] = """
    #title { height: 1; background: $primary-darken-2; color: $text; padding: 0 1; }
    #title.moving { background: $warning-darken-2; }
    #left { width: 3fr; }
    #right { width: 2fr; }
    .-narrow #panes { layout: vertical; }
    .-narrow #left { width: 100%; height: 1fr; }
    .-narrow #right { width: 100%; height: 45%; min-height: 10; layout: grid; grid-size: 2 2; }
    .-narrow #state-box { row-span: 2; }
    .-narrow #chain-box { max-height: 100%; }
    #lanes { height: 33%; min-height: 7; max-height: 16; border: round $primary; }
    .-narrow.-short #lanes { display: none; }
    #events { height: 1fr; border: round $primary; scrollbar-size-horizontal: 0; }
    #state-box { height: 1fr; border: round $primary; }
    #payload-box { height: 1fr; border: round $primary; }
    #chain-box { height: 1fr; max-height: 12; border: round $primary; }
    #events:focus, VerticalScroll:focus { border: round $accent; }
    """
    HORIZONTAL_BREAKPOINTS: list[tuple[int, str]] | None = [(0, "-narrow"), (130, "-wide")]
    VERTICAL_BREAKPOINTS: list[tuple[int, str]] | None = [(0, "-short"), (32, "-tall")]
    # The footer shows the first ones, as many as there is room for.
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+c", "stop", "stop", key_display="^c", priority=True),
        Binding("right,l", "step(1)", "step"),
        Binding("left,h", "step(-1)", "back"),
        Binding("right_square_bracket", "interesting(1)", "fault →", key_display="]"),
        Binding("b", "breakpoint", "break"),
        Binding("r", "run_on", "run"),
        Binding("g", "goto", "goto"),
        Binding("slash", "filter", "find", key_display="/"),
        Binding("question_mark", "help", "help", key_display="?"),
        Binding("q", "quit", "quit"),
        Binding("c", "cause", "cause"),
        Binding("e", "effect", "effect"),
        Binding("w", "last_change", "last change"),
        Binding("i", "inject", "inject"),
        Binding("full_stop,.", "lane(1)", "lane →", key_display="."),
        Binding("comma", "lane(-1)", "lane ←", show=False, key_display=","),
        Binding("left_square_bracket", "interesting(-1)", "fault ←", show=False, key_display="["),
        Binding("B", "breakpoints", "list breakpoints, delete some", show=False),
        Binding("R", "run_back", "run back", show=False),
        Binding("s", "save", "save", show=False),
        Binding("u", "unchanged", "unchanged", show=False),
        Binding("v", "lanes", "show or hide lanes", show=False),
        Binding("m", "mark", "mark", show=False),
        Binding("y", "copy", "copy command", show=False),
        Binding("space", "play", "play", show=False),
        Binding("home", "goto_first", "first", show=False),
    ]

    def __init__(self, debugger: Debugger, name: str = "run") -> None:
        super().__init__()
        self.debugger = debugger
        self._run_name = name
        self._shows_all = False
        self._is_playing = False
        self._is_moving = False
        self._stop_requested = False
        self._is_leaving = False
        """True once ``q`` was pressed: the panes disappear before a move in progress has ended."""
        self._progress: Progress | None = None
        self.marks: set[int] = set()

    def compose(self) -> ComposeResult:
        yield Static(id="title", markup=False)
        with Horizontal(id="panes"):
            with Vertical(id="left"):
                yield Static(id="lanes", markup=False)
                yield EventLines(self.debugger.trace.stored, id="events")
            with Container(id="right"):
                with VerticalScroll(id="state-box"):
                    yield Static(id="state", markup=False)
                with VerticalScroll(id="payload-box"):
                    yield Static(id="payload", markup=False)
                with VerticalScroll(id="chain-box"):
                    yield Static(id="chain", markup=False)
        yield Footer(show_command_palette=False)

    def on_mount(self) -> None:
        for box, title in (
            ("lanes", "lanes"),
            ("events", "events"),
            ("payload-box", "payload"),
            ("chain-box", "why"),
        ):
            self.query_one(f"#{box}").border_title = title
        self.query_one(EventLines).focus()
        self.set_interval(_PLAY_S, self._play_on)
        if self.debugger.problem is not None:
            self.notify(
                f"{self.debugger.problem}; showing what is whole", severity="warning", markup=False
            )
        self.call_after_refresh(self.show)

    # -- drawing -------------------------------------------------------------------------------

    def show(self) -> None:
        """Draw the event at which the debugger stands."""
        if self._is_leaving:
            return
        debugger = self.debugger
        stored, event = debugger.trace.stored, debugger.event
        here = event.seq
        self._show_title()
        lanes_pane = self.query_one("#lanes", Static)
        if lanes_pane.display:
            lanes_pane.update(lanes(stored, here, max(lanes_pane.content_size.height, 3)))
        events = self.query_one(EventLines)
        events.marks = self.marks
        events.show(stored, here)
        state = debugger.state(event.actor)
        self.query_one("#state-box").border_title = escape(f"state of {event.actor}")
        text = state_text(event, state, shows_all=self._shows_all)
        self.query_one("#state", Static).update(text)
        self.query_one("#payload", Static).update(payload_text(event))
        self.query_one("#chain", Static).update(chain_text(debugger.why()))

    def _try(self, function: Callable[[], object]) -> None:
        """Call a function and redraw; an error is shown in a notification and changes nothing."""
        try:
            function()
        except FakeKafkaError as error:
            self.notify(str(error), severity="error", markup=False)
        self.show()

    def _goto(self, number: int | None, nothing: str) -> None:
        if number is None:
            self.notify(nothing, severity="warning", markup=False)
            return
        self._start_move(self.debugger.move_to(number))

    # -- long moves ----------------------------------------------------------------------------

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Return whether an action is allowed now; None shows its key greyed out."""
        if action == "stop":
            return self._is_moving
        known = any(isinstance(one, Binding) and _name(one) == action for one in self.BINDINGS)
        return None if self._is_moving and known and action not in _ALLOWED_WHILE_MOVING else True

    def _start_move(
        self, move: Move[Result], then: Callable[[Result], object] = lambda result: None
    ) -> None:
        """Carry out a move in slices, keep the screen responsive, and pass the result to ``then``.

        Only one move can be in progress; another is refused.
        """
        if self._is_moving:
            self.notify("one run at a time; Ctrl-C stops it", severity="warning")
            return
        self._is_playing = self._stop_requested = False
        if not self._continue_move(move, then, _AT_ONCE_S):
            self._is_moving = True
            self.query_one("#title").add_class("moving")
            self.refresh_bindings()
            self.run_worker(self._move_in_background(move, then))

    def _continue_move(
        self, move: Move[Result], then: Callable[[Result], object], span_s: float
    ) -> bool:
        """Continue a move for some seconds; return True, after a redraw, if it has ended."""
        until_s = time.monotonic() + span_s
        try:
            self._progress = next(move)
            while time.monotonic() < until_s:
                self._progress = next(move)
        except StopIteration as end:
            result: Result = end.value
            self._try(lambda: then(result))
            return True
        except FakeKafkaError as error:
            self.notify(str(error), severity="error", markup=False)
            self.show()
            return True
        return False

    async def _move_in_background(
        self, move: Move[Result], then: Callable[[Result], object]
    ) -> None:
        self._show_title()
        title_shown_s = drawn_s = time.monotonic()
        try:
            while not self._stop_requested:
                await asyncio.sleep(_PAUSE_S)
                if self._is_leaving:
                    return
                if self._continue_move(move, then, _SLICES_S):
                    return
                now_s = time.monotonic()
                if now_s - drawn_s > _DRAWN_EVERY_S:
                    self.show()
                    title_shown_s = drawn_s = now_s
                elif now_s - title_shown_s > _TITLE_EVERY_S:
                    self._show_title()
                    title_shown_s = now_s
            self.notify(f"stopped at #{self.debugger.position:,}")
        finally:
            move.close()
            self._is_moving = False
            if not self._is_leaving:
                self.query_one("#title").remove_class("moving")
                self.refresh_bindings()
                self.show()

    def _show_title(self) -> None:
        if self._is_leaving:
            return
        debugger = self.debugger
        if self._is_moving and self._progress is not None:
            text = progress_text(self._progress, debugger)
        else:
            text = title_text(debugger.trace.stored, debugger.event, self._run_name)
        self.query_one("#title", Static).update(text)

    def exit(self, *arguments: Any, **options: Any) -> None:
        """Leave the application; nothing is drawn from now on."""
        self._is_leaving = True
        super().exit(*arguments, **options)

    def action_stop(self) -> None:
        self._stop_requested = True

    def _ask(self, question: str, hint: str, use: Callable[[str], object], value: str = "") -> None:
        def answered(text: str | None) -> None:
            if text is not None:
                self._try(lambda: use(text))

        self.push_screen(Ask(question, hint, value), answered)

    # -- moving --------------------------------------------------------------------------------

    def action_step(self, direction: int) -> None:
        debugger = self.debugger
        if not (debugger.step() if direction > 0 else debugger.back()):
            self.notify("the run ends here" if direction > 0 else "this is the first event")
        self.show()

    def action_lane(self, direction: int) -> None:
        debugger = self.debugger
        ways = debugger.move_to_next_on if direction > 0 else debugger.move_to_previous_on
        nothing = f"no {'later' if direction > 0 else 'earlier'} event of this actor"
        self._start_move(ways(), lambda is_found: None if is_found else self.notify(nothing))

    def action_interesting(self, direction: int) -> None:
        debugger = self.debugger
        forward = direction > 0
        ways = (
            debugger.move_to_next_interesting if forward
            else debugger.move_to_previous_interesting
        )  # fmt: skip
        nothing = f"no {'later' if forward else 'earlier'} fault, crash or restart"
        self._start_move(ways(), lambda is_found: None if is_found else self.notify(nothing))

    def action_cause(self) -> None:
        self._goto(cause_of(self.debugger.trace.stored, self.debugger.event), "this has no cause")

    def action_effect(self) -> None:
        stored = self.debugger.trace.stored
        self._goto(first_effect(stored, self.debugger.position), "nothing follows from this")

    def action_goto(self) -> None:
        self._ask(
            "go to", "#1234 or 9.5s", lambda text: self._start_move(self.debugger.move_to(text))
        )

    def action_goto_first(self) -> None:
        self._goto(self.debugger.trace.stored.first_seq, "")

    def action_last_change(self) -> None:
        delta = self.debugger.event.delta

        def go(path: str) -> None:
            stored, here = self.debugger.trace.stored, self.debugger.position
            found = last_change(stored, path, here - 1)
            self._goto(None if found is None else found.event.seq, f"no earlier change of {path}")

        hint = "broker-1/orders-0/high_watermark"
        self._ask("last change of", hint, go, delta[0][0] if delta else "")

    def action_play(self) -> None:
        self._is_playing = not self._is_playing

    def _play_on(self) -> None:
        # Do not step while a question is open.
        if self._is_playing and len(self.screen_stack) == 1 and not self._is_leaving:
            self._is_playing = self.debugger.step()
            self.show()

    def on_event_lines_chosen(self, chosen: EventLines.Chosen) -> None:
        self._goto(chosen.number, "")

    # -- breakpoints ---------------------------------------------------------------------------

    def action_breakpoint(self) -> None:
        self._ask(
            "break on",
            "change broker-1/orders-0/isr, crash of broker-1, at 9.5s, invariant",
            self._set_breakpoint,
        )

    def _set_breakpoint(self, text: str) -> None:
        self.debugger.break_on(text)
        self.notify(f"breakpoints: {len(self.debugger.breakpoints)}; r runs to the next")

    def action_breakpoints(self) -> None:
        if not self.debugger.breakpoints:
            self.notify("there are no breakpoints; b sets one")
            return
        self.push_screen(Breakpoints(self.debugger.breakpoints))

    def action_run_on(self) -> None:
        self._start_move(self.debugger.run_in_slices(), self._tell)

    def action_run_back(self) -> None:
        self._start_move(self.debugger.run_back_in_slices(), self._tell)

    def _tell(self, stop: Stop) -> None:
        self.notify(f"stopped: {stop.reason}", markup=False)

    # -- the rest ------------------------------------------------------------------------------

    def action_filter(self) -> None:
        self._ask(
            "show only", "type == FetchRequest and kind == drop; empty: all", self._use_filter
        )

    def _use_filter(self, text: str) -> None:
        stored = self.debugger.trace.stored
        self.query_one(EventLines).use_filter(compile_filter(text, stored) if text else None)
        self.query_one("#events").border_title = escape(f"events: {text}" if text else "events")

    def action_unchanged(self) -> None:
        self._shows_all = not self._shows_all
        self.show()

    def action_lanes(self) -> None:
        pane = self.query_one("#lanes")
        pane.display = not pane.display
        self.call_after_refresh(self.show)

    def action_mark(self) -> None:
        self.marks ^= {self.debugger.position}
        self.show()

    def action_copy(self) -> None:
        command = self.debugger.header.get("reproduce") or ""
        self.copy_to_clipboard(command)
        self.notify(command or "this run has no command", markup=False)

    def action_inject(self) -> None:
        def use(text: str) -> None:
            action, arguments = parse_action(text)
            self._start_move(self.debugger.inject_in_slices(action, **arguments), lambda _: tell())

        def tell() -> None:
            self.notify(f"another run from here on: {self.debugger.forks[-1]}", markup=False)

        self._ask("do here", "kill broker=1, isolate machine=3, drop probability=0.1, heal", use)

    def action_save(self) -> None:
        def use(text: str) -> None:
            self.debugger.save(text)
            self.notify(f"written: fakekafka run {text}", markup=False)

        self._ask("save the scenario of this run as", "fork.toml", use)

    def action_help(self) -> None:
        lines = []
        for binding in self.BINDINGS:
            if isinstance(binding, Binding):
                key = binding.key_display or binding.key.replace(",", " or ")
                lines.append(f"  {key:<12} {binding.description}")
        lines.append("  click        go to an event")
        self.push_screen(Help("\n".join(lines)))


def _name(binding: Binding) -> str:
    return binding.action.partition("(")[0]
