"""Steps that affect programs, in addition to those for any cluster."""

from __future__ import annotations

from ...protocol.admin import AlterPartitionReassignmentsRequest
from ...protocol.values import TopicPartition
from ..step import Step
from .program_world import ProgramWorld


class KillProgram(Step[ProgramWorld]):
    program: str

    def do(self, world: ProgramWorld) -> bool:
        if self.program not in world.stoppable_programs():
            return False
        world.handle(self.program).kill()
        world.killed.add(self.program)
        return True


class RestartProgram(Step[ProgramWorld]):
    """Starts a killed program again."""

    program: str

    def do(self, world: ProgramWorld) -> bool:
        if self.program not in world.killed or world.programs[self.program].is_running:
            return False
        world.killed.discard(self.program)
        world.handle(self.program).restart()
        return True


class PauseProgram(Step[ProgramWorld]):
    """Pauses a program, as a long garbage collection does."""

    program: str

    def do(self, world: ProgramWorld) -> bool:
        if self.program not in world.stoppable_programs():
            return False
        world.handle(self.program).pause()
        return True


class ResumeProgram(Step[ProgramWorld]):
    program: str

    def do(self, world: ProgramWorld) -> bool:
        known = world.programs.get(self.program)
        if known is None or not known.is_paused:
            return False
        world.handle(self.program).resume()
        return True


class ShiftClock(Step[ProgramWorld]):
    """Shifts the wall clock of a program's machine forward or back."""

    program: str
    ms: int

    def do(self, world: ProgramWorld) -> bool:
        if self.program not in world.stoppable_programs():
            return False
        world.handle(self.program).shift_clock(self.ms)
        return True


class IsolateProgram(Step[ProgramWorld]):
    """Cuts a program off from all machines until the network is healed."""

    program: str

    def do(self, world: ProgramWorld) -> bool:
        if self.program not in world.attackable_programs():
            return False
        world.handle(self.program).isolate()
        world.has_network_faults = True
        return True


class CutProgram(Step[ProgramWorld]):
    """Cuts the connection from a program to a broker, from the broker to it, or both."""

    program: str
    broker: str
    direction: str
    """``to``, ``from`` or ``both``."""

    def do(self, world: ProgramWorld) -> bool:
        if self.program not in world.attackable_programs():
            return False
        ends = [self.program], [self.broker]
        one, other = ends if self.direction != "from" else ends[::-1]
        both = self.direction == "both"
        world.simulation.network.partition(one, other, both_ways=both)
        world.has_network_faults = True
        return True


class SlowProgram(Step[ProgramWorld]):
    """Adds latency to the messages between a program and a broker, in both directions."""

    program: str
    broker: str
    ms: int

    def do(self, world: ProgramWorld) -> bool:
        if self.program not in world.attackable_programs():
            return False
        for link in ((self.program, self.broker), (self.broker, self.program)):
            world.simulation.network.latency(self.ms, source=link[0], target=link[1])
            world.slowed.append(link)
        return True


class AddProgram(Step[ProgramWorld]):
    """Starts another program with the same function and arguments as an existing one."""

    program: str

    def do(self, world: ProgramWorld) -> bool:
        if self.program not in world.scalable_programs():
            return False
        main, args, options = world.programs[self.program].call
        world.joined += 1
        name = f"{self.program}-more-{world.joined}"
        world.simulation.program(main, *args, name=name, **options)
        return True


class MovePartition(Step[ProgramWorld]):
    """Reassigns a partition, but only while nothing is broken, as Kafka itself may otherwise drop
    the last in-sync replica."""

    where: TopicPartition
    replicas: tuple[int, ...]

    def do(self, world: ProgramWorld) -> bool:
        view = world.simulation.partition(*self.where)
        is_whole = len(view.isr) == len(view.replicas)
        if not world.is_calm() or not is_whole or self.replicas == view.replicas:
            return False
        world.request(str(self), AlterPartitionReassignmentsRequest(((self.where, self.replicas),)))
        return True

    def is_settled(self, world: ProgramWorld) -> bool:
        """Return True once the partition was moved, or the request was refused."""
        _, answer = world.requests[-1]
        view = world.simulation.partition(*self.where)
        return answer.done and not view.adding and not view.removing


class EndFaults(Step[ProgramWorld]):
    """Ends every fault: brokers and programs run, and the network is healed."""

    def do(self, world: ProgramWorld) -> bool:
        world.end_faults()
        return True
